"""Measures all that needs an accelerator in a few minutes: game, network, search, self-play,
learner, a profile of a search, a short training.

XLA reads its flags once a process, so parts of equal flags share a process, and those without
flags come first. Search and self-play are measured as a run is by default and, as parts
`-graphs`, with loops in the graphs of a GPU (`--xla_gpu_enable_command_buffer=+WHILE`). Programs
are measured one after the other, and each row is a line of the results as soon as it is measured:
what the time limit, or an error, ends loses nothing else.
"""

import collections
import dataclasses
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
from pydantic import Field

from train.bench import report, search, suite
from train.bench.ratios import ratios
from train.bench.script import run_script
from train.bench.suite import Request
from train.bench.timing import BenchRow, take_turns
from train.bench.training import train_for, training_lines
from train.config import RunConfig, change_config, read_config
from train.runtime.devices import set_up
from train.runtime.errors import UsageError
from train.runtime.files import append_line, plain_data

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
IN_GRAPHS = "--xla_gpu_enable_command_buffer=+WHILE"
ROUNDS = ("--search.rounds", "true")
RESULTS_FILE = "results.jsonl"
_REPEATS = 3
_TOP = 25  # kernels of a profile that are listed
_ITERATIONS_IN_REPLAY = 4  # enough for the learner's speed, and little to save at the end
_LEAST = 30.0  # seconds that a part needs to start at all
_COMPILING = 110.0  # seconds that are left for the training to begin and to end
_METRICS = (
    *("iteration", "selfplay_seconds", "learn_seconds", "compile_seconds", "positions", "games"),
    *("mean_length", "loss", "policy_loss", "value_loss", "steps", "simulations"),
)
"""Figures of an iteration of the training that are written."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Measure on this machine's accelerator; other words change the config."""

    out: Path
    """Directory for results.jsonl, a line a measured row and one at the end of a part."""
    config: Path = Path("configs/gpu.toml")
    """TOML file of a run."""
    games: tuple[Count, ...] = (4096, 65536, 262144)
    """Boards of the game and of the env."""
    boards: Count = 4096
    """Boards of network, search and self-play."""
    few: Count = 256
    """Boards of the search in rounds against one leaf at a time."""
    minutes: Positive = 3.0
    """Length of the training, after compiling."""
    limit: Positive = 560.0
    """Seconds for everything; parts that begin later are left out."""
    parts: tuple[str, ...] = ()
    """Parts to measure, in this order within equal flags; empty for all."""
    alone: tuple[str, ...] = ()
    """Parts to measure in this process; the script itself starts such processes."""


class Measuring(NamedTuple):
    """A part that is being measured."""

    config: RunConfig
    options: Options
    left: float  # seconds
    write: Callable[[dict[str, Any]], None]
    """Adds a line to the results and names the part there."""


class Part(NamedTuple):
    """A part of the measurements."""

    flags: str  # of XLA; empty for those of a run by default
    words: tuple[str, ...]  # that change the config
    measure: Callable[[Measuring], Iterator[str]]
    """Writes rows as it goes; yields lines for the console."""


def main(options: Options, overrides: Sequence[str]) -> None:
    """Measure part by part."""
    for name in (*options.parts, *options.alone):
        if name not in PARTS:
            raise UsageError(f"--parts {name!r} is unknown; allowed: {', '.join(PARTS)}")
    ends = time.perf_counter() + options.limit
    if options.alone:
        _measure_here(options, overrides, ends)
        return
    read_config(options.config, overrides)  # Refused now, not in each process.
    options.out.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[str]] = {"": []}
    for name in options.parts or PARTS:
        groups.setdefault(PARTS[name].flags, []).append(name)
    for flags, names in groups.items():
        while names and (left := ends - time.perf_counter()) >= _LEAST:
            done, error = _in_a_process(flags, names, left, options, overrides)
            names = [name for name in names if name not in done]
            if names and error:
                # The first that is not done has ended the process; those after it get another one.
                _write(options, names.pop(0), {"error": error})
        for name in names:
            print(f"{name}: left out, the time is over", flush=True)


def _in_a_process(
    flags: str, names: list[str], left: float, options: Options, overrides: Sequence[str]
) -> tuple[set[str], str]:
    """Measure parts in a process that is ended when the time is over; returns those that are done
    and what ended the process, if it did not end by itself."""
    words = [sys.executable, "-m", "train.bench.accelerator", "--limit", f"{left:.1f}"]
    for option in ("out", "config", "boards", "few", "minutes"):
        words += [f"--{option}", str(getattr(options, option))]
    words += ["--games", *map(str, options.games), "--alone", *names, *overrides]
    flags = " ".join([os.environ.get("XLA_FLAGS", ""), flags]).strip()
    file, error = options.out / RESULTS_FILE, ""
    before = file.stat().st_size if file.exists() else 0
    try:
        code = subprocess.run(words, env=os.environ | {"XLA_FLAGS": flags}, timeout=left).returncode
        error = f"its process ended with code {code}" if code else ""
    except subprocess.TimeoutExpired:
        error = f"not done in {left:.0f} s"
    written = file.read_bytes()[before:].decode() if file.exists() else ""
    lines = [json.loads(line) for line in written.splitlines() if line.endswith("}")]
    return {line["part"] for line in lines if "seconds_of_part" in line}, error


