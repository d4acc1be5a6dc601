"""Matches: pairs, colours, seatings, openings, results checked by the slow referee, intervals."""

import itertools

import jax
import numpy as np
import pytest

from tests.support.learner import matches, tiny
from tests.support.learner.matches import legal_player
from tests.support.reference.referee import Game
from train.arena import match_programs, report
from train.arena.figures import wilson_interval
from train.arena.match import (
    MatchOptions,
    entrants_of,
    fill_seats,
    play_in_rounds,
    play_match,
)
from train.arena.match_openings import OpeningOptions, read_openings
from train.arena.match_programs import seatings_of
from train.arena.result import MatchResult
from train.config.sprt import Sprt
from train.players import registry
from train.players.basic import Player
from train.runtime.errors import UsageError
from train.runtime.memory import Memory
from wallgo_jax.formats import diagram, records
from wallgo_jax.game.rules import PRESETS, Rules

BATCH, OPENING = 20, 2
RULES = Rules(size=3, stones=2, order=(0, 1, 1, 0), walls=4, stay_needs_room=True, tie=())
"""Two placements running, a wall budget that is used up, players without a turn."""
LOW, HIGH = legal_player("low", highest=False), legal_player("high", highest=True)


def play(first: str | Player, second: str | Player, rules: Rules = RULES, **options) -> MatchResult:
    """A match in batches of one size, so that tests share programs."""
    players = [registry.make_player(p, rules) if isinstance(p, str) else p for p in (first, second)]
    given = {"batch": BATCH, "opening": OpeningOptions(OPENING)} | options
    rest = {"key": jax.random.key(1)}
    rest |= {name: given.pop(name) for name in ("key", "on_progress") if name in given}
    return play_match(players, rules, MatchOptions(**given), **rest)


def is_red(result: MatchResult) -> np.ndarray:
    """bool[G]: the first entrant has the first seat."""
    return result.seats[:, 0] == 0


def hand_made(outcome, first_is_red, territory, games) -> MatchResult:
    return matches.of_two(
        "a", "b", RULES, outcome, territory=territory, games=games, is_red=first_is_red
    )


def assert_replays(result: MatchResult, *, scripted: range = range(0)) -> list[list[int]]:
    """Replay the games with the slow referee; returns who moved, ply by ply.

    At the scripted plies LOW and HIGH choose, whose slots are, with one stone a player or in setup,
    in the order of public actions.
    """
    movers = []
    figures = result.seats, result.rewards, result.cells, result.regions, result.places
    for played, seats, rewards, cells, regions, places in zip(result.games, *figures, strict=True):
        game, paid = Game(result.rules.to_dict()), [0.0] * len(seats)
        movers.append([])
        for ply, action in enumerate(played):
            legal = game.legal()
            assert action in legal
            if ply in scripted:
                is_low = result.names[seats[game.player]] == "low"
                assert action == (min(legal) if is_low else max(legal)), ply
            movers[-1].append(game.player)
            paid = game.act(action)
        assert game.over and rewards.tolist() == paid
        assert (cells.tolist(), regions.tolist()) == (game.territory(), game.largest())
        ranked = [(-reward, -own) for reward, own in zip(paid, game.territory(), strict=True)]
        assert places.tolist() == [1 + sum(b < a for b in ranked) for a in ranked]
    return movers


@pytest.fixture(scope="module")
def random_match() -> MatchResult:
    return play("random", "random", games=190)


def test_match_agrees_with_the_referee(random_match):
    """Also where turns do not alternate, and where a board takes the next game."""
    assert len(random_match.games) == 190
    movers = assert_replays(random_match)
    assert {1, 0, -1} == set(random_match.outcome.tolist())
    assert all(game[:4] == [0, 1, 1, 0] for game in movers)
    skipped = [game for game in movers if any(a == b for a, b in itertools.pairwise(game[4:]))]
    assert len(skipped) >= 3
    # Some games end because all walls are built: four each after four placements.
    assert 12 in map(len, random_match.games)
    red, rewards, cells = is_red(random_match), random_match.rewards, random_match.cells
    assert random_match.outcome.tolist() == np.where(red, *rewards.T).tolist()
    assert random_match.territory.tolist() == np.where(red, cells.T, cells.T[::-1]).T.tolist()


def test_pairs_share_their_opening_and_exchange_colours(random_match):
    half, games = 95, random_match.games
    assert is_red(random_match).tolist() == half * [True] + half * [False]
    for one, other in zip(games[:half], games[half:], strict=True):
        assert one[:OPENING] == other[:OPENING]
    pairs = random_match.outcome[:half] + random_match.outcome[half:]
    assert random_match.pairs.tolist() == pairs.tolist()
    assert random_match.pair_counts == tuple((pairs == n).sum() for n in range(-2, 3))
    openings = {game[:OPENING] for game in games}
    assert len(openings) > 30  # of 72 that two stones on nine cells can make
    parted = sum(one != other for one, other in zip(games[:half], games[half:], strict=True))
    assert parted > 85  # the games of a pair, after it


