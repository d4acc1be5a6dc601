"""Results, files and pictures of a few games, which no order of a set may change; as a program it
prints them."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.game import small
from tests.support.game.small import SMALL
from tests.support.learner import matches, tiny
from train.arena.recorded import read_series
from train.arena.report import match_record
from train.config import read_config
from train.ratings import pool
from train.ratings.rated import RatedPool
from train.ratings.results_cache import ResultsCache
from wallgo_jax import render
from wallgo_jax.formats import diagram, records
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import named

SEATS = [("alice", "club"), ("alice", "club"), ("self", "self"), ("b", "a"), ("c", "d")]
"""Players of the games; Blue, the second, wins each."""
RATED = ["random", "greedy", "wjx", "run/1", "run/2"]


def ordered_results(folder: Path) -> dict[str, Any]:
    """JSON-ready results of files, matches and ratings."""
    played = [Record(SMALL, small.GAME, players=names, extra={"a": 1, "b": 2}) for names in SEATS]
    path = folder / "games.jsonl"
    records.write(path, played)
    found = read_series([path])
    svg = render.svg(small.states()[-1])
    return {
        "file": path.read_text(),
        "matches": [match_record(match) | {"names": match.names} for match in found.matches],
        "unfinished": found.unfinished,
        "diagram": diagram.draw(small.states()[-1]),
        "picture": hashlib.sha256(svg.encode()).hexdigest(),
        "complaints": [_complaint(read_config, None, ["--serch.x", "1", "--learner.y", "2"])]
        + [_complaint(records.from_json, line) for line in ('{"players": 1}', "[1]")]
        + [_complaint(named, "hkio")],
        "ratings": _rated(folder / "elo.jsonl"),
    }


def _complaint(call: Any, *arguments: Any) -> str:
    try:
        return str(call(*arguments))
    except ValueError as error:
        return str(error)


def _rated(path: Path) -> dict[str, Any]:
    """A pool in which the first player of a pairing wins two games of three."""
    entrants = [pool.Entrant(name, f"id of {name}", None) for name in RATED]

    def play(pair: Any, number: int) -> Any:
        return matches.of_winners(
            tuple(each.name for each in pair), tiny.RULES, np.array([0, 1, 0, 0, 1, 0])
        )

    cache = ResultsCache(path, {"rules": "any"})
    measured = pool.measure(entrants, cache, play, seats=2, budget=60, games=6, anchor="random")
    return RatedPool(measured, tiny.RULES, {"seed": 0}).summary() | {"file": path.read_text()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(ordered_results(Path(folder))))
