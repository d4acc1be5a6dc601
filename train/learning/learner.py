"""A step of learning: turn, observe, loss, update; and an iteration's steps, read on the host.

N samples, S steps an iteration.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from train.data.replay import Sample
from train.functions import Function, call_of, check_returned, in_words, refusal
from train.game import NUM_SYMMETRIES
from train.learning.config import LearnerConfig
from train.learning.losses import Losses, TrainingTargets, losses, make_targets
from train.learning.optimizer import frozen_steps, keep_frozen, make_optimizer
from train.network import Network, Observe, Output, Variables
from train.runtime.errors import NotFiniteError

NO_TENSOR = -1
_Prepare = Callable[[Sample, jax.Array], tuple[TrainingTargets, jax.Array]]


class LearnerState(NamedTuple):
    """Everything that a step changes."""

    variables: Variables
    averaged: Variables | None  # moving average; None without averaging
    optimizer: Any
    step: jax.Array  # int32, steps done

    @property
    def weights(self) -> Variables:
        """The weights that play: averaged ones where they are averaged."""
        return self.variables if self.averaged is None else self.averaged


class StepMetrics(NamedTuple):
    """Figures of a step, float32[]."""

    losses: Losses
    gradient_norm: jax.Array  # before clipping, frozen groups left out
    bad_tensor: jax.Array
    """int32, index in `tensor_names` of the first parameter whose gradient is NaN or infinite, or
    NO_TENSOR."""


@dataclasses.dataclass(frozen=True)
class Learner:
    """The functions of learning; `make_learner` builds them.

    Attributes:
      network: the network that learns.
      config: how it learns; its numbers may be arrays of a program that is traced.
      optimizer: of the config, on its schedule.
      frozen: steps for which each parameter is frozen; None where none is.
      observe: shows a state to the network.
      per_device: makes a function of arrays [N, ...] run on each device for itself, so that no
        device waits for the floods of another.
    """

    network: Network
    config: LearnerConfig
    optimizer: optax.GradientTransformation
    frozen: Any
    observe: Observe
    per_device: Callable[[_Prepare], _Prepare]

    def init(self, variables: Variables) -> LearnerState:
        """The state before the first step."""
        averaged = None if self.config.ema_decay is None else jax.tree.map(jnp.copy, variables)
        moments = self.optimizer.init(variables.params)
        return LearnerState(variables, averaged, moments, jnp.zeros((), jnp.int32))

    @jax.named_scope("learner")
    def update(
        self, state: LearnerState, sample: Sample, key: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        """Take a step from samples [N], each turned by a random symmetry, which the key draws; to
        be jitted with the state donated.

        Returns:
          The state one step later, and the figures of the step.
        """
        chex.assert_rank((sample.policy.share, sample.policy_weight), (2, 1))
        chex.assert_tree_shape_prefix(sample, sample.policy_weight.shape)
        turns = NUM_SYMMETRIES if self.config.symmetry else 1
        turn = jax.random.randint(key, sample.policy_weight.shape, 0, turns, jnp.int32)
        targets, shown = self.per_device(self._prepare)(sample, turn)
        params, stats = state.variables
        (_, (stats, seen)), gradient = jax.value_and_grad(self._loss, has_aux=True)(
            params, stats, targets, shown
        )
        if self.frozen is not None:
            # Before the norm that clips all: what is not learned must not slow what is.
            still = jax.tree.map(jnp.zeros_like, gradient)
            gradient = keep_frozen(self.frozen, state.step, still, gradient)
        updates, moments = self.optimizer.update(gradient, state.optimizer, params)
        variables = Variables(optax.apply_updates(params, updates), stats)
        averaged = state.averaged
        if averaged is not None and self.config.ema_decay is not None:
            averaged = self._average(averaged, variables, state.step, self.config.ema_decay)
        bad = jnp.stack([~jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient)])
        first_bad = jnp.where(bad.any(), bad.argmax(), NO_TENSOR).astype(jnp.int32)
        metrics = StepMetrics(seen, optax.tree.norm(gradient), first_bad)
        return LearnerState(variables, averaged, moments, state.step + 1), metrics

    def validation_losses(self, variables: Variables, sample: Sample) -> Losses:
        """Losses of samples [N], not turned, with running batch statistics; nothing is learned."""
        no_turn = jnp.zeros(sample.policy_weight.shape, jnp.int32)
        targets, shown = self.per_device(self._prepare)(sample, no_turn)
        output = self.network.evaluate(variables, shown)
        return self._with_custom(losses(output, targets, self.config.weights), output, targets)

    def _prepare(self, sample: Sample, turn: jax.Array) -> tuple[TrainingTargets, jax.Array]:
        """The targets of samples [N], turned by symmetries int[N], and what the network sees."""
        targets = make_targets(sample, turn)
        if self.config.custom_targets:
            custom = call_of("learner.custom_targets", self.config.custom_targets)
            changed = custom(targets)
            _check_targets(self.config.custom_targets, changed, targets)
            targets = changed
        return targets, jax.vmap(lambda state: self.observe(state, None))(targets.states)

    def _loss(
        self, params: Any, stats: Any, targets: TrainingTargets, shown: jax.Array
    ) -> tuple[jax.Array, tuple[Any, Losses]]:
        output, stats = self.network.evaluate_batch(Variables(params, stats), shown)
        seen = losses(output, targets, self.config.weights, value_mix=self.config.value_mix)
        seen = self._with_custom(seen, output, targets)
        return seen.loss, (stats, seen)

    def _with_custom(self, seen: Losses, output: Output, targets: TrainingTargets) -> Losses:
        """The losses with the term of a function that Python passed, if any."""
        if not self.config.custom_loss:
            return seen
        custom = call_of("learner.custom_loss", self.config.custom_loss)
        term = custom(output, targets)
        check_returned("loss", self.config.custom_loss, term, (), "a number")
        term = jnp.asarray(term, jnp.float32)
        return seen._replace(loss=seen.loss + term, custom_loss=term)

    def _average(
        self, old: Variables, newest: Variables, step: jax.Array, decay: float
    ) -> Variables:
        # Smaller at first, so that the mean soon forgets the random weights.
        decay_now = jnp.minimum(decay, (1 + step) / (10 + step))

        def mean_of(old: jax.Array, new: jax.Array) -> jax.Array:
            # Of what counts, as the random numbers of dropout do, the newest is kept.
            is_float = jnp.issubdtype(new.dtype, jnp.floating)
            return decay_now * old + (1 - decay_now) * new if is_float else new

        mean = jax.tree.map(mean_of, old, newest)
        if self.frozen is None:
            return mean
        # The mean of equal numbers may differ from them by rounding.
        return mean._replace(params=keep_frozen(self.frozen, step, old.params, mean.params))


def make_learner(
    network: Network,
    config: LearnerConfig,
    *,
    total_steps: int,
    observe: Observe,
    per_device: Callable[[_Prepare], _Prepare] = lambda prepare: prepare,
) -> Learner:
    """Build a `Learner`; `total_steps` is the length of the schedule of the learning rate.

    Raises:
      UsageError: `freeze` names a group that the network lacks.
    """
    frozen = frozen_steps(network.shapes.params, config)
    optimizer = make_optimizer(config, total_steps=total_steps, frozen=frozen)
    return Learner(network, config, optimizer, frozen, observe, per_device)


def tensor_names(params: Any) -> list[str]:
    """The names of a network's parameters, in the order that `StepMetrics.bad_tensor` counts."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(params)
    return [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]


