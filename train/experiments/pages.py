"""Renders the tables and figures of README and docs/ from the data of results.

`python -m train.experiments.pages` rewrites what stands between two comments,

    <!-- data: NAME.TABLE --> ... <!-- end -->                the table
    <!-- data: NAME.TABLE.ROW.FIELD --> ... <!-- end -->      a cell, its row counted from 0
    <!-- data: NAME.TABLE.ROW.FIELD:VIEW --> ... <!-- end --> its counts, mean or ends alone

where docs/results/data/NAME.json has the tables that an experiment wrote, or the counts of a page.
docs/results/data/NAME/ has records of the speedrun, whose tables are by goal.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from train.experiments import speedrun_records
from train.experiments.tables import Table, cell

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs/results/data"
_PLACE = re.compile(r"(<!-- data: (\S+) -->)(.*?)(<!-- end -->)", re.DOTALL)


def pages() -> Iterator[Path]:
    """The files that may have such places."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


def rendered(text: str, folder: Path = DATA) -> str:
    """A page's text with its places made from the data of a folder.

    Raises:
      KeyError: the data have no such table or field.
      OSError: there are no such data.
    """

    def place(found: re.Match[str]) -> str:
        opening, name, _, closing = found.groups()
        value = value_of(name, folder)
        # A table stands alone between empty lines, or some readers of Markdown do not see it.
        return f"{opening}\n\n{value}\n\n{closing}" if "\n" in value else opening + value + closing

    return _PLACE.sub(place, text)


def value_of(name: str, folder: Path = DATA) -> str:
    """The text of a place."""
    file, table_name, *rest = name.split(".")
    table = _tables_of(folder, file)[table_name]
    if not rest:
        return table.markdown()
    row, field = rest
    field, _, view = field.partition(":")
    value = table.rows[int(row)][field]
    mean, _, ends = cell(value, "" if view in ("mean", "ends") else view).partition(" (")
    if view in ("mean", "ends"):
        return {"mean": mean, "ends": ends.removesuffix(")")}[view]
    return f"{mean} ({ends}" if ends else mean


def _tables_of(folder: Path, name: str) -> dict[str, Table]:
    path = folder / f"{name}.json"
    if not path.exists():
        return speedrun_records.leaderboards(folder / name)
    tables = json.loads(path.read_text("utf-8"))["tables"]
    return {key: Table(**table) for key, table in tables.items()}


def main() -> int:
    """Rewrite the pages and print those that changed; returns the exit code."""
    for path in pages():
        text = path.read_text("utf-8")
        if (new := rendered(text)) != text:
            path.write_text(new, "utf-8")
            print(f"written: {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
