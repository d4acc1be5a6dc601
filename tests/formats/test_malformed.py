"""Bad input never crashes: a wrong text is refused in one line."""

import dataclasses
import functools
import json
import random

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.support.game import texts
from tests.support.game.small import EMPTY, SMALL
from tests.support.game.texts import is_refused
from wallgo_jax import notation
from wallgo_jax.formats import diagram, hkoi_code, records
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.view.game_replay import replay_actions

CHANGES = 150


@pytest.mark.parametrize("number", range(5))
def test_changed_texts(number):
    """What is read of a text with a few changes is whole."""
    draw, (read, valid, check) = random.Random(0), [*texts.parsers_of_game().values()][number]
    assert not any(is_refused(read, text, check) for text in valid)
    changed = [texts.changed(draw, valid) for _ in range(CHANGES)]
    assert 0 < sum(is_refused(read, text, check) for text in changed) < CHANGES


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
RECORD = {
    "variant": "custom",
    "rules": SMALL.to_dict(),
    "actions": [468, 469],
    "players": ["a", "b"],
    "values": [0.0, 0.5],
}


@hypothesis.settings(max_examples=400)
@hypothesis.given(st.sampled_from(KEYS), JSON, st.none() | st.integers(0, 2))
def test_any_value_or_entry_in_a_record(key, value, place):
    entries = RECORD.get(key, (0, 0))
    if place is not None and isinstance(entries, list | tuple):
        value = [*entries[:place], value, *entries[place + 1 :]]
    line = json.dumps(RECORD | {key: value})
    is_refused(lambda line: records.replay(records.from_json(line)), line, lambda game: None)


@hypothesis.settings(max_examples=200)
@hypothesis.given(st.sampled_from(FIELDS), JSON)
def test_any_value_in_rules(field, value):
    fields = {
        **Rules(size=4, stones=2, start=((0, 0, 0),), order=(1, 1, 0)).to_dict(),
        field: value,
    }
    is_refused(Rules.from_dict, fields, check_rules)


def check_rules(rules: Rules) -> None:
    assert Rules.from_dict(rules.to_dict()) == rules


@hypothesis.settings(max_examples=100)
@hypothesis.given(st.text(st.sampled_from(texts.CHARACTERS) | st.characters(), max_size=60))
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
        is_refused(read, text, lambda value: None)


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


@pytest.mark.parametrize("order", ["[]", "[1]"])
@pytest.mark.parametrize("turn", ["", "turn: R"])
def test_diagrams_without_the_stones_of_the_start(order, turn):
    start = "[[0, 0, 0], [1, 1, 1]]" if order == "[]" else "[[0, 0, 0], [0, 1, 0], [1, 1, 1]]"
    stones = 1 if order == "[]" else 2
    rules = f'{{"size": 3, "stones": {stones}, "start": {start}, "order": {order}}}'
    with pytest.raises(ValueError, match=r"stones where the placement order|'turn: R' is missing"):
        diagram.parse(f"rules: {rules}\n{turn}\n{EMPTY}")
