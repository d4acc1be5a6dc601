"""Trained players as frozen opponents: what is refused, and whose weights they are."""

import dataclasses
import json
import shutil

import jax
import numpy as np
import pytest

from tests.support.learner import saved, tiny
from train.players.registry import make_frozen_opponent
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import PRESETS, Rules


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return saved.save_run(tmp_path_factory.mktemp("runs") / "victim", seeds={1: 0, 2: 1})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("greedy", "weights"),
        ("nobody", "unknown"),
        ("runs/nobody", "runs/nobody"),
        ("pretrained:wallzero-4stone@1s", "seconds"),
    ],
)
def test_players_that_are_no_opponents_are_refused_in_one_line(name, said):
    with pytest.raises(UsageError) as error:
        make_frozen_opponent(name, PRESETS["wallzero-4stone"])
    assert said in str(error.value) and "\n" not in str(error.value)


def test_other_rules_are_refused(run):
    wider = dataclasses.replace(tiny.RULES, walls=3)
    for rules in (wider, Rules(size=3, players=3, stones=1, order=(0, 1, 2))):
        with pytest.raises(UsageError, match=f"player '{run}': learned "):
            make_frozen_opponent(str(run), rules)


def test_a_network_of_several_rule_sets_is_an_opponent_of_each(tmp_path):
    learned = [tiny.RULES, Rules(size=4, stones=1, order=(0, 1))]
    words = ["--rules", json.dumps([{"rules": rules.to_dict()} for rules in learned])]
    config = tiny.config(*words, "--network.planes", "BTRV", "--network.playable", "true")
    mixed = saved.save_run(tmp_path / "mixed", seeds={1: 0}, config=config)
    for rules in learned:
        assert make_frozen_opponent(f"net:{mixed}", rules).trained.config.learned == (*learned,)
    with pytest.raises(UsageError, match=r"3x3, .* 4x4, .* hkoi"):
        make_frozen_opponent(f"net:{mixed}", PRESETS["hkoi"])


def test_a_name_says_how_it_searches(run):
    found = make_frozen_opponent(f"{run}@3", tiny.RULES)
    assert (found.name, found.simulations) == (f"search:{run}@3", 3)
    assert found.trained.about["iteration"] == 2
    assert {type(leaf) for leaf in jax.tree.leaves(found.trained.variables)} == {np.ndarray}
    assert make_frozen_opponent(f"net:{run}/checkpoints/1", tiny.RULES).simulations == 0
    assert make_frozen_opponent(str(run), tiny.RULES).simulations == 64


def test_kept_weights_stand_for_those_of_the_name(run, tmp_path):
    kept = shutil.copytree(run, tmp_path / "kept")
    shutil.rmtree(kept / "checkpoints" / "2")
    found = make_frozen_opponent(f"{run}@3", tiny.RULES, kept=kept)
    assert (found.name, found.trained.about["iteration"]) == (f"search:{run}@3", 1)
