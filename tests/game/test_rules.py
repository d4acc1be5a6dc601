"""The presets are the rule sets of the field; wrong custom rules are refused in one line."""

import dataclasses
import json

import pytest

import wallgo_jax
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules

SMALL = {"size": 4, "stones": 2, "order": [0, 1, 1, 0]}

# The table of rule sets: players, stones, start, order, walls, stay needs room, tie-breaks.
PRESETS = {
    "wallzero-4stone": (2, 4, "B6 F2 / B2 F6", "0110", None, False, ("region",)),
    "wallzero-empty": (2, 4, "/", "01100110", None, False, ("region",)),
    "hkoi": (2, 4, "/", "01100110", None, False, ("region", "mover_loses")),
    "playwallgo-2p": (2, 4, "/", "01010101", 20, True, ()),
    "playwallgo-3p": (3, 2, "//", "012012", 20, True, ()),
    "playwallgo-4p": (4, 2, "///", "01230123", 20, True, ()),
}

# Wrong fields over SMALL, and words of the one line that refuses them.
ERRORS = {
    "size too small": ({"size": 2}, "size is 2, not a whole number from 3 to 9"),
    "size too large": ({"size": 10}, "size is 10, not a whole number from 3 to 9"),
    "size a float": ({"size": 4.0}, "size is 4.0, not a whole number"),
    "size a bool": ({"size": True}, "size is True, not a whole number"),
    "size a string": ({"size": "4"}, "size is '4', not a whole number"),
    "one player": ({"players": 1}, "players is 1, not a whole number from 2 to 4"),
    "five players": ({"players": 5}, "players is 5, not a whole number from 2 to 4"),
    "no stones": ({"stones": 0}, "stones is 0, not a whole number from 1 to 4"),
    "five stones": ({"stones": 5}, "stones is 5, not a whole number from 1 to 4"),
    "no walls": ({"walls": 0}, "walls is 0, not a whole number from 1 to 1000"),
    "walls a string": ({"walls": "many"}, "walls is 'many', not a whole number from 1 to 1000"),
    "walls above the limit": ({"walls": 1001}, "walls is 1001, not a whole number from 1 to 1000"),
    "stay flag a number": ({"stay_needs_room": 1}, "stay_needs_room is 1, not true or false"),
    "start not a list": ({"start": "B6"}, "start is 'B6', not a list"),
    "start a number": ({"start": 3}, "start is 3, not a list"),
    "stone not a list": ({"start": [3]}, "start is 3, not a list"),
    "stone too short": ({"start": [[0, 1]]}, "start has [0, 1], not [row, column, player]"),
    "row off the board": (
        {"start": [[4, 0, 0]], "order": [1, 1, 0]},
        "start: row is 4, not a whole number from 0 to 3",
    ),
    "column off the board": (
        {"start": [[0, -1, 0]], "order": [1, 1, 0]},
        "start: column is -1, not a whole number from 0 to 3",
    ),
    "stone of nobody": (
        {"start": [[0, 0, 2]], "order": [1, 1, 0]},
        "start: player is 2, not a whole number from 0 to 1",
    ),
    "two stones on a cell": (
        {"start": [[1, 2, 0], [1, 2, 1]], "order": [0, 1]},
        "start puts two stones on row 1, column 2",
    ),
    "order not a list": ({"order": "0110"}, "order is '0110', not a list"),
    "order a number": ({"order": 4}, "order is 4, not a list"),
    "order of nobody": ({"order": [0, 1, 2, 0]}, "order: player is 2, not a whole number from 0"),
    "too few placements": ({"order": [0, 1, 1]}, "start and order give player 0 1 stones, not 2"),
    "too many placements": (
        {"order": [0, 1, 1, 0, 1]},
        "start and order give player 1 3 stones, not 2",
    ),
    "too many with the start": (
        {"start": [[0, 0, 0]]},
        "start and order give player 0 3 stones, not 2",
    ),
    "stones do not fit": (
        {"size": 3, "players": 3, "stones": 4, "order": [0, 1, 2] * 4},
        "3 players with 4 stones each do not fit on 3x3 cells",
    ),
    "tie not a list": ({"tie": "region"}, "tie is 'region', not a list"),
    "tie unknown": ({"tie": ["walls"]}, "tie has 'walls', not one of region, mover_loses"),
    "tie twice": ({"tie": ["region", "region"]}, "tie names a rule twice: ['region', 'region']"),
}


