"""What the tables of a solved board say of positions, by one program for all tests of a shape."""

from typing import Any

import jax
import numpy as np

from train.runtime.host import batches
from train.solver.tablebase import optimal_slots, value_of
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

BATCH = 64


@jax.jit
def look_up(tables: Any, states: State) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Value, best slots and legal slots of each of BATCH positions."""
    return (
        jax.vmap(lambda state: value_of(tables, state))(states),
        jax.vmap(lambda state: optimal_slots(tables, state))(states),
        jax.vmap(actions.legal_slots)(states),
    )


def look_up_all(tables: Any, states: State, batch: int = BATCH) -> list[np.ndarray]:
    """The same of any number of positions, on the host."""
    parts = [(jax.device_get(look_up(tables, b)), own) for b, own in batches(states, batch)]
    return [np.concatenate([part[i][:own] for part, own in parts]) for i in range(3)]
