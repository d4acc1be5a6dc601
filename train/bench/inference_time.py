"""Measures the inference time of the ResTNet paper's networks relative to 6R, next to the paper's.

    python -m train.bench.inference_time [--size 9] [--width 256] [--heads 4] [--batch 16]
        [--rounds 7] [--seconds 0.2] [--dtype auto] [--json OUT]

The eleven networks are those of Table 1 of Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against
Adversarial Policies via Transformer in Computer Go": 9x9, 256 channels, 4 heads, MLP ratio 2. All
are compiled and warmed up first; then they take turns, round by round, each for at least about
`--seconds`. A round's time is divided by 6R's in the same round, and the median over the rounds is
reported, so that a drift of the machine's speed affects all networks alike.

On an accelerator take a larger batch, such as `--batch 1024`.
"""

import dataclasses
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
from pydantic import Field
from rich.console import Console

from train.analysis.describe import make_timer, random_planes
from train.bench.script import run_script
from train.bench.timing import CHECKSUM, Benchmark, BenchRow, take_turns
from train.metrics.text_table import Table
from train.network import NetworkConfig, compute_dtype, count_parameters, make_network
from train.runtime.errors import usage_errors
from train.runtime.files import check_writable, write_json
from wallgo_jax import planes as planes_lib

PLANES, PLAYERS = "BTR", 2
Count = Annotated[int, Field(ge=1)]


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
BASE = TABLE_1[0]


class InferenceTime(NamedTuple):
    """A network as it ran here."""

    name: str
    parameters: int
    milliseconds: float  # of a batch
    relative: float  # to `BASE`


@dataclasses.dataclass(frozen=True)
class Options:
    """Measure inference times of the networks of the ResTNet paper's Table 1."""

    size: Count = 9
    """Cells on a side of the board."""
    width: Count = 256
    """Features of the trunk."""
    heads: Count = 4
    """Attention heads of a T block."""
    batch: Count = 16
    """Boards of one evaluation."""
    rounds: Count = 7
    """Turns of each network; their median counts."""
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.2
    """Least length of a network's turn, in seconds."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Compute type; auto is bfloat16 on accelerators, float32 on CPU."""
    json: Path | None = None
    """File to write the figures to as well."""

    @property
    def networks(self) -> list[NetworkConfig]:
        """The networks of the table.

        Raises:
          ValueError: these options allow no network.
        """
        shape: dict[str, Any] = {"width": self.width, "heads": self.heads, "dtype": self.dtype}
        return [NetworkConfig(blocks=row.name, **shape) for row in TABLE_1]


def main(options: Options) -> None:
    """Measure and print."""
    with usage_errors():
        networks = options.networks
    if options.json is not None:
        check_writable(options.json)
    where = {
        "device": jax.devices()[0].device_kind,
        "dtype": compute_dtype(options.dtype).name,
        "jax": jax.__version__,
        **{name: getattr(options, name) for name in ("size", "width", "heads", "batch", "rounds")},
    }
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    measured = _measure(networks, options)
    Console().print(_table(measured))
    if options.json is not None:
        rows = [
            each._asdict() | {"paper": row._asdict()}
            for each, row in zip(measured, TABLE_1, strict=True)
        ]
        write_json(options.json, where | {"networks": rows})


def _measure(networks: Sequence[NetworkConfig], options: Options) -> list[InferenceTime]:
    compiled = []
    for network in networks:
        compiled.append(_make_bench(network, options))
        print(f"  {network.blocks}: compiled", file=sys.stderr)
    benches, parameters = zip(*compiled, strict=True)
    rows = take_turns(benches, seconds=options.seconds, repeats=options.rounds)
    return [compare(*each, rows[0]) for each in zip(rows, parameters, strict=True)]


def _make_bench(config: NetworkConfig, options: Options) -> tuple[Benchmark, int]:
    """A network, compiled, and the number of its parameters; its unit of work is a batch."""
    channels = planes_lib.channels(PLANES, PLAYERS)
    network = make_network(config, channels)
    variables = network.init(jax.random.key(0))
    planes = random_planes(jax.random.key(1), options.batch, options.size, len(channels))
    timer = make_timer(network, variables, planes)

    def run(length: int) -> dict[str, float]:
        timer(length)
        return {"evaluations": length * options.batch, CHECKSUM: 0}

    return Benchmark(config.blocks, options.batch, run, None), count_parameters(variables)


def compare(row: BenchRow, parameters: int, base: BenchRow) -> InferenceTime:
    """The medians over the rounds of a network's time and of its ratio to the base's."""
    times, base_times = (
        [1e3 * seconds / each.length for seconds in each.seconds] for each in (row, base)
    )
    ratios = [time / other for time, other in zip(times, base_times, strict=True)]
    return InferenceTime(row.name, parameters, statistics.median(times), statistics.median(ratios))


def _table(measured: Sequence[InferenceTime]) -> Table:
    rows = [
        [
            each.name,
            f"{each.parameters / 1e6:.3f}",
            f"{row.millions:.3f}",
            f"{each.milliseconds:.2f}",
            f"{each.relative:.2f}",
            f"{row.milliseconds / BASE.milliseconds:.2f}",
        ]
        for each, row in zip(measured, TABLE_1, strict=True)
    ]
    heads = ("network", "params, M", "paper's", "ms a batch", f"relative to {BASE.name}", "paper's")
    return Table("Inference time", heads, rows)


if __name__ == "__main__":
    run_script(main, Options, name="inference_time")
