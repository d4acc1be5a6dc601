"""Shape and options of the network."""

import dataclasses

from train.network.blocks import TRANSFORMER, parse_blocks

NORMS = ("batch", "layer", "none")
VALUES = ("scalar", "wdl")
DTYPES = ("auto", "float32", "bfloat16")


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """Shape of the network.

    Attributes:
      blocks: trunk: R residual, T Transformer, W walled blocks, such as `R`, `2R1T`, `WWT` or
        `R3(RRT)` (`docs/network.md`).
      width: features of the trunk [channels].
      heads: attention heads of a T block [heads].
      mlp_ratio: hidden width of a T block's MLP over `width` [ratio].
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
      destination_head: add the head that adds to each play a logit of its wall where the move ends.
      planes: feature planes: B, BT, BTR, BTRH, BTRD or BTRHD, each with or without V (the
        variant's).
      mover_first: show the planes of the player to move first, instead of player 0's.
      dtype: compute type: `float32`, `bfloat16`, or `auto` (bfloat16 on accelerators). On CPU
        `auto` is float32. Parameters are always float32.
    """

    blocks: str = "R"
    width: int = 32
    heads: int = 4
    mlp_ratio: float = 2.0
    norm: str = "batch"
    value_width: int = 64
    value: str = "scalar"
    ownership: bool = True
    margin: bool = False
    reply: bool = False
    destination_head: bool = False
    planes: str = "BTR"
    mover_first: bool = True
    dtype: str = "auto"

    def __post_init__(self) -> None:
        blocks = parse_blocks(self.blocks)
        for key in ("width", "heads", "value_width"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key} must be at least 1")
        if not 0 < self.mlp_ratio < float("inf"):
            raise ValueError("mlp_ratio must be a number above 0")
        if TRANSFORMER in blocks and self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        for key, allowed in (("norm", NORMS), ("value", VALUES), ("dtype", DTYPES)):
            if getattr(self, key) not in allowed:
                raise ValueError(f"{key} {getattr(self, key)!r} is not one of {', '.join(allowed)}")
