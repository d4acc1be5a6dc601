"""Measures the work of a device when devices are added with boards and samples of their own.

Each number of devices has a process of its own, on devices of the CPU that XLA makes of one host.
They share its cores, so wall time says nothing; processor time a device does: more of it than on
one device is overhead of sharing."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from rich import box
from rich.console import Console
from rich.table import Table

from train.bench.harness.script import run_configured_script
from train.config import RunConfig, change_config, read_config
from train.programs.assembly import make_programs
from train.runtime.devices import all_devices, enable_compilation_cache
from train.runtime.errors import UsageError


@dataclasses.dataclass(frozen=True)
class Options:
    """Measure self-play and learning on several devices; other words change the config."""

    config: Path | None = None
    """TOML file of a run; without one, the quickstart."""
    devices: tuple[int, ...] = (1, 2, 4, 8)
    """Numbers of devices; the first is compared with."""
    boards: int = 32
    """Boards of a device."""
    batch: int = 64
    """Samples of a device in a step."""
    iterations: int = 3
    """Measured iterations, after one that warms up."""
    alone: bool = False
    """Measure on the devices of this process, and print JSON."""


class Work(NamedTuple):
    """Processor time a device and iteration."""

    devices: int
    selfplay: float  # seconds
    learning: float


def main(options: Options, overrides: Sequence[str]) -> None:
    """Measure and print."""
    if min(options.devices, default=0) < 1 or options.boards < 1 or options.batch < 1:
        raise UsageError("weak_scaling: devices, boards and batch must be at least 1")
    if options.iterations < 1:
        raise UsageError("weak_scaling: iterations must be at least 1")
    if options.alone:
        config = read_config(options.config, overrides)
        print(json.dumps(measure(config, options)._asdict()))
        return
    found = [_in_a_process(count, options, overrides) for count in options.devices]
    Console().print(table(found))


def _in_a_process(count: int, options: Options, overrides: Sequence[str]) -> Work:
    words = [sys.executable, "-m", "train.bench.scripts.weak_scaling", "--alone"]
    words += ["--config", str(options.config)] if options.config else []
    words += ["--boards", f"{options.boards}", "--batch", f"{options.batch}"]
    words += ["--iterations", f"{options.iterations}"]
    done = subprocess.run(
        [*words, *overrides],
        env=os.environ
        | {"JAX_NUM_CPU_DEVICES": str(count), "JAX_PLATFORMS": "cpu", "NPROC": str(4 * count)},
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.returncode)
    return Work(**json.loads(done.stdout.splitlines()[-1]))


def measure(config: RunConfig, options: Options) -> Work:
    """The work of an iteration on all devices of this process."""
    enable_compilation_cache()
    count = jax.device_count()
    words = ("--selfplay.boards", f"{options.boards * count}")
    words += ("--learner.batch", f"{options.batch * count}", "--selfplay.bootstrap_iterations", "0")
    words += ("--replay.positions", f"{options.boards * count * 4 * config.selfplay.plies}")
    config = change_config(config, words)
    programs = make_programs(config, all_devices())
    programs.compile(0)
    learn, state = programs.learn_program().learn, programs.init()
    spent = {"selfplay": 0.0, "learning": 0.0}

    def timed(name: str, began: float, result: Any) -> Any:
        jax.block_until_ready(result)
        spent[name] += time.process_time() - began
        return result

    for iteration in range(options.iterations + 1):
        if iteration == 1:  # the one before has warmed up
            spent.update(selfplay=0.0, learning=0.0)
        keys, began = programs.keys(iteration), time.process_time()
        boards, plies, _ = timed(
            "selfplay",
            began,
            programs.selfplay_at(0)(
                state.learner.player, programs.variant, state.boards, keys.play
            ),
        )
        replay_state, _ = programs.add(state.replay_state, plies)
        began, steps = time.process_time(), config.learner.steps
        learned = learn(state.learner, replay_state, programs.variant, keys.learn, steps)
        learner, _ = timed("learning", began, learned)
        state = state._replace(learner=learner, boards=boards, replay_state=replay_state)
    work = {name: seconds / options.iterations / count for name, seconds in spent.items()}
    return Work(devices=count, **work)


def table(found: Sequence[Work]) -> Table:
    """The work by number of devices, and its overhead over the first."""
    shown, first = Table(box=box.MARKDOWN), found[0]
    for head in ("devices", "self-play, s", "overhead", "learning, s", "overhead"):
        shown.add_column(head, justify="right")
    for work in found:
        shown.add_row(
            str(work.devices),
            f"{work.selfplay:.2f}",
            f"{work.selfplay / first.selfplay - 1:+.0%}",
            f"{work.learning:.2f}",
            f"{work.learning / first.learning - 1:+.0%}",
        )
    return shown


if __name__ == "__main__":
    run_configured_script(main, Options, name="weak_scaling")
