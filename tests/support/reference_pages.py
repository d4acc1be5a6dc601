"""The pages of docs/reference/: what docstrings, help pages and configs already say.

`python -m tests.support.reference_pages` writes them.
"""

import ast
import contextlib
import inspect
import io
import os
import pkgutil
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock

import train
import wallgo_jax
from tests.support.import_graph import ROOT
from tests.test_layers import FLOORS
from train import experiments as experiments_package
from train.cli import command_line as train_program
from train.cli.command_line import PROGRAM
from train.config import RunConfig
from train.config.reading import Key, in_toml, keys_of
from wallgo_jax.cli import command_line as game_program
from wallgo_jax.cli.parsing import Program

FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- `python -m tests.support.reference_pages` writes this page. -->"
KINDS = {bool: "true, false", str: "text"}
WIDE = "1000"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [
        head,
        ["---"] * len(head),
        *([cell.replace("|", "\\|") for cell in row] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# Config keys.


def config() -> str:
    keys = keys_of(RunConfig())
    run = [key for key in keys if not key.table.startswith("heuristics")]
    return f"""# Config keys

`python -m train config` prints them for any file or run. [Runs](../runs.md#configs) says how to
change them. A key that a table leaves out takes this default. A whole table that a file leaves out
is the quickstart's.

{config_table(run)}
The tables `[heuristics.ethen]` and `[heuristics.wjx]` have these keys. They weigh the players
`ethen` and `wjx`; commands without a run read them from `--config FILE`.

{config_table([*heuristic_keys(keys)])}"""


def config_table(keys: Sequence[Key]) -> str:
    rows = [
        (f"`{key.path}`", key.meaning, key.unit or KINDS[type(key.default)], _code(key.default))
        for key in keys
    ]
    return table(("key", "meaning", "unit", "default"), rows)


def _code(value: object) -> str:
    return f"`{in_toml(value)}`"


def heuristic_keys(keys: Sequence[Key]) -> Iterator[Key]:
    """The keys of both heuristics in one; they differ by the formula alone."""
    wjx = [key for key in keys if key.table == "heuristics.wjx"]
    ethen = [key for key in keys if key.table == "heuristics.ethen"]
    for one, two in zip(wjx, ethen, strict=True):
        is_same = one._replace(table="") == two._replace(table="")
        assert is_same or (one.default, two.default) == ("wjx", "ethen")
        default = one.default if is_same else "NAME"
        yield one._replace(table="heuristics.NAME", default=default)


# Config files.


def configs() -> str:
    rows = [_config_row(path) for path in sorted((ROOT / "configs").glob("*.toml"))]
    return f"""# Config files

Every file in `configs/` opens with these lines; `python -m train run configs/NAME` runs it.

{table(("file", "what it trains", "hardware", "time", "expected"), rows)}"""


def _config_row(path: Path) -> list[str]:
    opening = path.read_text("utf-8").split("\n\n")[0]
    text = re.sub(r"^# ?", "", opening, flags=re.MULTILINE)
    about = text.split("\n\n")[0]
    fields = dict(re.findall(r"^  (\w+) +(\S.*?)(?=^  \w|^$|\Z)", text, re.MULTILINE | re.DOTALL))
    shown = [fields[name] for name in ("hardware", "time", "expected")]
    link = f"[`{path.name}`](../../configs/{path.name})"
    return [link, *(" ".join(each.split()) for each in (about, *shown))]


# Commands.


def commands() -> str:
    programs = (
        (PROGRAM, train_program.main),
        (game_program.PROGRAM, game_program.main),
    )
    parts = [_program_part(program, main) for program, main in programs]
    return "# Commands\n\nWhat `--help` prints.\n\n" + "\n".join(parts)


def _program_part(program: Program, main: Callable[[list[str]], int]) -> str:
    parts = [
        _command_part(f"{program.name} {name}", _help_of(main, name)) for name in program.commands
    ]
    return "\n".join(parts)


def _help_of(main: Callable[[list[str]], int], name: str) -> str:
    page = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS=WIDE), contextlib.redirect_stdout(page):
        assert main([name, "--help"]) == 0
    return page.getvalue()


def _command_part(command: str, page: str) -> str:
    _, about, rest = page.split("\n\n", 2)
    options, _, examples = rest.partition("\nexamples:\n")
    rows = [(f"`{name}`", meaning) for name, meaning in _options_of(options)]
    lines = textwrap.dedent(examples).strip("\n")
    shown = f"\n```bash\n{lines}\n```\n" if lines else ""
    return f"## `{command}`\n\n{about}\n\n{table(('option', 'meaning'), rows)}{shown}"


def _options_of(boxes: str) -> Iterator[tuple[str, str]]:
    """Each option of tyro's boxes with its meaning, of as many lines as there are."""
    found: list[list[str]] = []
    for line in re.findall(r"^│ (.*?)│?$", boxes, re.MULTILINE):
        name, _, meaning = line.rstrip().partition("  ")
        if name.strip() and not name.startswith(" "):
            found.append([name, meaning.strip()])
        elif line.strip():
            found[-1][1] += f" {line.strip()}"
    return ((name, meaning.strip()) for name, meaning in found if name != "-h, --help")


# The Python interface.


def python() -> str:
    parts = [_names_part(module) for module in (train, wallgo_jax)]
    return f"""# The Python interface

The names of both packages, each with the first sentence of its docstring. `help(train.match)`
prints the whole one; the site shows it below. [From Python](../api.md) has examples.

{"".join(parts)}"""


def _names_part(module: object) -> str:
    name = module.__name__
    kept = [each for each in module.__all__ if not each.startswith("__")]
    rows = [(f"`{name}.{each}`", _first_sentence(getattr(module, each))) for each in kept]
    return f"## `{name}`\n\n{table(('name', 'is or does'), rows)}\n"


def _first_sentence(value: object) -> str:
    text = "The built-in rules by name." if isinstance(value, dict) else inspect.getdoc(value) or ""
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


# The map of the code.


def code_map() -> str:
    parts = [_map_part(package) for package in ("wallgo_jax", "train")]
    return f"""# Map of the code

A folder or file imports only from those above it; `tests/test_layers.py` enforces the order.
[Architecture](../architecture.md) explains how they work together.

{"".join(parts)}"""


def _map_part(package: str) -> str:
    hidden = (f"{package}/__init__", f"{package}/_version")
    floors = [floor for floor in FLOORS if floor.startswith(f"{package}/") and floor not in hidden]
    return f"## `{package}/`\n\n{table(('folder or file', 'holds'), [*map(_floor_row, floors)])}\n"


def _floor_row(floor: str) -> tuple[str, str]:
    path = ROOT / floor
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    name = floor.partition("/")[2] + ("/" if path.is_dir() else "")
    return f"`{name}`", _opening(file).split("\n\n")[0].replace("\n", " ")


def _opening(file: Path) -> str:
    return inspect.cleandoc(ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "")


# Experiments.


def experiments() -> str:
    parts = []
    for module in sorted(each.name for each in pkgutil.iter_modules(experiments_package.__path__)):
        text = (ROOT / f"train/experiments/{module}.py").read_text("utf-8")
        if "lab.start(main" in text:
            about = _opening(ROOT / f"train/experiments/{module}.py")
            parts.append(f"## `python -m train.experiments.{module}`\n\n{about}\n")
    return f"""# Experiments

What each experiment measures, and how. [The papers' results](../study.md) says which result each is
after.

{chr(10).join(parts)}"""


PAGES: dict[str, Callable[[], str]] = {
    "config": config,
    "configs": configs,
    "commands": commands,
    "python": python,
    "map": code_map,
    "experiments": experiments,
}


def page(name: str) -> str:
    """A page of the reference, as it is kept."""
    head, _, rest = PAGES[name]().partition("\n\n")
    return f"{head}\n\n{NOTE}\n\n{rest.rstrip()}\n"


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name in PAGES:
        (FOLDER / f"{name}.md").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
