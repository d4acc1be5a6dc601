"""Shows figures as a table for the console, as JSON, or as a Markdown report with goals."""

import importlib.metadata
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from rich.console import Group
from rich.table import Table
from rich.text import Text

import wallgo_jax
from train.bench.harness.timing import Row
from train.bench.parts import games, learn, selfplay
from train.bench.parts.memory import LIMIT, TreeMemory
from train.bench.scaling import Point, knee_text
from train.bench.suite import Figures, Request
from train.bench.sweep import knee_lines
from train.config import config_to_dict

_LIBRARIES = ("jax", "jaxlib", "mctx", "flax", "optax", "numpy", "pgx")


class Goal(NamedTuple):
    """A figure that an accelerator must reach, or must not exceed."""

    name: str
    wanted: str
    measured: float | None  # None where it was not measured
    is_met: bool | None


def environment() -> dict[str, Any]:
    """Device and versions."""
    devices = jax.devices()
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "device": devices[0].device_kind,
        "platform": devices[0].platform,
        "devices": len(devices),
        "processor": _processor(),
        "python": platform.python_version(),
        "versions": versions | {"wallgo-jax": wallgo_jax.__version__},
        "compilation_cache": jax.config.values.get("jax_compilation_cache_dir"),
        "most_bytes_in_use": [_max_bytes(device) for device in devices],
    }


def bench_record(
    request: Request, figures: Figures, points: Sequence[Point] = ()
) -> dict[str, Any]:
    """The request, its figures and the environment, JSON-ready."""
    return {
        "environment": environment(),
        "config": config_to_dict(request.config),
        "simulations": request.simulations,
        "repeats": request.repeats,
        "rows": [_row_record(part, row) for part, row in figures.rows],
        "ratios": [ratio._asdict() for ratio in figures.ratios],
        "compiled": {name: stats._asdict() for name, stats in figures.compiled},
        "notes": list(figures.notes),
        "memory": None if figures.memory is None else figures.memory._asdict(),
        "scaling": [point._asdict() for point in points],
    }


def _row_record(part: str, row: Row) -> dict[str, Any]:
    stats = None if row.stats is None else row.stats._asdict()
    return {"part": part, **row._asdict(), "seconds": list(row.seconds), "stats": stats}


def bench_report(figures: Figures) -> Group:
    """The figures for the console."""
    table = Table(caption=Text(_where()), caption_justify="left")
    heads = ("", "batch", "a second", "compile s", "equations", "MB", "checksum")
    for index, head in enumerate(heads):
        table.add_column(head, justify="right" if index not in (0, 2) else "left")
    part = None
    for own, row in figures.rows:
        if part is not None and own != part:
            table.add_section()
        part = own
        table.add_row(*_cells(row))
    return Group(table, *(Text(line) for line in _lines(figures)))


def _cells(row: Row) -> tuple[str, ...]:
    stats = row.stats
    rates = ", ".join(f"{_short(rate)} {name}" for name, rate in row.rates.items())
    if stats is None:
        return row.name, f"{row.batch:,}", rates, "", "", "", f"{row.checksum:08x}"
    return (
        row.name,
        f"{row.batch:,}",
        rates,
        f"{stats.compile_seconds:.1f}{' (cache)' if stats.is_cached else ''}",
        f"{stats.equations:,}",
        f"{stats.peak_bytes / 1e6:,.1f}",
        f"{row.checksum:08x}",
    )


def _lines(figures: Figures) -> Iterator[str]:
    if {part for part, _ in figures.rows} & {"search", "selfplay"}:
        yield f"search engine: {figures.engine}"
    for ratio in figures.ratios:
        at = f"batch {ratio.batch:,}" if ratio.batch else "better batch of each"
        yield f"{ratio.name}, {at}: {ratio.value:.2f}"
    for name, stats in figures.compiled:
        cached = ", XLA's part from the cache" if stats.is_cached else ""
        yield f"{name}: compiled in {stats.compile_seconds:.1f} s{cached}"
    if figures.memory is not None:
        yield from memory_lines(figures.memory)
    yield from knee_lines(figures.rows)
    yield from figures.notes


def memory_lines(found: TreeMemory) -> Iterator[str]:
    """The memory of a search tree, in words."""
    yield (
        f"search tree: {found.formula:,} bytes a node by formula, {found.measured:,.0f} a board "
        "and simulation by memory analysis"
    )
    fits = "within" if found.total <= LIMIT else "beyond"
    yield (
        f"search of {found.boards:,} boards and {found.simulations} simulations: "
        f"{found.total / 1e9:.2f} GB by memory analysis, {fits} {LIMIT / 1e9:g} GB"
    )


