"""Self-play against the referee: what is written down is what was played."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.config import EvaluationConfig, ReplayConfig, RunConfig
from train.learner import LearnerConfig
from train.loop import make_programs, run_iteration
from train.network import NetworkConfig
from train.roster import evaluator_for, network_for
from train.search import SearchConfig, make_search
from train.selfplay import SelfPlayConfig, first_boards, make_selfplay
from wallgo_jax import Rules
from wallgo_jax.game import actions, referee
from wallgo_jax.game.state import State, initial_position

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


@pytest.fixture(scope="module")
def played():
    """Two iterations of 12 plies on 8 boards, joined: (variant [B], plies [24, B], sums)."""
    programs = make_programs(CONFIG)
    variables = network_for(CONFIG.network, 2).init(jax.random.key(0))
    boards = first_boards(programs.variant)
    parts, sums = [], []
    for key in jax.random.split(jax.random.key(1), 2):
        boards, plies, metrics = programs.selfplay(variables, programs.variant, boards, key)
        parts.append(plies)
        sums.append(metrics)
    plies = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    return programs.variant, plies, jax.tree.map(lambda *x: float(sum(x)), *sums)


def test_each_ply_follows_from_the_one_before(played):
    """Also from one iteration to the next: games go on where they stood."""
    variant, plies, _ = played
    step = jax.jit(jax.vmap(lambda state, slot: referee.step(state, slot, grid=4)))
    fresh = jax.vmap(initial_position)(variant)
    chex.assert_trees_all_equal(jax.tree.map(lambda x: x[0], plies.position), fresh)
    for ply in range(24):
        now = jax.tree.map(lambda x, ply=ply: x[ply], plies)
        after, rewards = step(State(variant, now.position), now.slot)
        np.testing.assert_array_equal(now.paid.rewards, rewards)
        np.testing.assert_array_equal(now.terminated, after.position.terminated)
        if ply < 23:
            following = jax.tree.map(lambda x, ply=ply: x[ply + 1], plies.position)
            over = now.terminated
            for got, new, old in zip(following, fresh, after.position, strict=True):
                where = over.reshape(-1, *[1] * (new.ndim - 1))
                np.testing.assert_array_equal(got, np.where(where, new, old))


def test_policies_are_distributions_over_legal_slots(played):
    variant, plies, _ = played
    legal = jax.vmap(
        lambda position: jax.vmap(lambda v, p: actions.legal_slots(State(v, p), grid=4))(
            variant, position
        )
    )(plies.position)
    policy = np.asarray(plies.policy, np.float32)
    np.testing.assert_allclose(policy.sum(axis=-1), 1.0, atol=5e-3)
    assert (policy[~np.asarray(legal)] == 0).all()
    played_slot = np.asarray(plies.slot)[..., None].astype(int)
    assert np.take_along_axis(np.asarray(legal), played_slot, axis=-1).all()


def test_sums_are_counted(played):
    _, plies, sums = played
    ended = np.asarray(plies.terminated)
    assert sums.games == ended.sum() > 4
    assert sums.positions == 24 * 8
    assert sums.length == (np.asarray(plies.position.ply)[ended] + 1).sum()
    red = np.asarray(plies.paid.rewards)[..., 0]
    assert sums.red_wins == (red > 0).sum()
    assert sums.draws == (red[ended] == 0).sum()


def test_a_run_traces_each_program_once():
    """Self-play, the ring and the learner, over iterations with and without rows to learn from."""
    programs = make_programs(CONFIG)
    chex.clear_trace_counter()
    watched = programs._replace(
        **{
            name: _retrace_watch(getattr(programs, name).__wrapped__, donate)
            for name, donate in (("selfplay", 2), ("append", 0), ("learn", 0))
        }
    )
    state = programs.init()
    rows = []
    for iteration in range(4):
        state, row = run_iteration(CONFIG, watched, state, iteration)
        rows.append(row)
    assert rows[-1]["replay_rows"] > 0
    assert "policy_loss" in rows[-1]


def _retrace_watch(function, donated: int):
    return jax.jit(chex.assert_max_traces(function, n=1), donate_argnums=donated)


def test_the_search_decides_what_is_played():
    """A search that always takes the last legal slot is obeyed."""
    evaluate = evaluator_for(CONFIG.network, RULES)
    real = make_search(evaluate, CONFIG.search, grid=4, gumbel_scale=1.0)

    def stubborn(variables, states, key):
        found = real(variables, states, key)
        legal = jax.vmap(lambda s: actions.legal_slots(s, grid=4))(states)
        last = legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1)
        return found._replace(slot=last.astype(jnp.int32))

    programs = make_programs(CONFIG)
    selfplay = jax.jit(make_selfplay(stubborn, grid=4, plies=6))
    variables = network_for(CONFIG.network, 2).init(jax.random.key(0))
    _, plies, _ = selfplay(
        variables, programs.variant, first_boards(programs.variant), jax.random.key(0)
    )
    assert plies.slot[0].tolist() == [15] * 8
    assert plies.slot[1].tolist() == [14] * 8
