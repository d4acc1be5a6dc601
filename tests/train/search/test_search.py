"""Searches return values to their player, take wins and shun losses."""

import functools
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from tests.support.learner import tiny
from tests.support.learner.searching import (
    BLUE,
    DUEL,
    FOUR_STONES,
    LOSS,
    RED,
    TRIO,
    WIN,
    drawn_duel,
    even_evaluator,
    game_of,
    legal_slots,
    random_evaluator,
    random_ply,
    random_states,
    repeat,
    stack,
)
from train.config.run import HeuristicsConfig
from train.network import MASKED, NetworkConfig
from train.network.build import network_for
from train.players.heuristics import make_heuristic_evaluator
from train.search import search as search_lib
from train.search.config import MOVE_CLASSES, SearchConfig, as_player, boosts_at
from train.search.evaluator import Evaluation, evaluator_for
from train.search.search import (
    PriorBoost,
    SearchResult,
    boost_classes,
    divergence,
    make_search,
)
from train.search.tree import Budget, Choice, Root
from wallgo_jax import PRESETS, Rules
from wallgo_jax.game import actions, referee
from wallgo_jax.game.state import Position, State, initial_state

GRID, BOARDS = 3, 28
step = jax.jit(referee.step)
EXACT, SHALLOW = 0, 1


def _shares_evaluator(shares: jax.Array, states: State, analysis: object = None) -> Evaluation:
    """Every legal slot is as good as the others, and each player always gets the same share."""
    players = states.position.stones.shape[1]
    order = (states.position.player[:, None] + jnp.arange(players)[None]) % players
    return even_evaluator((), states)._replace(value=shares[order])


@functools.cache
def _make_search(rules: Rules) -> Callable[..., SearchResult]:
    """A search of BOARDS boards at once that is deep and exact, or shallow with noise."""
    config = SearchConfig(max_considered_actions=52)
    budgets = Budget(800, False), Budget(40, True)
    search = jax.jit(make_search(_shares_evaluator, config, budgets=budgets))

    def fill_and_search(budget: int, shares: list[float], states: list[State]) -> SearchResult:
        batch = stack([*states, *states[:1] * (BOARDS - len(states))])
        shares = np.array(shares, np.float32)
        found = jax.device_get(search(shares, batch, jax.random.key(3), np.int32(budget)))
        return jax.tree.map(lambda x: x[: len(states)], found)

    return fill_and_search


def test_a_constant_advantage_comes_back_unchanged():
    """An evaluator that is always sure that Red is 0.5 ahead: after any search, at every ply, setup
    and its double moves included, the root is worth +0.5 to Red and -0.5 to Blue. One wrong sign on
    the way up would mix the two. Boards of one size share a program."""
    traced = []

    def evaluate(shares: jax.Array, states: State, analysis: object = None) -> Evaluation:
        traced.append(len(states.position.ply))
        return _shares_evaluator(shares, states)

    search = jax.jit(make_search(evaluate, SearchConfig(simulations=24), explores=True))
    for preset in ("wallzero-4stone", "wallzero-empty"):
        states = game_of(PRESETS[preset], 10)
        movers = [int(state.position.player) for state in states]
        shares = np.array([0.5, -0.5], np.float32)
        found = search(shares, stack(states), jax.random.key(0))
        expected = [0.5 if mover == RED else -0.5 for mover in movers]
        np.testing.assert_allclose(found.value, expected, atol=1e-5)
        assert {RED, BLUE} <= set(movers)
        assert traced == [11, 11]  # the root and a leaf


@pytest.mark.parametrize("mover", [RED, BLUE])
def test_the_drawn_position_is_as_drawn(mover):
    for slot, own in ((WIN, 1.0), (LOSS, -1.0)):
        state, rewards = step(drawn_duel(mover=mover), jnp.int32(slot))
        assert bool(state.position.terminated)
        assert float(rewards[mover]) == own


def test_search_wins_at_once_and_shuns_the_immediate_loss():
    """A wrong sign of the reward would turn the two around; with an even evaluator nothing else
    tells the moves apart."""
    states = [drawn_duel(mover=mover) for mover in (RED, BLUE)]
    found = _make_search(DUEL)(EXACT, [0.0, 0.0], states)
    for board, state in enumerate(states):
        policy, legal = found.policy[board], np.asarray(legal_slots(state))
        assert found.slot[board] == WIN
        assert policy[LOSS] < 0.2 / legal.sum()
        assert policy[WIN] > 3 / legal.sum()
        assert (policy[~legal] == 0).all()
        assert found.value[board] > 0.2
        seen = policy[policy > 0]
        nats = (seen * np.log(seen * legal.sum())).sum()
        assert found.surprise[board] == pytest.approx(nats, rel=1e-4)


