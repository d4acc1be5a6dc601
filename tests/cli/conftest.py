"""A folder of files for the commands of the game."""

import json

import pytest

MOVES = "A1 C3 A1->A1:W1 C3->C3:W0 A1->A1:W2"
SMALL = {"size": 3, "players": 2, "stones": 1, "order": [0, 1]}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with files to name, and the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
    (tmp_path / "moves.txt").write_text(f"# a game\n1. {MOVES}\n")
    return tmp_path
