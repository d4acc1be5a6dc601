"""The game in the terminal: completion, and a game through a pipe."""

import io
import sys

import pytest

from tests.support.play import PlainMachine
from train.ui import terminal
from wallgo_jax.formats import diagram
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.view.snapshot import take_snapshot

RULES = PRESETS["wallzero-4stone"]
DRAWN = """
rules: {"size": 3, "stones": 1, "order": [0, 1]}
turn: R
     A   B   C
   +---+---+---+
 1 | R   .   . |
   +   +   +   +
 2 | .   .   . |
   +   +   +   +
 3 | .   .   B |
   +---+---+---+
"""


def test_completion_goes_by_parts():
    snapshot = take_snapshot(diagram.parse(DRAWN))
    assert terminal.completions(snapshot, "") == ["A1->"]
    assert terminal.completions(snapshot, "a1->b") == ["A1->B1:", "A1->B2:"]
    assert terminal.completions(snapshot, "A1->A1:") == ["A1->A1:right", "A1->A1:down"]
    assert terminal.completions(snapshot, "h") == ["hint", "help"]


@pytest.fixture
def typed(monkeypatch, capsys):
    """Plays the lines of a text; returns what was printed."""

    def play(text, level="person"):
        monkeypatch.setattr(terminal, "Machine", PlainMachine)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        assert terminal.run(RULES, player="", level=level, colour="red") == 0
        return capsys.readouterr().out

    return play


def test_a_game_through_a_pipe(typed, tmp_path):
    path = tmp_path / "game.jsonl"
    out = typed(f"D4\nB6\nhint\neval\nmoves\nback\nsave\nsave {path}\nquit\n")
    assert "Red already stands on B6" in out
    assert "save: name a file" in out
    assert "moves, the most visited first:" in out
    assert "Blue 50%, 1 visit" in out
    assert "Red 50%, Blue 50%" in out
    assert "1. D4" in out
    assert path.read_text().startswith('{"variant": "wallzero-4stone", "actions": []')


def test_a_game_ends_with_a_card_and_another_begins(typed):
    out = typed("D4\nresign\nagain\nD5\nmoves\nquit\n")
    assert "Red won: Blue resigned after 1 ply. Cells: Red 0, Blue 0." in out
    assert "'again' begins another game" in out
    assert out.rstrip().endswith("1. D5")


def test_nobody_who_leaves_waits_for_a_compiler(typed, monkeypatch):
    left = []
    monkeypatch.setattr(terminal, "leave", left.append)
    assert "2. A1 3. B1" in typed("D4\nmoves\nquit\n", level="expert")
    assert left == []
    monkeypatch.setattr(PlainMachine, "is_compiling", True)
    typed("quit\n")
    assert left == [0]
