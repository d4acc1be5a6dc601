"""Who plays each colour: a person, or the machine at a level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from train.ui.games.levels import LEVELS
from wallgo_jax.notation import COLOURS

PERSON, MACHINE = "person", "machine"


class Seat(NamedTuple):
    """Who plays a colour; the level is the machine's, empty for a person."""

    kind: str
    level: str = ""

    @property
    def is_machine(self) -> bool:
        """Whether the machine plays here."""
        return self.kind == MACHINE

    @property
    def name(self) -> str:
        """What records call the player."""
        return f"machine ({self.level})" if self.is_machine else "person"

    def to_dict(self) -> dict[str, str]:
        """JSON-ready fields."""
        return self._asdict()


def read_seats(fields: object, players: int) -> tuple[Seat, ...]:
    """Read the seats that a page sends, one for each player.

    Raises:
      ValueError: what is wrong, and what is allowed.
    """
    if not isinstance(fields, Sequence) or isinstance(fields, str) or len(fields) != players:
        raise ValueError(f"seats: not a list of {players}, one for each player")
    return tuple(_read_seat(entry, COLOURS[player]) for player, entry in enumerate(fields))


def _read_seat(entry: object, colour: str) -> Seat:
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if kind == PERSON:
        return Seat(PERSON)
    level = entry.get("level") if isinstance(entry, dict) else None
    if kind != MACHINE or not isinstance(level, str) or level not in LEVELS:
        raise ValueError(
            f"seats: {colour} is {entry!r}, not a person or a machine of a level; levels: "
            f"{', '.join(LEVELS)}"
        )
    return Seat(MACHINE, level)
