"""The files of the page, and what a server, a static host and a widget make of them."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train.review import puzzle_file
from train.review.puzzle_file import Puzzle
from train.ui.machine import DEFAULT_LEVEL, GLANCE, HINT, LEVELS, ZERO, Machine, ratings_of
from wallgo_jax.drawing.theme import DARK, LIGHT, rule
from wallgo_jax.env import VERSION
from wallgo_jax.formats.rules_text import write_rules
from wallgo_jax.game.rules import PRESETS, Rules

PAGE = Path(__file__).parent / "page"
"""The folder of the page's files."""
OTHER = "heuristic-search:wjx"
"""The player of rules that no model has learned."""
_IMPORT = re.compile(r'(?<=from ")(\.{1,2}/[\w/-]+\.js)(?=";)')


def choices(
    rules: Rules,
    machines: Sequence[Mapping[str, Any]],
    *,
    other: str = OTHER,
    puzzles: Sequence[Puzzle] = (),
) -> dict[str, Any]:
    """What the page offers: the rules of its first game, levels, machines and puzzles. It reads
    them as `choices.json`, from the server or from a folder.

    Args:
      rules: of the first game.
      machines: the first that has a game's rules plays them: `name`, `rules` as names or fields,
        and `ratings` by the name of the level.
      other: the player of all other rules.
      puzzles: to solve.
    """
    return {
        "version": VERSION,
        "rules": write_rules(rules),
        "levels": [level._asdict() for level in LEVELS.values()],
        "level": DEFAULT_LEVEL,
        "zero": ZERO,
        "hint": HINT,
        "glance": GLANCE,
        "machines": list(machines),
        "other": other,
        "puzzles": puzzles_of(puzzles),
    }


def choices_of(machine: Machine, rules: Rules, puzzles: Sequence[Puzzle] = ()) -> dict[str, Any]:
    """What the page of a machine in Python offers."""
    known = list(dict.fromkeys((rules, *PRESETS.values())))
    machines = [
        {
            "name": name,
            "ratings": ratings_of(name),
            "rules": [write_rules(each) for each in known if machine.name_for(each) == name],
        }
        for name in dict.fromkeys(map(machine.name_for, known))
    ]
    return choices(rules, machines, other=machine.player or OTHER, puzzles=puzzles)


def puzzles_of(puzzles: Sequence[Puzzle]) -> list[dict[str, Any]]:
    """The puzzles whose board fills its grid, as all boards of a page do, the easiest first, with
    keys that follow from the position and its solution, whatever the file."""
    found = []
    for puzzle in sorted(puzzles, key=lambda puzzle: puzzle.difficulty):
        record = puzzle.record
        if puzzle.grid == record.rules.size:
            fields = (record.rules.to_dict(), record.actions, puzzle.solution)
            key = hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
            found.append({"key": key} | json.loads(puzzle_file.to_line(puzzle)))
    return found


def module(name: str) -> str:
    """A script of the page as an ES module that needs no server: it holds the others, and imports
    them from addresses that it makes of them."""
    sources: dict[str, str] = {}
    _collect(PAGE / name, sources)
    return f"""const sources = {json.dumps(sources)}, addresses = {{}};
for (const [name, text] of Object.entries(sources)) {{
  const body = text.replace(/(?<=from ")wallgo:([^"]+)/g, (_, other) => addresses[other]);
  addresses[name] = URL.createObjectURL(new Blob([body], {{ type: "text/javascript" }}));
}}
const whole = await import(addresses["{name}"]);
export default whole.default;
"""


def _collect(path: Path, sources: dict[str, str]) -> None:
    """Add a script behind those that it imports, which it names by their place in the folder."""
    text = path.read_text(encoding="utf-8")

    def name(match: re.Match[str]) -> str:
        other = (path.parent / match[1]).resolve()
        key = other.relative_to(PAGE.resolve()).as_posix()
        if key not in sources:
            _collect(other, sources)
        return f"wallgo:{key}"

    body = _IMPORT.sub(name, text)
    sources[path.resolve().relative_to(PAGE.resolve()).as_posix()] = body


def widget_style() -> str:
    """The style sheet of the widget: the page's board in the notebook's light or dark theme."""
    dark = ':is([data-jp-theme-light="false"], .vscode-dark) .wallgo'
    colours_of = f".wallgo {rule(LIGHT)}\n{dark} {rule(DARK)}"
    # Nested, the rules of the board reach nothing else in the notebook.
    board, widget = ((PAGE / f"{x}.css").read_text(encoding="utf-8") for x in ("board", "widget"))
    return "\n".join([colours_of, widget, f".wallgo {{\n{board}}}"])
