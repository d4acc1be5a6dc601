"""Shows figures as a table for the console, as JSON, or as a Markdown report."""

import importlib.metadata
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Group
from rich.table import Table
from rich.text import Text

import wallgo_jax
from train.bench.harness.timing import Row
from train.bench.parts.memory import LIMIT, TreeMemory
from train.bench.scaling import Point, plies_by_batch
from train.bench.suite import Figures, Request
from train.bench.sweep import knee_lines, knee_text
from train.config import config_to_dict

_LIBRARIES = ("jax", "jaxlib", "mctx", "flax", "optax", "numpy", "pgx")
_HEADS = ("what", "batch", "a second", "compile s", "equations", "MB", "checksum")
_ON_THE_LEFT = ("what", "a second")


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
    for head in _HEADS:
        table.add_column(head, justify="left" if head in _ON_THE_LEFT else "right")
    part = None
    for own, row in figures.rows:
        if part is not None and own != part:
            table.add_section()
        part = own
        table.add_row(*_cells(row))
    return Group(table, *(Text(line) for line in _lines(figures)))


def _cells(row: Row) -> tuple[str, ...]:
    stats = row.stats
    rates = ", ".join(f"{short(rate)} {name}" for name, rate in row.rates.items())
    compiled = ("", "", "")
    if stats is not None:
        compiled = (
            f"{stats.compile_seconds:.1f}{' (cache)' if stats.is_cached else ''}",
            f"{stats.equations:,}",
            f"{stats.peak_bytes / 1e6:,.1f}",
        )
    return row.name, f"{row.batch:,}", rates, *compiled, f"{row.checksum:08x}"


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
    yield "core by batch: " + ", ".join(f"{x.batch:,}: {short(x.plies)}" for x in points)
    yield knee_text(plies_by_batch(points))


def markdown(
    command: str,
    figures: Figures,
    points: Sequence[Point] = (),
    training: Sequence[str] = (),
) -> str:
    """The report of a device.

    Args:
      command: the command line that wrote the report.
      figures: what was measured.
      points: speed by batch; empty leaves out the section.
      training: results of a short training run, a line each; empty while there is none.
    """
    lines = ["# Speed report", "", f"- command: `{command}`", f"- device: {_where()}", ""]
    aligned = (":---" if head in _ON_THE_LEFT else "---:" for head in _HEADS)
    cells = [_HEADS, aligned, *(_cells(row) for _, row in figures.rows)]
    lines += ["## Figures", "", *(f"| {' | '.join(each)} |" for each in cells), ""]
    lines += [f"- {line}" for line in _lines(figures)]
    if points:
        lines += ["", "## Scaling", "", "![games a second by batch](scaling.png)", ""]
        lines += [f"- {line}" for line in scaling_lines(points)]
    said = [f"- {line}" for line in training] or ["Not measured yet."]
    lines += ["", "## A short training run", "", *said]
    most = [count for count in environment()["most_bytes_in_use"] if count is not None]
    if most:
        lines += ["", f"Most memory in use on a device: {max(most) / 1e9:.2f} GB."]
    return "\n".join(lines) + "\n"


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


def short(number: float) -> str:
    """A number in three digits, such as 1.25 M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:.3g}"