@jax.jit
def _children(state: State):
    """All slots of a 3x3 position: (legal, next states, rewards)."""
    slots = jnp.arange(actions.num_slots(1, grid=GRID))
    after, rewards = jax.vmap(lambda slot: referee.play(state, slot))(slots)
    return actions.legal_slots(state), after, rewards


def _values_of_slots(state: State, root: int) -> dict[int, float]:
    """The root player's exact results of all legal slots when all others play against it, by every
    line of play."""
    legal, after, rewards = jax.device_get(_children(state))
    values = {}
    for slot in np.flatnonzero(legal).tolist():
        child = jax.tree.map(lambda x, slot=slot: x[slot], after)
        over = child.position.terminated
        values[slot] = float(rewards[slot, root]) if over else _exact_value(child, root)
    return values


def _exact_value(state: State, root: int) -> float:
    best = max if int(state.position.player) == root else min
    return best(_values_of_slots(state, root).values())


@pytest.mark.parametrize(("rules", "games", "plies"), [(DUEL, 160, (8, 9)), (TRIO, 50, (10,))])
def test_search_keeps_the_exact_value_near_the_end(rules, games, plies):
    """Near the end of random games the chosen move keeps the value against all others together."""
    decisive, asked, best_of = np.zeros(3, int), [], []
    rng = np.random.default_rng(0)
    for game in range(games):
        state = initial_state(rules)
        for bits in rng.integers(2**32, size=plies[game % len(plies)]):
            state = random_ply(state, jnp.uint32(bits))
        if bool(state.position.terminated):
            continue
        root = int(state.position.player)
        values = _values_of_slots(state, root)
        keeping = {slot for slot in values if values[slot] == max(values.values())}
        decisive[root] += len(keeping) < len(values)
        asked.append(state)
        best_of.append(keeping)
    assert len(asked) <= BOARDS
    found = _make_search(rules)(EXACT, [0.0] * rules.players, asked)
    for place, (slot, keeping) in enumerate(zip(found.slot.tolist(), best_of, strict=True)):
        assert slot in keeping, f"position {place}"
    assert decisive.sum() >= 5
    assert rules == TRIO or decisive[:2].min() >= 2


def test_a_share_comes_back_to_its_player_among_three():
    """An evaluator that gives each player the same share everywhere: each finds its own."""
    shares, states = [0.5, -0.1, -0.4], game_of(TRIO, 5)
    found = _make_search(TRIO)(SHALLOW, shares, states)
    movers = [int(state.position.player) for state in states]
    np.testing.assert_allclose(found.value, np.array(shares)[movers], atol=1e-5)
    assert set(movers) == {0, 1, 2}
    # With noise the six do not all find the first slot.
    assert len(set(found.slot.tolist())) > 2


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_the_search_is_the_same_with_64_bit_types(kind):
    """What JAX_ENABLE_X64 sets: every number of the search has its type from us."""
    evaluate = make_heuristic_evaluator(HeuristicsConfig().wjx)
    options = SearchConfig(simulations=12, kind=kind)

    def found():
        search = jax.jit(make_search(evaluate, options, explores=True))
        states = jax.tree.map(lambda x: jnp.stack([x] * 3), initial_state(tiny.RULES))
        return jax.device_get(search((), states, jax.random.key(3)))

    plain = found()
    with jax.enable_x64(True):
        wide = found()
    chex.assert_trees_all_equal_shapes_and_dtypes(plain, wide)
    chex.assert_trees_all_close(plain, wide, atol=1e-6)


