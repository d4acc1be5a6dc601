"""An experiment's report: paragraphs, tables, figures; shown as a page, as JSON, on a console."""

import dataclasses
import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Group
from rich.text import Text

from train.experiments.lib.scales import Scale
from train.experiments.lib.stats import interval_kind
from train.experiments.lib.work import Work
from train.metrics.figure import save_figure
from train.runtime.display import Table
from train.runtime.files import plain_data, replace_bytes, replace_text, write_json
from train.runtime.showing import is_unwritten, sparing
from wallgo_jax import render
from wallgo_jax._version import __version__

PAGE, DATA = "README.md", "result.json"
_LEGEND = re.compile(r"[A-Z] [a-z]+(, [A-Z] [a-z]+)*\.")


class Picture(NamedTuple):
    """A figure of matplotlib, or a drawing as SVG, with the name of its files and a line of small
    print, which a drawing has itself."""

    name: str
    caption: str
    figure: Any


@dataclasses.dataclass(frozen=True)
class Report:
    """A finished experiment: its page has text, tables and pictures in this order, its JSON title,
    text, tables and data."""

    title: str
    tables: Sequence[Table]
    data: Mapping[str, Any]  # figures, more than the tables show; named tuples become objects
    text: Sequence[str] = ()  # paragraphs that say what was measured and how
    pictures: Sequence[Picture] = ()
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)  # further ones, their text

    def _repr_markdown_(self) -> str:
        parts = [f"### {self.title}", *self.text, *(table.markdown() for table in self.tables)]
        return "\n\n".join(parts)

    def __rich__(self) -> Group:
        return Group(*self.tables, *map(Text, self.text))


def paragraphs(docstring: str) -> list[str]:
    """The paragraphs of a module's docstring, without the legend of its shapes."""
    parts = docstring.strip().split("\n\n") if docstring else []
    parts = [part for part in parts if not _LEGEND.fullmatch(part)]
    return [each if each.startswith("- ") else " ".join(each.split()) for each in parts]


def scale_line(scale: Scale) -> str:
    """The settings of a scale but for its tables, in a sentence."""
    plain = scale.model_dump(mode="json")
    settings = [
        f"`{key} = {json.dumps(value)}`"
        for key, value in plain.items()
        if "{" not in json.dumps(value)
    ]
    kind = f" Intervals are {interval_kind(plain['seeds'])}." if "seeds" in plain else ""
    return f"The scale: {', '.join(settings)}.{kind}"


def write_report(
    report: Report, directory: Path, *, command: str, scale: Mapping[str, Any], work: Work
) -> list[Path]:
    """Write an experiment's page, figures and pictures into its directory, with the command that
    makes it again and its scale, which has the seed; returns the files. One that cannot be written
    does not cost the others, nor the report."""
    written = [directory / PAGE, directory / DATA]
    for picture in report.pictures:
        paths = [directory / f"{picture.name}.{ending}" for ending in ("svg", "png")]
        written += paths
        with sparing(paths[0]):
            if isinstance(picture.figure, str):
                replace_text(paths[0], picture.figure)
                replace_bytes(paths[1], render.png(picture.figure))
            else:
                for path in paths:
                    save_figure(picture.figure, path, caption=picture.caption)
    for name, content in report.files.items():
        written.append(directory / name)
        with sparing(written[-1]):
            replace_text(written[-1], content)
    origin = {
        "command": command,
        "scale": plain_data(scale),
        "version": __version__,
        "machines": work.noted("where"),
        "hours": round(work.hours, 3),
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    where = (
        f"Version {__version__}; {'; '.join(origin['machines'])}; {origin['hours']:.2f} hours; "
        f"{origin['day']}; seed {scale['seed']}; the whole scale is in {DATA}."
    )
    parts = [f"# {report.title}", f"```bash\n{command}\n```", where, *report.text]
    parts += [table.markdown() for table in report.tables]
    parts += [f"![{picture.name}]({picture.name}.svg)" for picture in report.pictures]
    with sparing(written[0]):
        replace_text(written[0], "\n\n".join(parts) + "\n")
    fields = {field: plain_data(getattr(report, field)) for field in ("title", "text", "tables")}
    with sparing(written[1]):
        write_json(written[1], fields | {"made": origin, "data": plain_data(report.data)})
    return [path for path in written if path.exists() and not is_unwritten(path)]
