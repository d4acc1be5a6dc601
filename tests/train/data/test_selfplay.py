"""Self-play against the referee: what is written down is what was played."""

import dataclasses
import functools
import logging

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support import tiny
from train.bench.parts.search import random_search
from train.config import EvaluationConfig, RunConfig
from train.data.config import ReplayConfig, SelfPlayConfig
from train.data.selfplay import SelfPlayMetrics, first_boards, make_selfplay, weigh
from train.learning.config import LearnerConfig
from train.loop import programs as programs_lib
from train.loop.training import make_programs, run_iteration
from train.network import NetworkConfig
from train.network.build import network_for
from train.runtime.host import READS
from train.search.search import SearchConfig
from wallgo_jax import Rules
from wallgo_jax.game import actions, referee
from wallgo_jax.game.state import State, initial_position

pytestmark = pytest.mark.usefixtures("as_users_compile")

RULES = Rules(size=4, stones=1, order=(0, 1))
CONFIG = RunConfig(
    name="tiny",
    iterations=6,
    rules=RULES,
    network=NetworkConfig(width=8, value_width=8),
    search=SearchConfig(simulations=4),
    selfplay=SelfPlayConfig(boards=8, plies=12),
    replay=ReplayConfig(positions=400),
    learner=LearnerConfig(batch=32, steps=2),
    evaluation=EvaluationConfig(every=0),
)


start = jax.jit(first_boards)
legal_slots = jax.jit(jax.vmap(jax.vmap(lambda v, p: actions.legal_slots(State(v, p))), (None, 0)))
"""(variant [B], position [T, B]) -> bool[T, B, A]."""


@pytest.fixture(scope="module")
def played():
    """Two iterations of 12 plies on 8 boards, joined: (variant [B], plies [24, B], sums)."""
    programs = make_programs(CONFIG)
    variables = tiny.new_weights(network_for(CONFIG.network, 2))
    boards = start(programs.variant)
    parts, sums = [], []
    for key in jax.random.split(jax.random.key(1), 2):
        boards, plies, metrics = programs.selfplay_at(0)(variables, programs.variant, boards, key)
        parts.append(plies)
        sums.append(metrics)
    parts, sums = jax.device_get((parts, sums))
    plies = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    return programs.variant, plies, jax.tree.map(lambda *x: float(sum(x)), *sums)


def test_each_ply_follows_from_the_one_before(played):
    """Also from one iteration to the next: games go on where they stood."""
    variant, plies, _ = played
    step = jax.jit(jax.vmap(referee.step))
    fresh = jax.device_get(jax.jit(jax.vmap(initial_position))(variant))
    chex.assert_trees_all_equal(jax.tree.map(lambda x: x[0], plies.position), fresh)
    for ply in range(24):
        now = jax.tree.map(lambda x, ply=ply: x[ply], plies)
        after, rewards = jax.device_get(step(State(variant, now.position), now.slot))
        np.testing.assert_array_equal(now.step_outcome.rewards, rewards)
        np.testing.assert_array_equal(now.terminated, after.position.terminated)
        if ply < 23:
            following = jax.tree.map(lambda x, ply=ply: x[ply + 1], plies.position)
            over = now.terminated
            for got, new, old in zip(following, fresh, after.position, strict=True):
                where = over.reshape(-1, *[1] * (new.ndim - 1))
                np.testing.assert_array_equal(got, np.where(where, new, old))


def test_policies_are_distributions_over_legal_slots(played):
    variant, plies, _ = played
    legal = np.asarray(legal_slots(variant, plies.position))
    policy = np.asarray(plies.policy, np.float32)
    np.testing.assert_allclose(policy.sum(axis=-1), 1.0, atol=5e-3)
    assert (policy[~legal] == 0).all()
    played_slot = plies.slot[..., None].astype(int)
    assert np.take_along_axis(legal, played_slot, axis=-1).all()


def test_sums_are_counted(played):
    _, plies, sums = played
    ended = np.asarray(plies.terminated)
    assert sums.games == ended.sum() > 4
    assert sums.positions == 24 * 8
    assert sums.length == (np.asarray(plies.position.ply)[ended] + 1).sum()
    red = np.asarray(plies.step_outcome.rewards)[..., 0]
    assert sums.red_wins == (red > 0).sum()
    assert sums.draws == (red[ended] == 0).sum()


