"""Pools of two and of three at a table: who meets, budgets, kept games, simulated players."""

import dataclasses
import itertools
import json
import zlib
from unittest.mock import Mock

import numpy as np
import pytest

from tests.support.learner import matches, tiny
from train.arena import elo
from train.arena.figures import Counts
from train.arena.result import MatchResult
from train.config.run import HeuristicsConfig
from train.metrics import intervals
from train.metrics.figure import save_figure
from train.players.basic import Player
from train.ratings import pool
from train.ratings.pool import Entrant
from train.ratings.rated import RatedPool
from train.ratings.results_cache import ResultsCache
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS

TERMS = {"rules": "any", "seed": 0}
GENERATIONS = 6
TRUE = {"random": 0.0, "greedy": 350.0, "wjx": 600.0} | {
    f"run/{number}": 120.0 * number for number in range(GENERATIONS)
}
GAMES = 20
TRIO = PRESETS["playwallgo-3p"]


def entrants() -> list[Entrant]:
    run = [
        Entrant(f"run/{number}", f"id-{number}", None, "runs/run", number)
        for number in range(GENERATIONS)
    ]
    return run + [Entrant(name, name, None) for name in ("random", "greedy", "wjx")]


class Play:
    """Plays simulated games of known ratings; random by players and number alone."""

    def __init__(self, *, stop_after: int = 10**6) -> None:
        self.asked: list[tuple[tuple[str, ...], int]] = []
        self.stop_after = stop_after

    def __call__(self, entrants, number: int) -> MatchResult:
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        names = tuple(entrant.name for entrant in entrants)
        self.asked.append((names, number))
        seed = " ".join([*(entrant.identity for entrant in entrants), str(number)])
        rng = np.random.default_rng(zlib.crc32(seed.encode()))
        weights = 10 ** (np.array([TRUE[name] for name in names]) / 400)
        seats = len(names)
        won = rng.choice(seats, p=weights / weights.sum(), size=20 if seats == 2 else 60)
        return matches.of_winners(names, tiny.RULES if seats == 2 else TRIO, won)


def measure(path, play: Play, budget: int, *, seats: int = 2, **options) -> pool.MeasuredPool:
    """By two, as first and as second, or by three of other players."""
    given = {"games": GAMES if seats == 2 else 58, "anchor": "random"} | options
    cache, players = ResultsCache(path, TERMS), given.pop("players", entrants()[-seats - 2 :])
    if seats == 2:
        players = entrants()
    return pool.measure(players, cache, play, seats=seats, budget=budget, **given)


@pytest.mark.parametrize(("seats", "budget"), [(2, 2400), (3, 2400)])
def test_true_ratings_lie_in_their_intervals(tmp_path, seats, budget):
    measured = measure(tmp_path / "games", Play(), budget, seats=seats)
    rated = measured.ratings
    assert measured.games == measured.new == budget
    true = np.array([TRUE[name] for name in rated.names])
    assert ((rated.low <= true) & (true <= rated.high)).sum() >= len(true) - 1
    assert np.abs(rated.elo - true).max() < 150
    assert (rated.high - rated.low).max() < 300


def test_first_all_are_connected_then_games_go_where_they_tell_most(tmp_path):
    play = Play()
    measure(tmp_path / "games", play, 1600)
    met = [frozenset(names) for names, _ in play.asked]
    expected = [{f"run/{n}", f"run/{n + 1}"} for n in range(GENERATIONS - 1)]
    expected += [{"random", "greedy"}, {"greedy", "wjx"}]
    expected += [{"run/0", anchor} for anchor in ("random", "greedy", "wjx")]
    expected += [{"run/5", "wjx"}]
    assert set(met[: len(expected)]) == set(map(frozenset, expected))
    later = [[TRUE[name] for name in pair] for pair in met[len(expected) :]]
    assert len(later) == 80 - len(expected)
    gaps = [abs(one - other) for one, other in later]
    everyone = [abs(a - b) for a in TRUE.values() for b in TRUE.values() if a != b]
    assert np.mean(gaps) < 0.6 * np.mean(everyone)