def test_random_is_as_strong_as_itself_and_a_key_gives_the_same_games(random_match):
    # Five standard deviations of 190 fair games are 0.18.
    assert random_match.win_rate == pytest.approx(0.5, abs=0.18)
    assert random_match.distinct_games > 180
    assert play("random", "random", games=190).games == random_match.games


def test_each_player_acts_on_its_own_turns_and_is_traced_once():
    """Some games are over within the opening; the others are the same on any board."""
    traces: list[str] = []
    low, high = (legal_player(n, highest=n == "high", traces=traces) for n in ("low", "high"))
    result = play(low, high, tiny.RULES, games=50, opening=OpeningOptions(6))
    assert sorted(traces) == ["high", "low"]
    assert_replays(result, scripted=range(6, 99))
    lengths = [len(game) for game in result.games]
    assert min(lengths) < 6 < max(lengths)
    for one, other in zip(result.games[:25], result.games[25:], strict=True):
        assert one[:6] == other[:6]
    assert (result.first, result.second) == ("low", "high")


def test_an_opening_depends_on_the_key_and_its_pair_alone(random_match):
    fewer = play("random", "random", games=40)
    openings = [game[:OPENING] for game in random_match.games]
    assert [game[:OPENING] for game in fewer.games] == openings[:20] + openings[95:115]


def test_players_place_their_stones_and_random_plies_come_after():
    result = play(LOW, HIGH, games=50, opening=OpeningOptions(2, players_place=True))
    placed = len(RULES.order)
    assert_replays(result, scripted=range(placed))
    drawn = {(number < 25, game[placed : placed + 2]) for number, game in enumerate(result.games)}
    assert len(drawn) > 25


def test_a_match_opens_from_the_positions_of_a_file(random_match, tmp_path):
    """Two games that have begun, each played in both colours; then they begin again."""
    games = [game[:plies] for game, plies in zip(random_match.games, (2, 5), strict=False)]
    records.write(tmp_path / "openings.jsonl", [records.Record(RULES, game) for game in games])
    positions = read_openings(tmp_path / "openings.jsonl", RULES)
    result = play("random", "random", games=6, opening=OpeningOptions(positions=positions))
    assert_replays(result)
    for number, played in enumerate(result.games):
        opening = games[number % 3 % 2]
        assert played[: len(opening)] == opening
    assert result.distinct_games == 6
    # The same positions as diagrams, whose plies are not known.
    states = [records.replay(records.Record(RULES, game)).states[-1] for game in games]
    (tmp_path / "openings.txt").write_text("\n".join(map(diagram.draw, states)))
    drawn = read_openings(tmp_path / "openings.txt", RULES)
    assert not drawn.has_games and len(drawn) == 2
    other = play("random", "random", games=6, opening=OpeningOptions(positions=drawn))
    assert other.outcome.shape == (6,)


@pytest.mark.parametrize(
    ("rules", "length", "word"),
    [(tiny.RULES, 2, "other rules"), (RULES, None, "is over"), (RULES, 0, "")],
)
def test_openings_that_no_match_can_begin_from_are_refused(
    random_match, tmp_path, rules, length, word
):
    path, game = tmp_path / "openings.jsonl", random_match.games[0]
    records.write(path, [records.Record(RULES, game if length is None else game[:length])])
    if not word:
        assert len(read_openings(path, rules)) == 1
        return
    with pytest.raises(UsageError, match=word):
        read_openings(path, rules)


def test_figures():
    result = hand_made(
        outcome=[1, 1, 0, -1, 1, -1],
        first_is_red=[True, True, True, False, False, False],
        territory=[[6, 3], [5, 0], [3, 3], [2, 4], [4, 1], [0, 7]],
        games=[[1, 2], [1, 2], [1, 3], [1], [5, 6, 7, 8], [1, 2, 3]],
    )
    assert (result.wins, result.draws, result.losses) == (3, 1, 2)
    assert result.win_rate == pytest.approx(3.5 / 6)
    assert result.of(0).win_rate_at(0) == pytest.approx(2.5 / 3)
    assert result.of(0).win_rate_at(1) == pytest.approx(1 / 3)
    assert result.of(0).territory_ratio == pytest.approx(20 / 18)
    assert result.seat_win_rate(0) == pytest.approx((2.5 + 2) / 6)
    assert result.mean_length == pytest.approx(14 / 6)
    assert result.distinct_games == 5
    assert result.interval == wilson_interval(3.5 / 6, 6)
    one_sided = hand_made([1, 0], [True, True], [[5, 0], [4, 0]], [[1], [2]])
    assert one_sided.win_rate_at(1) is one_sided.territory_ratio is None
    assert report.match_record(one_sided)["win_rate_as_blue"] is None
    assert report._figures(one_sided)["win rate as Blue"] == "-"


