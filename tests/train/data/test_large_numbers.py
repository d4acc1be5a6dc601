"""Numbers of thousands of digits, or just beyond 32 bits, in every file and message that holds an
action, a ply, a seed or a count: one line says what is wrong."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.game import small
from tests.support.game.small import SMALL
from tests.support.refusals import refusal
from train.analysis.late_positions import read_late
from train.arena.match_openings import read_openings
from train.config import config_from_dict, read_config
from train.data.record_dataset import make_examples, read_recorded_games
from train.metrics.rows import read_rows
from train.ratings.results_cache import ResultsCache
from train.review.puzzle_file import read_puzzles
from train.runtime.files import read_json
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record

OVER = json.loads(records.to_json(Record(rules=SMALL, actions=small.GAME, result=(-1.0, 1.0))))
BEGUN = OVER | {"actions": [*small.GAME[:3]], "result": None}
_CHANCES = {"shallow": 0.1, "solution": 0.9, "next_best": 0.1}
PUZZLE = BEGUN | {"solution": "C3->C3:up", "line": ["C3->C3:up", 0], "difficulty": 1, "played": 0}
PUZZLE |= {"win_chance": _CHANCES, "found_by": "wjx"}
_PROVEN = {"ply": 3, "value": 0, "best": "1", "margin": 0, "margins": [0]}
_TAKEN = {"per_game": 1, "max_plies_left": 9, "seed": 0}
LATE = OVER | {"late": [_PROVEN], "refused": [0], "unclear": [0], "node_limit": 1}
LATE |= {"options": _TAKEN}
BATCH = {"settings": {}, "batch": 0, "openings": 1, "players": ["a", "b"], "wins": [1, 1]}
BATCH |= {"spread": [[0, 0], [0, 0]]}
PAIRS = {"settings": {}, "batch": 0, "first": "a", "second": "b", "pairs": [0, 0, 1, 0, 0]}

Reader = Callable[[Path], Any]


FILES: dict[str, tuple[Reader, dict[str, Any], list[tuple[Any, ...]]]] = {
    "fit": (lambda path: make_examples(read_recorded_games([path])), OVER, [("actions", 2)]),
    "openings": (lambda path: read_openings(path, SMALL), BEGUN, [("actions", 2)]),
    "puzzles": (
        read_puzzles,
        PUZZLE,
        [("actions", 2), ("solution",), ("line", 1), ("played",), ("difficulty",)],
    ),
    "late": (
        read_late,
        LATE,
        [
            *(("late", 0, key) for key in ("ply", "value", "margin")),
            *(("late", 0, "margins", 0), ("refused", 0), ("unclear", 0), ("node_limit",)),
            *(("options", key) for key in _TAKEN),
        ],
    ),
    "elo": (lambda path: ResultsCache(path, {}), BATCH, [("batch",), ("openings",)]),
    "elo of 0.1": (lambda path: ResultsCache(path, {}), PAIRS, [("batch",), ("pairs", 2)]),
    "config": (
        lambda path: config_from_dict(read_json(path), where=str(path)),
        {"seed": 0, "iterations": 1, "learner": {"batch": 8}},
        [("seed",), ("iterations",), ("learner", "batch")],
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_number_beyond_32_bits_is_refused_in_one_line(kind, tmp_path):
    read, fields, keys = FILES[kind]
    path = tmp_path / "file.jsonl"
    path.write_text(json.dumps(fields) + "\n")
    read(path)
    for *tables, key in keys:
        for digits in ("2147483648", "-2147483649", "9223372036854775808", "1" * 400, "1" * 5000):
            changed = copy.deepcopy(fields)
            inner = changed
            for name in tables:
                inner = inner[name]
            inner[key] = "HERE"
            path.write_text(json.dumps(changed).replace('"HERE"', digits) + "\n")
            assert str(path) in refusal(lambda: read(path)), (key, digits)


def test_a_row_of_metrics_with_such_a_number_is_passed_over(tmp_path):
    path = tmp_path / "metrics.jsonl"
    rows = [f'{{"iteration": {digits}}}' for digits in ("1", "2147483648", "1" * 5000, "-1")]
    path.write_text("\n".join(rows) + "\n")
    assert read_rows(path) == [{"iteration": 1}]


def test_a_key_of_more_digits_than_python_writes_is_refused_in_one_line():
    assert "too long" in refusal(lambda: read_config(None, ["--seed", "0x" + "f" * 5000]))
