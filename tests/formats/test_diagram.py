"""Diagrams hold all that the rules read: states come back from them and play on alike."""

import json
import re

import pytest

from tests.support.game.small import EMPTY, END, SMALL
from wallgo_jax import render
from wallgo_jax.formats import diagram
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.state import initial_state
from wallgo_jax.view.game_replay import replay_actions
from wallgo_jax.view.snapshot import take_snapshot

BY_HAND = """
# A board that a person drew: stones without indices, no counts.
    rules: {"size": 3, "players": 2, "stones": 2, "order": [0, 1, 1, 0], "walls": 5}
    turn: B
         A   B   C
       +---+---+---+
     1 | R   .   B |
       +   +=r=+   +
     2 | . b .   . |
       +=b=+   +   +
     3 | B   . r R |
       +---+---+---+
"""


def test_every_preset_is_named():
    for name, rules in PRESETS.items():
        text = diagram.draw(replay_actions(rules, []).states[0])
        assert text.splitlines()[0] == f"rules: {name}"


def test_a_board_drawn_by_hand():
    state = diagram.parse(BY_HAND)
    snapshot = take_snapshot(state)
    assert snapshot.stones == ((0, 8), (2, 6))
    # A wall lies below its cell (0) or right of it (1).
    assert set(snapshot.walls) == {(0, 1, 0), (0, 3, 1), (1, 3, 1), (1, 7, 0)}
    assert (snapshot.player, snapshot.ply, snapshot.is_over) == (1, 4 + 4, False)
    assert snapshot.walls_left == (3, 3)
    assert diagram.parse("walls left: 2 4\n" + BY_HAND).position.walls_left.tolist() == [2, 4]


ONE_REGION_EACH = """
    rules: {"size": 3, "stones": 1, "order": [0, 1], "tie": TIE}
    turn: R
    over: yes
         A   B   C
       +---+---+---+
     1 | R r . r B |
       +   +   +   +
     2 | . r . r . |
       +   +   +   +
     3 | . r . r . |
       +---+---+---+
"""
TWO_REGIONS_TO_ONE = """
    rules: {"size": 4, "stones": 2, "order": [0, 1, 1, 0], "tie": TIE}
    turn: R
    over: yes
         A   B   C   D
       +---+---+---+---+
     1 | R r . r B   . |
       +   +   +   +   +
     2 | . r . r .   . |
       +   +   +   +   +
     3 | . r R r .   . |
       +   +   +   +   +
     4 | . r . b B   . |
       +---+---+---+---+
"""


@pytest.mark.parametrize(
    ("text", "tie", "payoff"),
    [
        (ONE_REGION_EACH, [], (0, 0)),
        (ONE_REGION_EACH, ["region"], (0, 0)),
        (ONE_REGION_EACH, ["region", "mover_loses"], None),
        (ONE_REGION_EACH, ["mover_loses", "region"], None),
        (TWO_REGIONS_TO_ONE, ["region", "mover_loses"], (-1, 1)),
        (TWO_REGIONS_TO_ONE, ["mover_loses", "region"], None),
    ],
)
def test_the_result_is_not_claimed_where_it_hangs_on_the_last_ply(text, tie, payoff):
    snapshot = take_snapshot(diagram.parse(text.replace("TIE", json.dumps(tie))))
    assert snapshot.territory in ((3, 3), (8, 8))
    assert snapshot.is_over and not snapshot.by_illegal_action
    assert snapshot.payoff == payoff


def test_a_finished_game_has_to_say_so():
    text = ONE_REGION_EACH.replace("TIE", "[]")
    for running in (text.replace("over: yes", ""), text.replace("yes", "no")):
        with pytest.raises(ValueError, match='game is over; write "over: yes"'):
            diagram.parse(running)


