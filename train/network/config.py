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
      blocks: the trunk, such as `R`, `2R1T`, `WWT` or `R3(RRT)`.
      width: features of the trunk.
      heads: attention heads of a T block.
      mlp_ratio: hidden width of a T block's MLP, divided by `width`.
      norm: normalisation of the stem and of R and W blocks. `batch` is the paper's and has running
        statistics. `layer` normalises each cell's features, `none` scales each block by a learned
        number that starts at 0; both leave `Variables.batch_stats` empty. T blocks always have
        layer norms.
      value_width: hidden width of the value and margin heads.
      value: output of the value head: `scalar`, the expected reward, one number (one per player
        beyond two), or `wdl`, the probabilities of each player's win and of a draw.
      ownership: adds a head that predicts the final owner of each cell.
      margin: adds a head that predicts the final lead in territory of the player to move.
      reply: adds a head that predicts the policy of the next ply.
      destination_head: adds to the logit of a play a number for its wall from the cell where the
        move ends.
      planes: input feature planes: B, BT, BTR, BTRH, BTRD or BTRHD; with a V, also the
        variant's.
      mover_first: order the planes by turn, the player to move first, instead of player 0 first.
      dtype: compute type, `float32` or `bfloat16`; `auto` is bfloat16 on accelerators, float32 on
        CPU. Parameters are always float32.
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
        if self.width < 1 or self.heads < 1 or self.value_width < 1 or self.mlp_ratio <= 0:
            raise ValueError("width, heads, value_width and mlp_ratio must be positive")
        if TRANSFORMER in blocks and self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        for key, allowed in (("norm", NORMS), ("value", VALUES), ("dtype", DTYPES)):
            if getattr(self, key) not in allowed:
                raise ValueError(f"{key} {getattr(self, key)!r} is not one of {', '.join(allowed)}")
