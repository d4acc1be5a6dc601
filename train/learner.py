"""One jitted step of learning: sample, turn, observe, loss, update; the only file that knows optax.

N samples, A slots.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from train.network import Network, Variables, slot_logits
from train.replay import Ring, Sample, draw
from wallgo_jax import observation
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.game import actions, symmetry
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
      value_weight: weight of the value loss beside the policy loss.
    """

    batch: int = 512
    steps: int = 32
    learning_rate: float = 3e-3
    final_rate: float = 0.1
    warmup: int = 50
    weight_decay: float = 1e-4
    clip: float = 1.0
    value_weight: float = 1.0

    def __post_init__(self) -> None:
        if self.batch < 1 or self.steps < 1 or self.warmup < 0:
            raise ValueError("batch and steps must be at least 1, warmup at least 0")
        if min(self.learning_rate, self.clip) <= 0 or min(self.weight_decay, self.value_weight) < 0:
            raise ValueError("learning_rate and clip must be positive, the weights not negative")


class LearnerState(NamedTuple):
    """What a step changes."""

    variables: Variables
    optimizer: Any
    step: jax.Array  # int32


class LossMetrics(NamedTuple):
    """Means over a batch, float32[]."""

    loss: jax.Array
    policy_loss: jax.Array  # cross-entropy with the search's policy, nats
    value_loss: jax.Array  # squared error of the outcome
    accuracy: jax.Array  # share of samples whose likeliest slot is the search's
    gradient_norm: jax.Array


class Learner(NamedTuple):
    """Learning as functions."""

    init: Callable[[Variables], LearnerState]
    step: Callable[[LearnerState, Ring, Variant, jax.Array], tuple[LearnerState, LossMetrics]]


def make_learner(
    network: Network,
    config: LearnerConfig,
    *,
    total_steps: int,
    grid: int,
    planes: str,
    has_playable: bool,
) -> Learner:
    """Build the learner's functions; `step` is to be jitted with its first argument donated."""
    optimizer = make_optimizer(config, total_steps=total_steps)

    def init(variables: Variables) -> LearnerState:
        return LearnerState(variables, optimizer.init(variables.params), jnp.zeros((), jnp.int32))

    def look(state: State) -> jax.Array:
        return observation.observe(state, grid=grid, planes=planes, has_playable=has_playable)

    def loss_of(params: Any, stats: Any, states: State, policy: jax.Array, outcome: jax.Array):
        output, stats = network.evaluate_batch(Variables(params, stats), jax.vmap(look)(states))
        logits = jax.vmap(slot_logits)(output.policy, states)
        policy_loss = optax.safe_softmax_cross_entropy(logits, policy).mean()
        value_loss = jnp.square(output.value - outcome).mean()
        agrees = (logits.argmax(axis=-1) == policy.argmax(axis=-1)).mean()
        loss = policy_loss + config.value_weight * value_loss
        return loss, (stats, policy_loss, value_loss, agrees)

    def step(
        state: LearnerState, ring: Ring, variant: Variant, key: jax.Array
    ) -> tuple[LearnerState, LossMetrics]:
        draw_key, turn_key = jax.random.split(key)
        sample = draw(ring, variant, draw_key, size=config.batch)
        turn = jax.random.randint(turn_key, (config.batch,), 0, NUM_SYMMETRIES)
        states, policy = jax.vmap(lambda s, g: turn_sample(s, g, grid=grid))(sample, turn)
        params, stats = state.variables
        (loss, (stats, policy_loss, value_loss, agrees)), gradient = jax.value_and_grad(
            loss_of, has_aux=True
        )(params, stats, states, policy, sample.outcome)
        updates, optimizer_state = optimizer.update(gradient, state.optimizer, params)
        params = optax.apply_updates(params, updates)
        norm = optax.tree.norm(gradient)
        metrics = LossMetrics(loss, policy_loss, value_loss, agrees, norm)
        return LearnerState(Variables(params, stats), optimizer_state, state.step + 1), metrics

    return Learner(init, step)


def turn_sample(sample: Sample, turn: jax.Array, *, grid: int) -> tuple[State, jax.Array]:
    """One sample under a symmetry: its state, and its policy as float32[A]."""
    chex.assert_rank(sample.policy, 1)
    state = State(sample.variant, sample.position)
    in_setup = actions.in_setup(*state)
    size = sample.variant.size
    policy = symmetry.turn_policy(
        sample.policy.astype(jnp.float32), turn, in_setup, size, grid=grid
    )
    return symmetry.turn_state(state, turn, grid=grid), policy


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
