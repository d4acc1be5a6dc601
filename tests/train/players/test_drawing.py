"""A search that draws its move: the chances at a temperature."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.network import NetworkConfig
from train.players import learned
from train.registry import make_player
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from wallgo_jax.game.rules import PRESETS

POLICY = jnp.array([0.8, 0.0, 0.2])


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.8), (0.5, 0.64 / 0.68), (2.0, 2 / 3)])
def test_slots_are_drawn_by_the_policy_at_a_temperature(monkeypatch, temperature, share):
    def make_search(evaluate, options, *, explores, symmetries):
        assert not explores
        return lambda variables, states, key: SimpleNamespace(policy=jnp.tile(POLICY, (4000, 1)))

    monkeypatch.setattr(learned, "make_search", make_search)
    act = learned._drawing_act.__wrapped__(None, SearchConfig(), 1, temperature, NetworkConfig())
    drawn = np.asarray(act((), None, jax.random.key(0)))
    assert set(drawn) == {0, 2}
    assert (drawn == 0).mean() == pytest.approx(share, abs=0.03)


def test_players_without_a_policy_of_their_own_refuse_a_temperature():
    with pytest.raises(UsageError, match="only the search of a network draws at a temperature"):
        make_player("greedy", PRESETS["wallzero-4stone"], temperature=1.0)
