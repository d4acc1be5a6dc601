"""Self-play, compiled as users compile it, records the games that the referee plays."""

import dataclasses
from typing import NamedTuple

import chex
import jax
import numpy as np
import pytest

from tests.support import compiling
from tests.support.learner import small_run, tiny
from tests.support.learner.loop import Loop
from train.data.best_slots import KEPT, spread_out
from train.data.selfplay import Boards, first_boards, sum_by_board
from train.network import NetworkConfig
from train.runtime.host import READS
from wallgo_jax.game import actions, referee
from wallgo_jax.game.state import State, initial_position

FIGURES = 7 + (7 + 3 + 3) * 2 + 2 * 3
"""Numbers that self-play leaves: sums; entropies, also of classes of moves, and shares of these in
two parts; diversity of setups and openings."""

ITERATIONS = 12
CONFIG = dataclasses.replace(
    small_run.CONFIG,
    iterations=ITERATIONS,
    rules=tiny.RULES,
    network=NetworkConfig(width=8, value_width=8, planes="B"),
)

start = jax.jit(first_boards)
legal_slots = jax.jit(jax.vmap(jax.vmap(lambda v, p: actions.legal_slots(State(v, p))), (None, 0)))
"""(variant [B], position [T, B]) -> bool[T, B, A]."""


class Run(NamedTuple):
    """Some iterations of a run."""

    loop: Loop
    rows: list[dict]
    compiled: list[int]
    """Number of programs that each iteration compiled itself, once all were compiled ahead."""
    read: list[tuple[int, int]]
    """Reads from the devices in each iteration, and arrays that were read."""
    held: list[int]
    """Bytes of this run's and of all other arrays after each iteration."""


@pytest.fixture(scope="module", autouse=True)
def compiled_as_users():
    with compiling.as_users():
        yield


@pytest.fixture(scope="module")
def trained() -> Run:
    run = Run(Loop(CONFIG), [], [], [], [])
    run.loop.compile()
    for iteration in range(ITERATIONS):
        before = READS.reads, READS.arrays
        with compiling.count_compilations() as count:
            row = run.loop.iterate(iteration)
        run.rows.append(row)
        run.compiled.append(count())
        run.read.append((READS.reads - before[0], READS.arrays - before[1]))
        run.held.append(sum(x.nbytes for x in jax.live_arrays()))
    return run


def new_boards(run: Run) -> Boards:
    """Laid on the devices like the run's own, for which the program is compiled."""
    like = jax.tree.map(lambda x: x.sharding, run.loop.state.boards)
    return jax.device_put(start(run.loop.variant), like)


@pytest.fixture(scope="module")
def played(trained: Run):
    """Two iterations of 12 plies on 8 new boards, joined: (variant [B], plies [24, B], sums)."""
    boards, parts, sums = new_boards(trained), [], []
    for iteration in (1, 2):
        boards, plies, metrics = trained.loop.play(iteration, boards)
        parts.append(plies)
        sums.append(metrics.sums)
    parts, sums = jax.device_get((parts, sums))
    plies = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    return (
        jax.device_get(trained.loop.variant),
        plies,
        jax.tree.map(lambda *x: float(sum(x)), *sums),
    )


def test_each_ply_follows_from_the_one_before(played):
    """Games go on where they stood, also from one iteration to the next."""
    variant, plies, _ = played
    step = jax.jit(jax.vmap(referee.step))
    fresh = jax.device_get(jax.jit(jax.vmap(initial_position))(variant))
    chex.assert_trees_all_equal(jax.tree.map(lambda x: x[0], plies.position), fresh)
    for ply in range(24):
        now = jax.tree.map(lambda x, ply=ply: x[ply], plies)
        after, rewards = jax.device_get(step(State(variant, now.position), now.slot))
        np.testing.assert_array_equal(now.outcome.rewards, rewards)
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
    policy = np.asarray(spread_out(plies.policy, legal.shape[-1]), np.float32)
    rest = np.asarray(plies.policy.rest, np.float32)
    np.testing.assert_allclose(policy.sum(axis=-1) + rest, 1.0, atol=5e-3)
    assert (policy[~legal] == 0).all()
    assert (rest[legal.sum(axis=-1) <= KEPT] == 0).all()
    played_slot = plies.slot[..., None].astype(int)
    assert np.take_along_axis(legal, played_slot, axis=-1).all()


def test_sums_are_counted(played):
    _, plies, sums = played
    ended = np.asarray(plies.terminated)
    assert sums.positions == 24 * 8
    found = sum_by_board(plies)
    assert found.games.sum() == ended.sum() > 4
    red = np.asarray(plies.outcome.rewards)[..., 0]
    for board in range(8):
        own = ended[:, board]
        lengths = np.asarray(plies.position.ply)[own, board] + 1
        assert (found.games[board], found.length[board]) == (own.sum(), lengths.sum())
        assert found.red_wins[board] == (red[own, board] > 0).sum()
        assert found.draws[board] == (red[own, board] == 0).sum()


def test_a_run_compiles_in_its_first_iteration_alone(trained: Run):
    """Self-play, replay and learner, over iterations with and without rows to learn from."""
    rows, compiled = trained.rows, trained.compiled
    assert rows[-1]["replay_positions"] > 0
    assert "policy_loss" in rows[-1]
    # All is compiled ahead: no iteration waits for it, nor the first that learns. One program may
    # be the counter's addition.
    assert compiled[0] <= 1
    assert compiled[1:] == [0] * (ITERATIONS - 1)


def test_each_device_plays_other_games(played):
    """The boards start alike, half of them on each of two devices."""
    _, plies, _ = played
    assert jax.device_count() == 2
    slots = np.asarray(plies.slot)
    assert (slots[:, :4] != slots[:, 4:]).any()


def test_memory_stays_flat_and_little_is_read(trained: Run):
    """After all iterations the device holds the same number of bytes as after a few; each makes two
    reads, of metrics alone."""
    assert len(set(trained.held[4:])) == 1, trained.held
    assert {reads for reads, _ in trained.read} == {2}
    metrics = FIGURES + 3
    steps = range(CONFIG.learner.steps + 1)
    assert {arrays for _, arrays in trained.read} <= {metrics + taken * 9 for taken in steps}
