"""Matches: pairs, colours, openings, results checked by the slow referee, intervals."""

import itertools

import jax
import numpy as np
import pytest

from tests.support.learner import matches, tiny
from tests.support.learner.matches import legal_player
from tests.support.reference.referee import Game
from train.arena import match as match_lib
from train.arena import match_programs, report
from train.arena.openings import OpeningOptions, read_openings
from train.arena.result import MatchResult, wilson_interval
from train.arena.sprt import play_in_rounds
from train.config.sprt import Sprt
from train.players import registry
from train.players.basic import Player
from train.runtime.errors import UsageError
from train.runtime.memory import Memory
from wallgo_jax.formats import diagram, records
from wallgo_jax.game.rules import Rules

BATCH, OPENING = 20, 2
RULES = Rules(size=3, stones=2, order=(0, 1, 1, 0), walls=4, stay_needs_room=True, tie=())
"""Two placements running, a wall budget that is used up, players without a turn."""


def play(first: str | Player, second: str | Player, rules: Rules = RULES, **options) -> MatchResult:
    """A match in batches of one size, so that tests share programs."""
    players = [registry.make_player(p, rules) if isinstance(p, str) else p for p in (first, second)]
    given = {"batch": BATCH, "opening": OpeningOptions(OPENING)} | options
    rest = {"key": jax.random.key(1)}
    rest |= {name: given.pop(name) for name in ("key", "on_progress") if name in given}
    return match_lib.play_match(players, rules, match_lib.MatchOptions(**given), **rest)


def is_red(result: MatchResult) -> np.ndarray:
    """bool[G]: the first entrant has the first seat."""
    return result.seats[:, 0] == 0


def hand_made(outcome, first_is_red, territory, games) -> MatchResult:
    return matches.of_two(
        "a", "b", RULES, outcome, territory=territory, games=games, is_red=first_is_red
    )


def assert_replays(result: MatchResult) -> list[list[int]]:
    """Replay the games with the slow referee; returns who moved, ply by ply."""
    movers = []
    for index, played in enumerate(result.games):
        game, rewards = Game(result.rules.to_dict()), [0.0, 0.0]
        movers.append([])
        for action in played:
            assert action in game.legal()
            movers[-1].append(game.player)
            rewards = game.act(action)
        assert game.over
        red = bool(is_red(result)[index])
        assert result.outcome[index] == (rewards[0] if red else rewards[1])
        assert result.territory[index].tolist() == game.territory()[:: 1 if red else -1]
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
    assert_replays(result)
    lengths = [len(game) for game in result.games]
    assert min(lengths) < 6 < max(lengths)
    for one, other in zip(result.games[:25], result.games[25:], strict=True):
        assert one[:6] == other[:6]
    for played, red in zip(result.games, is_red(result), strict=True):
        game = Game(tiny.RULES.to_dict())
        for ply, action in enumerate(played):
            is_first = (game.player == 0) == red
            # With one stone a player, slots and public actions are in the same order.
            if ply >= 6:
                assert action == (min(game.legal()) if is_first else max(game.legal()))
            game.act(action)
    assert (result.first, result.second) == ("low", "high")


def test_an_opening_depends_on_the_key_and_its_pair_alone(random_match):
    fewer = play("random", "random", games=40)
    openings = [game[:OPENING] for game in random_match.games]
    assert [game[:OPENING] for game in fewer.games] == openings[:20] + openings[95:115]


def test_players_place_their_stones_and_random_plies_come_after():
    low, high = legal_player("low", highest=False), legal_player("high", highest=True)
    result = play(low, high, games=50, opening=OpeningOptions(2, players_place=True))
    assert_replays(result)
    half = 25
    placed, drawn = len(RULES.order), set()
    for number, played in enumerate(result.games):
        game = Game(RULES.to_dict())
        for ply, action in enumerate(played[:placed]):
            is_first = (game.player == 0) == is_red(result)[number]
            assert action == (min(game.legal()) if is_first else max(game.legal())), ply
            game.act(action)
        drawn.add((number < half, played[placed : placed + 2]))
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
    stopped = play(
        "random",
        "random",
        **options,
        on_progress=seen.append,
        should_stop=lambda: seen[-1] >= 40,
    )
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
    options = match_lib.MatchOptions(
        games=100,
        batch=BATCH,
        opening=OpeningOptions(OPENING),
        should_stop=lambda: seen[-1] >= 41,
    )
    result = play_in_rounds(
        (player, player),
        RULES,
        options,
        Sprt(0, 1e-3),  # which so few games do not decide
        key=jax.random.key(1),
        on_progress=seen.append,
    )
    assert 41 <= len(result.games) == seen[-1] <= 60
    assert len(result.pairs) >= 20
    assert (np.diff(np.unique(result.opening)) >= 1).all() and result.opening.max() < 30


def test_a_match_larger_than_memory_is_refused(monkeypatch):
    for games in (2**30 + 2, 2**32):
        with pytest.raises(UsageError, match=f"games = {games} is too large"):
            play("random", "random", games=games)
    memory = Memory("each GPU", 1000, 1)
    monkeypatch.setattr(match_programs, "device_memory", lambda: memory)
    with pytest.raises(UsageError, match=r"each GPU has .* lower games"):
        play("random", "random", games=20)
