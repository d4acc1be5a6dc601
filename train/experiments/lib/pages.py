"""An experiment's report: paragraphs, tables, figures; shown as a page, as JSON, on a console."""

import dataclasses
import datetime
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import rich.table
from rich.console import Group
from rich.text import Text

from train.experiments.lib.cache import ResultCache
from train.experiments.lib.stats import Estimate
from train.metrics.intervals import Interval, intervals_figure
from train.metrics.plot_style import COLOURS, DASHED, GREY, MARKS, new_plot, save_figure
from train.runtime.files import replace_bytes, replace_text, write_json
from wallgo_jax import render
from wallgo_jax._version import __version__

PAGE, DATA = "README.md", "result.json"
FORMATS = ("svg", "png")


class Table(NamedTuple):
    """A table of text; the page and the console show the same cells."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table as Markdown, below its title."""
        lines = [self.heads, ["---"] * len(self.heads), *self.rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in lines)])

    def __rich__(self) -> rich.table.Table:
        shown = rich.table.Table(title=Text(self.title), title_justify="left")
        for head in self.heads:
            shown.add_column(Text(head.replace("`", "")), overflow="fold")
        for row in self.rows:
            shown.add_row(*(Text(cell.replace("`", "")) for cell in row))
        return shown


class Picture(NamedTuple):
    """A figure of matplotlib, or a drawing as SVG, with the name of its files and a line of small
    print, which a drawing has itself."""

    name: str
    caption: str
    figure: Any


@dataclasses.dataclass(frozen=True)
class Report:
    """A finished experiment.

    Attributes:
      title: of the page.
      text: paragraphs that say what was measured, what agrees with the paper and what does not.
      tables: in the order of the page.
      pictures: in the order of the page.
      data: figures for JSON, more than the tables show; named tuples become objects.
      files: further ones of the folder, their text by name.
    """

    title: str
    text: Sequence[str]
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    data: Mapping[str, Any]
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def _repr_markdown_(self) -> str:
        parts = [f"### {self.title}", *self.text, *(table.markdown() for table in self.tables)]
        return "\n\n".join(parts)

    def __rich__(self) -> Group:
        return Group(*self.tables, *map(Text, self.text))


def paragraphs(docstring: str | None) -> list[str]:
    """The paragraphs of a module's docstring, with which its page begins."""
    parts = (docstring or "").strip().split("\n\n")
    return [each if each.startswith("- ") else " ".join(each.split()) for each in parts]


def write_report(
    report: Report, directory: Path, *, command: str, scale: Mapping[str, Any], cache: ResultCache
) -> list[Path]:
    """Write an experiment's page, figures and pictures.

    Args:
      report: the finished experiment.
      directory: of the experiment.
      command: that makes it again.
      scale: the seed and the experiment's scale, JSON-ready.
      cache: of its work, for machines and hours.

    Returns:
      The files.

    Raises:
      UsageError: one cannot be written.
    """
    written = [directory / PAGE, directory / DATA]
    for picture in report.pictures:
        for ending in FORMATS:
            written.append(directory / f"{picture.name}.{ending}")
            if not isinstance(picture.figure, str):
                save_figure(picture.figure, written[-1], caption=picture.caption)
            elif ending == "svg":
                replace_text(written[-1], picture.figure)
            else:
                replace_bytes(written[-1], render.png(picture.figure))
    for name, content in report.files.items():
        written.append(directory / name)
        replace_text(written[-1], content)
    made = {
        "command": command,
        "scale": plain_data(scale),
        "version": __version__,
        "machines": cache.noted("where"),
        "hours": round(cache.hours, 3),
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    where = (
        f"Version {__version__}; {'; '.join(made['machines'])}; {made['hours']:.2f} hours; "
        f"{made['day']}; seed {scale['seed']}; the whole scale is in {DATA}."
    )
    parts = [f"# {report.title}", f"```bash\n{command}\n```", where, *report.text]
    parts += [table.markdown() for table in report.tables]
    parts += [f"![{picture.name}]({picture.name}.svg)" for picture in report.pictures]
    replace_text(written[0], "\n\n".join(parts) + "\n")
    fields = {field: plain_data(getattr(report, field)) for field in ("title", "text", "tables")}
    write_json(written[1], fields | {"made": made, "data": plain_data(report.data)})
    return written


def plain_data(data: Any) -> Any:
    """Figures for JSON, without NaN and infinities, which few readers take."""
    if hasattr(data, "_asdict"):
        data = data._asdict()
    if isinstance(data, Mapping):
        return {str(key): plain_data(value) for key, value in data.items()}
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [plain_data(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def rates_figure(rows: Mapping[str, Estimate], *, title: str, x_label: str) -> Any:
    """A dot and an interval for each named win rate, with a dashed line at one half."""
    intervals = [Interval(name.replace("`", ""), *rate[:3]) for name, rate in rows.items()]
    return intervals_figure(intervals, title=title, x_label=x_label, middle=0.5, is_share=True)


class Curve(NamedTuple):
    """A line of a plot with its band."""

    name: str  # empty for a line without a label
    points: Mapping[Any, Estimate]  # by x
    is_control: bool = False  # dotted and grey, without a band


def curves_figure(
    curves: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    y_label: str,
    is_share: bool = False,
    level: float | None = None,
    is_log: bool = False,
) -> Any:
    """A figure of matplotlib with lines and their bands.

    Args:
      curves: at least one.
      title: of the plot.
      x_label: of the axis.
      y_label: of the axis.
      is_share: whether y is from 0 to 1, which the axis then shows in per cent.
      level: where a dashed line stands; None for none.
      is_log: whether the x axis has powers of two, with a tick at each point.
    """
    figure, axes = new_plot(title=title, x_label=x_label, y_label=y_label)
    place = 0
    for name, points, is_control in curves:
        if not points:
            continue
        x, (middle, low, high, _) = [*points], zip(*points.values(), strict=True)
        if is_control:
            axes.plot(x, middle, color=GREY, linewidth=1, linestyle=":", label=name)
            continue
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)]
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(x, middle, color=colour, marker=mark, markersize=5, label=name)
        place += 1
    if level is not None:
        axes.axhline(level, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    if is_log:
        ticks = sorted({x for curve in curves for x in curve.points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    if is_share:
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    if any(curve.name for curve in curves):
        axes.legend(frameon=False, fontsize=8)
    return figure
