"""Requirements match imports, heavy libraries load late, and hooks check the same as CI."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.import_graph import ROOT, libraries_of, read_modules
from wallgo_jax import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HEAVY = {"flax", "jax", "matplotlib", "mctx", "optax", "orbax", "scipy", "tensorstore"}
MODULES = {
    "docstring-parser": "docstring_parser",
    "orbax-checkpoint": "orbax",
    "pillow": "PIL",
}


def requirements(*extras: str) -> dict[str, str]:
    """Bounds by module of the extras' requirements, or of the base's without extras."""
    lines = PROJECT["optional-dependencies"] if extras else {"": PROJECT["dependencies"]}
    found = [
        re.split(r"(?=[<>=~!])", line, maxsplit=1) for x in extras or [""] for line in lines[x]
    ]
    return {MODULES.get(name, name): bounds[0] if bounds else "" for name, *bounds in found}


def imported(package: str) -> set[str]:
    """Libraries that a package's modules import, lazily or not."""
    libraries = {
        library for name, library in libraries_of(read_modules()) if name.startswith(package)
    }
    return libraries - set(sys.stdlib_module_names)


def python(*words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    roots = [str(root) for root in (path, ROOT) if root is not None]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(roots)}
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )


def modules_after(code: str) -> list[str]:
    """Modules that are loaded after a program."""
    told = python("-c", f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout.splitlines()[-1])


def loaded_by(code: str) -> set[str]:
    """Libraries that are loaded after a program."""
    return {name.partition(".")[0] for name in modules_after(code)}


def test_the_game_imports_what_the_base_installs():
    others = {"PIL", "cairosvg", "gymnasium", "pettingzoo", "pgx"}
    assert imported("wallgo_jax") - others <= set(requirements())
    assert set(requirements()) <= imported("wallgo_jax") | imported("train")
    assert others == set(requirements("png", "pettingzoo", "gymnasium", "pgx"))


def test_the_learner_imports_what_its_extra_installs():
    learner = imported("train") - set(requirements())
    more = set(requirements("train", "play")) - {"wallgo-jax[train]"}
    # In notebooks IPython is there, traitlets with anywidget, pydantic_core with pydantic; pandas
    # is for whoever wants tables.
    others = {"IPython", "anywidget", "numba", "pandas", "pgx", "pydantic_core"}
    others |= {"traitlets", "wandb"}
    assert learner - others == more


def test_every_requirement_has_a_lower_bound_alone():
    for extra in [None, *PROJECT["optional-dependencies"]]:
        for name, bounds in requirements(*[extra] if extra else []).items():
            if not name.startswith("wallgo-jax["):
                assert re.fullmatch(r">=[\d.]+", bounds), (extra, name)


def test_readme_has_a_row_for_each_extra():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (table,) = re.findall(
        r"^\| extra \| adds \|\n\|---\|---\|\n((?:\|.*\n)+)", readme, re.MULTILINE
    )
    names = [
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert sorted(names) == sorted(PROJECT["optional-dependencies"])


def test_a_run_loads_no_players_and_no_matches():
    """They are loaded where a run has matches, a teacher, first weights or an opponent."""
    names = [name.split(".") for name in modules_after("import train.loop.training")]
    floors = "checkpoints config data functions game learning loop metrics network runtime search"
    assert {parts[1] for parts in names if parts[0] == "train" and parts[1:]} == {*floors.split()}


NO_ARRAYS = """
import train.config, train.network, train.search, wallgo_jax
from train.cli.command_line import PROGRAM
from train.config import RunConfig, read_config
from train.config.reading import keys_of
from train.config.reading import config_to_toml
from wallgo_jax.cli.commands import Show

read_config(None, ["--rules.walls", "5"])
keys_of(RunConfig())
config_to_toml(RunConfig())
"""
HELP = """
from {package}.__main__ import main

for words in {words}:
    assert main(words) == 0
"""


@pytest.mark.parametrize(
    "code",
    [
        NO_ARRAYS,
        HELP.format(package="train", words=[["--help"], ["run", "--help"], ["elo", "-h"]]),
        HELP.format(package="wallgo_jax", words=[["--help"], ["show", "--help"]]),
    ],
    ids=["configs", "train --help", "wallgo_jax --help"],
)
def test_configs_and_help_load_no_array_library(code):
    assert loaded_by(code) & HEAVY == set()


@pytest.fixture
def without_flax(tmp_path) -> Path:
    """A folder whose sitecustomize hides flax, as if it were not installed."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['flax'] = None\n")
    return tmp_path


MISSING = "train needs flax: pip install 'wallgo-jax[train]'"


def test_without_the_learner_imports_and_programs_say_what_to_install(without_flax):
    code = "try:\n    import {}\nexcept ImportError as error:\n    print(error)\n"
    modules = ("train", "train.config", "train.loop.training")
    told = python("-c", "".join(map(code.format, modules)), path=without_flax)
    assert told.stdout.splitlines() == [MISSING] * len(modules)
    script = without_flax / "wallgo-train"
    script.write_text("from train.__main__ import program\nprogram()\n")
    for words in (["-m", "train", "run"], ["-m", "train", "--help"], [str(script), "run"]):
        told = python(*words, path=without_flax)
        assert (told.returncode, told.stderr, told.stdout) == (2, f"error: {MISSING}\n", "")


def test_every_module_is_imported_where_there_is_no_posix():
    told = python("-m", "tests.support.import_all", "--without-posix")
    assert told.returncode == 0, told.stderr


def test_the_game_needs_no_learner(without_flax):
    assert python("-c", "import wallgo_jax; wallgo_jax.make", path=without_flax).returncode == 0


CHECKED_AS = {"ruff format .": "ruff format --check .", "ruff check --fix .": "ruff check ."}
"""What a hook fixes, and how CI checks it."""


def test_hooks_fix_or_check_what_ci_checks():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace(".venv/bin/", "")
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: (.*)\n *language: system", hooks)
    assert len(entries) == 4
    for entry in entries:
        checked = CHECKED_AS.get(entry, entry)
        assert re.search(rf"^{re.escape(checked)}(?= |$)", script, re.MULTILINE), entry


def test_both_packages_are_typed():
    assert [(ROOT / name / "py.typed").is_file() for name in ("wallgo_jax", "train")] == [True] * 2


def test_citation_is_of_this_version_and_these_authors():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    authors = "".join(f"  - name: {author['name']}\n" for author in PROJECT["authors"])
    assert f"\nversion: {__version__}\n" in citation
    assert f"\nauthors:\n{authors}keywords:" in citation
