"""The trainings of one network for several rule sets, and of specialists."""

from tests.support.learner import tiny
from train.study.trainings import mixed
from wallgo_jax.game.rules import PRESETS


def test_a_specialists_targets_look_as_far_ahead_as_its_games_allow():
    long = PRESETS["wallzero-4stone"]
    words = ["--rules", "wallzero-4stone", "--learner.value_mix", "0.5", "--learner.td_steps", "20"]
    base = tiny.config(*words)
    found = [mixed._alone(base, rules).learner.td_steps for rules in (tiny.RULES, long)]
    # Two placements, and at most a wall on each of the twelve inner edges of 3x3.
    assert found == [13, 20]
