"""Seats: a person, or the machine at a level, for each colour."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from train.runtime.errors import UsageError
from train.ui.games.levels import LEVELS
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS

PERSON = "person"


def check_seat(seat: str) -> str:
    """Refuse what is neither PERSON nor the name of a level with a ValueError."""
    if seat not in (*LEVELS, PERSON):
        raise ValueError(f"level {seat!r} is not one of {', '.join((*LEVELS, PERSON))}")
    return seat


Seat = Annotated[str, AfterValidator(check_seat)]
"""PERSON, or the name of the machine's level."""


def name_of_seat(seat: str) -> str:
    """The player's name in records."""
    return seat if seat == PERSON else f"machine ({seat})"


def seats_of_person(rules: Rules, *, level: str, colour: str) -> tuple[str, ...]:
    """The seats of a person who plays one colour, the others at a level or PERSON.

    Raises:
      UsageError: there is no such level, or the rules have no such colour.
    """
    try:
        check_seat(level)
    except ValueError as error:
        raise UsageError(f"play: {error}") from None
    colours = COLOURS[: rules.players]
    if colour.capitalize() not in colours:
        raise UsageError(f"play: colour {colour!r} is not one of {', '.join(colours)}")
    return tuple(PERSON if each == colour.capitalize() else level for each in colours)
