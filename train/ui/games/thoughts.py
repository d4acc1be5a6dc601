"""What the machine thinks of a position: plain data, whatever searches for it."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from train.search.report import draw_place
from train.ui.games.levels import Level


class Idea(NamedTuple):
    """A move that a search has looked at."""

    action: int  # public id
    win_chance: float  # of the player to move, 0 to 1
    share: float  # of the improved policy, 0 to 1
    line: tuple[int, ...]  # public ids: the move and what is expected to follow


class Thought(NamedTuple):
    """The result of a search of one position.

    Attributes:
      action: the search's own choice, a public id.
      chances: for each player, the chance to win, 0 to 1.
      ideas: the moves that were looked at, the best first.
      policy: (public id, chance) of the improved policy, illegal moves left out.
      owners: for each cell of the grid, the chance that it ends as each player's, and nobody's
        last; None without a head for it.
      simulations: of the search.
    """

    action: int
    chances: tuple[float, ...]
    ideas: tuple[Idea, ...]
    policy: tuple[tuple[int, float], ...]
    owners: tuple[tuple[float, ...], ...] | None
    simulations: int


def choose(thought: Thought, level: Level, source: random.Random) -> int:
    """Choose a level's move: drawn from the improved policy at the level's temperature."""
    if level.temperature == 0:
        return thought.action
    actions, chances = zip(*thought.policy, strict=True)
    return actions[draw_place(np.array(chances), level.temperature, source.random())]
