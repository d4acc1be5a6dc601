"""Actions, and compiled `init` and `step`, of adapters that keep one game on the host.

Equal envs share one program, however many adapters are made.
"""

import functools
import operator
from typing import Any

import jax

from wallgo_jax.env import State, WallGo
from wallgo_jax.game import actions


def start(env: WallGo) -> State:
    """Start a game; the state's arrays are NumPy's."""
    return jax.device_get(_init(env))


def read_action(action: Any) -> int:
    """Return an action that a user gave as an int.

    Raises:
      TypeError: it is no integer.
    """
    try:
        if not isinstance(action, bool):
            return operator.index(action)
    except TypeError:
        pass
    raise TypeError(f"action: {action!r} is not an integer") from None


def play(env: WallGo, state: State, action: int) -> State:
    """Play a public action, illegal where it is out of range; the state's arrays are NumPy's."""
    return jax.device_get(_step(env, state, actions.in_int32(action, grid=env.grid)))


@functools.partial(jax.jit, static_argnums=0)
def _init(env: WallGo) -> State:
    return env.init()


@functools.partial(jax.jit, static_argnums=0)
def _step(env: WallGo, state: State, action: jax.Array) -> State:
    return env.step(state, action)
