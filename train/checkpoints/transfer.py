"""Weights carried over by name to a network of other planes, blocks or heads.

Boards of any size and rules share all shapes, so what decides is the network: an input plane, a
block or a head that both have is taken, and what only the new network has begins without effect on
the others: planes at zero weight, blocks as identities, heads as those of a new network.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.network import TRANSFORMER, NetworkConfig, Variables, channels_of, parse_blocks
from train.runtime.errors import UsageError

MUST_AGREE = ("width", "norm", "mover_first")
"""Keys of a network that decide what its features mean."""
_OF_BLOCKS = {TRANSFORMER: ("heads", "mlp_ratio")}
"""Further keys that decide whether blocks of a letter are of one kind."""
_STEM = "stem.conv.kernel"
_IDENTITY = {
    *("norm2.norm.scale", "scale"),
    *("merge_heads.kernel", "merge_heads.bias", "contract.kernel", "contract.bias"),
}
"""Parameters of a block at whose zeros it adds nothing: an R or W block's last norm, or its own
scale where it has no norms; the last projections of a T block."""


class CarriedPart(NamedTuple):
    """Numbers of parameters and running statistics of a part of the networks: the stem, a block or
    a head."""

    name: str
    taken: int
    new: int  # of the new network alone
    left: int  # of the source alone


def carry_over(
    source: Variables,
    fresh: Variables,
    *,
    before: NetworkConfig,
    after: NetworkConfig,
    players: int,
) -> tuple[Variables, tuple[CarriedPart, ...]]:
    """Put what fits of a network's weights into a new network's.

    Args:
      source: weights to take from.
      fresh: weights of a new network.
      before: the network of `source`.
      after: the network of `fresh`.
      players: P, of both.

    Returns:
      The weights to begin with, and where their parts are from, from the stem to the heads.

    Raises:
      UsageError: the features of the two differ in kind, or nothing fits.
    """
    is_custom = bool(before.custom or after.custom)
    for key in () if is_custom else MUST_AGREE:
        old, new = getattr(before, key), getattr(after, key)
        if old != new:
            raise UsageError(f"has network.{key} {old!r}, the run's is {new!r}; they must agree")
    same_blocks = None if is_custom else _blocks_kept(before, after)
    counts: dict[str, list[int]] = {}  # by part: taken, new, left
    carried = []
    for own, theirs in zip(fresh, source, strict=True):
        rest = {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(theirs)}

        def choose(path: Any, leaf: jax.Array, rest: dict[str, jax.Array] = rest) -> jax.Array:
            name = _name(path)
            other, is_block = rest.get(name), name.startswith("blocks.")
            is_kept = same_blocks is None or not is_block or int(name.split(".")[1]) in same_blocks
            if name == _STEM and same_blocks is not None and other is not None:
                return _by_channel(rest.pop(name), leaf, before, after, players, counts)
            if is_kept and other is not None and other.shape == leaf.shape:
                _count(counts, name, 0, leaf.size)
                return jnp.asarray(rest.pop(name))
            _count(counts, name, 1, leaf.size)
            # What does not fit in spite of its name is of a block that is new.
            is_at_zero = not is_kept and name.split(".", 2)[-1] in _IDENTITY
            return jnp.zeros_like(leaf) if is_at_zero else leaf

        carried.append(jax.tree_util.tree_map_with_path(choose, own))
        for name, leaf in rest.items():
            _count(counts, name, 2, leaf.size)
    if not any(taken for taken, _, _ in counts.values()):
        raise UsageError("nothing of it fits the run's network")
    parts = tuple(CarriedPart(name, *counts[name]) for name in sorted(counts, key=_place))
    return Variables(*carried), parts


def _place(part: str) -> tuple[int, int, str]:
    """Sorts the stem first, then blocks by their numbers, then heads."""
    kind, _, number = part.partition(".")
    return {"stem": 0, "blocks": 1}.get(kind, 2), int(number) if number.isdecimal() else 0, part


def _count(counts: dict[str, list[int]], name: str, column: int, numbers: int) -> None:
    """Add the numbers of a tensor to those of its part."""
    pieces = name.split(".")
    part = ".".join(pieces[: 2 if pieces[0] == "blocks" else 1])
    counts.setdefault(part, [0, 0, 0])[column] += numbers


def _blocks_kept(before: NetworkConfig, after: NetworkConfig) -> set[int]:
    """The numbers of the blocks that are of one kind in both networks."""
    letters = zip(parse_blocks(before.blocks), parse_blocks(after.blocks), strict=False)
    return {
        number
        for number, (old, new) in enumerate(letters)
        if old == new
        and all(getattr(before, key) == getattr(after, key) for key in _OF_BLOCKS.get(old, ()))
    }


def _by_channel(
    theirs: jax.Array,
    own: jax.Array,
    before: NetworkConfig,
    after: NetworkConfig,
    players: int,
    counts: dict[str, list[int]],
) -> jax.Array:
    """The stem's kernel: each plane's weights by its name, zero for those that are new."""
    old, new = channels_of(before, players), channels_of(after, players)
    kernel, taken = jnp.zeros_like(own), [channel for channel in new if channel in old]
    for channel in taken:
        kernel = kernel.at[:, :, new.index(channel)].set(theirs[:, :, old.index(channel)])
    size = own[:, :, 0].size
    for column, number in enumerate((len(taken), len(new) - len(taken), len(old) - len(taken))):
        _count(counts, _STEM, column, number * size)
    return kernel


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
