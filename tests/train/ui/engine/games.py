"""Positions of random games, in the page's engine and in wallgo_jax."""

from typing import Any

import jax
import numpy as np

from tests.support.game import harness
from tests.support.node import Engine
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State


def random_games(
    engine: Engine, rules: Rules, *, seed: int, count: int
) -> tuple[list[list[int]], State]:
    """Whole games as public actions, and the states before each ply [T, B] that wallgo_jax makes of
    them, each board's last one repeated."""
    played = engine.ask("random", fields=rules.to_dict(), room={}, seed=seed, count=count)
    shown = harness.replay([rules] * count, played["actions"], grid=rules.size)
    return played["actions"], shown.state


def positions(games: list[list[int]], states: State, *, ends: bool = False) -> tuple[State, Any]:
    """The states [B] of all games in turn, and int[B, 2], game and ply of each; with `ends` also
    those at the end of a game."""
    places = np.array(
        [
            (game, ply)
            for game, actions in enumerate(games)
            for ply in range(len(actions) + int(ends))
        ]
    )
    return jax.tree.map(lambda x: np.asarray(x)[places[:, 1], places[:, 0]], states), places
