"""The hint at a wrong name: the nearest known one, of dotted names also by their last part."""

import pytest

from wallgo_jax.formats.near_names import did_you_mean

PLAIN = ("match", "fetch", "walk")
PATHS = ("seed", "learner", "learner.learning_rate", "learner.steps", "data.steps", "search.steps")


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("mtch", PLAIN, "match"),
        ("mtch", (), ""),
        ("zzz", PLAIN, ""),
        ("seeed", PATHS, "seed"),
        ("lr", PATHS, "learner.learning_rate"),
        ("learning_rate", PATHS, "learner.learning_rate"),
        ("data.learning_rate", PATHS, "learner.learning_rate"),
        ("lerner.learning_rate", PATHS, "learner.learning_rate"),
        ("data.stpes", PATHS, "data.steps"),
        ("serch.steps", PATHS, "search.steps"),
        ("steps", PATHS, "learner.steps or data.steps or search.steps"),
        ("l", PATHS, ""),
    ],
)
def test_hints(word, known, hint):
    assert did_you_mean(word, known) == (f" (did you mean {hint}?)" if hint else "")
    dashed = did_you_mean(word, known, prefix="--")
    assert dashed.count("--") == len(hint.split(" or ")) * bool(hint)