def scaling_lines(points: Sequence[Point]) -> Iterator[str]:
    """Speed by batch, in words."""
    yield "core by batch: " + ", ".join(f"{x.batch:,}: {_short(x.plies)}" for x in points)
    yield knee_text(points)


def goals(figures: Figures, wide: Figures) -> list[Goal]:
    """The goals of an accelerator, with the figures that it reached.

    Args:
      wide: self-play and learner with one block of 256 channels in bfloat16.
    """

    def best(found: Figures, name: str, unit: str) -> float | None:
        rates = [row.rates[unit] for _, row in found.rows if row.name == name]
        return max(rates, default=None)

    def least(found: Figures, name: str) -> float | None:
        return min(
            (x.value for x in found.ratios if x.name.startswith(f"time of {name}")), default=None
        )

    core = [best(figures, name, "plies") for name in (games.CORE, games.CORE_BITS)]
    fastest = max((rate for rate in core if rate is not None), default=None)
    return [
        _at_least("core, plies a second", 200e6, fastest),
        _at_least(
            "self-play, evaluations a second", 2.8e6, best(wide, selfplay.SELFPLAY, "evaluations")
        ),
        _at_most("time of self-play over network", 1.5, least(wide, selfplay.SELFPLAY)),
        _at_most("time of learner over network", 1.2, least(wide, learn.LEARNER)),
    ]


def _at_least(name: str, wanted: float, measured: float | None) -> Goal:
    is_met = None if measured is None else measured >= wanted
    return Goal(name, f"≥ {_short(wanted)}", measured, is_met)


def _at_most(name: str, wanted: float, measured: float | None) -> Goal:
    is_met = None if measured is None else measured <= wanted
    return Goal(name, f"≤ {wanted:g}", measured, is_met)


def markdown(
    command: str,
    figures: Figures,
    wide: Figures | None = None,
    points: Sequence[Point] = (),
    training: Sequence[str] = (),
) -> str:
    """The report of a device.

    Args:
      command: the command line that wrote the report.
      figures: with the config's network.
      wide: as in `goals`; None while it is not measured.
      points: speed by batch; empty leaves out the section.
      training: results of a short training run, a line each; empty while there is none.
    """
    lines = ["# Speed report", "", f"- command: `{command}`", f"- device: {_where()}", ""]
    lines += ["## Goals", "", "| figure | goal | measured | met |", "|---|---|---|---|"]
    for goal in goals(figures, wide or Figures((), (), None)):
        measured = "not measured" if goal.measured is None else _short(goal.measured)
        met = {None: "", True: "yes", False: "no"}[goal.is_met]
        lines.append(f"| {goal.name} | {goal.wanted} | {measured} | {met} |")
    for title, found in (("The config's network", figures), ("1 block of 256 channels", wide)):
        lines += ["", f"## {title}", ""]
        if found is None:
            lines += ["Not measured yet."]
            continue
        lines += [*_markdown_rows(found), "", *(f"- {line}" for line in _lines(found))]
    if points:
        lines += ["", "## Scaling", "", "![games a second by batch](scaling.png)", ""]
        lines += [f"- {line}" for line in scaling_lines(points)]
    said = [f"- {line}" for line in training] or ["Not measured yet."]
    lines += ["", "## A short training run", "", *said]
    most = [count for count in environment()["most_bytes_in_use"] if count is not None]
    if most:
        lines += ["", f"Most memory in use on a device: {max(most) / 1e9:.2f} GB."]
    return "\n".join(lines) + "\n"


def _markdown_rows(figures: Figures) -> Iterator[str]:
    yield "| what | batch | a second | compile s | equations | MB | checksum |"
    yield "|---|---:|---|---:|---:|---:|---|"
    for _, row in figures.rows:
        yield f"| {' | '.join(_cells(row))} |"


def _where() -> str:
    found = environment()
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        f"{found['devices']} × {found['device']} ({found['processor']}) · python "
        f"{found['python']}, {versions}"
    )


def chip() -> str:
    """The devices' model and number; the processor's name where JAX only says `cpu`."""
    found = environment()
    if found["platform"] == "cpu":
        return found["processor"]
    return found["device"] if found["devices"] == 1 else f"{found['devices']} × {found['device']}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _max_bytes(device: Any) -> int | None:
    stats = device.memory_stats()
    return None if stats is None else stats.get("peak_bytes_in_use")


def _short(rate: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(rate) >= size:
            return f"{rate / size:.3g} {letter}"
    return f"{rate:.3g}"
