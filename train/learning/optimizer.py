"""The optimizer of a run: clipped AdamW or SGD, its schedule, and groups that stay frozen at first.

Progressive unfreezing: a network that begins with the weights of another one learns its new parts
first, before their gradients reach what it knows (Howard and Ruder, "Universal Language Model
Fine-tuning for Text Classification", 2018, section 3.3, Gradual unfreezing).

The running statistics of frozen batch norms go on. They describe the positions that the network
sees, not what it has learned: learning normalises by the batch, search by the running statistics,
and if these stayed those of the old rules, thawed heads would be trained on other features than
they are searched with.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from train.learning.config import LearnerConfig, parse_freeze
from train.runtime.errors import UsageError


def make_optimizer(
    config: LearnerConfig, *, total_steps: int, frozen: Any = None
) -> optax.GradientTransformation:
    """Clipped AdamW or SGD with momentum, on the config's schedule.

    Args:
      config: how a run learns.
      total_steps: length of the schedule.
      frozen: first steps for which each parameter is frozen, a tree of ints (see
        `frozen_steps`); None where none is. A frozen parameter and its moments stay as they are,
        and the correction of their bias begins when it thaws; the schedule goes on.
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
        if warmup == 0:
            return fall
        # Not `warmup_cosine_decay_schedule`, whose peak cannot be an argument of a program, and
        # whose first step has no rate.
        rise = optax.linear_schedule(peak / warmup, peak, warmup - 1)
        return optax.join_schedules([rise, fall], [warmup])
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
        held, after = rule.update(updates, state.rule, params)
        is_held = state.step < steps
        held = jax.tree.map(lambda x: jnp.where(is_held, 0, x), held)
        after = jax.tree.map(lambda new, old: jnp.where(is_held, old, new), after, state.rule)
        return held, HeldState(state.step + 1, after)

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


TRUNK, BLOCKS = "trunk", "blocks"
_TRUNK = ("stem", BLOCKS)


def frozen_steps(params: Any, config: LearnerConfig) -> Any:
    """The steps for which each parameter is frozen, a tree of ints; None without frozen groups.

    A parameter in several groups stays frozen until the last of them thaws.

    Args:
      params: the network's, or their shapes.
      config: `freeze` counts iterations of `steps` steps, as the schedule of the learning rate
        does.

    Raises:
      UsageError: the network has no such group: which, and those that it has.
    """
    if not config.freeze:
        return None
    groups, waits = groups_of(params), parse_freeze(config.freeze)
    for group in waits:
        if group not in groups:
            raise UsageError(
                f"learner.freeze: no group {group!r}; this network has: {', '.join(groups)}"
            )

    def steps_of(path: tuple[Any, ...], leaf: Any) -> int:
        del leaf
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        iterations = [wait for group, wait in waits.items() if _holds(group, name)]
        return max(iterations, default=0) * config.steps

    return jax.tree_util.tree_map_with_path(steps_of, params)


def groups_of(params: Any) -> list[str]:
    """The groups of a network: stem, each block, each head, and `trunk` and `blocks` for all."""
    if not isinstance(params, dict):
        return []
    blocks = params.get(BLOCKS)
    numbered = [f"{BLOCKS}.{key}" for key in blocks] if isinstance(blocks, dict) else []
    heads = [str(key) for key in params if key not in _TRUNK]
    trunk = [TRUNK] if numbered else []
    parts = [name for name in _TRUNK if name in params]
    return [*trunk, *parts, *numbered, *heads]


def keep_frozen(frozen: Any, step: jax.Array, old: Any, new: Any) -> Any:
    """A tree of arrays with the values of `old` where a parameter is frozen at a step, else those
    of `new`."""
    return jax.tree.map(
        lambda wait, before, after: jnp.where(step < wait, before, after), frozen, old, new
    )


def _holds(group: str, name: str) -> bool:
    """Whether a parameter, by its dotted name, is in a group."""
    parts = _TRUNK if group == TRUNK else (group,)
    return any(name == part or name.startswith(f"{part}.") for part in parts)
