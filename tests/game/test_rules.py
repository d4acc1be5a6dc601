"""The presets are the rule sets of the field; wrong custom rules are refused in one line."""

import dataclasses

import pytest

import wallgo_jax
from tests.support.game.board_text import cell
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

# Wrong fields over SMALL, and a word of the one line that refuses them.
ERRORS = [
    ({"size": 2}, "from 3 to 9"),
    ({"size": 4.0}, "4.0"),
    ({"size": True}, "True"),
    ({"size": "4"}, "'4'"),
    ({"players": 1}, "from 2 to 4"),
    ({"stones": 0}, "from 1 to 4"),
    ({"walls": 0}, "from 1 to 1000"),
    ({"walls": 1001}, "from 1 to 1000"),
    ({"stay_needs_room": 1}, "true or false"),
    ({"order": [0, 1, 2, 0]}, "player is 2"),
    ({"start": "B6"}, "list"),
    ({"start": [3]}, "list"),
    ({"start": [[0, 1]]}, "[row, column, player]"),
    ({"start": [[4, 0, 0]], "order": [1, 1, 0]}, "row"),
    ({"start": [[0, -1, 0]], "order": [1, 1, 0]}, "column"),
    ({"start": [[0, 0, 2]], "order": [1, 1, 0]}, "player"),
    ({"start": [[1, 2, 0], [1, 2, 1]], "order": [0, 1]}, "two stones"),
    ({"order": "0110"}, "list"),
    ({"order": [0, 1, 2, 0]}, "player"),
    ({"order": [0, 1, 1]}, "player 0 1 stones"),
    ({"order": [0, 1, 1, 0, 1]}, "player 1 3 stones"),
    ({"start": [[0, 0, 0]]}, "player 0 3 stones"),
    ({"size": 3, "players": 3, "stones": 4, "order": [0, 1, 2] * 4}, "fit"),
    ({"tie": "region"}, "list"),
    ({"tie": ["walls"]}, "'walls'"),
    ({"tie": ["region", "region"]}, "twice"),
]


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


@pytest.mark.parametrize(("fields", "word"), ERRORS, ids=str)
def test_wrong_rules_are_refused_in_one_line(fields, word):
    with pytest.raises(ValueError) as error:
        Rules(**{**SMALL, **fields})
    message = str(error.value)
    assert message.startswith("rules: ") and word in message and "\n" not in message
    assert next(iter(fields)) in message or "start" in message or "players" in message


@pytest.mark.parametrize("given", ["chess", None, 3, [], {"size": 3}], ids=str)
def test_what_names_no_rules_is_refused_with_the_names_there_are(given):
    with pytest.raises(ValueError) as error:
        rules_lib.named(given)
    assert str(error.value).startswith(f"rules: {'unknown preset ' * (given == 'chess')}{given!r}")
    assert str(error.value).endswith(f"known presets: {', '.join(PRESETS)}")
    with pytest.raises(ValueError, match="'colour'"):
        Rules.from_dict({**SMALL, "colour": "red"})


def test_start_that_leaves_nobody_a_turn_is_refused():
    full = [[row, column, column] for row in range(3) for column in range(3)]
    fields = {"size": 3, "players": 3, "stones": 3, "start": full, "order": []}
    assert Rules(**fields).order == ()
    with pytest.raises(ValueError, match=r"^rules: start fills the board.* stay_needs_room"):
        Rules(**fields, stay_needs_room=True)


def test_lists_are_kept_as_tuples_and_rules_are_values():
    rules = Rules(**SMALL, tie=["region", "mover_loses"])
    assert rules.tie == ("region", "mover_loses")
    assert hash(rules) == hash(Rules(**SMALL, tie=("region", "mover_loses")))
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.size = 5


def test_conformance_rules_are_their_own_dict(conformance):
    for games in conformance.values():
        assert Rules.from_dict(games[0]["rules"]).to_dict() == games[0]["rules"]


def test_names():
    for name, rules in rules_lib.PRESETS.items():
        assert rules_lib.named(name) is rules
        assert rules_lib.named(rules) is rules
        assert rules_lib.name_of(rules) == name
    assert rules_lib.name_of(Rules(**SMALL)) == "custom"
