"""Self-play, compiled as users compile it, records the games that the referee plays."""

import dataclasses
from typing import Any, NamedTuple

import chex
import jax
import numpy as np
import pytest

from tests.support import compiling
from tests.support.learner import small_run, tiny
from train.data.selfplay import Boards, first_boards
from train.loop.selfplay import sum_by_board
from train.loop.train_step import RunPrograms, TrainState, make_run_programs
from train.loop.training import run_iteration
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

    programs: RunPrograms
    state: TrainState
    rows: list[dict]
    compiled: list[int]
    """Number of programs that each iteration compiled itself, after `RunPrograms.compile`."""
    waited: list[float]
    """Seconds that `RunPrograms.compile` took before each iteration."""
    read: list[tuple[int, int]]
    """Reads from the devices in each iteration, and arrays that were read."""
    held: list[int]
    """Bytes of this run's and of all other arrays after each iteration."""


@pytest.fixture(scope="module")
def trained() -> Run:
    programs = make_run_programs(CONFIG)
    run = Run(programs, programs.init(), [], [], [], [], [])
    with compiling.as_users():
        play(run, new_boards(run), 0)
    for iteration in range(ITERATIONS):
        run.waited.append(programs.compile(iteration))
        before = READS.reads, READS.arrays
        with compiling.count_compilations() as count:
            state, row = run_iteration(programs, run.state, iteration)
        run = run._replace(state=state)
        run.rows.append(row)
        run.compiled.append(count())
        run.read.append((READS.reads - before[0], READS.arrays - before[1]))
        run.held.append(sum(x.nbytes for x in jax.live_arrays()))
    return run


def new_boards(run: Run) -> Boards:
    """Laid on the devices like the run's own, for which the program is compiled."""
    like = jax.tree.map(lambda x: x.sharding, run.state.boards)
    return jax.device_put(start(run.programs.variant), like)


def play(run: Run, boards: Boards, iteration: int) -> Any:
    key = run.programs.keys(iteration).play
    return run.programs.play(0, run.state.learner.player, boards, key)


@pytest.fixture(scope="module")
def played(trained: Run):
    """Two iterations of 12 plies on 8 new boards, joined: (variant [B], plies [24, B], sums)."""
    boards, parts, sums = new_boards(trained), [], []
    for iteration in (1, 2):
        boards, plies, metrics = play(trained, boards, iteration)
        parts.append(plies)
        sums.append(metrics.sums)
    parts, sums = jax.device_get((parts, sums))
    plies = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    return (
        jax.device_get(trained.programs.variant),
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
    assert sums.positions == 24 * 8
    found = sum_by_board(plies)
    assert found.games.sum() == ended.sum() > 4
    red = np.asarray(plies.step_outcome.rewards)[..., 0]
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
    # The compiler's time is apart: no iteration waits for it, nor the first that learns. One
    # program may be the counter's addition, made when the iteration has been timed.
    assert compiled[0] <= 1
    assert compiled[1:] == [0] * (ITERATIONS - 1)
    assert trained.waited[0] > 0
    assert trained.waited[1:] == [0.0] * (ITERATIONS - 1)


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