def test_longer_run_adds_only_new_games(tmp_path):
    path, first, second, whole = tmp_path / "games", Play(), Play(), Play()
    measure(path, first, 600)
    assert len(first.asked) == 30
    longer = measure(path, second, 1000)
    assert (longer.games, longer.new) == (1000, 400)
    assert not set(first.asked) & set(second.asked)
    at_once = measure(tmp_path / "others", whole, 1000)
    assert first.asked + second.asked == whole.asked
    assert np.array_equal(at_once.ratings.elo, longer.ratings.elo)
    again = measure(path, Play(stop_after=0), 1000)
    assert (again.games, again.new, again.is_interrupted) == (1000, 0, False)
    assert np.array_equal(again.ratings.low, longer.ratings.low)


def test_time_ends_games_of_connected_players(tmp_path):
    """The next call plays on as one with a budget would have."""
    path, first, second, whole = tmp_path / "games", Play(), Play(), Play()
    assert measure(path, first, None, is_over=lambda: True).games == 11 * GAMES
    answers = iter([False, False, True])
    measure(path, second, None, is_over=lambda: next(answers))
    measure(tmp_path / "others", whole, 13 * GAMES)
    assert first.asked + second.asked == whole.asked


def test_interrupted_run_keeps_what_was_played(tmp_path):
    path, seen = tmp_path / "games", []
    stopped = measure(path, Play(stop_after=17), 1000, on_progress=seen.append)
    assert (stopped.is_interrupted, stopped.games) == (True, 17 * GAMES)
    assert [each.games for each in seen] == [GAMES * n for n in range(18)]
    assert seen[0].ratings is None
    assert seen[-1].ratings is not None
    assert seen[-1].newest == ("run/5",)
    rest = Play()
    assert measure(path, rest, 1000).games == 1000
    assert len(rest.asked) == 50 - 17


@pytest.mark.parametrize(("seats", "stop", "games"), [(2, 2, 40), (3, 1, 60)])
def test_run_interrupted_too_soon_says_so(tmp_path, seats, stop, games):
    with pytest.raises(KeyboardInterrupt, match=f"{games} games are kept, which do not connect"):
        measure(tmp_path / "games", Play(stop_after=stop), 1800, seats=seats)
    assert len((tmp_path / "games").read_text().splitlines()) == stop


@pytest.mark.parametrize(
    ("seats", "budget", "said"), [(2, 200, "11 meetings of 20"), (3, 100, "2 meetings of 60 games")]
)
def test_budget_that_connects_nobody_is_refused(tmp_path, seats, budget, said):
    with pytest.raises(UsageError, match=said):
        measure(tmp_path / "games", Play(), budget, seats=seats)
    with pytest.raises(UsageError, match="a pool needs at least 3 players"):
        measure(tmp_path / "games", Play(), 1800, seats=3, players=entrants()[:2])
    twice = [Entrant("a", "same", None), Entrant("b", "same", None)]
    with pytest.raises(UsageError, match="'a' and 'b' are the same player"):
        measure(tmp_path / "games", Play(), 900, seats=3, players=[*twice, *entrants()[:2]])


def test_games_of_other_players_and_settings_are_left_alone(tmp_path):
    path = tmp_path / "games"
    measure(path, Play(), 400)
    other = ResultsCache(path, TERMS | {"seed": 1})
    assert other.of(("greedy", "random")) == []
    counts = matches.pairs("greedy", "random", (1, 0, 0, 0, 0))
    other.add(counts)
    assert measure(path, Play(), 400).new == 0
    assert ResultsCache(path, TERMS | {"seed": 1}).of(("greedy", "random")) == [counts]


