"""Weights carried over by name to a network of other planes, blocks or heads.

Boards of any size and rules share all shapes, so what decides is the network: an input plane, a
block or a head that both have is taken, and what only the new network has begins without effect on
the others: planes at zero weight, blocks as identities, heads as those of a new network.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.network import NetworkConfig, Variables
from train.network.blocks import TRANSFORMER, WALLED, parse_blocks
from train.network.build import channels_of
from train.runtime.errors import UsageError
from wallgo_jax.planes import Channel

MUST_AGREE = ("width", "norm", "mover_first")
"""Keys of a network that decide what its features mean."""
_OF_BLOCKS = {
    TRANSFORMER: ("heads", "mlp_ratio"),
    WALLED: ("walled_convolutions", "stones_close_gates"),
}
"""Further keys that decide whether blocks of a letter are of one kind."""
_STEM = "stem.conv.kernel"
_IDENTITY = {
    *("norm2.norm.scale", "scale"),
    *("merge_heads.kernel", "merge_heads.bias", "contract.kernel", "contract.bias"),
}
"""Parameters of a block at whose zeros it adds nothing: an R or W block's last norm, or its own
scale where it has no norms; the last projections of a T block."""


class Part(NamedTuple):
    """A part of the networks: the stem, a block or a head."""

    name: str
    taken: int  # parameters and running statistics
    new: int  # of the new network alone
    left: int  # of the source alone
    note: str


class Transfer(NamedTuple):
    """Weights to begin with, and where they are from."""

    variables: Variables
    parts: tuple[Part, ...]


def carry_over(
    source: Variables,
    fresh: Variables,
    *,
    before: NetworkConfig,
    after: NetworkConfig,
    players: int,
) -> Transfer:
    """Put what fits of a network's weights into a new network's.

    Args:
      source: weights to take from.
      fresh: weights of a new network.
      before: the network of `source`.
      after: the network of `fresh`.
      players: P, of both.

    Raises:
      UsageError: the features of the two differ in kind, or nothing fits.
    """
    is_custom = bool(before.custom or after.custom)
    for key in () if is_custom else MUST_AGREE:
        old, new = getattr(before, key), getattr(after, key)
        if old != new:
            raise UsageError(f"has network.{key} {old!r}, the run's is {new!r}; they must agree")
    kept = set() if is_custom else _blocks_kept(before, after)
    tally = _Tally(kept, is_custom=is_custom)
    carried = []
    for own, others in zip(fresh, source, strict=True):
        found = {_name(path): leaf for path, leaf in _leaves(others)}
        carried.append(
            jax.tree_util.tree_map_with_path(
                lambda path, leaf, found=found: tally.choose(_name(path), leaf, found), own
            )
        )
        tally.leave(found)
    variables = Variables(*carried)
    if not is_custom:
        kernel = _by_channel(source, variables, before, after, players, tally)
        params = variables.params
        stem = params["stem"] | {"conv": params["stem"]["conv"] | {"kernel": kernel}}
        variables = variables._replace(params=params | {"stem": stem})
    if not any(taken for taken, _, _ in tally.counts.values()):
        raise UsageError("nothing of it fits the run's network")
    notes = {} if is_custom else _notes(before, after, kept)
    if tally.planes:
        notes["stem"] = tally.planes
    parts = tuple(
        Part(name, taken, new, left, notes.get(name, ""))
        for name, (taken, new, left) in _sorted_parts(tally.counts)
    )
    return Transfer(variables, parts)


def _sorted_parts(counts: Mapping[str, list[int]]) -> list[tuple[str, list[int]]]:
    """The parts from the stem to the heads, blocks by their numbers."""

    def place(entry: tuple[str, list[int]]) -> tuple[int, int, str]:
        name = entry[0]
        kind, _, number = name.partition(".")
        order = {"stem": 0, "blocks": 1}.get(kind, 2)
        return order, int(number) if number.isdecimal() else 0, name

    return sorted(counts.items(), key=place)


class _Tally:
    """Chooses tensors and counts their numbers by part."""

    def __init__(self, kept: set[int], *, is_custom: bool) -> None:
        self.counts: dict[str, list[int]] = {}  # taken, new, left
        self.planes = ""
        self._kept, self._is_custom, self._used = kept, is_custom, set[str]()

    def choose(self, name: str, fresh: jax.Array, found: Mapping[str, jax.Array]) -> jax.Array:
        """The tensor of this name that the new network begins with."""
        if name == _STEM and not self._is_custom:
            self._used.add(name)
            return fresh  # taken channel by channel
        other, fits = found.get(name), self._fits(name)
        if fits and other is not None and other.shape == fresh.shape:
            self._used.add(name)
            self.count(name, 0, fresh.size)
            return jnp.asarray(other)
        self.count(name, 1, fresh.size)
        # What does not fit in spite of its name is of a block that is new.
        is_at_zero = not fits and name.split(".", 2)[-1] in _IDENTITY
        return jnp.zeros_like(fresh) if is_at_zero else fresh

    def leave(self, found: Mapping[str, jax.Array]) -> None:
        """Count what was not taken of a source's tensors."""
        for name, leaf in found.items():
            if name not in self._used:
                self.count(name, 2, leaf.size)
        self._used.clear()

    def count(self, name: str, column: int, numbers: int) -> None:
        pieces = name.split(".")
        part = ".".join(pieces[: 2 if pieces[0] == "blocks" else 1])
        self.counts.setdefault(part, [0, 0, 0])[column] += numbers

    def _fits(self, name: str) -> bool:
        """Whether a tensor of this name means the same in both networks."""
        if self._is_custom or not name.startswith("blocks."):
            return True
        return int(name.split(".")[1]) in self._kept


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
    source: Variables,
    fresh: Variables,
    before: NetworkConfig,
    after: NetworkConfig,
    players: int,
    tally: _Tally,
) -> jax.Array:
    """The stem's kernel: each plane's weights by its name, zero for those that are new."""
    old, new = channels_of(before, players), channels_of(after, players)
    theirs, own = source.params["stem"]["conv"]["kernel"], fresh.params["stem"]["conv"]["kernel"]
    kernel = jnp.zeros_like(own)
    taken = [channel for channel in new if channel in old]
    for channel in taken:
        kernel = kernel.at[:, :, new.index(channel)].set(theirs[:, :, old.index(channel)])
    size = own[:, :, 0].size
    for column, number in enumerate((len(taken), len(new) - len(taken), len(old) - len(taken))):
        tally.count(_STEM, column, number * size)
    tally.planes = _planes_in_words(old, new)
    return kernel


