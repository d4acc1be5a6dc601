"""What the machine thinks of a position: plain data, whatever searches for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

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
    return draw(thought.policy, level.temperature, source)


def draw(policy: Sequence[tuple[int, float]], temperature: float, source: random.Random) -> int:
    """Draw an action with chances policy^(1 / temperature)."""
    top = max(chance for _, chance in policy)
    weights = [(chance / top) ** (1 / temperature) for _, chance in policy]
    return source.choices([action for action, _ in policy], weights)[0]
