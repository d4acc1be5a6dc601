"""Numbers that are constants of a program, or arguments of it."""

from typing import Any


def is_off(number: Any, off: float = 0) -> bool:
    """Whether a number of a config, or of a program that is traced, is the constant that switches
    something off."""
    return isinstance(number, int | float) and number == off
