"""Bad input never crashes: a wrong text is refused in one line."""

import dataclasses
import functools
import json

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.formats.test_diagram import assert_same
from wallgo_jax import notation
from wallgo_jax.formats import diagram, hkoi_code, records
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.view.game_replay import Game, replay_actions, replay_moves

PRESETS_READ = ("wallzero-4stone", "playwallgo-3p")
"""Presets of the texts: with a start, and for three."""


# Texts with some characters deleted, replaced or put in.

CHARACTERS = "ABGRYabgry0123456789=+-|.:,;#>W_{}[]\"'\\ \t\n\r\x0b\x00é²٣\u2028"


@st.composite
def edits(draw):
    """One to four changes of a text, as `(place, kind, characters)` with places in 0..1."""
    place = st.floats(0, 1, exclude_max=True)
    kind = st.sampled_from(("delete", "replace", "insert", "double", "cut"))
    some = st.text(st.sampled_from(CHARACTERS) | st.characters(), min_size=1, max_size=2)
    return draw(st.lists(st.tuples(place, kind, some), min_size=1, max_size=4))


def edited(text: str, changes) -> str:
    """The text after the changes."""
    for place, kind, characters in changes:
        at = int(place * len(text))
        end = at + len(characters)
        text = {
            "delete": text[:at] + text[end:],
            "replace": text[:at] + characters + text[end:],
            "insert": text[:at] + characters + text[at:],
            "double": text[:end] + text[at:],
            "cut": text[:at],
        }[kind]
    return text


def value_or_complaint(read, text):
    """The value that a reader gives a text, or None if it refuses the text in one line."""
    try:
        return read(text)
    except ValueError as error:
        message = str(error)
        assert message.strip() and len(message.splitlines()) == 1, message
        return None


def game_of(preset: str, conformance) -> Game:
    """Placements and ten more plies."""
    rules, record = PRESETS[preset], conformance[preset][0]
    return replay_actions(rules, record["actions"][: len(rules.order) + 10])


@pytest.fixture(scope="module", params=PRESETS_READ)
def game(request, conformance) -> Game:
    return game_of(request.param, conformance)


def fuzz(text: str, read, check) -> None:
    """Read edited texts, and `check` the values of those that are still allowed."""
    refused = []

    @hypothesis.settings(max_examples=60)
    @hypothesis.given(edits())
    def draw(changes):
        value = value_or_complaint(read, edited(text, changes))
        refused.append(value is None)
        if value is not None:
            check(value)

    check(read(text))
    draw()
    assert any(refused), "no edit made the text worse"


def assert_diagram_is_whole(state) -> None:
    assert_same(state, diagram.parse(diagram.draw(state)))


@pytest.mark.parametrize("ply", [2, -1])
def test_diagrams(game, ply):
    fuzz(diagram.draw(game.states[ply]), diagram.parse, assert_diagram_is_whole)


def test_diagrams_of_custom_rules(game):
    first, *order = game.rules.order
    rules = dataclasses.replace(game.rules, start=(*game.rules.start, (0, 0, first)), order=order)
    text = diagram.draw(replay_actions(rules, [], grid=8).states[0])
    fuzz(text, diagram.parse, assert_diagram_is_whole)


def test_record_lines(game):
    def read(line):
        record = records.from_json(line)
        return record, records.replay(record)

    def check(value):
        record, played = value
        assert played.actions == record.actions
        assert records.from_json(records.to_json(record)) == record

    fuzz(records.to_json(records.of_game(game)), read, check)


def test_games_in_human_notation(game):
    text = "\n".join(
        notation.format_action(action, grid=7, player=player)
        for action, player in zip(game.actions, game.movers, strict=True)
    )

    def read(text):
        return replay_moves(game.rules, notation.parse_moves(text, grid=7))

    fuzz(text, read, lambda played: replay_actions(game.rules, played.actions))


def test_codes_of_the_contest(conformance):
    game = game_of("hkoi", conformance)

    def read(code):
        return hkoi_code.decode(code, game.rules)

    def check(played):
        assert hkoi_code.decode(hkoi_code.encode(played), game.rules).actions == played.actions

    fuzz(hkoi_code.encode(game), read, check)


