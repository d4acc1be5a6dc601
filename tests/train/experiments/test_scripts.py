"""Each experiment goes through at a tiny scale, and what it has finished is reused."""

import importlib
import json
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.import_graph import ROOT
from tests.support.learner import tiny
from train import experiments
from train.checkpoints.exported import write_model
from train.experiments import exact, lab, mixed
from train.network.build import network_for
from train.solver.boards import WIN
from wallgo_jax.game.rules import PRESETS, Rules

CONFIG = """
iterations = 2
rules = { size = 3, stones = 1, order = [0, 1] }
network = { width = 8, value_width = 8 }
search = { simulations = 2, max_considered_actions = 2 }
selfplay = { boards = 8, plies = 5, full_search_prob = 1.0 }
replay = { positions = 256 }
learner = { batch = 8, steps = 1 }
"""
SHIPPED = "pretrained:wallzero-4stone"
TRAININGS = {"seeds": 1, "games": 2, "simulations": 2, "opening_plies": 0, "iterations": 2}
TINY: dict[str, dict[str, Any]] = {
    "accelerator": {"iterations": 2, "opponents": (), "games": 2, "simulations": 2}
    | {"opening_plies": 0, "schedules": ("2/2", "4/4"), "minutes": 0.01, "forms": ("W/8",)}
    | {"boards": (8,)},
    "balance": {"players": (SHIPPED,), "simulations": (1,), "games": 4},
    "blocks": TRAININGS | {"blocks": ("R", "W")},
    "breadth": {"considered": (1, 2), "simulations": (2,), "seeds": 1, "opponent": "random"}
    | {"games": 2, "player_simulations": 2, "opening_plies": 0},
    "considered": {"players": (SHIPPED,), "considered": (2,), "simulations": (2,), "games": 2},
    "doublings": {"simulations": (1, 2), "games": 2},
    "exact": {"node_limit": 10},
    "features": TRAININGS | {"planes": ("B", "BT"), "blocks": ("R",)},
    "mixed": {"seeds": 1, "games": 2, "simulations": 2, "minutes": 0.01, "presets": ()}
    | {"opponents": ("random",)},
    "mobility": {"simulations": 1, "games": 2, "searched_games": 2, "search_simulations": 2},
    "ppo": {"seeds": 1, "games": 2, "simulations": 2, "opening_plies": 0, "iterations": 3}
    | {"searching_iterations": 2, "pool_every": 1, "middle_plies": 4},
    "setups": {
        "players": (SHIPPED, f"{SHIPPED}-v1"),
        "beam": (1, 2),
        "frontier": (1, 1, 1),
        "simulations": 2,
        "lines": 1,
        "games": 2,
        "book": 1,
        "book_games": 2,
        "game_simulations": 1,
    },
    "size": {"rules": ("hkoi",), "random_games": 4, "players": (SHIPPED,), "simulations": 1}
    | {"strong_games": 2},
    "supervised": {"learned": (60,), "steps": 2, "held_out": 40, "min_walls": 2}
    | {"simulations": (2,), "kinds": ("gumbel",)},
    "transfer": TRAININGS | {"cases": ("5x5",), "opponent": "random", "rules": "wallzero-empty"},
}
FAST = ("exact", "supervised")
"""Those that compile little."""
BY_HAND = ("blocks", "mixed", "transfer")
"""Those that compile for minutes; what they share with the others is tried there."""
HELPERS = {"ablation", "lab", "openings", "pace", "pages", "plays", "selfplay_games", "strength"}
HELPERS |= {"tables", "compare", "exact_proofs"}
HELPERS |= {"speedrun", "speedrun_checks", "speedrun_records"}
"""Modules that are no experiments; `exact_proofs` writes files that a test of its own checks, and
the speedrun is a verb."""


def scripts() -> list[str]:
    names = {module.name for module in pkgutil.iter_modules(experiments.__path__)}
    return sorted(names - HELPERS)


