"""The command line reads sources of every kind, and prints and writes its results."""

import io
import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.cli.conftest import CODE, GAMES, complaint, run
from tests.support.game.small import END, MOVES, SMALL
from wallgo_jax.__main__ import main
from wallgo_jax.formats import hkoi_code, records
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.view.game_replay import replay_actions

BOARD = f"{END}\nLast: R A1->A1:down\n"
SMALL_MOVES = "moves.txt --rules small.json"

PRINTED = [
    ("show wallzero-4stone", "\n 2 | .   B   .   .   .   R   . |\n"),
    ("show wallzero-4stone", "\nPly 0: Red to place a stone.\n"),
    ("show hkoi --game 1", "Ply 0"),
    (f"show {SMALL_MOVES} --game 1", BOARD),
    (f"show {SMALL_MOVES} --ply 2", "\nPly 2: Red to move.\n"),
    (f"show {SMALL_MOVES} --ply 2", "\nLast: B C3\n"),
    (f"show {SMALL_MOVES} --grid 5", "The board lies in a grid of 5."),
    ("show '1. R C3 2. B D4' --rules hkoi", "Ply 2: Blue to place"),  # no files' endings
    ("show '1. C3\n2. D4' --rules hkoi", "Ply 2: Blue to place"),
    (f"replay '{CODE}'", " 9. R G1->G2:down"),
    (f"replay '{CODE}'", "Ply 52: over, Red won.\nTerritory: Red 26, Blue 11.\n"),
    (f"replay {SMALL_MOVES} --watch --seconds 0.02", "over, Blue won."),
    (f"convert '{GAMES}' --to moves --game 62", "# wallzero-empty\n  1. R "),
]
"""Commands, and what they print among other things."""


@pytest.mark.parametrize(("words", "part"), PRINTED)
def test_prints(capsys, here, words, part):
    assert part in run(capsys, *shlex.split(words))


