"""Shows figures as a table for the console, as JSON, as a plot, or as a Markdown report."""

import dataclasses
import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Group
from rich.text import Text

from train.bench.suite import PLOT, Figures, Request, unit_of
from train.bench.timing import BenchRow
from train.config import config_to_dict
from train.metrics.figure import COLOURS, DASHED, GREY, new_plot, save_figure
from train.runtime.display import Table
from train.runtime.files import check_writable, plain_data, replace_text, write_json
from train.runtime.provenance import versions
from train.runtime.results import Result

REPORT_FILE, FIGURES_FILE, PLOT_FILE = "report.md", "bench.json", "scaling.png"
KNEE = 0.8
"""The knee is the smallest batch that reaches this share of the best speed."""
RISING = 0.16
"""Slope, in powers of the batch, from which the last step still rises: four times the boards gain a
quarter of speed."""
SPEEDS = {
    **{"env": "plies", PLOT: "plies", "search": "simulations"},
    **{"selfplay": "evaluations", "learn": "positions"},
}
"""The unit of each part's speed."""
_HEADS = ("what", "batch", "a second", "compile s", "MB", "checksum")


def environment() -> dict[str, Any]:
    """Device and versions."""
    devices = jax.devices()
    return {
        "device": devices[0].device_kind,
        "platform": devices[0].platform,
        "devices": len(devices),
        "processor": _processor(),
        "python": platform.python_version(),
        "versions": versions("pgx"),
        "compilation_cache": jax.config.values.get("jax_compilation_cache_dir"),
    }


def bench_record(figures: Figures, **about: Any) -> dict[str, Any]:
    """Figures and the environment, JSON-ready.

    Args:
      about: what was asked for, by key.
    """
    return plain_data({"environment": environment(), **about, **figures._asdict()})


def about_of(request: Request) -> dict[str, Any]:
    """A request's config and options, JSON-ready."""
    config = config_to_dict(request.config)
    return {"config": config, "simulations": request.simulations, "repeats": request.repeats}