def test_a_run_compiles_in_its_first_iteration_alone(caplog):
    """Self-play, the ring and the learner, over iterations with and without rows to learn from."""
    programs = make_programs(CONFIG)
    state = programs.init()
    rows, compiled = [], []
    for iteration in range(4):
        state, row, count = _compilations(CONFIG, programs, state, iteration, caplog)
        rows.append(row)
        compiled.append(count)
    assert rows[0]["replay_rows"] == 0
    assert rows[-1]["replay_rows"] > 0
    assert "policy_loss" in rows[-1]
    assert compiled[0] > 2
    assert compiled[1:] == [0] * 3


def _compilations(config, programs, state, iteration, caplog):
    """An iteration, and how many programs it compiled."""
    caplog.clear()
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        state, row = run_iteration(config, programs, state, iteration)
    return state, row, sum("Finished XLA compilation" in text for text in caplog.messages)


@pytest.mark.slow
def test_memory_stays_flat_and_little_is_read():
    """Over fifty iterations: as many arrays and bytes on the device as after the tenth, and two
    reads an iteration, of metrics alone."""
    config = dataclasses.replace(CONFIG, iterations=50)
    programs = make_programs(config)
    state = programs.init()
    held, read = [], []
    for iteration in range(50):
        before = (READS.reads, READS.arrays)
        state, _ = run_iteration(config, programs, state, iteration)
        read.append((READS.reads - before[0], READS.arrays - before[1]))
        held.append(sum(x.nbytes for x in jax.live_arrays()))
    assert len(set(held[10:])) == 1, held
    assert {reads for reads, _ in read} == {2}
    metrics = len(SelfPlayMetrics._fields) + 1
    assert {arrays for _, arrays in read} <= {metrics, metrics + CONFIG.learner.steps * 9}


def test_the_search_decides_what_is_played():
    """A search that always takes the last legal slot is obeyed."""
    variant = tiny.variants(RULES, 8)
    selfplay = jax.jit(make_selfplay(last_search, plies=6))
    _, plies, _ = selfplay((), variant, start(variant), jax.random.key(0))
    slots = np.asarray(plies.slot)
    assert slots[0].tolist() == [15] * 8
    assert slots[1].tolist() == [14] * 8


def last_search(variables, states: State, key: jax.Array):
    """The last legal slot, in place of a search in little."""
    found = random_search()(variables, states, key)
    legal = jax.vmap(actions.legal_slots)(states)
    last = legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1)
    return found._replace(slot=last.astype(jnp.int32))


def surprised_search(variables, states: State, key: jax.Array):
    """Any legal slot, to a surprise of as many nats as plies were played."""
    found = random_search()(variables, states, key)
    return found._replace(surprise=states.position.ply.astype(jnp.float32))


@functools.cache
def play(*, share: float = 0.0):
    """40 plies of 6 boards, half of them searched in full."""
    variant = tiny.variants(RULES, 6)
    selfplay = make_selfplay(
        surprised_search,
        plies=40,
        cheap=last_search,
        full_search_prob=0.5,
        policy_surprise_weight=share,
    )
    _, plies, sums = jax.jit(selfplay)((), variant, start(variant), jax.random.key(2))
    return variant, *jax.device_get((plies, sums))


def test_one_coin_a_ply_decides_how_all_boards_are_searched():
    variant, plies, sums = play()
    weight = np.asarray(plies.policy_weight)
    assert weight.dtype == np.float32
    is_full = weight[:, 0] == 1
    np.testing.assert_array_equal(weight, np.broadcast_to(is_full[:, None], weight.shape))
    assert 10 < is_full.sum() < 30
    assert float(sums.full) == is_full.sum() * 6
    mask = np.asarray(legal_slots(variant, plies.position))
    last = mask.shape[-1] - 1 - mask[..., ::-1].argmax(axis=-1)
    is_last = np.asarray(plies.slot) == last
    assert is_last[~is_full].all()
    assert is_last[is_full].mean() < 0.3


def test_a_coin_key_decides_the_coins_and_nothing_else_does():
    variant = tiny.variants(RULES, 2)
    selfplay = jax.jit(
        make_selfplay(surprised_search, plies=40, cheap=last_search, full_search_prob=0.5)
    )
    coins, slots = {}, {}
    for key, coin_key in ((0, 5), (1, 5), (1, 6)):
        _, plies, _ = selfplay(
            (), variant, start(variant), jax.random.key(key), jax.random.key(coin_key)
        )
        coins[key, coin_key] = np.asarray(plies.policy_weight)[:, 0].tolist()
        slots[key, coin_key] = np.asarray(plies.slot).tolist()
    assert coins[0, 5] == coins[1, 5] != coins[1, 6]
    assert slots[0, 5] != slots[1, 5]


