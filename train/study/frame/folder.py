"""The folder that a topic writes: its page, its figures, its pictures."""

import datetime
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train.metrics.plot_style import save_figure
from train.runtime.files import replace_text, write_json
from train.study.frame.pieces import Pieces
from train.study.frame.report import Report
from wallgo_jax._version import __version__

PAGE, DATA = "README.md", "result.json"
FORMATS = ("svg", "png")


def write_report(
    report: Report, directory: Path, *, command: str, scale: Mapping[str, Any], pieces: Pieces
) -> list[Path]:
    """Write a topic's page, figures and pictures.

    Args:
      report: what was found.
      directory: of the topic.
      command: that makes it again.
      scale: the seed and the topic's scale, JSON-ready.
      pieces: of its work, for machines and hours.

    Returns:
      The files.

    Raises:
      UsageError: one cannot be written.
    """
    found = []
    for picture in report.pictures:
        for ending in FORMATS:
            found.append(directory / f"{picture.name}.{ending}")
            save_figure(picture.figure, found[-1], caption=picture.caption)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    made = {
        "command": command,
        "scale": _plain(scale),
        "version": __version__,
        "machines": pieces.machines,
        "hours": round(pieces.hours, 3),
        "day": day,
    }
    page, data = directory / PAGE, directory / DATA
    replace_text(page, page_of(report, made))
    result = {
        "title": report.title,
        "made": made,
        "text": list(report.text),
        "tables": [table._asdict() for table in report.tables],
        "data": _plain(report.data),
    }
    write_json(data, result)
    return [page, data, *found]


def page_of(report: Report, made: Mapping[str, Any]) -> str:
    """The page as Markdown."""
    lines = [f"# {report.title}", "", "```bash", made["command"], "```", ""]
    where = "; ".join(made["machines"])
    told = f"Version {made['version']}; {where}; {made['hours']:.2f} hours; {made['day']}; seed "
    lines += [f"{told}{made['scale']['seed']}; the whole scale is in {DATA}.", ""]
    for paragraph in report.text:
        lines += [paragraph, ""]
    for table in report.tables:
        lines += [table.markdown(), ""]
    for picture in report.pictures:
        lines += [f"![{picture.name}]({picture.name}.svg)", ""]
    return "\n".join(lines)


def _plain(data: Any) -> Any:
    """JSON without NaN and infinities, which few readers take."""
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