@dataclasses.dataclass(frozen=True)
class MeasuredSpeed(Result):
    """The speed of parts on this machine.

    Attributes:
      request: what was asked for.
      figures: what was measured.
    """

    request: Request
    figures: Figures

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each measurement."""
        return plain_data([row._asdict() for row in self.figures.rows])

    def summary(self) -> dict[str, Any]:
        """What `bench --json` writes."""
        return bench_record(self.figures, **about_of(self.request))

    def table(self) -> Group:
        """The figures for the console."""
        return bench_report(self.figures)


def bench_report(figures: Figures) -> Group:
    """The figures for the console."""
    return Group(_table(figures), *(Text(line) for line in _lines(figures)))


def _table(figures: Figures) -> Table:
    rows = []
    for row in figures.rows:
        rates = ", ".join(f"{short(rate)} {name}" for name, rate in row.rates.items())
        compiled = ("", "")
        if (stats := row.stats) is not None:
            compiled = (f"{stats.compile_seconds:.1f}", f"{stats.peak_bytes / 1e6:,.1f}")
        rows.append((row.name, f"{row.batch:,}", rates, *compiled, f"{row.checksum:08x}"))
    return Table("Figures", _HEADS, rows, _where())


def _lines(figures: Figures) -> Iterator[str]:
    yield from figures.notes
    for ratio in figures.ratios:
        at = f"batch {ratio.batch:,}" if ratio.batch else "better batch of each"
        yield f"{ratio.name}, {at}: {ratio.value:.2f}"
    speeds: dict[tuple[str, str], dict[int, float]] = {}
    for row in figures.rows:
        if speed := row.rates.get(SPEEDS.get(row.part, "")):
            speeds.setdefault((row.part, row.name), {})[row.batch] = speed
    for (part, name), by_batch in speeds.items():
        if len(by_batch) >= 3:
            yield f"{name}: {knee_text(by_batch, unit=unit_of(part))}"


def knee_at(speeds: Mapping[int, float]) -> int | None:
    """The smallest batch that reaches KNEE of the best speed; None while the speed still rises.

    Args:
      speeds: by batch.
    """
    ordered = sorted(speeds.items())
    if len(ordered) < 2:
        return None
    (before, slower), (last, speed) = ordered[-2:]
    if math.log(speed / slower) / math.log(last / before) > RISING:
        return None
    return next(batch for batch, speed in ordered if speed >= KNEE * max(speeds.values()))


def knee_text(speeds: Mapping[int, float], *, unit: str = "boards") -> str:
    """The knee in words."""
    knee = knee_at(speeds)
    if knee is None:
        return f"no knee: the speed still rises at {max(speeds):,} {unit}"
    return f"knee at {knee:,} {unit}, the fewest with {KNEE:.0%} of the best speed"


def games_by_batch(rows: Sequence[BenchRow]) -> dict[int, float]:
    """Games a second by batch: plies over the mean length of all games measured, since few end in a
    short run of few boards; 0 if none ended."""
    plies, games = (sum(row.rates[of] for row in rows) for of in ("plies", "games"))
    return {row.batch: row.rates["plies"] * games / plies for row in rows}


def write_plot(path: Path, rows: Sequence[BenchRow], *, title: str) -> None:
    """Draw the speed of PLOT by batch; the path's suffix names the picture's format.

    Raises:
      UsageError: the file cannot be written.
    """
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    rows = sorted((row for row in rows if row.part == PLOT), key=lambda row: row.batch)
    plies = {row.batch: row.rates["plies"] for row in rows}
    games = games_by_batch(rows)
    unit, speeds = ("games", games) if min(games.values()) > 0 else ("plies", plies)
    x_label = "boards at once (batch)"
    figure, axes = new_plot(title=title, x_label=x_label, y_label=f"{unit} a second")
    style = {"color": COLOURS[0], "marker": "o", "markersize": 5, "linewidth": 1.8}
    axes.loglog([*speeds], [*speeds.values()], **style)
    axes.set_xticks([*plies], [f"{batch:,}" for batch in plies])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # ticks such as 20 k
    axes.yaxis.set_major_formatter(EngFormatter())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    if (knee := knee_at(plies)) is not None:
        axes.axvline(knee, linestyle=DASHED, linewidth=1, color=GREY, zorder=1)
    save_figure(figure, path, caption=knee_text(plies))


def check_report(directory: Path) -> None:
    """Refuse a directory whose report cannot be written with a UsageError."""
    for name in (REPORT_FILE, FIGURES_FILE, PLOT_FILE):
        check_writable(directory / name)


def write_report(
    directory: Path,
    command: str,
    request: Request,
    figures: Figures,
    training: Sequence[str] = (),
) -> None:
    """Write a device's report with all that there is so far.

    Args:
      directory: of the report.
      command: the command line that makes it.
      request: what is measured.
      figures: what has been measured.
      training: results of a short training run, a line each; empty while there is none.
    """
    lines = ["# Speed report", "", f"- command: `{command}`", f"- device: {_where()}", ""]
    lines += [_table(figures).markdown(), "", *(f"- {line}" for line in _lines(figures))]
    if any(row.part == PLOT for row in figures.rows):
        lines += ["", "## Scaling", "", f"![games a second by batch]({PLOT_FILE})"]
    said = [f"- {line}" for line in training] or ["Not measured yet."]
    lines += ["", "## A short training run", "", *said]
    replace_text(directory / REPORT_FILE, "\n".join(lines) + "\n")
    record = bench_record(figures, **about_of(request), training=training)
    write_json(directory / FIGURES_FILE, record)


def _where() -> str:
    where = environment()
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return (
        f"{where['devices']} × {where['device']} ({where['processor']}) · python "
        f"{where['python']}, {versions}"
    )


def chip() -> str:
    """The devices' model; the processor's name where JAX only says `cpu`."""
    where = environment()
    return where["processor" if where["platform"] == "cpu" else "device"]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def short(number: float) -> str:
    """A number in three digits, such as 1.25 M."""
    for size, letter in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g} {letter}"
    return f"{number:.3g}"
