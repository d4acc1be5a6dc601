"""Choices by comparison against plain indexing."""

import jax
import numpy as np

from wallgo_jax.board import select

VALUES = np.array([7, -3, 0, 12], np.int32)


def test_picked_and_chosen_values_are_those_at_the_index():
    for index, value in enumerate((7, -3, 0, 12)):
        assert int(select.pick(VALUES, np.int32(index))) == value
        assert int(select.choose(list(VALUES), np.int32(index))) == value


def test_an_index_out_of_range():
    assert int(select.pick(VALUES, np.int32(4))) == 0 == int(select.pick(VALUES, np.int32(-1)))
    assert int(select.choose(list(VALUES), np.int32(4))) == 12


def test_nothing_is_gathered():
    program = str(jax.make_jaxpr(select.pick)(VALUES, 1)) + str(
        jax.make_jaxpr(lambda index: select.choose(list(VALUES), index))(1)
    )
    assert "gather" not in program
