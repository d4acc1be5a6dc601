"""The optimizer of a run: clipped AdamW or SGD, its schedule, and the hold on frozen groups."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from train.learning.config import LearnerConfig


def make_optimizer(
    config: LearnerConfig, *, total_steps: int, frozen: Any = None
) -> optax.GradientTransformation:
    """Clipped AdamW or SGD with momentum, on the config's schedule.

    Args:
      config: how a run learns.
      total_steps: length of the schedule.
      frozen: first steps for which each parameter is frozen, a tree of ints (see
        `train.learning.freezing`); None where none is. A frozen parameter and its moments stay as
        they are, and the correction of their bias begins when it thaws; the schedule goes on.
    """
    schedule = make_schedule(config, total_steps=total_steps)
    decay = config.weight_decay
    clip = optax.clip_by_global_norm(config.max_grad_norm)
    if frozen is not None:
        waits = sorted(set(jax.tree.leaves(frozen)))
        # The rate is scaled outside of what is held, since its count must not stop.
        held: dict[Hashable, optax.GradientTransformation] = {
            _label(steps): hold(_moments(config), steps) for steps in waits
        }
        by_wait = optax.partition(held, jax.tree.map(_label, frozen))
        return optax.chain(clip, by_wait, optax.scale_by_learning_rate(schedule))
    if config.optimizer == "adamw":
        rule = [optax.adamw(schedule, weight_decay=decay, mask=_decays)]
    else:
        rule = [
            optax.add_decayed_weights(decay, mask=_decays),
            optax.sgd(schedule, momentum=config.momentum),
        ]
    return optax.chain(clip, *rule)


def make_schedule(config: LearnerConfig, *, total_steps: int) -> optax.Schedule:
    """The learning rate by step."""
    peak, warmup = config.learning_rate, min(config.warmup, max(total_steps - 1, 0))
    if config.schedule == "cosine":
        falling = max(total_steps, warmup + 1) - warmup
        fall = optax.cosine_decay_schedule(peak, falling, alpha=config.final_rate)
        # Not `warmup_cosine_decay_schedule`, whose peak cannot be an argument of a program.
        rise = optax.linear_schedule(0.0, peak, warmup)
        return optax.join_schedules([rise, fall], [warmup]) if warmup else fall
    halved: dict[int, float] = {}
    for share in config.lr_drops:
        place = round(share * total_steps)
        halved[place] = halved.get(place, 1.0) / 2
    steps = optax.piecewise_constant_schedule(peak, halved)
    return lambda step: steps(step) * jnp.minimum(1.0, (step + 1) / max(warmup, 1))


class HeldState(NamedTuple):
    """The state of a rule that waits."""

    step: jax.Array  # int32, steps done, those of the wait included
    rule: Any  # the rule's own, as `init` makes it until the wait is over


def hold(rule: optax.GradientTransformation, steps: int) -> optax.GradientTransformation:
    """A rule whose updates are 0 for the first steps, in which its state does not change."""

    def init(params: Any) -> HeldState:
        return HeldState(jnp.zeros((), jnp.int32), rule.init(params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, HeldState]:
        found, after = rule.update(updates, state.rule, params)
        is_held = state.step < steps
        found = jax.tree.map(lambda x: jnp.where(is_held, 0, x), found)
        after = jax.tree.map(lambda new, old: jnp.where(is_held, old, new), after, state.rule)
        return found, HeldState(state.step + 1, after)

    return optax.GradientTransformation(init, update)


def _moments(config: LearnerConfig) -> optax.GradientTransformation:
    """The optimizer's rule without clipping and learning rate."""
    decay = optax.add_decayed_weights(config.weight_decay, mask=_decays)
    if config.optimizer == "adamw":
        return optax.chain(optax.scale_by_adam(), decay)
    return optax.chain(decay, optax.trace(decay=config.momentum))


def _label(steps: int) -> str:
    return f"after_{steps}"


def _decays(params: Any) -> Any:
    """bool of each parameter: kernels decay; norms, biases and tables of biases do not."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: leaf.ndim > 1 and "_bias" not in jax.tree_util.keystr(path), params
    )