def test_tree_holds_positions_only():
    """No observation, no public mask: neither at a node nor anywhere in the search's program."""
    rules = PRESETS["wallzero-4stone"]
    config = NetworkConfig(width=8)
    evaluate = evaluator_for(config, rules)
    states = repeat(initial_state(rules), 2)
    root_shapes = jax.eval_shape(lambda s: s.position, states)
    assert isinstance(root_shapes, Position)
    node_bytes = sum(
        int(np.prod(leaf.shape[1:])) * leaf.dtype.itemsize for leaf in jax.tree.leaves(root_shapes)
    )
    assert node_bytes == 60
    search = make_search(evaluate, SearchConfig(simulations=4), explores=True)
    program = jax.make_jaxpr(search)(network_for(config, 2).shapes, states, jax.random.key(0))
    assert "2597" not in str(program)
    nodes = 5
    stored = [f"[2,{nodes},7,7", f"[2,{nodes},49"]
    assert not any(shape in str(program) for shape in stored)
    assert f"[2,{nodes},208]" in str(program)


# Boosts of classes of moves at the root.


def test_a_boost_is_added_to_the_plays_of_its_class():
    """Two stones; per stone, slots 0 to 3 stay, 4 to 19 take one step, 20 to 51 two."""
    logits = np.random.default_rng(0).normal(size=(2, 110)).astype(np.float32)
    legal = np.ones((2, 110), bool)
    legal[:, 104:] = legal[:, 50] = False
    boosts = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    in_setup = np.array([False, True])
    boost = jax.jit(boost_classes, static_argnames="stones")
    found = np.asarray(boost(logits, boosts, legal, in_setup, stones=2))
    added = np.tile([2.0] * 4 + [3.0] * 16 + [4.0] * 32, 2)
    is_legal = legal[0, :104]
    np.testing.assert_allclose(
        found[0, :104][is_legal], (logits[0, :104] + added)[is_legal], rtol=1e-6
    )
    np.testing.assert_allclose(found[1, :104][is_legal], logits[1, :104][is_legal] / 2, rtol=1e-6)
    assert (found[~legal] == MASKED).all()


def test_boosts_fall_to_a_half_in_each_half_life():
    config = SearchConfig(prior_boost=("stay=2", "placement=0.5"), prior_boost_halflife=4.0)
    assert MOVE_CLASSES == ("placement", "stay", "one_step", "two_steps")
    assert boosts_at(config, 0) == (0.5, 2.0, 0.0, 0.0)
    assert boosts_at(config, 8) == pytest.approx((0.125, 0.5, 0.0, 0.0))
    assert as_player(config, 8).prior_boost == ()


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_the_root_alone_is_boosted_and_gumbel_learns_no_boost(kind, monkeypatch):
    """An engine that plays the likeliest slot of the root it gets and teaches its prior."""

    def choose(key: jax.Array, root: Root, play: object) -> Choice:
        policy = jax.nn.softmax(root.logits, axis=1)
        return Choice(root.logits.argmax(axis=1), policy, root.value, None)

    monkeypatch.setattr(search_lib, "make_engine", lambda config, **_: choose)
    config = SearchConfig(kind=kind)
    search = functools.partial(make_search, random_evaluator, config, explores=True)
    states, key = random_states(FOUR_STONES, 4, 1, 12), jax.random.key(0)
    boosted = jax.jit(search())
    amounts = np.array([0.0, 12.0, 0.0, 0.0], np.float32)
    found = jax.device_get(boosted(PriorBoost((), amounts), states, key))
    plain = jax.device_get(jax.jit(search())((), states, key))
    in_play = states.position.ply >= 4
    slots = np.arange(plain.prior.shape[1])
    stays = (slots % 52 < 4) & (slots < 52 * 2)
    can_stay = in_play & ((plain.prior > MASKED) & stays).any(axis=1)
    assert can_stay.sum() >= 4 and not stays[plain.slot[can_stay]].all()
    assert stays[found.slot[can_stay]].all()
    np.testing.assert_array_equal(found.slot[~can_stay], plain.slot[~can_stay])
    np.testing.assert_array_equal(found.prior, plain.prior)
    policy = plain.policy
    if kind == "puct":
        logits = plain.prior + np.where(stays & in_play[:, None], 12.0, 0.0)
        policy = scipy.special.softmax(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(found.policy, policy, atol=1e-5)
    nats = jax.jit(divergence)(jnp.asarray(found.policy), plain.prior)
    np.testing.assert_allclose(found.surprise, nats, atol=1e-4)
    nothing = boosted(PriorBoost((), np.zeros(4, np.float32)), states, key)
    chex.assert_trees_all_close(nothing, plain, atol=1e-5)
