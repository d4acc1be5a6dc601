"""Measures all that needs an accelerator in a few minutes: game, network, search, self-play,
learner, a profile of a search, a short training.

Each part is a process of its own, since XLA reads its flags once, and its figures are a line of the
results as soon as it ends. Search and self-play are measured as a run is by default and, as parts
`-graphs`, with loops in the graphs of a GPU (`--xla_gpu_enable_command_buffer=+WHILE`).
"""

import collections
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from train.bench import report, suite
from train.bench.harness.script import check_least, check_seconds, run_script
from train.bench.parts import search
from train.bench.suite import Figures, Request
from train.bench.training import train_for, training_lines
from train.config import EvaluationConfig, RunConfig, change_config, read_config
from train.runtime.devices import set_up
from train.runtime.errors import UsageError

IN_GRAPHS = "--xla_gpu_enable_command_buffer=+WHILE"
ROUNDS = ("--search.rounds", "true")
RESULTS_FILE = "results.jsonl"
_TOP = 25  # kernels of a profile that are listed
_ITERATIONS_IN_REPLAY = 4  # enough for the learner's speed, and little to save at the end
_LEAST = 30.0  # seconds that a part needs to start at all
_COMPILING = 110.0  # seconds that are left for the training to begin and to end


@dataclasses.dataclass(frozen=True)
class Options:
    """Measure on this machine's accelerator; other words change the config."""

    out: Path
    """Directory for results.jsonl, a line a part."""
    config: Path = Path("configs/gpu.toml")
    """TOML file of a run."""
    games: tuple[int, ...] = (4096, 65536, 262144)
    """Boards of the game and of the env."""
    boards: int = 4096
    """Boards of network, search and self-play."""
    few: int = 256
    """Boards of the search in rounds against one leaf at a time."""
    minutes: float = 3.0
    """Length of the training, after compiling."""
    limit: float = 560.0
    """Seconds for everything; parts that begin later are left out."""
    parts: tuple[str, ...] = ()
    """Parts to measure, in this order; empty for all."""
    alone: str = ""
    """Measure one part in this process and print its line; what the script itself calls."""


class Part(NamedTuple):
    """A part of the measurements."""

    flags: str  # of XLA; empty for those of a run by default
    words: tuple[str, ...]  # that change the config
    measure: Callable[[RunConfig, Options], dict[str, Any]]


