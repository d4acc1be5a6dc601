"""Describes a network part by part: shapes, parameters, multiply-adds, speed on this device."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from rich.text import Text

from train.config import RunConfig, read_config, rule_sets_in_words, write_rule_sets
from train.network import Network, Part, Variables, census, channels_of, compute_dtype, network_for
from train.players.networks import load_network
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.results import Result
from wallgo_jax.game.rules import name_of

DEFAULT_BATCH = 256
RUNS, RUN_SECONDS = 5, 0.2
Timer = Callable[[int], float]
"""Number of evaluations of a batch, one after the other -> the seconds that they take."""


class Speed(NamedTuple):
    """Speed of the forward pass, the median of `RUNS` runs."""

    batch: int
    dtype: str
    device: str
    evaluations_per_second: float  # boards
    multiply_adds_per_second: float


@dataclasses.dataclass(frozen=True)
class Description(Result):
    """A network with its parts and its speed."""

    source: str  # of its config
    config: RunConfig
    parts: tuple[Part, ...]  # on one board
    speed: Speed | None  # None where it was not measured
    is_interrupted = False

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each part."""
        return [part._asdict() | {"shape": list(part.shape)} for part in self.parts]

    def summary(self) -> dict[str, Any]:
        """What `describe --json` writes."""
        config = self.config
        return {
            "source": self.source,
            "rules": name_of(config.rules),
            **({"rule_sets": write_rule_sets(config.mix)} if config.mix else {}),
            "size": config.grid_side,
            "players": config.rules.players,
            "network": dataclasses.asdict(config.network),
            "parts": self.rows,
            "parameters": sum(part.parameters for part in self.parts),
            "multiply_adds": sum(part.multiply_adds for part in self.parts),
            "speed": None if self.speed is None else self.speed._asdict(),
        }

    def table(self) -> Table:
        """The parts as a table of rich."""
        shape = self.config.network
        size = self.config.grid_side
        planes = len(channels_of(shape, self.config.rules.players))
        sums = (sum(each) for each in zip(*(part[2:] for part in self.parts), strict=True))
        total = Part("total", (), *sums)
        rows = [
            [
                part.name,
                "×".join(map(str, part.shape)),
                f"{part.parameters:,}",
                f"{part.parameters / total.parameters:.1%}",
                f"{part.multiply_adds:,}",
            ]
            for part in (*self.parts, total)
        ]
        return Table(
            f"{shape.blocks}, width {shape.width}: the network of {self.source}",
            ("part", "gives", "parameters", "share", "multiply-adds"),
            rows,
            f"one {size}×{size} board of {planes} planes ({shape.planes})",
        )

    def shown(self) -> list[Any]:
        """What `describe` prints: the table of parts, then the speed."""
        lines = []
        if self.config.mix:
            lines.append(f"rule sets: {rule_sets_in_words(self.config.mix)}")
        if self.speed is not None:
            speed = self.speed
            lines += [
                f"{speed.evaluations_per_second:,.0f} evaluations/s, "
                f"{speed.multiply_adds_per_second / 1e9:,.2f} G multiply-adds/s",
                f"batch {speed.batch} · {speed.dtype} · {speed.device} · median of {RUNS} runs",
            ]
        return [self.table(), *map(Text, lines)]


def describe(
    target: str | Path | RunConfig | None, *, batch: int = DEFAULT_BATCH, measure: bool = True
) -> Description:
    """Describe the network of a TOML file or of a trained player.

    Args:
      target: the file, the player's name, or a config; None for the default config.
      batch: boards of one evaluation in the measurement.
      measure: run the network for some seconds to measure its speed, with new weights for a config.

    Raises:
      UsageError: the target cannot be read.
    """
    source, config, variables = _read_target(target)
    players, size = config.rules.players, config.grid_side
    if config.network.custom:
        raise UsageError(
            f"describe: {source}: its network was passed from Python, so its parts are unknown"
        )
    channels = channels_of(config.network, players)
    parts = census(config.network, channels, size=size)
    speed = None
    if measure:
        network = network_for(config.network, players)
        if variables is None:
            variables = network.init(jax.random.key(0))
        planes = random_planes(jax.random.key(1), batch, size, len(channels))
        seconds = median_seconds(make_timer(network, variables, planes))
        speed = Speed(
            batch=batch,
            dtype=compute_dtype(config.network.dtype).name,
            device=jax.devices()[0].device_kind,
            evaluations_per_second=batch / seconds,
            multiply_adds_per_second=batch / seconds * sum(part.multiply_adds for part in parts),
        )
    return Description(source, config, parts, speed)


def _read_target(
    target: str | Path | RunConfig | None,
) -> tuple[str, RunConfig, Variables | None]:
    """The name and config of a target, and the weights of a trained player."""
    if isinstance(target, RunConfig):
        return target.name, target, None
    if target is None:
        return "the default config", read_config(None), None
    path = Path(target)
    if path.is_file() or path.suffix == ".toml":
        return str(path), read_config(path), None
    trained = load_network(str(target))
    return trained.source, trained.config, trained.variables


def random_planes(key: jax.Array, batch: int, size: int, planes: int) -> jax.Array:
    """bool[B, H, W, C] of random planes for measurements."""
    return jax.random.bernoulli(key, 0.3, (batch, size, size, planes))


def make_timer(network: Network, variables: Variables, planes: jax.Array) -> Timer:
    """Compile a network for a batch and warm it up."""

    @jax.jit
    def program(variables: Variables, planes: jax.Array) -> tuple[Any, jax.Array]:
        output = network.evaluate(variables, planes)
        # Never true, but the next evaluation depends on it: they cannot overlap.
        beyond = jnp.abs(output.value).max(axis=1) > 2
        return output, planes ^ beyond[:, None, None, None]

    variables, planes = jax.device_put((variables, planes))

    def seconds(evaluations: int) -> float:
        began = time.perf_counter()
        output, next_planes = program(variables, planes)
        for _ in range(evaluations - 1):
            output, next_planes = program(variables, next_planes)
        fetch(output.value)
        return time.perf_counter() - began

    seconds(1)
    return seconds


def median_seconds(timer: Timer) -> float:
    """Seconds of one evaluation: the median of `RUNS` runs of at least about `RUN_SECONDS`."""
    evaluations = 1
    while timer(evaluations) < RUN_SECONDS:
        evaluations *= 2
    return statistics.median(timer(evaluations) for _ in range(RUNS)) / evaluations