def _planes_in_words(old: Sequence[Channel], new: Sequence[Channel]) -> str:
    """Which planes are new and left, by kind; empty where both networks have the same."""

    def kinds(planes: Sequence[Channel]) -> str:
        told = (channel._replace(player=None) for channel in planes)
        return ", ".join(dict.fromkeys(map(str, told)))

    added, left = [p for p in new if p not in old], [p for p in old if p not in new]
    told = [f"{len(added)} planes at zero ({kinds(added)})"] if added else []
    told += [f"{len(left)} planes left ({kinds(left)})"] if left else []
    return "; ".join(told)


def _notes(before: NetworkConfig, after: NetworkConfig, kept: set[int]) -> dict[str, str]:
    """What is said of the blocks that are not taken.

    An R or W block ends in a ReLU, which changes nothing where its input is not negative: behind
    the stem and other such blocks, but not behind a T block.
    """
    notes, is_positive = {}, True
    for number, letter in enumerate(parse_blocks(after.blocks)):
        name, is_transformer = f"blocks.{number}", letter == TRANSFORMER
        if number in kept:
            is_positive = not is_transformer
            continue
        notes[name] = f"{letter}, begins as the identity"
        if not is_transformer and not is_positive:
            notes[name] = f"{letter}, begins as a ReLU behind a T block, not as the identity"
        is_positive |= not is_transformer
    for number, letter in enumerate(parse_blocks(before.blocks)):
        if number not in kept:
            name = f"blocks.{number}"
            told = f"the source's {letter} is left"
            notes[name] = f"{notes[name]}; {told}" if name in notes else told
    return notes


def _leaves(tree: Any) -> list[tuple[Any, jax.Array]]:
    return jax.tree_util.tree_flatten_with_path(tree)[0]


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
