"""Texts of moves name their rules; their picture of a board is no move."""

import json

import pytest

from tests.support.game.small import MOVES
from wallgo_jax import render
from wallgo_jax.formats import move_text
from wallgo_jax.formats.sources import SourceRequest, read_games, read_games_of_text
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_moves

SMALL = Rules(size=3, stones=1, order=(0, 1), tie=())


def read(path, **options):
    (loaded,) = read_games(SourceRequest(str(path), **options))
    return loaded.game


@pytest.mark.parametrize("rules", [*PRESETS.values(), SMALL])
def test_header_names_the_rules(rules):
    line = move_text.header(rules, ["a", "b"][: rules.players])
    assert line.endswith(", Red a, Blue b")
    assert move_text.read_rules(f"\n{line}\nA1 B1") == rules
    assert move_text.read_rules(move_text.header(rules)) == rules


@pytest.mark.parametrize(
    ("comment", "names"),
    [
        ("# hkoi, Red search:runs/a@64, Blue wjx", ("search:runs/a@64", "wjx")),
        ('# {"size": 3}, Red x, y, Blue a, Green b', ("x, y", "a, Green b")),
        ("# hkoi, Red x", None),
        ("# hkoi, Red , Blue y", None),
        ("# hkoi, Blue y, Red x", None),
        ("# Red x, Blue y", None),
        ("A1 # hkoi, Red x, Blue y", None),
    ],
)
def test_header_names_the_players(comment, names):
    assert move_text.read_players(f"{comment}\nA1 B1, Red z, Blue z", SMALL) == names


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (("a: b", "#c"), None),
        (("x, y", "D4", "a: b"), None),
        (("a", "b", "x, y", "D4"), None),
        # A name that reads as a player's part loses its comma.
        (("a, Blue b", "c, Red d, Blue e, Green f"), ("a Blue b", "c Red d Blue e, Green f")),
        # A name does not end the comment.
        (("a\nD4", "b\u2028\tc  d"), ("a D4", "b c d")),
    ],
)
def test_players_are_read_as_they_are_written(names, read):
    players = len(names)
    rules = Rules(size=3, players=players, stones=1, order=range(players))
    line = move_text.header(rules, names)
    assert len(line.splitlines()) == 1
    assert move_text.read_players(line, rules) == (read or names)


@pytest.mark.parametrize(
    "text", ["", "A1 C3", "# a game\nA1", "A1 # hkoi", "# hkoist, x", "#\n#hkoi"]
)
def test_other_comments_name_none(text):
    assert move_text.read_rules(text) is None


def test_rules_may_be_few_fields():
    text = '# {"size": 3, "stones": 1, "order": [0, 1]}, Red "x": y'
    assert move_text.read_rules(text) == Rules(size=3, stones=1, order=(0, 1))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# {'size': 3}", "line 1: the rules are not JSON: "),
        ('# {"sise": 3}', "rules: unknown key 'sise'"),
    ],
)
def test_wrong_rules_are_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        move_text.read_rules(text)


@pytest.mark.parametrize("grid", [3, 9])
def test_picture_is_cut_off(grid):
    moves = parse_moves(MOVES, grid=grid)
    text = render.game_file(replay_moves(SMALL, moves, grid=grid))
    assert "+---+" in text
    kept = move_text.without_picture(text)
    assert "+---+" not in kept
    found = parse_moves(kept, grid=grid)
    assert [move.action for move in found] == [move.action for move in moves]
    assert move_text.without_picture(MOVES) == MOVES


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
def test_every_line_end_is_read(tmp_path, end):
    game, path = replay_moves(SMALL, parse_moves(MOVES, grid=3)), tmp_path / "game.txt"
    text = render.game_file(game, players=["a", "b"]).replace("\n", end)
    path.write_bytes(text.encode())
    for (found,) in (
        read_games(SourceRequest(str(path))),
        read_games_of_text(text, name="the game"),
    ):
        assert (found.game.actions, found.players) == (game.actions, ("a", "b"))


HEADED = f"{move_text.header(SMALL)}\n{MOVES}\n"


@pytest.mark.parametrize(
    ("text", "games"),
    [
        (MOVES, 1),
        (HEADED * 3, 3),
        (f"\n# hkoi, Red x\nA1\n{HEADED}", 2),
        (f"{HEADED}  # hkoi\n", 2),
        (f"# hkoi\n# hkoi, Red x\n{MOVES}", 1),  # no moves between them
        (f"{HEADED}# hkoist\n# hkoi is better\n# {{}}x\n# {{", 1),
        (f"# a game\n{MOVES}\n# hkoi\n", 1),  # the first names no rules
        (f"{MOVES}\n{HEADED}", 1),
    ],
)
def test_comments_of_rules_part_games(text, games):
    parts = move_text.split_games(text)
    assert (len(parts), "\n".join(parts)) == (games, text)


def test_said_rules_come_first_and_default_rules_last(tmp_path):
    path, other = tmp_path / "game.txt", tmp_path / "rules.json"
    path.write_text(MOVES)
    assert read(path, default_rules=SMALL).rules == SMALL
    path.write_text(f"{move_text.header(SMALL)}\n{MOVES}")
    assert read(path, default_rules=PRESETS["hkoi"]).rules == SMALL
    tied = Rules(size=3, stones=1, order=(0, 1))
    other.write_text(json.dumps(tied.to_dict()))
    assert read(path, rules=str(other)).rules == tied