# Values of any type in place of those of a record or its rules.

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from((2**31, -(2**31) - 1, 2**63, 10**30))
    | st.text(max_size=3)
    | st.sampled_from(("hkoi", "custom", "region", "0\n1")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
FIELDS = tuple(field.name for field in dataclasses.fields(Rules))
KEYS = ("variant", "rules", "grid", "actions", "players", "result", "values", "env_version")


def read_and_replay(line: str):
    """The game of a record's line."""
    return records.replay(records.from_json(line))


@hypothesis.settings(max_examples=200)
@hypothesis.given(st.sampled_from(KEYS), JSON)
def test_any_value_in_a_record(key, value):
    rules = Rules(size=3, stones=1, order=(0, 1)).to_dict()
    fields = {"variant": "custom", "rules": rules, "actions": [468], key: value}
    value_or_complaint(read_and_replay, json.dumps(fields))


@hypothesis.settings(max_examples=200)
@hypothesis.given(st.sampled_from(KEYS[3:7]), JSON, st.integers(0, 2))
def test_any_entry_in_a_records_list(key, value, place):
    rules = Rules(size=3, stones=1, order=(0, 1)).to_dict()
    lists = {"actions": [468, 469], "players": ["a", "b"], "result": None, "values": [0.0, 0.5]}
    entries = list(lists[key] or (0, 0))
    entries[place : place + 1] = [value]
    fields = {"variant": "custom", "rules": rules, **lists, key: entries}
    value_or_complaint(read_and_replay, json.dumps(fields))


@hypothesis.settings(max_examples=200)
@hypothesis.given(st.sampled_from(FIELDS), JSON)
def test_any_value_in_rules(field, value):
    fields = {
        **Rules(size=4, stones=2, start=((0, 0, 0),), order=(1, 1, 0)).to_dict(),
        field: value,
    }
    rules = value_or_complaint(Rules.from_dict, fields)
    assert rules is None or Rules.from_dict(rules.to_dict()) == rules


@hypothesis.settings(max_examples=100)
@hypothesis.given(st.text(st.sampled_from(CHARACTERS) | st.characters(), max_size=60))
def test_any_text(text):
    readers = (
        diagram.parse,
        records.from_json,
        hkoi_code.decode,
        functools.partial(notation.parse_moves, grid=7),
        functools.partial(notation.parse_action, grid=7),
        lambda text: diagram.parse(f"rules: {text}"),
    )
    for read in readers:
        value_or_complaint(read, text)


# Texts that were once read wrongly.


def test_json_nested_too_deeply():
    deep = "[" * 100_000
    for read, text in (
        (records.from_json, deep),
        (records.from_json, f'{{"variant": {deep}'),
        (diagram.parse, f'rules: {{"size": {deep}'),
    ):
        with pytest.raises(ValueError, match="not JSON: maximum recursion depth"):
            read(text)


@pytest.mark.parametrize("action", [2**31, 2**40, -(2**70)])
def test_an_id_beyond_32_bits_is_illegal_like_any_other(action):
    with pytest.raises(ValueError, match=f"ply 1: action {action} is not between 0 and 2596"):
        replay_actions(PRESETS["hkoi"], [action])


EMPTY = """
       A   B   C
     +---+---+---+
   1 | .   .   . |
     +   +   +   +
   2 | .   .   . |
     +   +   +   +
   3 | .   .   . |
     +---+---+---+
"""


@pytest.mark.parametrize("order", ["[]", "[1]"])
@pytest.mark.parametrize("turn", ["", "turn: R"])
def test_diagrams_without_the_stones_of_the_start(order, turn):
    start = "[[0, 0, 0], [1, 1, 1]]" if order == "[]" else "[[0, 0, 0], [0, 1, 0], [1, 1, 1]]"
    stones = 1 if order == "[]" else 2
    rules = f'{{"size": 3, "stones": {stones}, "start": {start}, "order": {order}}}'
    with pytest.raises(ValueError, match=r"stones where the placement order|'turn: R' is missing"):
        diagram.parse(f"rules: {rules}\n{turn}{EMPTY}")


def test_a_wall_without_a_colour_is_not_overlooked():
    rules = 'rules: {"size": 3, "stones": 1, "order": [0, 1]}'
    drawn = EMPTY.replace("     +   +   +   +\n   2", "     +===+   +   +\n   2")
    with pytest.raises(ValueError, match="line 5: A1, lower side is '===', not blank or a wall"):
        diagram.parse(rules + drawn)
