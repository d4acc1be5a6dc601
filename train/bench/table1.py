"""Inference time of the ResTNet paper's networks relative to 6R, beside the paper's.

    python train/bench/table1.py [--size 9] [--width 256] [--heads 4] [--batch 16]
        [--rounds 7] [--seconds 0.2] [--dtype auto] [--json OUT]

The eleven networks of Table 1 of Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against Adversarial
Policies via Transformer in Computer Go": 9x9, 256 channels, 4 heads, MLP ratio 2. All are compiled
and warmed up first; then they take turns, round by round, each for at least about `--seconds`. A
round's time is taken relative to 6R's in the same round, and the median over the rounds is
reported, so that a drift of the machine's speed meets all of them.

On an accelerator take a larger batch, such as `--batch 1024`.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

import jax
from rich import box
from rich.console import Console
from rich.table import Table

from train.analysis.describe import Timer, lasting, make_timer, random_planes
from train.network import NetworkConfig, compute_dtype, count_parameters, make_network
from wallgo_jax import planes as planes_lib

PLANES, PLAYERS = "BTR", 2


class Row(NamedTuple):
    """A network as the paper's table has it; its name is a block string."""

    name: str
    millions: float  # parameters
    milliseconds: float  # inference


TABLE_1 = (
    Row("6R", 7.146, 3.067),
    Row("6T", 3.358, 8.130),
    Row("5R1T", 6.619, 3.650),
    Row("4R2T", 5.967, 4.237),
    Row("3R3T", 5.314, 5.000),
    Row("2R4T", 4.662, 5.882),
    Row("1R5T", 4.001, 6.329),
    Row("TRRRRT", 5.967, 4.566),
    Row("RTRRRT", 5.967, 4.566),
    Row("RRTRRT", 5.967, 4.566),
    Row("RRRTRT", 5.967, 4.566),
)
BASE = TABLE_1[0]


class Measured(NamedTuple):
    """A network as it ran here."""

    name: str
    parameters: int
    milliseconds: float  # of a batch
    relative: float  # to `BASE`


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--size", type=int, default=9)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a network's turn, at least")
    parser.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16"))
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures here as well")
    options = parser.parse_args()
    where = {
        "device": jax.devices()[0].device_kind,
        "dtype": compute_dtype(options.dtype).name,
        "jax": jax.__version__,
        **{name: getattr(options, name) for name in ("size", "width", "heads", "batch", "rounds")},
    }
    print(", ".join(f"{name} {value}" for name, value in where.items()))
    measured = _measure(options)
    Console().print(_table(measured))
    if options.json is not None:
        rows = [
            each._asdict() | {"paper": row._asdict()}
            for each, row in zip(measured, TABLE_1, strict=True)
        ]
        options.json.write_text(json.dumps(where | {"networks": rows}, indent=2) + "\n")


def _measure(options: argparse.Namespace) -> list[Measured]:
    timers: dict[str, Timer] = {}
    parameters: dict[str, int] = {}
    for name, *_ in TABLE_1:
        timers[name], parameters[name] = _prepare(name, options)
        print(f"  {name}: compiled", file=sys.stderr)
    milliseconds = _take_turns(timers, rounds=options.rounds, least=options.seconds)
    return [
        Measured(
            name=name,
            parameters=parameters[name],
            milliseconds=statistics.median(times),
            relative=statistics.median(
                mine / base for mine, base in zip(times, milliseconds[BASE.name], strict=True)
            ),
        )
        for name, times in milliseconds.items()
    ]


def _prepare(name: str, options: argparse.Namespace) -> tuple[Timer, int]:
    """A network, compiled and warm, with the number of its parameters."""
    channels = planes_lib.channels(PLANES, PLAYERS)
    config = NetworkConfig(
        blocks=name, width=options.width, heads=options.heads, dtype=options.dtype
    )
    network = make_network(config, channels)
    variables = network.init(jax.random.key(0))
    planes = random_planes(jax.random.key(1), options.batch, options.size, len(channels))
    return make_timer(network, variables, planes), count_parameters(variables)


def _take_turns(timers: dict[str, Timer], *, rounds: int, least: float) -> dict[str, list[float]]:
    """Milliseconds of a batch, of each network in each round."""
    evaluations = {name: lasting(timer, least) for name, timer in timers.items()}
    found: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            found[name].append(1e3 * timer(evaluations[name]) / evaluations[name])
    return found


def _table(measured: list[Measured]) -> Table:
    table = Table(box=box.MARKDOWN)
    table.add_column("network")
    for title in ("params, M", "paper's", "ms a batch", f"relative to {BASE.name}", "paper's"):
        table.add_column(title, justify="right")
    for each, row in zip(measured, TABLE_1, strict=True):
        table.add_row(
            each.name,
            f"{each.parameters / 1e6:.3f}",
            f"{row.millions:.3f}",
            f"{each.milliseconds:.2f}",
            f"{each.relative:.2f}",
            f"{row.milliseconds / BASE.milliseconds:.2f}",
        )
    return table


if __name__ == "__main__":
    main()
