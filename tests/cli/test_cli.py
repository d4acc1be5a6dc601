"""The command line prints and writes its results."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from wallgo_jax.__main__ import main
from wallgo_jax.formats import records
from wallgo_jax.game.rules import Rules

DATA = Path(__file__).parents[1] / "data"
CODE = str(DATA / "hkoi-example.txt")
GAMES = str(DATA / "conformance.jsonl.gz")
MOVES = "A1 C3 A1->A1:W1 C3->C3:W0 A1->A1:W2"
SMALL = {"size": 3, "players": 2, "stones": 1, "order": [0, 1]}
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


def run(capsys, *arguments):
    """Standard output of a command that succeeds."""
    status = main(arguments)
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    return printed.out


def test_show_a_preset(capsys):
    out = run(capsys, "show", "wallzero-4stone")
    assert out.splitlines()[3 - 1 + 2] == " 2 | .   B   .   .   .   R   . |"
    assert out.splitlines()[-2] == "Ply 0: Red to place a stone."


def test_show_moves(capsys, here):
    assert run(capsys, "show", MOVES, "--rules", "small.json") == BOARD
    assert run(capsys, "show", "moves.txt", "--rules", "small.json") == BOARD


@pytest.mark.parametrize("names", [["up", "right", "down", "left"], "↑→↓←"])
def test_every_way_to_write_a_side_is_read(capsys, here, names):
    text = MOVES
    for digit, name in enumerate(names):
        text = text.replace(f":W{digit}", f":{name}")
    assert run(capsys, "show", text, "--rules", "small.json") == BOARD
    canonical = run(capsys, "convert", text, "--to", "moves", "--rules", "small.json")
    assert "A1->A1:W1" in canonical and "A1->A1:W2" in canonical


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


def test_a_byte_order_mark_does_not_hide_a_game(here, capsys):
    line = run(capsys, "convert", "moves.txt", "--rules", "small.json", "--to", "record")
    (here / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + line.encode())
    assert run(capsys, "show", "marked.jsonl") == BOARD
    assert len(list(records.read(here / "marked.jsonl"))) == 1


def test_a_pipe_is_a_file(here, capsys):
    os.mkfifo(here / "pipe")
    with subprocess.Popen(["sh", "-c", "cat moves.txt > pipe"]) as writer:
        assert run(capsys, "show", "pipe", "--rules", "small.json") == BOARD
    assert writer.returncode == 0


def test_a_file_that_cannot_be_written_is_as_before(here, capsys, monkeypatch):
    (here / "a.jsonl").write_text("kept")

    def fails(*paths):
        raise OSError(28, "No space left on device", "a.jsonl.tmp")

    monkeypatch.setattr(os, "replace", fails)
    assert main(["convert", CODE, "--to", "record", "--out", "a.jsonl"]) == 2
    assert capsys.readouterr().err == "error: a.jsonl: No space left on device\n"
    assert (here / "a.jsonl").read_text() == "kept"


def test_endings_in_capitals(here, capsys):
    assert run(capsys, "show", "hkoi", "--out", "A.SVG") == "written: A.SVG (a position)\n"


@pytest.mark.parametrize("words", [["help"], ["help", "show"], ["show", "--version"]])
def test_help_and_version_by_other_words(capsys, words):
    assert main(words) == 0
    page = capsys.readouterr().out
    assert page.startswith("wallgo-jax " if "--version" in words else "usage: ")
    assert ("SOURCE" in page) == (words == ["help", "show"])
