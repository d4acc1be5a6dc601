"""Inference times of the ResTNet paper's networks relative to 6R, next to the paper's.

The eleven networks are those of Table 1 of Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against
Adversarial Policies via Transformer in Computer Go": 9x9, 256 channels, 4 heads, MLP ratio 2.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from train.bench.timing import Benchmark, BenchRow
from train.bench.trainer import census_of, make_forward_bench
from train.config import RunConfig
from train.runtime.devices import Devices
from wallgo_jax.game.rules import Rules


class PaperRow(NamedTuple):
    """A network in the paper's table; its name is a block string."""

    name: str
    millions: float  # parameters
    milliseconds: float  # inference


TABLE_1 = (
    PaperRow("6R", 7.146, 3.067),
    PaperRow("6T", 3.358, 8.130),
    PaperRow("5R1T", 6.619, 3.650),
    PaperRow("4R2T", 5.967, 4.237),
    PaperRow("3R3T", 5.314, 5.000),
    PaperRow("2R4T", 4.662, 5.882),
    PaperRow("1R5T", 4.001, 6.329),
    PaperRow("TRRRRT", 5.967, 4.566),
    PaperRow("RTRRRT", 5.967, 4.566),
    PaperRow("RRTRRT", 5.967, 4.566),
    PaperRow("RRRTRT", 5.967, 4.566),
)


def benches(config: RunConfig, batch: int, devices: Devices) -> Iterator[Benchmark]:
    """Compile the forward pass of each network, in the config's type of numbers."""
    for row in TABLE_1:
        network = dataclasses.replace(
            config.network, blocks=row.name, width=256, heads=4, mlp_ratio=2.0, planes="BTR"
        )
        paper = dataclasses.replace(config, rules=Rules(size=9), network=network)
        millions = sum(part.parameters for part in census_of(paper)) / 1e6
        name = f"{row.name}, {millions:.3f} M parameters (paper {row.millions:.3f})"
        yield make_forward_bench(paper, batch, devices, name)


def times(rows: Sequence[BenchRow]) -> Iterator[tuple[str, float]]:
    """Each network's time over 6R's at one batch, with the paper's in its name."""
    speeds = [row.rates["evaluations"] for row in rows]
    for paper, speed in zip(TABLE_1, speeds, strict=False):
        theirs = paper.milliseconds / TABLE_1[0].milliseconds
        yield f"time of {paper.name} over 6R (paper {theirs:.2f})", speeds[0] / speed
