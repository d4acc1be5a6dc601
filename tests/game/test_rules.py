"""The presets are the rule sets of the field; wrong rules are refused in one line."""

import dataclasses

import pytest

import wallgo_jax
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules

SMALL = {"size": 4, "stones": 2, "order": [0, 1, 1, 0]}

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
    ({"order": [0, 1, 1]}, "player 0 1 stones"),
    ({"order": [0, 1, 1, 0, 1]}, "player 1 3 stones"),
    ({"start": [[0, 0, 0]]}, "player 0 3 stones"),
    ({"size": 3, "players": 3, "stones": 4, "order": [0, 1, 2] * 4}, "fit"),
    ({"tie": "region"}, "list"),
    ({"tie": ["walls"]}, "'walls'"),
    ({"tie": ["region", "region"]}, "twice"),
]


def test_presets_and_dicts_are_those_of_the_conformance_games(conformance):
    for name, games in conformance.items():
        rules = Rules.from_dict(games[0]["rules"])
        assert rules.to_dict() == games[0]["rules"]
        assert rules_lib.PRESETS.get(name, rules) == rules
    assert set(rules_lib.PRESETS) < set(conformance)
    assert wallgo_jax.PRESETS is rules_lib.PRESETS
    assert wallgo_jax.Rules is Rules


@pytest.mark.parametrize(("fields", "word"), ERRORS, ids=str)
def test_wrong_rules_are_refused_in_one_line(fields, word):
    with pytest.raises(ValueError) as error:
        Rules(**{**SMALL, **fields})
    message = str(error.value)
    assert message.startswith("rules: ") and word in message and "\n" not in message
    assert next(iter(fields)) in message or "start" in message or "players" in message


@pytest.mark.parametrize("given", ["chess", None, 3, []], ids=str)
def test_what_names_no_rules_is_refused_with_the_names_there_are(given):
    with pytest.raises(ValueError) as error:
        rules_lib.named(given)
    assert str(error.value).startswith(f"rules: {'unknown preset ' * (given == 'chess')}{given!r}")
    assert str(error.value).endswith(f"known presets: {', '.join(rules_lib.PRESETS)}")
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


def test_names():
    for name, rules in rules_lib.PRESETS.items():
        assert rules_lib.named(name) is rules
        assert rules_lib.named(rules) is rules
        assert rules_lib.name_of(rules) == name
    assert rules_lib.name_of(Rules(**SMALL)) == "custom"