def test_room_for_more_stones_is_no_part_of_the_rules():
    rules = Rules(size=7, stones=2, start=((0, 0, 0), (3, 3, 1)), order=(1, 0))
    state = initial_state(rules, stones=4)
    assert diagram.rules_of(state) == rules
    assert "Red" in render.position_page(state)
    text = diagram.draw(state)
    assert diagram.draw(diagram.parse(text)) == text


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("rules", "rule", "'rule' is unknown"),
        ('{"size": 3', '{"size": 2', "size"),
        ('{"size": 3', "{size", "JSON"),
        ('{"size": 3', '{"size": 4', "3 columns"),
        ("turn: B", "turn: G", "'G'"),
        ("turn: B", "turn: B\nturn: R", "twice"),
        ("turn: B", "", "missing"),
        ("turn: B", "turn: B\nover: 1", "yes or no"),
        ("turn: B", "turn: B\ngrid: 2", "3 to 9"),
        ("turn: B", "turn: B\nwalls left: 6 1", "'6 1'"),
        ("turn: B", "turn: B\nwalls left: 1", "2 numbers"),
        ("turn: B", "turn: B\nwalls left: 1 0", "no legal turn"),
        ('"walls": 5', '"walls": 1', "1 walls"),
        ("A   B   C", "A   C   B", "heading"),
        ("A   B   C", "A   B", "heading"),
        ("| R   .   B |", "| R   .   B", "border"),
        ("| R   .   B |", "| X   .   B |", "A1"),
        ("| R   .   B |", "| R4  .   B |", "[1, 4]"),
        ("| R   .   B |", "| R1  .   B |", "[1, 1]"),
        ("| R   .   B |", "| R   R   B |", "[0, 1, 2]"),
        ("| R   .   B |", "| R   .   G |", "Green"),
        ("| R   .   B |", "| R   .   . |", "placement 4"),
        ("| R   .   B |", "| R x .   B |", "right side"),
        ("=r=", "=y=", "Yellow"),
        ("=r=", "-r-", "B1, lower side"),
        ("=r=", "===", "B1, lower side is '===', not blank or a wall"),
        ("     3 | B   . r R |\n", "", "8 lines"),
    ],
)
def test_a_wrong_diagram_is_refused(old, new, word):
    assert old in BY_HAND
    with pytest.raises(ValueError, match=re.escape(word)):
        diagram.parse(BY_HAND.replace(old, new))


@pytest.mark.parametrize(
    ("stone", "turn", "reason"),
    [
        (".", "B", "line 2: placement 1 is Red's, not Blue's"),
        ("R", "R", "line 2: placement 2 is Blue's, not Red's"),
        ("B", "B", "Red has 0 stones where the placement order gives 1"),
    ],
)
def test_the_placement_order_is_kept(stone, turn, reason):
    board = EMPTY.replace("1 | .", f"1 | {stone}")
    with pytest.raises(ValueError, match=reason):
        diagram.parse(f"rules: {json.dumps(SMALL.to_dict())}\nturn: {turn}\n{board}")


def test_walls_before_the_last_placement_are_refused():
    text = BY_HAND.replace('"order": [0, 1, 1, 0]', '"stones": 3, "order": [0, 1, 1, 0, 0, 1]')
    with pytest.raises(ValueError, match="walls although not every stone is placed"):
        diagram.parse(text.replace("turn: B", "turn: R"))


def test_limits_that_are_not_there():
    with pytest.raises(ValueError, match="line 2: these rules set no limit to walls"):
        diagram.parse("rules: hkoi\nwalls left: 1 1\n" + diagram_of_hkoi())
    with pytest.raises(ValueError, match=r"the line 'rules: \.\.\.' is missing; presets: wallzero"):
        diagram.parse("turn: R\n")
    with pytest.raises(ValueError, match="the board is missing"):
        diagram.parse("rules: hkoi\n")


def diagram_of_hkoi():
    return "".join(diagram.draw(replay_actions(PRESETS["hkoi"], []).states[0]).splitlines(True)[2:])


def test_marks_of_territory_are_read_as_empty_cells():
    """The text of a board says whose territory a cell is; a diagram leaves that out."""
    rules = json.dumps(SMALL.to_dict())
    shown = f"rules: {rules}\nturn: B\nover: yes\n{END.partition('Ply')[0]}"
    state = diagram.parse(shown)
    assert take_snapshot(state).territory == (1, 8)
    bare = diagram.draw(state)
    assert ".b" not in bare and diagram.draw(diagram.parse(bare)) == bare
    with pytest.raises(ValueError, match=r"A2 is '\.x', not '\.' or a stone"):
        diagram.parse(shown.replace("2 |.b ", "2 |.x "))
