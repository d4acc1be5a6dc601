"""Players without weights as searches, with which self-play begins."""

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.players.config import HeuristicsConfig
from train.registry import make_player, make_teacher
from train.runtime.errors import UsageError
from wallgo_jax.game import actions, referee
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.game.state import State, initial_position

BOARDS = 16
NAMES = ["random", "greedy", "ethen", "wjx", "exact"]
SEARCHING = ["two-ply:wjx", "heuristic-search:wjx@4"]


@pytest.fixture(scope="module")
def states() -> State:
    """Boards of 3x3 after four random plies."""
    variant = tiny.variants(tiny.RULES, BOARDS)
    states = State(variant, jax.vmap(initial_position)(variant))
    random, play = make_player("random", tiny.RULES), jax.jit(jax.vmap(referee.play))
    for key in jax.random.split(jax.random.key(0), 4):
        states, _ = play(states, random.act((), states, key))
    return states


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.slow) for name in SEARCHING)]
)
def test_a_teacher_plays_and_its_policy_is_legal(states, name):
    teacher = jax.jit(make_teacher(name, tiny.RULES, heuristics=HeuristicsConfig()))
    legal = np.asarray(jax.jit(jax.vmap(actions.legal_slots))(states))
    found = jax.device_get(teacher((), states, jax.random.key(1)))
    boards = np.arange(BOARDS)
    assert legal[boards, found.slot].all()
    np.testing.assert_allclose(found.policy.sum(axis=1), 1, rtol=1e-5)
    assert (found.policy[~legal] == 0).all()
    assert (found.prior[~legal] < -1e30).all()
    assert (found.policy[boards, found.slot] > 0).all()


@pytest.mark.parametrize("name", ["greedy", "ethen", "wjx"])
def test_a_teacher_is_the_player_of_that_name(states, name):
    """The policy is even over all moves that the player makes, and no others."""
    teacher = jax.jit(make_teacher(name, tiny.RULES, heuristics=HeuristicsConfig()))
    found = jax.device_get(teacher((), states, jax.random.key(1)))
    player, seen = make_player(name, tiny.RULES), np.zeros(found.policy.shape, bool)
    for key in jax.random.split(jax.random.key(2), 60):
        seen[np.arange(BOARDS), np.asarray(player.act((), states, key))] = True
    assert (seen <= (found.policy > 0)).all()
    few = (found.policy > 0).sum(axis=1) <= 5
    assert few.any()
    np.testing.assert_array_equal(seen[few], found.policy[few] > 0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pretrained:wallzero-4stone", "needs weights; allowed: random, greedy, ethen, wjx, "),
        ("net:runs/none", "needs weights; allowed: "),
        ("external:echo", "is a program; allowed: random, greedy, ethen, wjx, "),
        ("heuristic-search:wjx@1s", "self-play counts simulations, not seconds, so that a seed "),
        ("wjy", "unknown; did you mean wjx?"),
        ("heuristic-search:greedy", "no heuristic 'greedy'; known heuristics: ethen, wjx"),
        ("exact", "solves games of two players"),
    ],
)
def test_other_players_are_refused_in_a_line(name, said):
    with pytest.raises(UsageError) as caught:
        make_teacher(name, PRESETS["wallzero-4stone"], heuristics=HeuristicsConfig())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