def cell(name: str) -> tuple[int, int]:
    """Row and column of a cell like B6: column letter, row number from the top."""
    return int(name[1]) - 1, ord(name[0]) - ord("A")


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_the_published_rule_set(name):
    players, stones, start, order, walls, stay_needs_room, tie = PRESETS[name]
    owners = enumerate(start.split("/"))
    expected = tuple((*cell(each), player) for player, own in owners for each in own.split())
    assert dataclasses.asdict(rules_lib.PRESETS[name]) == {
        "size": 7,
        "players": players,
        "stones": stones,
        "start": expected,
        "order": tuple(map(int, order)),
        "walls": walls,
        "stay_needs_room": stay_needs_room,
        "tie": tie,
    }


def test_presets_are_all_there():
    assert set(rules_lib.PRESETS) == set(PRESETS)
    assert wallgo_jax.PRESETS is rules_lib.PRESETS
    assert wallgo_jax.Rules is Rules


@pytest.mark.parametrize("case", ERRORS)
def test_error_names_the_field_and_what_is_allowed(case):
    fields, said = ERRORS[case]
    with pytest.raises(ValueError) as error:
        Rules(**{**SMALL, **fields})
    message = str(error.value)
    assert message.startswith("rules: ")
    assert said in message
    assert "\n" not in message


def test_unknown_key_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^rules: unknown key 'colour'; known keys: size, play"):
        Rules.from_dict({**SMALL, "colour": "red"})


def test_unknown_preset_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError) as error:
        rules_lib.named("chess")
    assert str(error.value) == (
        "rules: unknown preset 'chess'; known presets: wallzero-4stone, wallzero-empty, hkoi, "
        "playwallgo-2p, playwallgo-3p, playwallgo-4p"
    )


@pytest.mark.parametrize("given", [None, 3, [], {"size": 3}])
def test_what_is_neither_rules_nor_a_name_is_refused(given):
    with pytest.raises(ValueError) as caught:
        rules_lib.named(given)
    message = (
        f"rules: {given!r} is neither wallgo_jax.Rules nor the name of a preset; known presets: "
    )
    assert str(caught.value).startswith(message)


def test_start_that_leaves_nobody_a_turn_is_refused():
    full = [[row, column, column] for row in range(3) for column in range(3)]
    fields = {"size": 3, "players": 3, "stones": 3, "start": full, "order": []}
    assert Rules(**fields).order == ()
    with pytest.raises(ValueError, match=r"^rules: start fills the board.* stay_needs_room"):
        Rules(**fields, stay_needs_room=True)


@pytest.mark.parametrize("size", range(3, 10))
@pytest.mark.parametrize("stones", range(1, 5))
def test_every_size_and_stone_count_is_valid(size, stones):
    rules = Rules(size=size, stones=stones, order=[0, 1] * stones)
    assert (rules.size, rules.stones, rules.order) == (size, stones, (0, 1) * stones)


def test_start_alone_needs_no_order():
    start = [[0, 0, 0], [0, 1, 1], [2, 0, 0], [2, 1, 1]]
    rules = Rules(size=3, stones=2, start=start, order=[])
    assert rules.start == ((0, 0, 0), (0, 1, 1), (2, 0, 0), (2, 1, 1))
    assert rules.order == ()


def test_lists_are_kept_as_tuples_and_rules_are_values():
    rules = Rules(**SMALL, tie=["region", "mover_loses"])
    assert rules.tie == ("region", "mover_loses")
    assert hash(rules) == hash(Rules(**SMALL, tie=("region", "mover_loses")))
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.size = 5


@pytest.mark.parametrize("name", PRESETS)
def test_rules_survive_json(name):
    rules = rules_lib.PRESETS[name]
    text = json.dumps(rules.to_dict())
    assert Rules.from_dict(json.loads(text)) == rules


def test_conformance_rules_are_their_own_dict(conformance):
    for games in conformance.values():
        assert Rules.from_dict(games[0]["rules"]).to_dict() == games[0]["rules"]


def test_names():
    for name, rules in rules_lib.PRESETS.items():
        assert rules_lib.named(name) is rules
        assert rules_lib.named(rules) is rules
        assert rules_lib.name_of(rules) == name
    assert rules_lib.name_of(Rules(**SMALL)) == "custom"