def test_every_script_is_tried_and_named_by_a_page():
    assert scripts() == sorted(TINY)
    text = "".join(path.read_text("utf-8") for path in (ROOT / "docs/results").glob("*.md"))
    assert {*re.findall(r"python -m train\.experiments\.(\w+)", text)} == {
        *TINY,
        "exact_proofs",
        "pages",
    }


@pytest.mark.parametrize(
    "name",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in TINY
        if name not in BY_HAND
    ],
)
def test_it_goes_through_and_is_reused(name, tmp_path):
    module, options = importlib.import_module(f"train.experiments.{name}"), dict(TINY[name])
    fields = module.Scale.__dataclass_fields__
    if "config" in fields:
        (tmp_path / "config.toml").write_text(CONFIG)
        options["config"] = str(tmp_path / "config.toml")
    if name == "supervised":
        config = tiny.config()
        weights = tiny.new_weights(network_for(config.network, 2))
        write_model(tmp_path / "player", weights, config, {})
        options["players"] = (str(tmp_path / "player"),)
    work = lab.Lab(name, module.Scale(out=tmp_path / "out", **options), "command")
    first = module.main(work)
    sizes = {path: path.stat().st_size for path in (tmp_path / "out").glob("*.jsonl")}
    again = module.main(lab.Lab(name, work.scale, "command"))
    assert sizes == {path: path.stat().st_size for path in (tmp_path / "out").glob("*.jsonl")}
    np.testing.assert_equal(first["tables"], again["tables"])
    kept = json.loads((tmp_path / "out" / name / lab.DATA).read_text())
    assert kept["tables"] and kept["measured"]["command"] == "command"
    page = (tmp_path / "out" / name / lab.PAGE).read_text()
    assert all(table["title"] in page for table in kept["tables"].values())


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("balance", {"players": ("random",)}, "network"),
        ("doublings", {"player": f"{SHIPPED}@4"}, "without"),
        ("setups", {"beam": (0,)}, "3 turns: beam needs 2 numbers, frontier 3"),
        ("transfer", {"opponent": "nobody"}, "nobody"),
        ("features", {"config": "nowhere.toml"}, "nowhere"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_done(name, options, word, tmp_path):
    module = importlib.import_module(f"train.experiments.{name}")
    with pytest.raises(lab.UsageError, match=word) as error:
        module.main(lab.Lab(name, module.Scale(out=tmp_path / "out", **options)))
    assert "\n" not in str(error.value) and not (tmp_path / "out").exists()


def test_a_specialists_targets_look_as_far_ahead_as_its_games_allow():
    words = ["--rules", "wallzero-4stone", "--learner.value_mix", "0.5", "--learner.td_steps", "20"]
    base, long = tiny.config(*words), PRESETS["wallzero-4stone"]
    steps = [mixed.specialist_config(base, rules).learner.td_steps for rules in (tiny.RULES, long)]
    # Two placements, and at most a wall on each of the twelve inner edges of 3x3.
    assert steps == [13, 20]


LARGE = Rules(size=4, stones=2, order=(0, 1, 1, 0))
SMALL = Rules(size=3, stones=1, order=(0, 1))


def exact_work(folder: Path, minutes: float) -> lab.Lab:
    return lab.Lab("exact", exact.Scale(out=folder, large=True, minutes=minutes, entries=1 << 12))


def test_question_goes_on_where_it_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "_NODES", 100)
    found = [exact._ask(exact_work(tmp_path, 1e-6), LARGE, "draw") for _ in range(2)]
    assert [each["holds"] for each in found] == [None] * 2
    assert 100 <= found[0]["nodes"] < 200 <= found[1]["nodes"] < 300


def test_decided_question_is_kept(tmp_path, monkeypatch):
    work = exact_work(tmp_path, 1.0)
    first = exact._search(work, SMALL, 0, WIN)
    assert first["holds"] and [cell for cell in range(9) if first["placements"][cell]] == [4]
    monkeypatch.setattr(exact, "Claim", None)
    assert exact._search(work, SMALL, 0, WIN) == first
