"""Players without weights as searches, with which self-play begins."""

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.config.heuristics import HeuristicsConfig
from train.players.registry import make_player, make_teacher
from train.runtime.errors import UsageError
from wallgo_jax.game import actions
from wallgo_jax.game.rules import PRESETS


@pytest.mark.parametrize(
    "name", ["random", "greedy", "wjx", pytest.param("exact", marks=pytest.mark.slow)]
)
def test_a_teacher_plays_and_its_policy_is_legal(states, name):
    teacher = jax.jit(make_teacher(name, tiny.RULES, heuristics=HeuristicsConfig()))
    legal = np.asarray(jax.jit(jax.vmap(actions.legal_slots))(states))
    found = jax.device_get(teacher((), states, jax.random.key(1)))
    boards = np.arange(len(legal))
    assert legal[boards, found.slot].all()
    np.testing.assert_allclose(found.policy.sum(axis=1), 1, rtol=1e-5)
    assert (found.policy[~legal] == 0).all()
    assert (found.prior[~legal] < -1e30).all()
    assert (found.policy[boards, found.slot] > 0).all()
    if name not in ("greedy", "wjx"):
        return
    # The policy is even over all moves that the player of that name makes, and no others.
    player, seen = make_player(name, tiny.RULES), np.zeros(found.policy.shape, bool)
    for key in jax.random.split(jax.random.key(2), 60):
        seen[boards, np.asarray(player.act((), states, key))] = True
    assert (seen <= (found.policy > 0)).all()
    few = (found.policy > 0).sum(axis=1) <= 5
    assert few.any()
    np.testing.assert_array_equal(seen[few], found.policy[few] > 0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pretrained:wallzero-4stone", "weights"),
        ("external:echo", "program"),
        ("heuristic-search:wjx@1s", "seconds"),
        ("wjy", "wjx"),
        ("heuristic-search:greedy", "'greedy'"),
        ("exact", "two players"),
    ],
)
def test_other_players_are_refused_in_a_line(name, said):
    with pytest.raises(UsageError, match=said) as caught:
        make_teacher(name, PRESETS["wallzero-4stone"], heuristics=HeuristicsConfig())
    assert "\n" not in str(caught.value)