@pytest.mark.parametrize(
    ("wins", "games", "low", "high"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion" (1998), Table I,
        # method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # By hand, z = 1.96: all won gives n / (n + z²) = 400 / 403.8415 below.
        (400, 400, 0.9905, 1.0000),
    ],
)
def test_wilson_interval(wins, games, low, high):
    assert wilson_interval(wins / games, games) == pytest.approx((low, high), abs=6e-5)
    assert wilson_interval(0.0, 0) == (0.0, 1.0)


def test_a_match_that_is_stopped_keeps_the_games_that_are_over():
    """The same games as in the whole match, in whole pairs first."""
    seen = []
    options = {"games": 120, "key": jax.random.key(3)}
    whole = play("random", "random", **options)
    stop = {"on_progress": seen.append, "should_stop": lambda: seen[-1] >= 40}
    stopped = play("random", "random", **options, **stop)
    count = len(stopped.games)
    assert 40 <= count == seen[-1] < 120
    assert len(stopped.outcome) == len(stopped.territory) == len(stopped.seats) == count
    assert stopped.wins + stopped.draws + stopped.losses == count
    place = {
        (opening, bool(red)): number
        for number, (opening, red) in enumerate(zip(whole.opening, is_red(whole), strict=True))
    }
    for opening, red, game in zip(stopped.opening, is_red(stopped), stopped.games, strict=True):
        assert game == whole.games[place[opening, bool(red)]]
    both = set(stopped.opening[is_red(stopped)]) & set(stopped.opening[~is_red(stopped)])
    assert 0 < len(stopped.pairs) == len(both) == sum(stopped.pair_counts)


def test_a_match_stopped_in_a_later_round_keeps_the_earlier_ones():
    player = registry.make_player("random", RULES)
    seen: list[int] = []
    opening = OpeningOptions(OPENING)
    options = MatchOptions(100, BATCH, opening, should_stop=lambda: seen[-1] >= 41)
    test, how = Sprt(0, 1e-3), {"key": jax.random.key(1), "on_progress": seen.append}
    result = play_in_rounds((player, player), RULES, options, test, **how)  # too few to decide
    assert 41 <= len(result.games) == seen[-1] <= 60
    assert len(result.pairs) >= 20
    assert (np.diff(np.unique(result.opening)) >= 1).all() and result.opening.max() < 30


def test_a_match_larger_than_memory_is_refused(monkeypatch):
    memory = Memory("each GPU", 1000, 1)
    monkeypatch.setattr(match_programs, "device_memory", lambda: memory)
    with pytest.raises(UsageError, match=r"each GPU has .* lower games"):
        play("random", "random", games=20)


# Of three and four players.

TRIO = Rules(size=3, players=3, stones=1, order=(0, 1, 2), walls=4, stay_needs_room=True, tie=())
THREE, FOUR = PRESETS["playwallgo-3p"], PRESETS["playwallgo-4p"]
DRAWN = 3  # plies of an opening


@pytest.fixture(scope="module")
def scripted_match() -> MatchResult:
    options = MatchOptions(40, 10, OpeningOptions(DRAWN))
    return play_match([LOW, HIGH, HIGH], TRIO, options, key=jax.random.key(5))


def test_each_opening_is_played_in_each_seating(scripted_match):
    result = scripted_match
    assert (result.names, len(result.games)) == (("low", "high"), 42)
    assert result.seats.reshape(14, 3, 3).tolist() == 14 * [[[0, 1, 1], [1, 0, 1], [1, 1, 0]]]
    assert result.opening.tolist() == np.repeat(np.arange(14), 3).tolist()
    starts = [game[:DRAWN] for game in result.games]
    assert all(starts[3 * n] == starts[3 * n + 1] == starts[3 * n + 2] for n in range(14))
    assert len(set(starts)) > 8


def test_scripted_games_end_as_the_slow_referee_says(scripted_match):
    assert_replays(scripted_match, scripted=range(DRAWN, 99))
    assert len({tuple(each) for each in scripted_match.rewards.tolist()}) > 2