EXPLOSION = 10.0
"""A gradient norm above this many medians of its iteration is reported."""


def split_steps(metrics: list[StepMetrics]) -> list[StepMetrics]:
    """Metrics of single steps, from S metrics of scalars or one of arrays [S]."""
    if metrics and metrics[0].gradient_norm.ndim:
        (joined,) = metrics
        return [jax.tree.map(lambda x, i=i: x[i], joined) for i in range(len(joined.gradient_norm))]
    return metrics


def check_finite(steps: list[StepMetrics], learner: LearnerState, iteration: int) -> None:
    """Stop a run at a NaN or infinite loss or gradient.

    Args:
      steps: metrics of single steps, on the host.
      learner: has the parameters that the metrics number.
      iteration: counted from 0.

    Raises:
      NotFiniteError: names the first such step, its loss and the tensor.
    """
    for number, step in enumerate(steps, start=1):
        place = int(step.bad_tensor)
        if place == NO_TENSOR and np.isfinite(step.losses.loss):
            continue
        loss = f"the loss is {float(step.losses.loss)}"
        names = tensor_names(learner.variables.params)
        tensor = "" if place == NO_TENSOR else f", the gradient of {names[place]} is not finite"
        raise NotFiniteError(
            f"iteration {iteration + 1}, step {number} of {len(steps)}: {loss}{tensor}"
        )


def warning_of(steps: list[StepMetrics]) -> dict[str, str]:
    """`warning`: the step whose gradient norm is above `EXPLOSION` medians; empty without one."""
    norms = np.array([step.gradient_norm for step in steps])
    if len(norms) < 2 or norms.max() <= EXPLOSION * np.median(norms):
        return {}
    return {
        "warning": f"step {norms.argmax() + 1} of {len(norms)}: the norm of the gradient was "
        f"{norms.max():.3g}, the median {np.median(norms):.3g}; it was clipped"
    }


def validation_figures(losses: list[Losses]) -> dict[str, float]:
    """Means of the losses of batches held back, on the host, by name with `validation_` before it.

    Losses of heads that the network lacks are left out; without a batch the result is empty.
    """
    means = _means([each._asdict() for each in losses])
    return {f"validation_{name}": mean for name, mean in means.items()}


def means_of(steps: list[StepMetrics]) -> dict[str, float]:
    """Means over steps by name, and the largest gradient norm.

    Losses of heads that the network lacks are left out; without a step the result is empty.
    """
    rows = [{**step.losses._asdict(), "gradient_norm": step.gradient_norm} for step in steps]
    if not rows:
        return {}
    largest = float(max(row["gradient_norm"] for row in rows))
    return _means(rows) | {"largest_gradient_norm": largest}


def _check_targets(function: Function | str, changed: Any, targets: TrainingTargets) -> None:
    """Refuse targets of other shapes or types than those that the function was given."""
    if not isinstance(changed, TrainingTargets):
        raise refusal("targets", function, changed, "train.TrainingTargets")
    for name, new, old in zip(targets._fields, changed, targets, strict=True):
        if jax.tree.map(in_words, new) != jax.tree.map(in_words, old):
            raise refusal("targets", function, new, f"{in_words(old)} as its {name}")


def _means(rows: list[dict[str, Any]]) -> dict[str, float]:
    present = [name for name, value in rows[0].items() if value is not None] if rows else []
    return {name: float(np.mean([row[name] for row in rows])) for name in present}
