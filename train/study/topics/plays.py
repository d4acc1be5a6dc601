"""The plays of games, placements left out.

N plays.
"""

from typing import NamedTuple

import jax
import numpy as np

from train.data.record_dataset import Examples
from train.study.frame.own_games import OwnGames
from wallgo_jax.game.state import Position, State

THIRDS = ("first third", "second third", "last third")


class Played(NamedTuple):
    """The plays of games, without placements."""

    states: State  # [N]
    slot: np.ndarray  # int[N]
    game: np.ndarray  # int[N]
    third: np.ndarray  # int[N], third of the game's plies that the play falls into


def plays_of(games: OwnGames, examples: Examples | None = None) -> Played:
    examples = examples or games.examples()
    placements = len(games.rules.order)
    ply = np.asarray(examples.position.ply)
    chosen = np.flatnonzero(ply >= placements)
    game = np.asarray(examples.game)[chosen]
    variant = jax.tree.map(lambda x: np.asarray(x)[game], examples.variant)
    position: Position = jax.tree.map(lambda x: np.asarray(x)[chosen], examples.position)
    length = np.maximum(games.plies[game] - placements, 1)
    third = np.minimum(3 * (ply[chosen] - placements) // length, 2)
    return Played(State(variant, position), np.asarray(examples.slot)[chosen], game, third)
