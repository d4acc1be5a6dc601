"""Pools of three at a table: chains, the most informative table, the file of played games."""

import itertools
import json
import zlib

import numpy as np
import pytest

from train.arena import elo
from train.arena.seats.plackett_luce import TableResult
from train.ratings import table_pool, tables
from train.ratings.pool import Entrant
from train.ratings.table_pool import TableCache, chain, most_informative
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS

RULES = PRESETS["playwallgo-3p"]
TRUE = {"random": 0.0, "greedy": 50.0, "wjx": 600.0, "run/1": 300.0, "run/2": 700.0}
TERMS = {"rules": "any", "seed": 0}


def entrants(*, but: int = 0) -> list[Entrant]:
    names = list(TRUE)[: len(TRUE) - but]
    return [Entrant(name, f"id-{name}", None, None, None) for name in names]


class Tables:
    """Plays simulated games of known ratings."""

    def __init__(self, *, stop_after: int = 10**6) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.numbers: list[int] = []
        self.stop_after = stop_after

    def __call__(self, seated, number: int) -> TableResult:
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        names = tuple(entrant.name for entrant in seated)
        self.asked.append(names)
        self.numbers.append(number)
        draws = np.random.default_rng(zlib.crc32(f"{names} {number}".encode()))
        weights = 10 ** (np.array([TRUE[name] for name in names]) / 400)
        won = draws.multinomial(6, weights / weights.sum(), size=10)
        apart = won - won.mean(axis=0)
        spread = tuple(map(tuple, (apart.T @ apart).tolist()))
        identities = tuple(entrant.identity for entrant in seated)
        return TableResult(identities, tuple(won.sum(axis=0).tolist()), 10, spread)


def measure(path, play, budget: int, *, but: int = 0):
    cache = TableCache(path, TERMS)
    players = entrants(but=but)
    return table_pool.measure(players, cache, play, RULES, games=58, budget=budget, anchor="random")


@pytest.mark.parametrize(("count", "seats"), [(3, 3), (4, 3), (5, 3), (9, 4), (4, 4), (8, 3)])
def test_a_chain_connects_all(count, seats):
    names = [str(number) for number in range(count)]
    found = chain(names, seats)
    assert set().union(*found) == set(names)
    assert all(len(set(table)) == seats for table in found)
    assert all(set(one) & set(other) for one, other in itertools.pairwise(found))


def test_ratings_near_the_truth_and_kept_games(tmp_path):
    path, play = tmp_path / "games.jsonl", Tables()
    found = measure(path, play, 1800)
    assert found.games == found.new == 1800
    for name, true in TRUE.items():
        place = found.ratings.names.index(name)
        assert found.ratings.low[place] - 60 <= true <= found.ratings.high[place] + 60
    again = measure(path, Tables(stop_after=0), 1800)
    assert (again.games, again.new) == (1800, 0)
    np.testing.assert_allclose(again.ratings.elo, found.ratings.elo)
    record = tables.rating_record(found)
    assert [row["player"] for row in record["players"]][:2] == ["run/2", "wjx"]
    assert sum(result["games"] for result in record["results"]) == 1800


def test_an_interrupt_keeps_what_was_played(tmp_path):
    found = measure(tmp_path / "games.jsonl", Tables(stop_after=4), 1800)
    assert found.is_interrupted and found.games == 240
    with pytest.raises(UsageError, match="stopped after 60 games, before all players were"):
        measure(tmp_path / "more.jsonl", Tables(stop_after=1), 1800)


def test_a_new_batch_never_takes_the_number_of_another(tmp_path):
    path = tmp_path / "games.jsonl"
    cache = TableCache(path, TERMS)
    batch = TableResult(("a", "b", "c"), (2.0, 1.0, 3.0), 1, ((0.0,) * 3,) * 3)
    cache.add(batch)
    first = json.loads(path.read_text())
    path.write_text(json.dumps(first | {"batch": 2}) + "\n")
    again = TableCache(path, TERMS)
    again.add(batch)
    assert len(again.of(batch.players)) == len(TableCache(path, TERMS).of(batch.players)) == 2


def test_a_batch_is_not_played_again_where_a_line_before_it_was_removed(tmp_path):
    path, three = tmp_path / "games.jsonl", entrants(but=2)

    def measure_three(play, budget):
        cache = TableCache(path, TERMS)
        return table_pool.measure(three, cache, play, RULES, games=60, budget=budget)

    measure_three(Tables(), 180)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    play = Tables()
    assert measure_three(play, 240).new == 120
    assert play.numbers == [3, 4]
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["batch"] for line in kept] == [1, 2, 3, 4]
    assert len({tuple(line["wins"]) for line in kept}) == 4


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
    assert most_informative(ratings, 3, 60) == ("a", "b", "c")


def test_what_cannot_be_rated_is_refused(tmp_path):
    path = tmp_path / "games.jsonl"
    with pytest.raises(UsageError, match="a budget of 100 games is too small: 2 tables of 60"):
        measure(path, Tables(), 100)
    with pytest.raises(UsageError, match="a pool of 2 players; the rules are for 3"):
        measure(path, Tables(), 1800, but=3)
    assert not path.exists()
    batch = {
        "players": ["a", "b", "c"],
        "settings": TERMS,
        "batch": 0,
        "wins": [20.0, 20.0, 20.0],
        "openings": 10,
        "spread": np.eye(3).tolist(),
    }
    path.write_text(json.dumps(batch) + "\n")
    assert len(TableCache(path, TERMS).of(("a", "b", "c"))) == 1
    damaged = [
        {"wins": [float("nan"), 20.0, 20.0]},
        {"wins": ["20", "x", 20.0]},
        {"wins": [20.0, 20.0]},
        {"spread": [[float("inf")] * 3] * 3},
        {"batch": -1},
        {"players": "abc"},
    ]
    lines = [json.dumps(batch | change) for change in damaged]
    for line in ("{}", '{"players": 3}', "nothing", "[" * 100_000, "[]", *lines):
        path.write_text(line + "\n")
        with pytest.raises(UsageError, match="line 1: not a batch of games"):
            TableCache(path, TERMS)
