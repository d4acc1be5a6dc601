"""Sources of every kind are read."""

import io
import json
import sys

import pytest

from tests.cli.conftest import CODE, complaint, run
from wallgo_jax.formats import hkoi_code, records
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.view.game_replay import replay_actions

SMALL = Rules(size=3, stones=1, order=(0, 1))


@pytest.mark.parametrize("moves", ["1. R C3 2. B D4", "1. C3\n2. D4", "C3 D4"])
def test_a_moves_number_is_no_files_ending(capsys, moves):
    assert "Ply 2: Blue to place" in run(capsys, "show", moves, "--rules", "hkoi")


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
