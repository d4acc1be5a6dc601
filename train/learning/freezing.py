"""Groups of parameters that stay frozen for the first steps of a run and thaw in stages.

Progressive unfreezing: a network that begins with the weights of another one learns its new parts
first, before their gradients reach what it knows (Howard and Ruder, "Universal Language Model
Fine-tuning for Text Classification", 2018, section 3.3, Gradual unfreezing).

The running statistics of frozen batch norms go on. They describe the positions that the network
sees, not what it has learned: learning normalises by the batch, search by the running statistics,
and if these stayed those of the old rules, thawed heads would be trained on other features than
they are searched with.
"""

from typing import Any

import jax
import jax.numpy as jnp

from train.learning.config import LearnerConfig, parse_freeze
from train.runtime.errors import UsageError

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
    own = [name for name in _TRUNK if name in params]
    return [*trunk, *own, *numbered, *heads]


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
