"""The folder of a page for any static host: what it holds, and where it is not written."""

import json
import re

import pytest

import train
from train.players.networks import load_network
from train.review.puzzle_file import shipped_puzzles
from train.runtime.errors import UsageError
from train.ui import web
from wallgo_jax.game.rules import PRESETS

RULES = PRESETS["wallzero-4stone"]


@pytest.fixture(scope="module")
def network():
    return load_network("pretrained:wallzero-4stone")


def test_a_page_holds_all_that_it_names(tmp_path, network):
    web.write_page(tmp_path / "page", [network], RULES, shipped_puzzles()[:2])
    web.write_page(tmp_path / "page", [network], RULES, shipped_puzzles()[:2])  # Over its own.
    page = tmp_path / "page"
    offered = json.loads((page / "choices.json").read_text())
    assert (offered["engine"], offered["rules"]) == ("worker", "wallzero-4stone")
    (machine,) = offered["machines"]
    assert machine["rules"] == ["wallzero-4stone"] and machine["ratings"]["club"]["elo"] > 0
    assert all((page / f"{machine['model']}.{ending}").is_file() for ending in ("bin", "json"))
    assert [puzzle["difficulty"] for puzzle in offered["puzzles"]] == sorted(
        puzzle["difficulty"] for puzzle in offered["puzzles"]
    )
    assert len({puzzle["key"] for puzzle in offered["puzzles"]}) == 2
    index = (page / "index.html").read_text()
    names = re.findall(r'(?:src|href)="([\w./]+)"', index)
    assert {"main.js", "colours.css", "board.css", "icon.svg"} <= set(names)
    assert all((page / name).is_file() for name in names)
    modules = [path.relative_to(page).as_posix() for path in page.rglob("*.js")]
    assert "engine/worker.js" in modules and "referee.js" in modules and "widget.js" not in modules
    assert not re.search(r"https?:", index)


def test_a_folder_of_something_else_is_left_alone(tmp_path, network):
    (tmp_path / "own.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not a page"):
        web.write_page(tmp_path, [network], RULES)
    assert [path.name for path in tmp_path.iterdir()] == ["own.txt"]


def test_an_export_names_a_folder():
    with pytest.raises(UsageError, match="web"):
        train.export("pretrained:wallzero-4stone")
