"""Choices by comparison against plain indexing."""

import jax
import numpy as np

from wallgo_jax.board import select

VALUES = np.array([7, -3, 0, 12], np.int32)


def test_picked_and_chosen_values_are_those_at_the_index():
    """Out of range, nothing is picked and the last value is chosen."""

    @jax.jit
    @jax.vmap
    def both(index):
        return select.pick(VALUES, index), select.choose(list(VALUES), index)

    picked, chosen = both(np.arange(-1, 5, dtype=np.int32))
    assert picked.tolist() == [0, 7, -3, 0, 12, 0]
    assert chosen.tolist()[1:] == [7, -3, 0, 12, 12]


def test_nothing_is_gathered():
    program = str(jax.make_jaxpr(select.pick)(VALUES, 1)) + str(
        jax.make_jaxpr(lambda index: select.choose(list(VALUES), index))(1)
    )
    assert "gather" not in program
