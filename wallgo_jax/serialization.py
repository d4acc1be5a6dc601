"""Lets `flax.serialization` write and read the states of an env, where a program has loaded flax.

The package itself does not need flax, so it does not load it.
"""

import dataclasses
import sys
from typing import Any

_FLAX = "flax.serialization"


def register_with_flax(*types: type) -> None:
    """Register dataclasses, once; nothing happens while flax is not loaded.

    A tree's static parts, such as `Grid`, are written like its arrays, and must be the same in the
    state that is read into.
    """
    flax = sys.modules.get(_FLAX)
    if flax is None:
        return
    for kind in types:
        if not flax.is_serializable(kind):
            flax.register_serialization_state(kind, _writer(flax), _reader(flax))


def _writer(flax: Any) -> Any:
    def write(target: Any) -> dict[str, Any]:
        return {
            field.name: flax.to_state_dict(getattr(target, field.name))
            for field in dataclasses.fields(target)
        }

    return write


def _reader(flax: Any) -> Any:
    def read(target: Any, state: dict[str, Any]) -> Any:
        names = {field.name for field in dataclasses.fields(target)}
        if names != state.keys():
            raise ValueError(f"{type(target).__name__}: has {sorted(names)}, not {sorted(state)}")
        return dataclasses.replace(
            target,
            **{
                name: flax.from_state_dict(getattr(target, name), state[name], name=name)
                for name in names
            },
        )

    return read
