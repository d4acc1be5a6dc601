"""Every notebook runs from its first cell to its last, and is kept with outputs to look at.

`WALLGO_NOTEBOOK_QUICK=1` makes the notebooks that take minutes do less of everything; the tests set
it.
"""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MAX_BYTES = 2**20


def code_cells(path: Path) -> list:
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert FOLDER / "01_the_game.ipynb" in NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_kept_with_its_outputs(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    assert cells[-1].outputs
    kinds = [output.output_type for cell in cells for output in cell.outputs]
    assert "error" not in kinds
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MAX_BYTES
    assert "Warning" not in text


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_from_top_to_bottom(path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("WALLGO_NOTEBOOK_QUICK", "1")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=str(FOLDER))
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    assert last.outputs
