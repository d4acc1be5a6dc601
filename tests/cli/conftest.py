"""A folder of files for the commands of the game, and what commands print."""

import json
from pathlib import Path

import pytest

from tests.support.game.small import MOVES, SMALL
from wallgo_jax.__main__ import main

DATA = Path(__file__).parents[1] / "data"
CODE, GAMES = DATA / "hkoi-example.txt", DATA / "conformance.jsonl.gz"


@pytest.fixture
def here(tmp_path):
    """The working directory, with files to name."""
    (tmp_path / "small.json").write_text(json.dumps(SMALL.to_dict()))
    (tmp_path / "moves.txt").write_text(f"# a game\n1. {MOVES}\n")
    return tmp_path


def run(capsys, *words) -> str:
    """Standard output of a command that succeeds."""
    status = main([*map(str, words)])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    return printed.out


def complaint(capsys, *words) -> str:
    """The message of a command that is refused."""
    status = main([*map(str, words)])
    printed = capsys.readouterr()
    assert (status, printed.out) == (2, "")
    assert "Traceback" not in printed.err
    return printed.err.removeprefix("error: ").rstrip("\n")
