"""The loop as the notebook writes it out gives the rows of a run."""

from pathlib import Path

import jax
import nbformat

import train
from tests.support.learner import tiny
from train import loop

NOTEBOOK = Path(__file__).parents[3] / "notebooks" / "09_write_the_loop.ipynb"


def test_the_notebooks_loop_gives_the_rows_of_a_run(tmp_path):
    (source,) = (
        cell.source
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells
        if cell.cell_type == "code" and "rows = []" in cell.source
    )
    # The first iterations of this config have no game to learn from.
    source = source.replace("{row['loss']:.3f}", "{row.get('loss')}")
    config = tiny.config("--evaluation.opponents=[]", "--iterations=4")
    names = {"config": config, "jax": jax, "loop": loop}
    exec(source, names)
    expected = train.run(config, runs=tmp_path).rows
    rows = names["rows"]
    assert len(rows) == len(expected) == 4 and "loss" in rows[-1]
    for mine, theirs in zip(rows, expected, strict=True):
        assert mine == {name: theirs[name] for name in mine}