@pytest.mark.parametrize("source", [MOVES, "moves.txt", MOVES.replace(" ", " " * 80), "-"])
def test_show_moves(capsys, here, monkeypatch, source):
    """Also where they are longer than a file's name may be."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(MOVES))
    assert run(capsys, "show", source, "--rules", "small.json") == BOARD


def test_a_pipe_is_a_file(capsys, here):
    os.mkfifo(here / "pipe")
    with subprocess.Popen(["sh", "-c", "cat moves.txt > pipe"]) as writer:
        assert run(capsys, "show", "pipe", "--rules", "small.json") == BOARD
    assert writer.returncode == 0


def test_a_diagram_goes_out_and_in(capsys, here):
    drawn = run(capsys, "show", MOVES, "--rules", "small.json", "--diagram")
    (here / "position.txt").write_text(drawn)
    run(capsys, "show", MOVES, "--rules", "small.json", "--out", "same.txt")
    assert (here / "same.txt").read_text() == drawn
    shown = run(capsys, "show", "position.txt")
    assert shown.splitlines() == BOARD.splitlines()[:-1]


def test_replay_every_step(capsys, here):
    out = run(capsys, "replay", "moves.txt", "--rules", "small.json", "--steps")
    assert [f"Ply {ply}:" in out for ply in range(7)] == [True] * 6 + [False]
    assert out.endswith(BOARD)


@pytest.mark.parametrize(
    ("words", "file", "begins"),
    [
        ("show hkoi --theme dark --reach B", "new/a.svg", b"<svg "),
        ("show hkoi", "a.html", b"<!DOCTYPE html>\n<html"),
        ("show hkoi", "a.png", b"\x89PNG"),
        ("show hkoi", "a.gif", b"GIF89a"),
        (f"replay {SMALL_MOVES}", "a.svg", b"<svg "),
        (f"replay {SMALL_MOVES}", "a.html", b"<!DOCTYPE html>"),
        (f"replay {SMALL_MOVES}", "a.gif", b"GIF89a"),
        (f"replay {SMALL_MOVES}", "a.txt", b'# {"size": 3, '),
        (f"convert {SMALL_MOVES} --to record", "a.jsonl", b'{"variant": "custom"'),
        (f"convert {SMALL_MOVES} --to record", "a.jsonl.gz", b"\x1f\x8b"),
    ],
)
def test_writes(capsys, here, words, file, begins):
    whats = {"show": "a position", "replay": "a game of 5 plies", "convert": "1 game"}
    said = run(capsys, *words.split(), "--out", file)
    assert said == f"written: {file} ({whats[words.split()[0]]})\n"
    assert (here / file).read_bytes().startswith(begins)
    if "record" in words:
        assert run(capsys, "show", file) == BOARD


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
        SMALL, [468], players=["a", "b"], values=[0.5], extra={"tree": [{"ply": 1}]}
    )
    records.write("one.jsonl", [record])
    line = run(capsys, "convert", "one.jsonl", "--to", "record")
    assert records.from_json(line) == record and '"tree": [{"ply": 1}]' in line
    run(capsys, "convert", "one.jsonl", "--to", "record", "--out", "one.jsonl")
    assert (here / "one.jsonl").read_text() == line


def test_a_byte_order_mark_on_standard_input(capsys, here, monkeypatch):
    line = records.to_json(records.Record(SMALL, [468, 476]))
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeff" + line))
    assert "Ply 2: Red to move." in run(capsys, "show", "-")


def test_only_a_line_feed_ends_a_record(capsys, here):
    """JSON may hold U+2028 and its like as they are."""
    fields = json.loads(records.to_json(records.Record(SMALL, [468]))) | {"note": "a\u2028b\x85c"}
    line = json.dumps(fields, ensure_ascii=False)
    (here / "games.jsonl").write_text(f"{line}\r\n\n{line}\n", encoding="utf-8")
    assert len(run(capsys, "convert", "games.jsonl", "--to", "record").splitlines()) == 2


def test_several_codes_are_read_again(capsys, here, conformance):
    games = [
        replay_actions(PRESETS["hkoi"], record["actions"][:plies])
        for record, plies in zip(conformance["hkoi"], (10, 12), strict=False)
    ]
    records.write(here / "two.jsonl", map(records.of_game, games))
    run(capsys, "convert", "two.jsonl", "--to", "hkoi", "--out", "codes.txt")
    codes = (here / "codes.txt").read_text()
    assert codes == "".join(hkoi_code.encode(game) + "\n" for game in games)
    assert run(capsys, "convert", codes, "--to", "hkoi") == codes
    back = run(capsys, "convert", "codes.txt", "--to", "record")
    assert back == (here / "two.jsonl").read_text()
    assert "Ply 10:" in run(capsys, "show", "codes.txt")
    assert "Ply 12:" in run(capsys, "show", "codes.txt", "--game", "2")
    assert "2 games" in complaint(capsys, "show", "codes.txt", "--game", "3")
    (here / "codes.txt").write_text(codes[:-2] + "z\n")
    assert "--rules" in complaint(capsys, "show", "codes.txt")
    (here / "codes.txt").write_text(codes[:-2])
    assert "line 2" in complaint(capsys, "show", "codes.txt", "--game", "2")


def test_several_games_of_moves_are_read_again(capsys, here):
    games = [
        records.Record(SMALL, [468, 476], result=None, players=("a", "b")),
        records.Record(SMALL, [468, 470, 1]),
    ]
    records.write(here / "two.jsonl", games)
    run(capsys, "convert", "two.jsonl", "--to", "moves", "--out", "m.txt")
    back = run(capsys, "convert", "m.txt", "--to", "record")
    assert back == (here / "two.jsonl").read_text()
    assert "Ply 2:" in run(capsys, "show", "m.txt")
    assert "Ply 3:" in run(capsys, "replay", "m.txt", "--game", "2")
    assert "2 games" in complaint(capsys, "show", "m.txt", "--game", "3")
    (here / "m.txt").write_text((here / "m.txt").read_text().replace("C1", "A1"))
    assert "game 2: ply 2" in complaint(capsys, "show", "m.txt", "--game", "2")


def test_a_code_over_several_lines_is_one(capsys, here):
    (here / "code.txt").write_text(
        "\n".join(CODE.read_text().strip()[i : i + 40] for i in range(0, 900, 40))
    )
    assert "Ply 52: over, Red won." in run(capsys, "show", "code.txt", "--game", "1")


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
