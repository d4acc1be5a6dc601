"""Levels of the machine by name: how long it searches, and how far it strays from its best move."""

from __future__ import annotations

import functools
from typing import NamedTuple

from train.checkpoints import pretrained
from wallgo_jax.game.rules import Rules

HEURISTIC = "heuristic-search:wjx"
"""Plays the rules that no weights come for."""
HINT_SIMULATIONS = 256
GLANCE_SIMULATIONS = 64
"""Simulations of the evaluation bar and of the territory estimate."""


class Level(NamedTuple):
    """A strength of play.

    Attributes:
      name: in the page and on the command line.
      simulations: of each move's search.
      temperature: a move is drawn with chances policy^(1 / temperature) of the search's improved
        policy; 0 plays the search's own choice.
    """

    name: str
    simulations: int
    temperature: float


LEVELS = {
    level.name: level
    for level in (
        Level("beginner", 1, 2.0),
        Level("casual", 4, 1.0),
        Level("club", 16, 0.5),
        Level("strong", 64, 0.2),
        Level("expert", 256, 0.0),
        Level("strongest", 1024, 0.0),
    )
}
DEFAULT_LEVEL = "club"
CARD_KEY, CARD_KEY_HOW = "levels", "levels_measured"
"""Entries of a model's card: Elo by the name of the level, and the games that gave it."""


class Opponent(NamedTuple):
    """The machine that plays some rules.

    Attributes:
      name: the player's name without a budget, as docs/players.md lists names.
      ratings: measured Elo by the name of the level; a level that is missing was not measured.
    """

    name: str
    ratings: dict[str, float]


@functools.cache
def opponent_for(rules: Rules) -> Opponent:
    """Choose the trained player that comes with the package for these rules, else a heuristic."""
    for model in pretrained.models():
        if pretrained.read_config(model).rules == rules:
            measured = pretrained.read_card(model).get(CARD_KEY, {})
            return Opponent(f"pretrained:{model}", {k: float(v) for k, v in measured.items()})
    return Opponent(HEURISTIC, {})