def test_without_a_cheap_search_there_is_no_coin():
    variant = tiny.variants(RULES, 2)
    text = {}
    for cheap in (None, last_search):
        selfplay = make_selfplay(random_search(), plies=2, cheap=cheap, full_search_prob=0.5)
        boards = start(variant)
        text[cheap] = str(jax.make_jaxpr(selfplay)((), variant, boards, jax.random.key(0)))
    assert "bernoulli" not in text[None]
    assert "bernoulli" in text[last_search]
    assert text[None].count(" cond[") < text[last_search].count(" cond[")


def test_weight_goes_by_surprise_among_plies_in_full():
    _, plain, _ = play()
    _, plies, _ = play(share=0.5)
    weight, is_full = np.asarray(plies.policy_weight), np.asarray(plain.policy_weight) == 1
    assert (weight[~is_full] == 0).all()
    assert weight[is_full].mean() == pytest.approx(1.0, rel=1e-5)
    nats = np.asarray(plies.position.ply, np.float64)
    expected = 0.5 + 0.5 * nats / nats[is_full].mean()
    np.testing.assert_allclose(weight[is_full], expected[is_full], rtol=1e-5)


def test_weights_of_no_surprise_and_of_no_ply_in_full():
    is_full = jnp.array([[1.0, 1.0], [0.0, 0.0]])
    weights = jax.jit(weigh)
    assert weights(is_full, jnp.zeros((2, 2)), share=1.0).tolist() == is_full.tolist()
    assert weights(jnp.zeros((2, 2)), jnp.ones((2, 2)), share=0.5).tolist() == [[0, 0], [0, 0]]


GROWING = tiny.config(
    "--search.kind=puct",
    "--search.simulations=8",
    "--search.first_simulations=4",
    "--iterations=4",
    "--selfplay.full_search_prob=0.5",
    "--selfplay.cheap_simulations=3",
    "--selfplay.policy_surprise_weight=0.5",
    "--selfplay.plies=16",
    "--network.reply=true",
)


@pytest.mark.slow
def test_nothing_compiles_after_the_first_iteration_of_growing_simulations(caplog):
    programs = make_programs(GROWING)
    state = programs.init()
    rows, compiled = [], []
    for iteration in range(GROWING.iterations):
        caplog.clear()
        with jax.log_compiles(), caplog.at_level(logging.WARNING):
            state, row = run_iteration(GROWING, programs, state, iteration)
        rows.append(row)
        compiled.append(sum("Finished XLA compilation" in text for text in caplog.messages))
        # Shares of visits tell how many there were.
        plies = jax.device_get(state.replay_state.plies)
        assert plies.terminated.shape[0] == GROWING.selfplay.plies
        is_full = plies.policy_weight[:, 0] > 0
        counts = np.where(is_full, row["simulations"], 3)
        visits = plies.policy.astype(np.float64) * counts[:, None, None]
        np.testing.assert_allclose(visits, visits.round(), atol=0.01)
        assert row["full_search_prob"] == is_full.mean()
    assert [row["simulations"] for row in rows] == [4, 4, 8, 8]
    assert compiled[0] > 3
    assert compiled[1:] == [0] * 3
    assert [row["replay_rows"] > 0 for row in rows] == [True] * 4
    assert [row["reuse"] for row in rows] == [2 * 8 / (4 * 16)] * 4
    assert all(np.isfinite(row["loss"]) for row in rows)


def test_a_run_resumed_late_compiles_what_is_left(monkeypatch):
    made = []

    def fake(config, simulations):
        made.append(simulations)
        nothing = jnp.zeros((1, 4))
        return lambda variables, variant, boards, key, coin_key: (
            boards.ply + simulations,
            nothing,
            0.0,
        )

    programs = make_programs(GROWING)
    monkeypatch.setattr(programs_lib, "selfplay_of", fake)
    variables = tiny.new_weights(network_for(GROWING.network, 2))
    for iteration, expected in ((1, 4), (2, 8), (3, 8)):
        boards = start(programs.variant)
        selfplay = programs.selfplay_at(iteration)
        found, _, _ = selfplay(variables, programs.variant, boards, jax.random.key(0))
        assert found.tolist() == [expected] * 4
        assert made == [4, 8]
