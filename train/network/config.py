"""Shape and options of the network, and its block strings, such as `2R1T` or `R3(RRT)`."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator
from pydantic.dataclasses import dataclass

from train.functions import CustomNetwork, CustomPlanes
from train.runtime.fields import STRICT, AtLeastOne, Positive
from wallgo_jax.planes import check_planes

RESIDUAL, TRANSFORMER, WALLED = "R", "T", "W"
MAX_BLOCKS = 200
_COUNT = r"(0*[1-9][0-9]*)"
_REPEATED = re.compile(rf"{_COUNT}([RTW])|{_COUNT}?\(([RTW]+)\)")
"""A counted block, or an innermost bracket with its count."""


def parse_blocks(text: str) -> str:
    """Expand a block string into its blocks, e.g. `2R1T` into `RRT`.

    A count repeats the block or the bracket after it.

    Raises:
      ValueError: it is no block string, or one of more than MAX_BLOCKS.
    """
    # One block too many shows that there are too many.
    most = MAX_BLOCKS + 1

    def repeat(match: re.Match[str]) -> str:
        block, count = match[2] or match[4], match[1] or match[3] or "1"
        return (min(int(count.lstrip("0")[:6]), most) * block)[:most]

    blocks, before = text, ""
    while blocks != before:
        before, blocks = blocks, _REPEATED.sub(repeat, blocks)
    if not re.fullmatch(f"[RTW]{{1,{MAX_BLOCKS}}}", blocks):
        raise ValueError(
            f"blocks: {text!r} is not made of R, T and W, counts and brackets, such as 'RRT', "
            f"'2R1T' or 'R3(RRT)', of at most {MAX_BLOCKS} blocks"
        )
    return blocks


def _check_planes(planes: str) -> str:
    check_planes(planes)
    return planes


@dataclass(frozen=True, config=STRICT)
class NetworkConfig:
    """Shape of the network.

    Attributes:
      blocks: trunk: R residual, T Transformer, W walled blocks, such as `R`, `2R1T`, `WWT` or
        `R3(RRT)` (`docs/network.md`).
      width: features of the trunk [channels].
      heads: attention heads of a T block [heads].
      mlp_ratio: hidden width of a T block's MLP, as a multiple of `width` [ratio].
      norm: normalisation of stem, R and W blocks: `batch`, `layer` or `none`. `batch` is the
        paper's and has running statistics. `layer` normalises each cell's features, `none` scales
        each block by a learned number that starts at 0; both leave `Variables.batch_stats` empty.
        T blocks always have layer norms.
      value_width: hidden width of value and margin heads [channels].
      value: value head: `scalar` (expected reward) or `wdl` (win, draw, loss). `scalar` is one
        number (one per player beyond two), `wdl` the probabilities of each player's win and of a
        draw.
      ownership: add the head that predicts the final owner of each cell.
      margin: add the head that predicts the final lead in territory of the player to move.
      reply: add the head that predicts the policy of the next ply.
      destination_head: add the head that gives each cell a logit for each wall, which is added to
        the plays that end there.
      planes: feature planes: B, BT, BTR or BTRH; after BTR and BTRH also D, DL, W, DW or DLW
        (distances); after all V (the rules).
      playable: show in a plane which cells are playable, which boards smaller than their grid need;
        features of the other cells are then kept at zero.
      mover_first: show the planes of the player to move first, in place of player 0's.
      dtype: compute type: `float32`, `bfloat16`, or `auto` (bfloat16 on accelerators). On CPU
        `auto` is float32. Parameters are always float32.
      custom: name of a network that Python passes in place of this one; it cannot be set here
        (`docs/api.md`).
      custom_planes: name of a function that Python passes, whose planes come after `planes`; it
        cannot be set here.
    """

    blocks: str = "R"
    width: AtLeastOne = 32
    heads: AtLeastOne = 4
    mlp_ratio: Positive = 2.0
    norm: Literal["batch", "layer", "none"] = "batch"
    value_width: AtLeastOne = 64
    value: Literal["scalar", "wdl"] = "scalar"
    ownership: bool = True
    margin: bool = False
    reply: bool = False
    destination_head: bool = False
    planes: Annotated[str, AfterValidator(_check_planes)] = "BTR"
    mover_first: bool = True
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    custom: CustomNetwork = ""
    custom_planes: CustomPlanes = ""
    playable: bool = False

    def __post_init__(self) -> None:
        for conflict in self._conflicts(parse_blocks(self.blocks)):
            raise ValueError(conflict)

    def _conflicts(self, blocks: str) -> Iterator[str]:
        """What is not allowed, in words."""
        has_attention = TRANSFORMER in blocks
        if has_attention and round(self.width * self.mlp_ratio) < 1:
            width = f"T blocks of width {self.width}"
            yield f"mlp_ratio {self.mlp_ratio} gives {width} no hidden channel"
        if has_attention and self.width % self.heads:
            yield f"width {self.width} is not a multiple of heads {self.heads}"
