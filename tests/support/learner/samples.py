"""Samples of random games on boards in a grid of 4, shared by what learns from them."""

import functools
from typing import NamedTuple

import jax
import numpy as np

from tests.support.learner import tiny
from tests.support.learner.random_search import random_search
from train.data import replay
from train.data.config import SelfPlayConfig
from train.data.outcomes import Outcome
from train.data.selfplay import first_boards, make_selfplay
from wallgo_jax.game.rules import Rules

GRID, SAMPLES = 4, 48
SETUPS = {
    2: Rules(size=GRID, stones=2, order=(0, 1, 1, 0)),
    3: Rules(size=3, players=3, stones=1, order=(0, 1, 2)),
}
_BOARDS, _PLIES = 8, 40


class Played(NamedTuple):
    """NumPy arrays."""

    replay_state: replay.ReplayState  # [40, 8]
    step_outcome: Outcome  # [40, 8], as self-play made it
    sample: replay.Sample  # [48], with the next plies; policies have weights from 0 to 1.5


@functools.cache
def played(players: int) -> Played:
    """Whole games of players that put all of each policy on the slot that they draw."""
    variant = tiny.variants(SETUPS[players], _BOARDS, grid=GRID)
    selfplay = make_selfplay(random_search(), SelfPlayConfig(plies=_PLIES))

    @jax.jit
    def play(variant):
        _, made, _ = selfplay((), variant, first_boards(variant), jax.random.key(1))
        plies = replay.stored(made)
        replay_state = replay.add(replay.init(_PLIES, plies), plies)
        key = jax.random.key(2)
        drawn = replay.sample(replay_state, variant, key, size=SAMPLES, has_reply=True)
        return Played(replay_state, made.outcome, drawn)

    replay_state, step_outcome, sample = jax.device_get(play(variant))
    assert replay_state.finished.sum() > 10
    # In place of the ones of self-play.
    assert (sample.policy_weight == 1).all()
    weight = np.arange(SAMPLES, dtype=np.float32) % 4 / 2
    reply = sample.reply._replace(policy_weight=weight[::-1])
    return Played(replay_state, step_outcome, sample._replace(policy_weight=weight, reply=reply))
