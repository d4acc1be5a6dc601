"""Refuses options that have no effect beside others, so that nobody waits for what they ask."""

import dataclasses
from typing import Any

from train.runtime.errors import UsageError


def refuse_unused(command: Any, *names: str, where: str) -> None:
    """Refuse options that were given although they have no effect.

    Args:
      command: as it was parsed, a dataclass whose fields are its options.
      names: fields of options that have no effect.
      where: they have none, such as `with --check`.

    Raises:
      UsageError: which option was given, and where it has no effect.
    """
    for field in dataclasses.fields(command):
        if field.name in names and getattr(command, field.name) != field.default:
            option = field.name.replace("_", "-")
            raise UsageError(
                f"{type(command).__name__.lower()}: --{option} has no effect {where}; leave it out"
            )