RED_WINS, BLUE_WINS, DRAW = [1, -0.5, -0.5], [-0.5, 1, -0.5], [0.0, 0, 0]
HAND_MADE = MatchResult(
    names=("a", "b"),
    rules=THREE,
    seats=np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]),
    # Won by a, won by b, drawn, won by a, won by a, won by b.
    rewards=np.stack([RED_WINS, RED_WINS, DRAW, RED_WINS, BLUE_WINS, BLUE_WINS]),
    regions=np.array([[9, 4, 1], [9, 2, 3], [5, 3, 1], [7, 0, 0], [2, 9, 3], [0, 8, 2]]),
    cells=np.array([[9, 4, 2], [9, 2, 3], [5, 5, 1], [7, 0, 0], [3, 9, 3], [0, 8, 2]]),
    opening=np.array([0, 0, 0, 1, 1, 1]),
    games=tuple((number,) * (10 + number) for number in range(6)),
)


def test_figures_by_hand():
    result = HAND_MADE
    first, second = result.of(0), result.of(1)
    assert (first.wins, result.draws, first.losses) == (3, 1, 2)
    assert (second.wins, second.losses) == (2, 3)
    assert result.outcome.tolist() == [1, -1, 0, 1, 1, -1]
    assert result.win_rate == first.win_rate == pytest.approx((3 + 1 / 3) / 6)
    # Two seats share b's wins; the win rates of three seats are 1 together.
    assert second.win_rate == pytest.approx((2 + 2 / 3) / 12)
    assert first.decided_rate == pytest.approx(3 / 5)
    places = (1, 2, 3), (1, 3, 2), (1, 1, 3), (1, 2, 2), (2, 1, 2), (3, 1, 2)
    assert result.places.tolist() == [*map(list, places)]
    assert first.place_shares == pytest.approx([3 / 6, 1 / 6, 2 / 6])
    assert first.win_rate_at(0) == 1.0
    assert first.win_rate_at(2) == pytest.approx(1 / 6)
    assert result.seat_win_rate(0) == pytest.approx((3 + 1 / 3) / 6)
    assert first.mean_territory[0] == pytest.approx((9 + 2 + 1 + 7 + 9 + 2) / 6)
    assert result.territory[:2].tolist() == [[9, 6], [2, 12]]
    # Means of the openings: (1 - 1/2 + 0) / 3 and (1 + 1 - 1/2) / 3.
    reward, error = first.reward
    assert reward == pytest.approx((1 / 6 + 1 / 2) / 2)
    assert error == pytest.approx(1.959964 * np.std([1 / 6, 1 / 2], ddof=1) / np.sqrt(2))


def test_an_interval_is_of_the_games_that_one_of_the_seats_wins():
    """b has two seats, and 2 2/3 of six games: Wilson's of the share of games, by its seats."""
    first, second = HAND_MADE.of(0), HAND_MADE.of(1)
    low, high = wilson_interval((2 + 2 / 3) / 6, 6)
    assert second.interval == pytest.approx((low / 2, high / 2))
    assert first.interval == wilson_interval(first.win_rate, 6)
    # Where there are but two entrants, the one's games are what the other leaves.
    low, high = first.interval
    assert second.interval == pytest.approx(((1 - high) / 2, (1 - low) / 2))


def test_tables_and_records_say_the_same():
    record = report.match_record(HAND_MADE)
    assert (record["first"], record["second"]) == ("a", "2 b")
    assert (record["wins"], record["draws"], record["losses"]) == (3, 1, 2)
    assert [entrant["seats"] for entrant in record["entrants"]] == [1, 2]
    assert record["entrants"][0]["win_rate_by_seat"] == pytest.approx([1, 2 / 4, 1 / 6])
    assert "a against 2 b: 55.6% (" in report.match_line(HAND_MADE, seconds=1.0)
    kept = HAND_MADE.of_games(np.array([0, 2]))
    assert kept.games == (HAND_MADE.games[0], HAND_MADE.games[2])


@pytest.mark.parametrize(
    ("seats", "count"),
    [((1, 1, 1), 6), ((1, 2), 3), ((1, 1, 1, 1), 24), ((1, 3), 4), ((2, 2), 6), ((1, 1, 2), 12)],
)
def test_every_order_comes_once(seats, count):
    found = list(map(tuple, seatings_of(seats).entrants.tolist()))
    assert len(set(found)) == len(found) == count
    for seating in found:
        assert [seating.count(entrant) for entrant in range(len(seats))] == list(seats)
    for entrant, held in enumerate(seats):
        # Each entrant has each seat equally often.
        at = [sum(seating[seat] == entrant for seating in found) for seat in range(sum(seats))]
        assert at == sum(seats) * [count * held // sum(seats)]


def test_two_names_fill_all_seats_and_players_of_one_name_are_one_entrant():
    assert fill_seats(["a", "b"], THREE) == ["a", "b", "b"]
    assert fill_seats(["a", "b"], FOUR) == ["a", "b", "b", "b"]
    assert fill_seats(["a", "b", "a"], THREE) == ["a", "b", "a"]
    assert entrants_of([HIGH, LOW, HIGH]) == ((HIGH, LOW), (2, 1))
