"""A step of learning: turn, observe, loss, update.

N samples, A slots.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from train.data.replay import Sample
from train.functions import call_of
from train.learning.config import LearnerConfig
from train.learning.losses import Losses, TrainingTargets, losses, make_targets
from train.learning.optimizer import frozen_steps, keep_frozen, make_optimizer
from train.network import Network, Output, Variables
from train.network.build import Observe
from train.runtime.fields import is_off
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.game.state import State

NO_TENSOR = -1
_Prepare = Callable[[Sample, jax.Array], tuple[TrainingTargets, jax.Array]]


class LearnerState(NamedTuple):
    """Everything that a step changes."""

    variables: Variables
    averaged: Variables | None  # moving average; None without averaging
    optimizer: Any
    step: jax.Array  # int32, steps done

    @property
    def player(self) -> Variables:
        """The weights that play."""
        return self.variables if self.averaged is None else self.averaged


class StepMetrics(NamedTuple):
    """Figures of a step, float32[]."""

    losses: Losses
    gradient_norm: jax.Array  # before clipping, frozen groups left out
    bad_tensor: jax.Array
    """int32, index in `tensor_names` of the first parameter whose gradient is NaN or infinite, or
    NO_TENSOR."""


class Learner(NamedTuple):
    """The functions of learning."""

    init: Callable[[Variables], LearnerState]
    update: Callable[[LearnerState, Sample, jax.Array], tuple[LearnerState, StepMetrics]]
    """(state, samples [N], key) -> the state one step later and its figures. Each sample is turned
    by a random symmetry, which the key draws."""
    validation_losses: Callable[[Variables, Sample], Losses]
    """Losses of samples [N], not turned, with running batch statistics; nothing is learned."""


def make_learner(
    network: Network,
    config: LearnerConfig,
    *,
    total_steps: int,
    observe: Observe,
    per_device: Callable[[_Prepare], _Prepare] = lambda prepare: prepare,
) -> Learner:
    """Build the learner's functions; `update` is to be jitted with its first argument donated.

    Args:
      network: the network that learns.
      config: how it learns; its numbers may be arrays of a program that is traced.
      total_steps: length of the schedule of the learning rate.
      observe: shows states to the network.
      per_device: makes a function of arrays [N, ...] run on each device for itself, so that no
        device waits for the floods of another.

    Raises:
      UsageError: `freeze` names a group that the network lacks.
    """
    frozen = frozen_steps(network.shapes.params, config)
    optimizer = make_optimizer(config, total_steps=total_steps, frozen=frozen)
    custom_loss, custom_targets = (
        call_of(f"learner.{key}", getattr(config, key)) if getattr(config, key) else None
        for key in ("custom_loss", "custom_targets")
    )

    def init(variables: Variables) -> LearnerState:
        averaged = None if is_off(config.ema_decay) else jax.tree.map(jnp.copy, variables)
        optimizer_state = optimizer.init(variables.params)
        return LearnerState(variables, averaged, optimizer_state, jnp.zeros((), jnp.int32))

    @jax.vmap
    def observe_one(state: State) -> jax.Array:
        return observe(state, None)

    @per_device
    def prepare(sample: Sample, turn: jax.Array) -> tuple[TrainingTargets, jax.Array]:
        targets = make_targets(sample, turn)
        if custom_targets is not None:
            changed = custom_targets(targets)
            chex.assert_trees_all_equal_shapes_and_dtypes(changed, targets)
            targets = changed
        return targets, observe_one(targets.states)

    def loss_of(
        params: Any, stats: Any, targets: TrainingTargets, shown: jax.Array
    ) -> tuple[jax.Array, tuple[Any, Losses]]:
        output, stats = network.evaluate_batch(Variables(params, stats), shown)
        seen = losses(output, targets, config.weights, value_mix=config.value_mix)
        seen = _with_custom_loss(custom_loss, seen, output, targets)
        return seen.loss, (stats, seen)

    def average(old: Variables, newest: Variables, step: jax.Array) -> Variables:
        # Smaller at first, so that the mean soon forgets the random weights.
        decay = jnp.minimum(config.ema_decay, (1 + step) / (10 + step))

        def mean_of(old: jax.Array, new: jax.Array) -> jax.Array:
            # Of what counts, as the random numbers of dropout do, the newest is kept.
            is_float = jnp.issubdtype(new.dtype, jnp.floating)
            return decay * old + (1 - decay) * new if is_float else new

        mean = jax.tree.map(mean_of, old, newest)
        if frozen is None:
            return mean
        # The mean of equal numbers may differ from them by rounding.
        return mean._replace(params=keep_frozen(frozen, step, old.params, mean.params))

    def update(
        state: LearnerState, sample: Sample, key: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        chex.assert_rank((sample.policy, sample.policy_weight), (2, 1))
        chex.assert_tree_shape_prefix(sample, sample.policy_weight.shape)
        turns = NUM_SYMMETRIES if config.symmetry else 1
        turn = jax.random.randint(key, sample.policy.shape[:1], 0, turns, jnp.int32)
        targets, shown = prepare(sample, turn)
        params, stats = state.variables
        (_, (stats, seen)), gradient = jax.value_and_grad(loss_of, has_aux=True)(
            params, stats, targets, shown
        )
        if frozen is not None:
            # Before the norm that clips all: what is not learned must not slow what is.
            still = jax.tree.map(jnp.zeros_like, gradient)
            gradient = keep_frozen(frozen, state.step, still, gradient)
        updates, optimizer_state = optimizer.update(gradient, state.optimizer, params)
        variables = Variables(optax.apply_updates(params, updates), stats)
        averaged = state.averaged
        if averaged is not None:
            averaged = average(averaged, variables, state.step)
        bad = jnp.stack([~jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient)])
        first_bad = jnp.where(bad.any(), bad.argmax(), NO_TENSOR).astype(jnp.int32)
        metrics = StepMetrics(seen, optax.tree.norm(gradient), first_bad)
        return LearnerState(variables, averaged, optimizer_state, state.step + 1), metrics

    def validation_losses(variables: Variables, sample: Sample) -> Losses:
        targets, shown = prepare(sample, jnp.zeros(sample.policy.shape[:1], jnp.int32))
        output = network.evaluate(variables, shown)
        seen = losses(output, targets, config.weights)
        return _with_custom_loss(custom_loss, seen, output, targets)

    return Learner(init, update, validation_losses)


def _with_custom_loss(
    custom: Callable[..., Any] | None, seen: Losses, output: Output, targets: TrainingTargets
) -> Losses:
    """The losses with the term of a function that Python passed, if any."""
    if custom is None:
        return seen
    term = jnp.asarray(custom(output, targets), jnp.float32)
    chex.assert_rank(term, 0)
    return seen._replace(loss=seen.loss + term, custom_loss=term)


def tensor_names(params: Any) -> list[str]:
    """The names of a network's parameters, in the order that `StepMetrics.bad_tensor` counts."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(params)
    return [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
