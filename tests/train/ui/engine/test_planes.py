"""The planes that the page's engine shows a network equal those of wallgo_jax to the bit."""

import base64
import functools

import jax
import numpy as np
import pytest

from tests.train.ui.engine.games import positions, random_games
from wallgo_jax import observation
from wallgo_jax.game.rules import PRESETS, Rules

_SMALL = Rules(size=5, stones=2, order=(0, 1, 1, 0), walls=4, stay_needs_room=True, tie=())


def check(engine, rules, planes, *, count, has_playable=True):
    games, states = random_games(engine, rules, seed=3, count=count)
    whole, _ = positions(games, states, ends=True)
    observe = functools.partial(observation.observe, planes=planes, has_playable=has_playable)
    expected = np.asarray(jax.jit(jax.vmap(observe))(whole))
    answer = engine.ask(
        "planes", fields=rules.to_dict(), games=games, planes=planes, hasPlayable=has_playable
    )
    found = b"".join(base64.b64decode(rows) for rows in answer["rows"])
    assert answer["channels"] == expected.shape[-1]
    found = np.frombuffer(found, np.uint8).reshape(expected.shape)
    np.testing.assert_array_equal(found, expected)


def test_planes_of_all_kinds_are_equal(engine):
    check(engine, _SMALL, "BTRHDLWV", count=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "planes"),
    [(name, planes) for name in PRESETS for planes in ("BTRHDLWV", "BTRHWV")]
    + [("wallzero-4stone", planes) for planes in ("B", "BT", "BTR", "BTRH", "BTRD")],
)
def test_planes_of_all_sets_are_equal(engine, name, planes):
    check(engine, PRESETS[name], planes, count=20, has_playable=False)
