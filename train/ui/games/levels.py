"""Who plays a colour: a person, or the machine at a level of so many simulations."""

import functools
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from train.checkpoints import pretrained
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS

PERSON = "person"


class Level(NamedTuple):
    """A strength of play."""

    name: str  # in the page and on the command line
    simulations: int  # of each move's search
    temperature: float
    """A move is drawn with chances policy^(1 / temperature) of the search's improved policy; 0
    plays the search's own choice."""


# The search of a player weighs a value by 15 logits and more: low temperatures change nothing.
LEVELS = {
    level.name: level
    for level in (
        Level("beginner", 1, 5.0),
        Level("novice", 1, 3.0),
        Level("casual", 4, 1.5),
        Level("club", 16, 1.0),
        Level("advanced", 32, 1.0),
        Level("strong", 64, 0.0),
        Level("expert", 256, 0.0),
        Level("strongest", 1024, 0.0),
    )
}
DEFAULT_LEVEL = "novice"
HINT = Level("hint", 256, 0.0)
GLANCE = Level("glance", 64, 0.0)
"""The search of the evaluation bar and of the territory estimate."""
ZERO = "wjx"
"""The player whose Elo is 0. The lower levels win and lose games against it; from a player that
loses all of them, no distance can be measured."""
CARD_KEY, CARD_KEY_HOW = "levels", "levels_measured"
"""Entries of a model's card: `elo`, and `low` to `high`, its 95 % interval, by the name of the
level; and the games that gave it."""


@functools.cache
def ratings_of(player: str) -> dict[str, dict[str, float]]:
    """The ratings of a machine by the name of the level, where its weights have a card; a level
    that is missing was not measured."""
    kind, _, model = player.partition(":")
    return pretrained.read_card(model).get(CARD_KEY, {}) if kind == "pretrained" else {}


def check_seat(seat: str) -> str:
    """Refuse what is neither PERSON nor the name of a level with a UsageError."""
    if seat not in (*LEVELS, PERSON):
        raise UsageError(f"level {seat!r} is not one of {', '.join((*LEVELS, PERSON))}")
    return seat


Seat = Annotated[str, AfterValidator(check_seat)]
"""PERSON, or the name of the machine's level."""


def seats_of_person(rules: Rules, *, level: str, colour: str) -> tuple[str, ...]:
    """The seats of a person who plays one colour, the others at a level or PERSON.

    Raises:
      UsageError: there is no such level, or the rules have no such colour.
    """
    check_seat(level)
    colours = COLOURS[: rules.players]
    if colour.capitalize() not in colours:
        raise UsageError(f"play: colour {colour!r} is not one of {', '.join(colours)}")
    return tuple(PERSON if each == colour.capitalize() else level for each in colours)
