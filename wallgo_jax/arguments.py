"""Errors for arguments of the env that are not those of one board.

Shapes and dtypes are static, so the checks run while JAX traces and leave nothing in a program.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_INT32 = np.iinfo(np.int32)
_LEGACY_KEYS = ((2,), (4,))
"""Shapes of a legacy key: uint32[2] or, of the generator `rbg`, uint32[4]."""


def check_action(action: Any, *, num_actions: int, function: str) -> None:
    """Check that an action is one integer; a number out of range is an illegal move, not an error.

    Args:
      function: the name of the env's function, for the message.

    Raises:
      TypeError: it is no integer.
      ValueError: it is an array of several integers, or does not fit int32.
    """
    allowed = f"a public action is one integer from 0 to {num_actions - 1}"
    if isinstance(action, bool) or not isinstance(
        action, int | np.generic | np.ndarray | jax.Array
    ):
        raise TypeError(f"action: {_describe(action)}, not an integer; {allowed}")
    if isinstance(action, int):
        _check_fits(action, allowed)
        return
    if not jnp.issubdtype(action.dtype, jnp.integer):
        raise TypeError(f"action: {_describe(action)}, not an integer; {allowed}")
    if action.shape != ():
        raise ValueError(
            f"action: {_describe(action)}, but {function} takes one board and one action; "
            f"for a batch: jax.vmap(env.{function})(states, actions)"
        )
    if not isinstance(action, jax.Array):
        _check_fits(int(action), allowed)


def _check_fits(action: int, allowed: str) -> None:
    if not _INT32.min <= action <= _INT32.max:
        raise ValueError(f"action: {action} does not fit int32; {allowed}")


def check_key(key: Any, *, call: str) -> None:
    """Check that a key is one key: a typed one or a legacy uint32[2].

    Args:
      call: of the function that takes it, for a batch, such as `env.init(keys)`.

    Raises:
      TypeError: it is no key.
      ValueError: it is an array of keys.
    """
    is_array = isinstance(key, jax.Array | np.ndarray)
    if is_array and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        batch = key.shape
    elif is_array and key.dtype == jnp.uint32 and key.shape[-1:] in _LEGACY_KEYS:
        batch = key.shape[:-1]
    else:
        raise TypeError(f"key: {_describe(key)}, not a key; jax.random.key(0) makes one")
    if batch != ():
        function, _, taken = call.partition("(")
        raise ValueError(
            f"key: {_describe(key)}, but {function} takes one key; "
            f"for a batch: jax.vmap({function})({taken}"
        )


def check_state(state: Any, kind: type, *, num_actions: int, channels: int, function: str) -> None:
    """Check that a state is one board of an env with so many actions and channels of planes.

    Args:
      kind: the class of the env's states.
      function: the name of the env's function, for the message.

    Raises:
      TypeError: it is of another class.
      ValueError: it is a batch, or a state of an env of other sizes.
    """
    if not isinstance(state, kind):
        raise TypeError(
            f"state: {_describe(state)}, not a {kind.__module__}.{kind.__qualname__}, which "
            "env.init returns; env.state_of makes one of the state of wallgo_jax.game"
        )
    mask, planes = jnp.shape(state.legal_action_mask), jnp.shape(state._planes)
    if len(mask) != 1 or len(planes) != 2:
        raise ValueError(
            f"state: a batch of shape {mask[:-1]}, but {function} takes one board; "
            f"for a batch: {_vmapped(function)}"
        )
    if mask != (num_actions,) or planes[1] != channels:
        raise ValueError(
            f"state: has {mask[0]} actions and {planes[1]} channels of planes, this env has "
            f"{num_actions} and {channels}; it was made with another size, grid or planes"
        )


def _vmapped(function: str) -> str:
    arguments = "(states, actions)" if function.startswith("step") else "(states)"
    return f"jax.vmap(env.{function}){arguments}"


def _describe(value: Any) -> str:
    """Name a value: dtype and shape of an array, else its type, and its `repr` if that is short."""
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if value is None:
        return "None"
    text = repr(value)
    kind = type(value).__name__
    return f"the {kind} {text}" if len(text) <= 30 and "\n" not in text else f"a {kind}"
