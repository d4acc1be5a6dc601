"""What functions of one's own work with: the arrays they get and give, and a step of the game."""

import jax

from train.config import RunConfig
from train.learning.losses import TrainingTargets
from train.network import Output, slot_logits
from train.runtime.errors import UsageError
from train.search.evaluator import Evaluation
from wallgo_jax.game import referee
from wallgo_jax.game.state import State

__all__ = [
    "Evaluation",
    "Output",
    "RunConfig",
    "TrainingTargets",
    "UsageError",
    "slot_logits",
    "step",
]


def step(states: State, slots: jax.Array) -> tuple[State, jax.Array]:
    """Play slots int32[B] in states [B].

    Returns:
      The states after them, and the reward of each player, float32[B, P], zeros while a game goes
      on.
    """
    return jax.vmap(referee.play)(states, slots)
