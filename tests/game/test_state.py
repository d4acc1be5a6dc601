"""Rules and the first position as arrays: shapes, types, sizes, limits."""

import jax.numpy as jnp
import pytest

from wallgo_jax.game import state as state_lib
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.state import NO_LIMIT

RULES = Rules(size=4, players=3, stones=2, order=(0, 1, 2) * 2)


def test_shapes_and_dtypes_are_those_declared():
    variant, position = state_lib.initial_state(RULES, grid=6)
    declared = {
        "playable": (jnp.uint32, (2,)),
        "size": (jnp.int8, ()),
        "start": (jnp.int8, (3, 2)),
        "order": (jnp.int8, (6,)),
        "num_placements": (jnp.int16, ()),
        "walls": (jnp.int16, ()),
        "stay_needs_room": (jnp.bool_, ()),
        "tie": (jnp.int8, (2,)),
        "stones": (jnp.int8, (3, 2)),
        "walls by builder": (jnp.uint32, (3, 2, 2)),
        "walls_left": (jnp.int16, (3,)),
        "trail": (jnp.int8, (4, 3)),
        "player": (jnp.int8, ()),
        "ply": (jnp.int16, ()),
        "terminated": (jnp.bool_, ()),
    }
    fields = {**variant._asdict(), "walls by builder": position.walls}
    fields |= {name: leaf for name, leaf in position._asdict().items() if name != "walls"}
    for name, (dtype, shape) in declared.items():
        assert (name, fields[name].dtype, fields[name].shape) == (name, dtype, shape)


def test_no_limit_is_more_walls_than_any_board_has():
    variant = state_lib.make_variant(PRESETS["hkoi"])
    assert variant.walls == NO_LIMIT > 2 * 9 * 8
    assert state_lib.make_variant(PRESETS["playwallgo-2p"]).walls == 20


def test_board_larger_than_the_grid_is_refused():
    with pytest.raises(ValueError, match=r"^rules: a board of size 4 does not fit in a grid of 3$"):
        state_lib.make_variant(RULES, grid=3)


def test_sizes():
    assert state_lib.sizes_of(RULES) == (4, 3, 2)
    assert state_lib.sizes_of(RULES, grid=6) == (6, 3, 2)
