"""The examples of docs/api.md and of the tutorials run, as a reader would type them."""

import re
from pathlib import Path

import pytest

import train
from tests.support.import_graph import ROOT

MAX_LINES = 25
"""Of the code that opens a tutorial."""
SMALL = {
    "iterations": 2,
    "selfplay.boards": 16,
    "learner.steps": 4,
    "evaluation.games": 4,
    "evaluation.final_games": 4,
    "evaluation.batch": 4,
}


def examples(name: str) -> list[str]:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def run_all(name: str) -> None:
    names = {"__name__": "__main__"}
    for text in examples(name):
        exec(compile(text, f"docs/{name}.md", "exec"), names)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder with the configs of a clone, where the examples run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    return tmp_path


@pytest.mark.parametrize("name", ["tutorial_train", "tutorial_own"])
def test_a_tutorial_opens_with_few_lines(name):
    assert len([line for line in examples(name)[0].splitlines() if line]) <= MAX_LINES


@pytest.mark.slow
def test_the_examples_of_the_interface_run(folder, capsys):
    run_all("api")
    shown = capsys.readouterr().out
    assert "simulations: value" in shown
    assert "Part(name='stem'" in shown


@pytest.mark.slow
def test_the_tutorial_of_ones_own_functions_runs(folder, capsys):
    run_all("tutorial_own")
    loss_and_rate, rate, rates = r"[\d.e-]+ [\d.]+", r"[\d.]+", r"\[[\d., ]+\]"
    printed = re.findall(rf"^(?:{loss_and_rate}|{rate}|{rates})$", capsys.readouterr().out, re.M)
    assert len(printed) == 3


@pytest.mark.slow
def test_the_first_tutorial_runs(folder, monkeypatch):
    """With the smallest board in the quickstart's place, and a few games."""
    make_config, match = train.make_config, train.match
    small = make_config("configs/tiny.toml", SMALL)
    monkeypatch.setattr(train, "make_config", lambda **keys: make_config(small, **keys))
    monkeypatch.setattr(train, "match", lambda *players, **_: match(*players, games=4))
    run_all("tutorial_train")
    assert (folder / "first.html").stat().st_size > 0
