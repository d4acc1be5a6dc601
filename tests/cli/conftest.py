"""A folder of files for the commands of the game, and what commands print."""

import json
from pathlib import Path

import pytest

from wallgo_jax.__main__ import main

DATA = Path(__file__).parents[1] / "data"
CODE, GAMES = DATA / "hkoi-example.txt", DATA / "conformance.jsonl.gz"
MOVES = "A1 C3 A1->A1:W1 C3->C3:W0 A1->A1:W2"
SMALL = {"size": 3, "players": 2, "stones": 1, "order": [0, 1]}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with files to name, and the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
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
