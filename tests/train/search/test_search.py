"""Searches return values to their player, take wins and shun losses."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner.searching import (
    BLUE,
    DUEL,
    LOSS,
    RED,
    TRIO,
    WIN,
    drawn_duel,
    even_evaluator,
    legal_slots,
    random_ply,
    repeat,
    stack,
)
from train.network import NetworkConfig
from train.network.build import network_for
from train.search.config import SearchConfig
from train.search.evaluator import Evaluation, evaluator_for
from train.search.search import make_search
from wallgo_jax import PRESETS
from wallgo_jax.game import actions, referee
from wallgo_jax.game.state import Position, State, initial_state

GRID = 3
step = jax.jit(referee.step)


def _partial_evaluator(red_value: float):
    """The same, but always sure that Red is ahead."""

    def evaluate(variables, states: State, analysis=None) -> Evaluation:
        even = even_evaluator(variables, states)
        mine = jnp.where(states.position.player == RED, red_value, -red_value)
        return even._replace(value=jnp.stack([mine, -mine], axis=1))

    return evaluate


@functools.cache
def _partial_search(kind: str):
    config = SearchConfig(simulations=24, kind=kind)
    return jax.jit(make_search(_partial_evaluator(0.5), config, explores=True))


@pytest.mark.parametrize(
    ("preset", "kind"),
    [
        ("wallzero-4stone", "gumbel"),
        ("wallzero-empty", "gumbel"),
        pytest.param("wallzero-empty", "puct", marks=pytest.mark.slow),
    ],
)
def test_a_constant_advantage_comes_back_unchanged(preset, kind):
    """An evaluator that is always sure that Red is 0.5 ahead: after any search, at every ply, setup
    and its double moves included, the root is worth +0.5 to Red and -0.5 to Blue. One wrong sign on
    the way up would mix the two."""
    states, movers = [], []
    state = initial_state(PRESETS[preset])
    for ply in range(11):
        states.append(state)
        movers.append(int(state.position.player))
        state = random_ply(state, jnp.uint32(0x85EBCA6B * (ply + 1) % 2**32))
    found = _partial_search(kind)((), stack(states), jax.random.key(0))
    expected = [0.5 if mover == RED else -0.5 for mover in movers]
    np.testing.assert_allclose(found.value, expected, atol=1e-5)
    assert {RED, BLUE} <= set(movers)


@pytest.mark.parametrize("mover", [RED, BLUE])
def test_the_drawn_position_is_as_drawn(mover):
    for slot, own in ((WIN, 1.0), (LOSS, -1.0)):
        state, rewards = step(drawn_duel(mover=mover), jnp.int32(slot))
        assert bool(state.position.terminated)
        assert float(rewards[mover]) == own


@functools.cache
def _even_search(kind: str):
    # PUCT looks at each slot once before it can tell.
    config = SearchConfig(
        simulations=64 if kind == "gumbel" else 192, max_considered_actions=32, kind=kind
    )
    return jax.jit(make_search(even_evaluator, config, explores=False))


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
@pytest.mark.parametrize("mover", [RED, BLUE])
def test_search_wins_at_once_and_shuns_the_immediate_loss(mover, kind):
    """A wrong sign of the reward would turn the two around; with an even evaluator nothing else
    tells the moves apart."""
    found = _even_search(kind)((), repeat(drawn_duel(mover=mover), 1), jax.random.key(3))
    if kind == "gumbel":  # to visits a forced win some plies later is as good
        assert found.slot.tolist() == [WIN]
    legal = np.asarray(legal_slots(drawn_duel(mover=mover)))
    policy = np.asarray(found.policy[0])
    assert policy[LOSS] < 0.2 / legal.sum()
    assert policy[WIN] > (3 if kind == "gumbel" else 1) / legal.sum()
    assert (policy[~legal] == 0).all()
    assert float(found.value[0]) > 0.2


@jax.jit
def _children(state: State):
    """All slots of a 3x3 position: (legal, next states, Red's reward, over)."""
    slots = jnp.arange(actions.num_slots(1, grid=GRID))
    after, rewards = jax.vmap(lambda slot: referee.play(state, slot))(slots)
    legal = actions.legal_slots(state)
    return legal, after, rewards[:, RED], after.position.terminated


def _red_value(state: State) -> float:
    """Exact result for Red, by looking at every line of play."""
    legal, after, reward, over = jax.device_get(_children(state))
    best = max if int(state.position.player) == RED else min
    values = []
    for slot in np.flatnonzero(legal):
        child = jax.tree.map(lambda x, slot=slot: x[slot], after)
        values.append(float(reward[slot]) if over[slot] else _red_value(child))
    return best(values)


def _exchange_colours(state: State) -> State:
    position = state.position
    return state._replace(
        position=position._replace(
            stones=position.stones[::-1],
            walls=position.walls[::-1],
            player=jnp.int8(1) - position.player,
        )
    )


@pytest.mark.slow
def test_search_keeps_the_exact_value_near_the_end():
    """Positions with five sides left to wall, from random games, and the same with the colours
    exchanged: the chosen move must keep the value that looking at every line of play finds."""
    decisive, asked, best_of = {RED: 0, BLUE: 0}, [], []
    rng = np.random.default_rng(0)
    for _ in range(120):
        state = initial_state(DUEL)
        for bits in rng.integers(2**32, size=9):
            state = random_ply(state, jnp.uint32(bits))
        if bool(state.position.terminated):
            continue
        legal, after, reward, over = jax.device_get(_children(state))
        values = {}
        for slot in np.flatnonzero(legal):
            child = jax.tree.map(lambda x, slot=slot: x[slot], after)
            values[slot] = float(reward[slot]) if over[slot] else _red_value(child)
        best = max if int(state.position.player) == RED else min
        keeping = {slot for slot in values if values[slot] == best(values.values())}
        for twin in (state, _exchange_colours(state)):
            decisive[int(twin.position.player)] += len(keeping) < len(values)
            asked.append(twin)
            best_of.append(keeping)
    search = jax.jit(make_search(even_evaluator, SearchConfig(2000, 52), explores=False))
    found = search((), stack(asked), jax.random.key(0))
    for place, (slot, keeping) in enumerate(zip(found.slot.tolist(), best_of, strict=True)):
        assert slot in keeping, f"position {place}"
    assert min(decisive.values()) > 10


@pytest.mark.parametrize("kind", ["gumbel", pytest.param("puct", marks=pytest.mark.slow)])
def test_a_share_comes_back_to_its_player_among_three(kind):
    """An evaluator that gives each player the same share everywhere: each finds its own."""
    shares = jnp.array([0.5, -0.1, -0.4])

    def evaluate(variables, states: State, analysis=None) -> Evaluation:
        even = even_evaluator(variables, states)
        order = (states.position.player[:, None] + jnp.arange(3)[None]) % 3
        return even._replace(value=shares[order])

    config = SearchConfig(simulations=24, kind=kind)
    search = jax.jit(make_search(evaluate, config, explores=True))
    states, state = [], initial_state(TRIO)
    for ply in range(6):
        states.append(state)
        state = random_ply(state, jnp.uint32(0x85EBCA6B * (ply + 1) % 2**32))
    batch = stack(states)
    found, position = jax.device_get((search((), batch, jax.random.key(0)), batch.position))
    expected, over = np.asarray(shares)[position.player], position.terminated
    np.testing.assert_allclose(found.value[~over], expected[~over], atol=1e-5)
    assert set(position.player.tolist()) == {0, 1, 2}


def _paranoid_value(state: State, root: int) -> float:
    """The root player's exact result when all others play against it, by every line of play."""
    legal, after, rewards = jax.device_get(_shares_of_children(state))
    values = []
    for slot in np.flatnonzero(legal):
        child = jax.tree.map(lambda x, slot=slot: x[slot], after)
        over = child.position.terminated
        values.append(float(rewards[slot, root]) if over else _paranoid_value(child, root))
    return max(values) if int(state.position.player) == root else min(values)


@jax.jit
def _shares_of_children(state: State):
    slots = jnp.arange(actions.num_slots(1, grid=GRID))
    after, rewards = jax.vmap(lambda slot: referee.play(state, slot))(slots)
    return actions.legal_slots(state), after, rewards


def test_search_among_three_is_paranoid():
    """Near the end of random games the chosen move keeps the value against all others together."""
    decisive, asked, best_of = 0, [], []
    rng = np.random.default_rng(0)
    for _ in range(60):
        state = initial_state(TRIO)
        for bits in rng.integers(2**32, size=10):
            state = random_ply(state, jnp.uint32(bits))
        if bool(state.position.terminated):
            continue
        root = int(state.position.player)
        legal, after, rewards = jax.device_get(_shares_of_children(state))
        values = {}
        for slot in np.flatnonzero(legal):
            child = jax.tree.map(lambda x, slot=slot: x[slot], after)
            over = child.position.terminated
            values[slot] = float(rewards[slot, root]) if over else _paranoid_value(child, root)
        keeping = {slot for slot in values if values[slot] == max(values.values())}
        decisive += len(keeping) < len(values)
        asked.append(state)
        best_of.append(keeping)
    search = jax.jit(make_search(even_evaluator, SearchConfig(800, 52), explores=False))
    found = search((), stack(asked), jax.random.key(0))
    for place, (slot, keeping) in enumerate(zip(found.slot.tolist(), best_of, strict=True)):
        assert slot in keeping, f"position {place}"
    assert decisive >= 5


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


def test_search_is_traced_once():
    rules = PRESETS["wallzero-4stone"]
    search = make_search(even_evaluator, SearchConfig(simulations=2), explores=True)
    chex.clear_trace_counter()
    traced = jax.jit(chex.assert_max_traces(search, n=1))
    for seed in range(3):
        found = traced((), repeat(initial_state(rules), 2), jax.random.key(seed))
        assert found.policy.shape == (2, 208)