ROWS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
THREE = Counts(("a", "b", "c"), (20.0, 20.0, 20.0), 10, ROWS)
OF_PAIRS = '{"first": "a", "second": "b", "settings": {"seed": 0}, "batch": 2, "pairs": [%s]}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "JSON"),
        ("[" * 100_000, ""),
        (OF_PAIRS % "1, 2", "pairs"),
        (dict(wins=[float("nan"), 20.0, 20.0]), ""),
        (dict(wins=[20.0, 20.0]), "do not fit the players"),
        (dict(batch=-1), "batch"),
    ],
)
def test_malformed_line_is_named(tmp_path, line, said):
    path = tmp_path / "games"
    ResultsCache(path, {}).add(THREE)
    assert ResultsCache(path, {}).of(THREE.players) == [THREE]
    good = json.loads(path.read_text())
    with path.open("a") as file:
        file.write((line if isinstance(line, str) else json.dumps(good | line)) + "\n")
    with pytest.raises(UsageError) as error:
        ResultsCache(path, {})
    assert str(error.value).startswith(f"{path}, line 2: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


LINES = [
    '{"first": "a", "second": "b", "settings": {"seed": 0}, "batch": 2, "pairs": [1, 0, 0, 0, 1], '
    '"wins": 2, "draws": 0, "losses": 2, "territory": [30, 20]}',
    '{"players": ["a", "b", "c"], "settings": {"seed": 0}, "batch": 0, "wins": [2.0, 3.0, 1.0], '
    '"openings": 1, "spread": [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}',
]
"""As files on disk have them."""


def test_lines_of_earlier_files_are_read(tmp_path):
    path = tmp_path / "games"
    path.write_text("\n".join(LINES) + "\n")
    cache = ResultsCache(path, {"seed": 0})
    (two,), (three,) = cache.of(("a", "b")), cache.of(("a", "b", "c"))
    assert two == matches.pairs("a", "b", (1, 0, 0, 0, 1))
    assert (cache.next_number(("a", "b")), cache.next_number(("a", "b", "c"))) == (3, 1)
    cache.add(two)
    cache.add(three)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[2]["batch"] == 3 and lines[3] == lines[1] | {"batch": 1}
    assert ResultsCache(path, {"seed": 0}).of(("a", "b")) == [two, two]


def test_gain_is_that_of_a_normal_with_one_more_measurement():
    rated = elo.fit("ab", [matches.pairs("a", "b", (1, 0, 2, 0, 1))])
    way = np.array([1, -1])
    variance = way @ rated.covariance @ way * (np.log(10) / 400) ** 2
    # Even players: a game is worth 1/4 in log odds.
    expected = 0.5 * np.log(variance / (1 / (1 / variance + 12 / 4)))
    assert pool.information_gain(rated, 12)[0, 1] == pytest.approx(expected)


def test_identity_is_of_weights_not_of_paths():
    def player(value: float) -> Player:
        return Player("any", {"w": np.full(3, value, np.float32)}, lambda *_: None)

    one = pool.identity("net:runs/a/checkpoints/3", player(1))
    assert one == pool.identity("net:elsewhere/checkpoints/9", player(1))
    assert one != pool.identity("net:runs/a/checkpoints/3", player(2))
    searching = pool.identity("search:runs/a/checkpoints/3@16", player(1))
    assert searching.startswith("search:@16#")
    assert searching != pool.identity("search:runs/a/checkpoints/3@32", player(1))
    assert one != pool.identity("net:runs/a/checkpoints/3", player(1), {"planes": "BTR"})
    turned = pool.identity("search:runs/a/checkpoints/3@16?symmetries=8", player(1))
    assert turned.startswith("search:@16?symmetries=8#")


def test_identity_of_a_heuristic_is_of_its_weights():
    def known_by(name: str, heuristics: HeuristicsConfig) -> str:
        return pool.entrant_of_name(name, tiny.RULES, heuristics=heuristics).identity

    usual = HeuristicsConfig()
    changed = dataclasses.replace(usual, wjx=dataclasses.replace(usual.wjx, boundary=4))
    for name in ("wjx", "two-ply:wjx", "heuristic-search:wjx@8"):
        assert known_by(name, usual).startswith(name)
        assert known_by(name, usual) != known_by(name, changed)
    for name in ("random", "ethen"):
        assert known_by(name, usual) == known_by(name, changed)


def test_entrants_of_a_run(tmp_path, monkeypatch):
    """The first three checkpoints have the same weights, so they are one player."""

    def player_of(name, rules):
        iteration = int(name.partition("@")[0].rpartition("/")[2])
        return Player(name, {"w": np.array(max(iteration, 3))}, lambda *_: None)

    monkeypatch.setattr(pool, "how_it_plays", lambda name, heuristics: None)
    for name in ("1", "2", "3", "10", "4", "6.aside", "8.orbax-checkpoint-tmp"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    options = {"name": "r", "make_player": Mock(side_effect=player_of)}
    found = pool.entrants_of_run(tmp_path, tiny.RULES, simulations=8, count=2, **options)
    assert [(each.name, each.iteration) for each in found] == [("r/1", 1), ("r/10", 10)]
    found = pool.entrants_of_run(tmp_path, tiny.RULES, simulations=0, **options)
    assert [each.iteration for each in found] == [1, 4, 10]
    asked = [f"search:{tmp_path}/checkpoints/{n}@8" for n in (1, 10)]
    asked += [f"net:{tmp_path}/checkpoints/{n}" for n in (1, 2, 3, 4, 10)]
    assert [each.args[0] for each in options["make_player"].call_args_list] == asked


def test_table_and_record_tell_the_same(tmp_path):
    measured = measure(tmp_path / "games", Play(), 1200)
    settings = {"seed": 0, "simulations": 2, "opening_plies": 2}
    rated = RatedPool(measured, tiny.RULES, settings)
    record = json.loads(json.dumps(rated.summary()))
    rows = record["players"]
    assert sum(row["games"] for row in rows) == 2 * record["games"] == 2400
    assert [row["elo"] for row in rows] == sorted((row["elo"] for row in rows), reverse=True)
    assert sum(sum(each["wins"]) for each in record["results"]) == 1200
    table = rated.table()
    assert table.rows[0][0] == rows[0]["player"]
    assert "fixed" in [row[3] for row in table.rows]


@pytest.mark.parametrize("name", ["run", "external:/a/long/path/" + 40 * "program "])
def test_curve_is_drawn(tmp_path, name):
    pytest.importorskip("matplotlib")
    path = tmp_path / "new" / "curve.png"
    rows = [
        {"player": f"r/{n}", "run": "r", "iteration": n, "elo": elo, "low": elo - 3, "high": 11}
        for n, elo in ((1, 0), (2, 5), (3, 9))
    ]
    rows.append({"player": name, "run": None, "elo": 0})
    figure = intervals.ratings_figure(rows, {"r": name}, title="t", x_label="x")
    save_figure(figure, path, caption=f"{name} = 0")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_axis_ends_before_players_far_from_the_curve():
    """Those near it have a line; the names of the others point to where they are."""
    rows = [
        {"player": f"r/{n}", "run": "r", "iteration": n, "elo": elo, "low": elo - 3, "high": elo}
        for n, elo in ((1, -100), (2, 300))
    ]
    rows += [
        {"player": name, "run": None, "elo": elo}
        for name, elo in {"wjx": 0, "near": -350, "random": -1281, "strong": 900}.items()
    ]
    (axes,) = intervals.ratings_figure(rows, {"r": "r"}, title="t", x_label="x").axes
    low, high = axes.get_ylim()
    assert -450 < low < -350 and 300 < high < 400
    labels = {text.get_text() for text in axes.texts}
    assert labels == {"wjx  0", "near  -350", "random  -1281 ↓", "strong  900 ↑"}


def test_labels_are_moved_apart_no_more_than_needed():
    assert intervals.spread_labels([0.1, 0.5], 0.1) == pytest.approx([0.1, 0.5])
    assert intervals.spread_labels([0.5, 0.5, 0.9], 0.1) == pytest.approx([0.45, 0.55, 0.9])
    assert intervals.spread_labels([0.2, 0.22, 0.24], 0.1) == pytest.approx([0.12, 0.22, 0.32])
    assert intervals.spread_labels([], 0.1) == []


@pytest.mark.parametrize(("count", "seats"), [(3, 3), (4, 3), (5, 3), (9, 4), (4, 4), (8, 3)])
def test_a_chain_connects_all(count, seats):
    names = [str(number) for number in range(count)]
    found = pool.chain(names, seats)
    assert set().union(*found) == set(names)
    assert all(len(set(table)) == seats for table in found)
    assert all(set(one) & set(other) for one, other in itertools.pairwise(found))


def test_a_batch_is_not_played_again_where_a_line_before_it_was_removed(tmp_path):
    path, three = tmp_path / "games.jsonl", entrants()[-3:]
    measure(path, Play(), 180, seats=3, players=three)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    play = Play()
    assert measure(path, play, 240, seats=3, players=three).new == 120
    assert [number for _, number in play.asked] == [3, 4]
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["batch"] for line in kept] == [1, 2, 3, 4]
    assert len({str((line["wins"], line["spread"])) for line in kept}) == 4


def test_games_go_where_players_are_close_and_uncertain():
    names = ("a", "b", "c", "d")
    ratings = elo.Ratings(
        names=names,
        elo=np.array([0.0, 10.0, 20.0, 2000.0]),
        low=np.zeros(4),
        high=np.zeros(4),
        covariance=np.diag([0.0, 900.0, 900.0, 900.0]),
        games=np.zeros(4, int),
        score=np.zeros(4),
        anchor="a",
    )
    assert pool.most_informative(ratings, 3, 60) == ("a", "b", "c")
