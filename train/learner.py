"""One jitted step of learning: draw, turn, observe, loss, update; the only file that knows optax.

N samples.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from train.losses import Lesson, Losses, LossWeights, lesson_of, losses
from train.network import Network, Variables
from train.replay import Ring, Sample, draw
from wallgo_jax import observation
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.game.state import State, Variant


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """How the network learns.

    Attributes:
      batch: samples a step.
      steps: steps an iteration.
      learning_rate: peak of the schedule: linear warm-up, then a cosine to `final_rate` of it.
      final_rate: last learning rate over the peak.
      warmup: steps of warm-up.
      weight_decay: AdamW's, on kernels alone: norms and biases are spared.
      clip: largest global norm of the gradient.
      weights: of the losses.
    """

    batch: int = 512
    steps: int = 32
    learning_rate: float = 3e-3
    final_rate: float = 0.1
    warmup: int = 50
    weight_decay: float = 1e-4
    clip: float = 1.0
    weights: LossWeights = dataclasses.field(default_factory=LossWeights)

    def __post_init__(self) -> None:
        if self.batch < 1 or self.steps < 1 or self.warmup < 0:
            raise ValueError("batch and steps must be at least 1, warmup at least 0")
        if min(self.learning_rate, self.clip) <= 0 or self.weight_decay < 0:
            raise ValueError("learning_rate and clip must be positive, weight_decay not negative")


class LearnerState(NamedTuple):
    """What a step changes."""

    variables: Variables
    optimizer: Any
    step: jax.Array  # int32


class StepMetrics(NamedTuple):
    """What a step saw, float32[]."""

    losses: Losses
    gradient_norm: jax.Array  # before clipping


class Learner(NamedTuple):
    """Learning as functions."""

    init: Callable[[Variables], LearnerState]
    step: Callable[[LearnerState, Ring, Variant, jax.Array], tuple[LearnerState, StepMetrics]]
    """Draw samples from a ring [R, B], whose boards play the variants [B], and learn them."""
    update: Callable[[LearnerState, Sample, jax.Array], tuple[LearnerState, StepMetrics]]
    """Learn samples [N], each turned by a random symmetry."""
    judge: Callable[[Variables, Sample], Losses]
    """Losses of samples [N] as they are, by running statistics; nothing is learned."""


def make_learner(
    network: Network,
    config: LearnerConfig,
    *,
    total_steps: int,
    grid: int,
    planes: str,
    has_playable: bool,
    has_reply: bool = False,
) -> Learner:
    """Build the learner's functions; `step` and `update` are to be jitted with their first
    argument donated.

    Args:
      network: what learns.
      config: how.
      total_steps: length of the schedule of the learning rate.
      grid: side length of the boards.
      planes: what the network sees.
      has_playable: whether it sees the playable cells.
      has_reply: draw next plies for the network's reply head.
    """
    optimizer = make_optimizer(config, total_steps=total_steps)

    def init(variables: Variables) -> LearnerState:
        return LearnerState(variables, optimizer.init(variables.params), jnp.zeros((), jnp.int32))

    @jax.vmap
    def look(state: State) -> jax.Array:
        return observation.observe(state, grid=grid, planes=planes, has_playable=has_playable)

    def loss_of(params: Any, stats: Any, lesson: Lesson) -> tuple[jax.Array, tuple[Any, Losses]]:
        output, stats = network.evaluate_batch(Variables(params, stats), look(lesson.states))
        found = losses(output, lesson, config.weights)
        return found.loss, (stats, found)

    def update(
        state: LearnerState, sample: Sample, key: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        turn = jax.random.randint(key, sample.policy.shape[:1], 0, NUM_SYMMETRIES)
        lesson = lesson_of(sample, turn, grid=grid)
        params, stats = state.variables
        (_, (stats, found)), gradient = jax.value_and_grad(loss_of, has_aux=True)(
            params, stats, lesson
        )
        updates, optimizer_state = optimizer.update(gradient, state.optimizer, params)
        params = optax.apply_updates(params, updates)
        metrics = StepMetrics(found, optax.tree.norm(gradient))
        return LearnerState(Variables(params, stats), optimizer_state, state.step + 1), metrics

    def step(
        state: LearnerState, ring: Ring, variant: Variant, key: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        draw_key, turn_key = jax.random.split(key)
        sample = draw(ring, variant, draw_key, size=config.batch, has_reply=has_reply)
        return update(state, sample, turn_key)

    def judge(variables: Variables, sample: Sample) -> Losses:
        lesson = lesson_of(sample, jnp.zeros(sample.policy.shape[:1], jnp.int32), grid=grid)
        output = network.evaluate(variables, look(lesson.states))
        return losses(output, lesson, config.weights)

    return Learner(init, step, update, judge)


def make_optimizer(config: LearnerConfig, *, total_steps: int) -> optax.GradientTransformation:
    """Clipped AdamW on a warm-up and cosine schedule."""
    warmup = min(config.warmup, max(total_steps - 1, 0))
    schedule = optax.warmup_cosine_decay_schedule(
        init_value=0.0 if warmup else config.learning_rate,
        peak_value=config.learning_rate,
        warmup_steps=warmup,
        decay_steps=max(total_steps, warmup + 1),
        end_value=config.final_rate * config.learning_rate,
    )
    return optax.chain(
        optax.clip_by_global_norm(config.clip),
        optax.adamw(schedule, weight_decay=config.weight_decay, mask=_is_kernel),
    )


def _is_kernel(params: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.ndim > 1, params)
