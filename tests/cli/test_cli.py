"""The command line prints and writes its results."""

import io
import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import CODE, GAMES, MOVES, SMALL, run
from wallgo_jax.__main__ import main
from wallgo_jax.formats import records
from wallgo_jax.game.rules import Rules

BOARD = """\
     A   B   C
   +---+---+---+
 1 | R r.b  .b |
   +=r=+   +   +
 2 |.b  .b  .b |
   +   +   +=b=+
 3 |.b  .b   B |
   +---+---+---+
Ply 5: over, Blue won.
Territory: Red 1, Blue 8.
Last: R A1->A1:down
"""


def test_show_a_preset(capsys):
    out = run(capsys, "show", "wallzero-4stone")
    assert out.splitlines()[3 - 1 + 2] == " 2 | .   B   .   .   .   R   . |"
    assert out.splitlines()[-2] == "Ply 0: Red to place a stone."


def test_show_moves(capsys, here):
    assert run(capsys, "show", MOVES, "--rules", "small.json") == BOARD
    assert run(capsys, "show", "moves.txt", "--rules", "small.json") == BOARD


def test_show_moves_longer_than_the_name_of_a_file(capsys, here):
    spaced = " ".join(MOVES.replace(" ", "\n" * 80).splitlines())
    assert run(capsys, "show", spaced, "--rules", "small.json") == BOARD


def test_show_reads_standard_input(capsys, here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(MOVES))
    assert run(capsys, "show", "-", "--rules", "small.json") == BOARD


def test_show_after_some_plies(capsys, here):
    out = run(capsys, "show", "moves.txt", "--rules", "small.json", "--ply", "2")
    assert "Ply 2: Red to move." in out and "Last: B C3" in out


def test_show_in_a_larger_grid(capsys, here):
    out = run(capsys, "show", MOVES, "--rules", "small.json", "--grid", "5")
    assert "The board lies in a grid of 5." in out


def test_a_diagram_goes_out_and_in(capsys, here):
    drawn = run(capsys, "show", MOVES, "--rules", "small.json", "--diagram")
    (here / "position.txt").write_text(drawn)
    run(capsys, "show", MOVES, "--rules", "small.json", "--out", "same.txt")
    assert (here / "same.txt").read_text() == drawn
    shown = run(capsys, "show", "position.txt")
    assert shown.splitlines() == BOARD.splitlines()[:-1]


def test_picture_of_a_position(capsys, here):
    out = run(capsys, "show", "hkoi", "--out", "new/a.svg", "--theme", "dark", "--reach", "B")
    assert out == "written: new/a.svg (a position)\n"
    assert ElementTree.fromstring((here / "new/a.svg").read_text()).tag.endswith("svg")


def test_page_of_a_position(capsys, here):
    """A whole page around the picture, not the picture alone."""
    said = run(capsys, "show", MOVES, "--rules", "small.json", "--out", "a.html")
    assert said == "written: a.html (a position)\n"
    text = (here / "a.html").read_text()
    assert text.startswith("<!DOCTYPE html>\n<html")
    assert text.count("<svg ") == text.count("</svg>") == 1
    assert "over, Blue won" in text
    assert text.rstrip().endswith("</html>")


def test_pixels_of_a_position(capsys, here):
    run(capsys, "show", "hkoi", "--out", "a.png")
    assert (here / "a.png").read_bytes().startswith(b"\x89PNG")
    run(capsys, "show", "hkoi", "--out", "a.gif")
    assert (here / "a.gif").read_bytes().startswith(b"GIF89a")


def test_replay_the_printed_example(capsys):
    out = run(capsys, "replay", CODE)
    assert " 9. R G1->G2:down" in out
    assert "Ply 52: over, Red won.\nTerritory: Red 26, Blue 11.\n" in out


def test_replay_every_step(capsys, here):
    out = run(capsys, "replay", "moves.txt", "--rules", "small.json", "--steps")
    assert [f"Ply {ply}:" in out for ply in range(7)] == [True] * 6 + [False]
    assert out.endswith(BOARD)


def test_watch_a_game(capsys, here):
    arguments = ("--rules", "small.json", "--watch", "--seconds", "0.02")
    assert "over, Blue won." in run(capsys, "replay", "moves.txt", *arguments)


@pytest.mark.parametrize(
    ("ending", "begins"),
    [
        ("svg", b"<svg "),
        ("html", b"<!DOCTYPE html>"),
        ("gif", b"GIF89a"),
        ("txt", b'# {"size": 3, '),
    ],
)
def test_films_of_a_game(capsys, here, ending, begins):
    run(capsys, "replay", "moves.txt", "--rules", "small.json", "--out", f"a.{ending}")
    assert (here / f"a.{ending}").read_bytes().startswith(begins)


def test_convert_there_and_back(capsys, here):
    run(capsys, "convert", CODE, "--to", "record", "--out", "game.jsonl")
    (record,) = records.read(here / "game.jsonl")
    assert len(record.actions) == 52 and record.result == (1.0, -1.0)
    run(capsys, "convert", "game.jsonl", "--to", "moves", "--out", "game.txt")
    run(capsys, "convert", "game.txt", "--to", "hkoi", "--rules", "hkoi", "--out", "code.txt")
    back = json.loads(run(capsys, "convert", "code.txt", "--to", "record"))
    assert tuple(back["actions"]) == record.actions


def test_convert_keeps_what_a_record_says(capsys, here):
    record = records.Record(
        Rules(**SMALL), [468], players=["a", "b"], values=[0.5], extra={"tree": [{"ply": 1}]}
    )
    records.write("one.jsonl", [record])
    line = run(capsys, "convert", "one.jsonl", "--to", "record")
    assert records.from_json(line) == record and '"tree": [{"ply": 1}]' in line
    run(capsys, "convert", "one.jsonl", "--to", "record", "--out", "one.jsonl")
    assert (here / "one.jsonl").read_text() == line


def test_convert_many_games(capsys, here):
    lines = run(capsys, "convert", GAMES, "--to", "moves", "--game", "62").splitlines()
    assert lines[0] == "# wallzero-empty" and lines[1].startswith("  1. R ")
    records.write("two.jsonl", [records.Record(Rules(**SMALL), [468 + i]) for i in range(2)])
    assert len(run(capsys, "convert", "two.jsonl", "--to", "record").splitlines()) == 2


def test_version(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"wallgo-jax \S+ \(jax \S+, Python \S+\)\n", capsys.readouterr().out)


@pytest.mark.parametrize("words", [[], ["show"], ["replay"], ["convert"]])
def test_help_fits_and_ends_with_examples(capsys, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words, "--help"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    assert "\nexamples:\n  python -m wallgo_jax " in page
    assert "(default: False)" not in page
    if words == ["show"]:
        assert "--theme {auto,light,dark}" in page
        assert "--ply 20 \\\n      --out out/position.html" in page


@pytest.mark.parametrize("name", ["games.jsonl", "games.jsonl.gz"])
def test_converted_games_are_read_again(here, capsys, name):
    said = run(
        capsys, "convert", "moves.txt", "--rules", "small.json", "--to", "record", "--out", name
    )
    assert said == f"written: {name} (1 game)\n"
    assert (here / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert run(capsys, "show", name) == BOARD


def test_a_pipe_is_a_file(here, capsys):
    os.mkfifo(here / "pipe")
    with subprocess.Popen(["sh", "-c", "cat moves.txt > pipe"]) as writer:
        assert run(capsys, "show", "pipe", "--rules", "small.json") == BOARD
    assert writer.returncode == 0