def main(options: Options, overrides: Sequence[str]) -> None:
    """Measure part by part."""
    check_least(options, 1, "games", "boards", "few")
    check_seconds(options, "limit")
    unknown = {*options.parts, *filter(None, [options.alone])} - PARTS.keys()
    if unknown:
        raise UsageError(f"--parts {sorted(unknown)[0]!r} is unknown; allowed: {', '.join(PARTS)}")
    if options.alone:
        set_up()
        config = change_config(read_config(options.config, overrides), PARTS[options.alone].words)
        print(json.dumps(PARTS[options.alone].measure(config, options)))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    for name in options.parts or PARTS:
        left = options.limit - (time.perf_counter() - began)
        if left < _LEAST:
            print(f"{name}: left out, the time is over", flush=True)
            continue
        line = _in_a_process(name, left, options, overrides)
        with (options.out / RESULTS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(_in_words(line), flush=True)


def _in_a_process(
    name: str, left: float, options: Options, overrides: Sequence[str]
) -> dict[str, Any]:
    """Measure a part in a process that is ended when the time is over."""
    words = [sys.executable, "-m", "train.bench.scripts.accelerator", "--alone", name]
    minutes = min(options.minutes, max(left - _COMPILING, _LEAST) / 60)
    for option in ("out", "config", "boards", "few"):
        words += [f"--{option}", str(getattr(options, option))]
    words += ["--minutes", f"{minutes:.3f}", "--games", *map(str, options.games), *overrides]
    flags = " ".join([os.environ.get("XLA_FLAGS", ""), PARTS[name].flags]).strip()
    about: dict[str, Any] = {"part": name, "flags": PARTS[name].flags}
    began = time.perf_counter()
    try:
        done = subprocess.run(
            words,
            env=os.environ | {"XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            timeout=left,
        )
    except subprocess.TimeoutExpired:
        return {**about, "error": f"not done in {left:.0f} s"}
    about["seconds"] = round(time.perf_counter() - began, 1)
    if done.returncode:
        return {**about, "error": done.stderr[-3000:]}
    return about | json.loads(done.stdout.splitlines()[-1])


def _in_words(line: dict[str, Any]) -> str:
    """A line of the results for the console."""
    told = [f"== {line['part']} {line['flags']} ({line.get('seconds', '-')} s)"]
    told += [line["error"]] if "error" in line else []
    for row in line.get("rows", []):
        rates = ", ".join(f"{rate:,.0f} {unit}/s" for unit, rate in row["rates"].items())
        compiled = (row["stats"] or {}).get("compile_seconds", 0.0)
        told.append(f"  {row['name']}, {row['batch']:,}: {rates}; compiled in {compiled:.1f} s")
    told += [f"  {text}" for text in line.get("lines", [])]
    return "\n".join(told)


def _figures(part: str, option: str, config: RunConfig, options: Options) -> dict[str, Any]:
    """The rows of a part of the bench, with their ratios, at the batches of an option."""
    given = getattr(options, option) if option else config.learner.batch
    batches = given if isinstance(given, tuple) else (given,)
    request = Request(config=config, parts=(part,), batches=batches, repeats=3)
    rows = [
        (part, row)
        for batch in batches
        for row in suite.measure_part(request, part, batch, lambda text: None)
    ]
    ratios = tuple(suite.ratios(rows))
    record = report.bench_record(request, Figures(tuple(rows), ratios, None))
    kept = ("environment", "rows", "ratios")
    lines = [f"{x.name}, {x.batch:,}: {x.value:.3f}" for x in ratios]
    return {name: record[name] for name in kept} | {"lines": lines}


def _train(config: RunConfig, options: Options) -> dict[str, Any]:
    """Train for a while, without matches."""
    own = config.selfplay
    positions = min(config.replay.positions, _ITERATIONS_IN_REPLAY * own.boards * own.plies)
    short = dataclasses.replace(
        config,
        evaluation=EvaluationConfig(every=0, opponents=(), anchors=()),
        replay=dataclasses.replace(config.replay, positions=positions),
    )
    with tempfile.TemporaryDirectory() as runs:
        rows, seconds = train_for(short, Path(runs), seconds=60 * options.minutes)
    kept = ("iteration", "selfplay_seconds", "learn_seconds", "compile_seconds", "positions")
    kept += ("games", "mean_length", "loss", "policy_loss", "value_loss", "steps", "simulations")
    return {
        "environment": report.environment(),
        "training": [{name: row.get(name) for name in kept} for row in rows],
        "lines": [f"{len(rows)} iterations in {seconds:.0f} s", *training_lines(rows)],
    }


def _profile(config: RunConfig, options: Options) -> dict[str, Any]:
    """The kernels of one move of the search, by time."""
    count = config.search.simulations
    found = search.searcher(search.NETWORK, config, count)
    devices = suite.devices_for(options.boards)
    bench = search.make_bench(found, config.rules, options.boards, count, devices)
    bench.run(2)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            bench.run(1)
        file = next(Path(folder).glob("**/*.xplane.pb"))
        return {"environment": report.environment(), **_kernels(file, count)}


def _kernels(file: Path, simulations: int) -> dict[str, Any]:
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
    top = [(each, counts[each], round(ms, 3)) for each, ms in times.most_common(_TOP)]
    return {
        "plane": name,
        "lines": [
            f"{kernels / simulations:,.0f} kernels a simulation, busy {busy:.1f} ms of {span:.1f}",
            *(f"{ms:9.3f} ms {number:6} × {each[:90]}" for each, number, ms in top),
        ],
    }


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