def _measure_here(options: Options, overrides: Sequence[str], ends: float) -> None:
    """Measure parts in this process; one that fails does not end those after it."""
    set_up()
    config = read_config(options.config, overrides)
    for name in options.alone:
        began = time.perf_counter()
        if ends - began < _LEAST:
            return
        part, write = PARTS[name], partial(_write, options, name)
        print(f"== {name} {part.flags}", flush=True)
        changed = change_config(config, part.words)
        last: dict[str, Any] = {"environment": report.environment()}
        try:
            last["lines"] = list(part.measure(Measuring(changed, options, ends - began, write)))
        except Exception as error:
            last["error"] = "".join(traceback.format_exception(error))[-3000:]
        write(last | {"seconds_of_part": round(time.perf_counter() - began, 1)})
        gc.collect()  # What the part held on the device.


def _write(options: Options, name: str, line: dict[str, Any]) -> None:
    """Add a line to the results, and show it."""
    about = {"part": name, "flags": PARTS[name].flags}
    append_line(options.out / RESULTS_FILE, json.dumps(plain_data(line | about)))
    texts = [line["error"]] if "error" in line else line.get("lines", [])
    if "rates" in line:
        rates = ", ".join(f"{rate:,.0f} {unit}/s" for unit, rate in line["rates"].items())
        seconds = line["stats"].compile_seconds
        texts = [f"{line['name']}, {line['batch']:,}: {rates}; compiled in {seconds:.1f} s"]
    if "seconds_of_part" in line:
        texts = [*texts, f"{line['seconds_of_part']} s"]
    print("\n".join(f"  {text}" for text in texts), flush=True)


def _figures(part: str, option: str, measuring: Measuring) -> Iterator[str]:
    """The rows of a part of the bench, with their ratios, at the batches of an option."""
    config, options = measuring.config, measuring.options
    given = getattr(options, option) if option else config.learner.batch
    batches = given if isinstance(given, tuple) else (given,)
    request = Request(config=config, parts=(part,), batches=batches, repeats=_REPEATS)
    rows: list[BenchRow] = []
    for batch in batches:
        for make in suite.makers(request, part, batch):
            seconds, repeats = request.seconds, request.repeats
            rows += take_turns([make()], seconds=seconds, repeats=repeats, part=part)
            measuring.write(rows[-1]._asdict())
    for ratio in ratios(rows):
        yield f"{ratio.name}, {ratio.batch:,}: {ratio.value:.3f}"


def _train(measuring: Measuring) -> Iterator[str]:
    """Train for a while, without matches."""
    config, selfplay = measuring.config, measuring.config.selfplay
    kept = _ITERATIONS_IN_REPLAY * selfplay.boards * selfplay.plies
    positions = min(config.replay.positions, kept)
    short = dataclasses.replace(
        config, replay=dataclasses.replace(config.replay, positions=positions)
    )
    seconds = min(60 * measuring.options.minutes, max(measuring.left - _COMPILING, _LEAST))
    with tempfile.TemporaryDirectory() as runs:
        rows, took = train_for(
            short,
            Path(runs),
            seconds=seconds,
            on_row=lambda row: measuring.write({name: row.get(name) for name in _METRICS}),
        )
    yield f"{len(rows)} iterations in {took:.0f} s"
    yield from training_lines(rows)


def _profile(measuring: Measuring) -> Iterator[str]:
    """The kernels of one move of the search, by time."""
    config, boards = measuring.config, measuring.options.boards
    count = config.search.simulations
    searcher = search.searcher(search.NETWORK, config, count)
    bench = search.make_bench(searcher, config.rules, boards, count, suite.devices_for(boards))
    bench.run(2)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            bench.run(1)
        yield from _kernels(next(Path(folder).glob("**/*.xplane.pb")), count)


def _kernels(file: Path, simulations: int) -> Iterator[str]:
    """Number, time and names of the kernels on the first accelerator, else on the host."""
    planes = {plane.name: plane for plane in jax.profiler.ProfileData.from_file(str(file)).planes}
    name = min(
        planes, key=lambda name: (not name.startswith("/device:"), name != "/host:CPU", name)
    )
    times: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    first, last = float("inf"), 0.0
    for line in planes[name].lines:
        if name.startswith("/device:") and not line.name.startswith("Stream"):
            continue  # the same work again, by module and by operation
        for event in line.events:
            times[event.name] += event.duration_ns / 1e6
            counts[event.name] += 1
            first, last = min(first, event.start_ns), max(last, event.start_ns + event.duration_ns)
    kernels, busy, span = counts.total(), sum(times.values()), (last - first) / 1e6
    number = f"{kernels / simulations:,.0f} kernels a simulation"
    yield f"{name}: {number}, busy {busy:.1f} ms of {span:.1f}"
    for each, milliseconds in times.most_common(_TOP):
        yield f"{milliseconds:9.3f} ms {counts[each]:6} × {each[:90]}"


_search, _few = partial(_figures, "search", "boards"), partial(_figures, "search", "few")
_selfplay, _learn = partial(_figures, "selfplay", "boards"), partial(_figures, "learn", "")
_games = partial(_figures, "env", "games")
PARTS = {
    "search": Part("", (), _search),
    "search-graphs": Part(IN_GRAPHS, (), _search),
    "selfplay": Part("", (), _selfplay),
    "selfplay-graphs": Part(IN_GRAPHS, (), _selfplay),
    "selfplay-rounds": Part("", ROUNDS, _selfplay),
    "learn": Part("", (), _learn),
    "profile": Part("", (), _profile),
    "games": Part("", (), _games),
    "train": Part("", (), _train),
    "search-rounds": Part("", ROUNDS, _search),
    "few": Part("", (), _few),
    "few-graphs": Part(IN_GRAPHS, (), _few),
    "few-rounds": Part("", ROUNDS, _few),
    "few-rounds-graphs": Part(IN_GRAPHS, ROUNDS, _few),
}


if __name__ == "__main__":
    run_script(main, Options, name="accelerator", takes_keys=True)
