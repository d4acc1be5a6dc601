"""Positions in which players of all names play."""

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.plain_heuristics import random_games
from wallgo_jax.game.state import State
from wallgo_jax.view.game_replay import replay_actions

BOARDS = tiny.config().evaluation.batch // 2
"""The batch of a match, so that players' programs are shared."""


@pytest.fixture(scope="session")
def states() -> State:
    """Boards [BOARDS] of the tiny rules after four random plies."""
    games = random_games(tiny.RULES, 0, games=BOARDS)
    states = [replay_actions(tiny.RULES, played[:4]).states[-1] for played in games]
    assert not any(state.position.terminated for state in states)
    return jax.tree.map(lambda *x: np.stack(x), *jax.device_get(states))
