"""Every notebook runs from its first cell to its last, and is kept with outputs to look at.

`WALLGO_NOTEBOOK_QUICK=1` makes the notebooks do less of everything; the tests set it, and compile
as tests do.
"""

import ast
import importlib
import re
import textwrap
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import train
import wallgo_jax
from tests.support import compiling
from train.checkpoints import pretrained

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MAX_BYTES = 2**20
EACH = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
PACKAGES = {"train": train, "wallgo_jax": wallgo_jax}
PUBLIC = re.compile(
    r"train(\.loop)?|wallgo_jax(\.(adapters|formats|notation|planes|render|view)(\.\w+)?)?"
)
"""The modules that docs/reference/python.md shows or docs/api.md describes."""
EXERCISE = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
MACHINE_PATHS = re.compile(r"/tmp/|/home/|/root/|/Users/|site-packages|\.venv")


def code_cells(notebook: nbformat.NotebookNode) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def exercises(notebook: nbformat.NotebookNode) -> list[str]:
    """The code of the last cell, a reader's next steps."""
    return [textwrap.dedent(block) for block in EXERCISE.findall(notebook.cells[-1].source)]


@EACH
def test_is_kept_with_its_outputs_and_an_opening_and_an_end_for_a_reader(path):
    notebook = nbformat.read(path, as_version=4)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell.outputs]
    assert cells[-1].outputs
    assert "error" not in [output.output_type for output in outputs]
    # GitHub shows pictures as PNG, but neither SVG nor widgets.
    shown = {kind for output in outputs for kind in output.get("data", {})}
    assert shown <= {"image/png", "text/html", "text/plain"}
    assert not MACHINE_PATHS.search(
        str([o.get("text") or o["data"]["text/plain"] for o in outputs])
    )
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MAX_BYTES
    assert "Warning" not in text
    assert "What you learn: " in notebook.cells[0].source
    end = notebook.cells[-1].source.partition("## What to try next")[2]
    tasks = re.findall(r"^\d\. .*?(?=^\d\. |\Z)", end, re.MULTILINE | re.DOTALL)
    assert len(tasks) >= 2 and all("Expected" in task for task in tasks)


@EACH
def test_outputs_are_of_the_weights_that_ship(path):
    """The metadata keep the checksums of the models that the outputs were made with."""
    notebook = nbformat.read(path, as_version=4)
    code = "\n".join(cell.source for cell in code_cells(notebook))
    models = set(re.findall(r"pretrained:([\w-]+)", code))
    shipped = {name: pretrained.read_card(name)["sha256"] for name in models}
    assert notebook.metadata.get("weights", {}) == shipped


@EACH
def test_code_finds_what_it_takes_from_the_project(path):
    """Every cell is Python; what is imported, or named as `train.X` or `wallgo_jax.X`, is there."""
    notebook = nbformat.read(path, as_version=4)
    cells = [*(cell.source for cell in code_cells(notebook)), *exercises(notebook)]
    tree = ast.parse("\n".join(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", cell) for cell in cells))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                ours = alias.name.split(".")[0] in PACKAGES
                assert not ours or PUBLIC.fullmatch(alias.name), alias.name
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in PACKAGES:
            assert PUBLIC.fullmatch(node.module), f"{node.module} is not public"
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            package = PACKAGES.get(node.value.id)
            assert package is None or hasattr(package, node.attr), ast.unparse(node)


@pytest.mark.slow
@EACH
def test_runs_from_top_to_bottom(path, monkeypatch):
    for name, value in compiling.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WALLGO_NOTEBOOK_QUICK", "1")
    notebook = nbformat.read(path, as_version=4)
    last = code_cells(notebook)[-1]
    for code in exercises(notebook):
        notebook.cells.append(nbformat.v4.new_code_cell(code))
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=str(FOLDER))
    assert last.outputs
