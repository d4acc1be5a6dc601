"""The search's options, and how many simulations each iteration gets."""

import dataclasses
import subprocess
import sys

import pytest

from tests.support import compiling
from train.runtime.fields import check
from train.search.config import SearchConfig, as_player, simulations_at, stages


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 16, (16,)),
        (16, 16, (16,)),
        (2, 16, (2, 4, 8, 16)),
        (3, 20, (3, 6, 12, 20)),
        (1, 1, (1,)),
    ],
)
def test_simulations_double_up_to_the_last(first, last, expected):
    config = SearchConfig(simulations=last, first_simulations=first)
    assert stages(config) == expected
    for iterations in (len(expected), 3 * len(expected), 100):
        counts = [simulations_at(config, i, iterations) for i in range(iterations)]
        assert tuple(dict.fromkeys(counts)) == expected
        lengths = [counts.count(count) for count in expected]
        assert max(lengths) - min(lengths) <= 1
    assert simulations_at(config, 1000, 10) == last


def test_a_player_may_weigh_values_otherwise_than_self_play():
    trained = SearchConfig(simulations=8, first_simulations=2, value_scale=0.2)
    assert as_player(trained, 64) == SearchConfig(simulations=64, value_scale=0.2)
    assert as_player(as_player(trained, 4), 64) == as_player(trained, 64)
    trusting = dataclasses.replace(trained, player_value_scale=1.5)
    assert as_player(trusting, 64) == SearchConfig(simulations=64, value_scale=1.5)


@pytest.mark.parametrize(
    ("simulations", "actions"),
    [(1, 2), (4, 2), (5, 4), (16, 4), (17, 8), (32, 8), (33, 16), (100_000, 16)],
)
def test_a_player_considers_as_many_actions_as_its_simulations_can_look_into(simulations, actions):
    assert as_player(SearchConfig(), simulations).max_considered_actions == actions
    told = SearchConfig(player_max_considered_actions=5)
    assert as_player(told, simulations).max_considered_actions == 5


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"opponents": "maxn", "engine": "mctx"}, "paranoid"),
        ({"opponents": "maxn", "rounds": True}, "rounds"),
        ({"engine": "mctx", "rounds": True}, "rounds"),
        ({"prior_boost": ("jump=2",)}, "jump"),
        ({"prior_boost": ("stay",)}, "once"),
        ({"prior_boost": ("stay=0",)}, "once"),
        ({"prior_boost": ("stay=-1",)}, "once"),
        ({"prior_boost": ("stay=nan",)}, "once"),
        ({"prior_boost": ("stay=1", "stay=2")}, "once"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, word):
    with pytest.raises(ValueError, match=rf"\b{word}\b"):
        check(SearchConfig(**options))


def test_options_are_read_without_jax():
    code = "import sys; sys.modules['jax'] = None; import train.search.config"
    subprocess.run([sys.executable, "-c", code], check=True, env=compiling.environment())
