"""Plies that self-play draws: openings, random or by the raw policy, and a temperature."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.random_search import random_search
from train.data.config import SelfPlayConfig
from train.data.exploration import temperature_at
from train.data.selfplay import first_boards, make_selfplay, stagger
from train.loop import stages
from train.loop.tables import tables_of
from train.network import MASKED
from train.runtime.devices import all_devices
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

BOARDS, PLIES = 400, 24
LEGAL = 8
"""Cells left for the second placement of the 3x3 board."""
SETUP, MOST = 2, 2
"""Plies of the setup, and the most that are drawn after it."""


def ranked(states: State) -> jax.Array:
    """int32[B, A]: the number of legal slots before each slot; -1 for an illegal one."""
    legal = jax.vmap(actions.legal_slots)(states)
    return jnp.where(legal, jnp.cumsum(legal, axis=1) - 1, -1)


def third_search(variables, states: State, key: jax.Array):
    """Chooses the third legal slot, whose policy is 2 : 1 for the second and the first, and whose
    raw policy is 3 : 1 for the fifth and the fourth."""
    found, rank = random_search()(variables, states, key), ranked(states)
    logits = jnp.where(rank == 4, jnp.log(3.0), jnp.where(rank == 3, 0.0, -1e9))
    return found._replace(
        slot=(rank == 2).argmax(axis=1).astype(jnp.int32),
        policy=jnp.where(rank == 1, 2 / 3, jnp.where(rank == 0, 1 / 3, 0.0)),
        prior=jnp.where(rank >= 0, logits, MASKED),
    )


@functools.cache
def play(**options):
    """Two iterations on the 3x3 board: ranks of the played slots, weights and plies, [2T, B]."""
    variant = tiny.variants(tiny.RULES, BOARDS)
    selfplay = jax.jit(make_selfplay(third_search, SelfPlayConfig(plies=PLIES, **options)))
    boards, parts = jax.jit(first_boards)(variant), []
    ranks = jax.jit(jax.vmap(lambda position: ranked(State(variant, position))))
    for key in jax.random.split(jax.random.key(5)):
        boards, made, sums = selfplay((), variant, boards, key)
        slot = made.slot.astype(jnp.int32)[..., None]
        rank = jnp.take_along_axis(ranks(made.position), slot, axis=-1)[..., 0]
        parts.append((rank, made.policy_weight, made.position.ply))
        assert int(sums.drawn) == int((made.policy_weight == 0).sum())
        assert int(sums.full) == PLIES * BOARDS
    return [np.concatenate(part) for part in zip(*jax.device_get(parts), strict=True)]


def shares(ranks: np.ndarray) -> np.ndarray:
    return np.bincount(ranks, minlength=LEGAL) / ranks.size


def near(expected: list[float], size: int) -> object:
    """Within five standard deviations."""
    return pytest.approx(expected, abs=5 * np.sqrt(0.25 / size))


def openings(weight: np.ndarray, ply: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each game that lasted longer than its opening can: whether its setup was drawn, and how
    many plies after that. All of a setup is drawn or none, and nothing else is."""
    setups, counts = [], []
    for board in range(weight.shape[1]):
        starts = np.flatnonzero(ply[:, board] == 0)
        for start, end in itertools.pairwise(starts):
            drawn = weight[start:end, board] == 0
            setup, after = drawn[:SETUP], drawn[SETUP:]
            assert setup.all() or not setup.any()
            assert (after == (np.arange(len(after)) < after.sum())).all()
            if len(after) > MOST:
                setups.append(setup[0])
                counts.append(after.sum())
    return np.array(setups), np.array(counts)


def test_each_game_draws_its_setup_and_its_number_of_plies():
    rank, weight, ply = play(setup_prob=0.25, opening_prob=0.6, opening_plies=MOST)
    setups, counts = openings(weight, ply)
    assert counts.size > 300
    assert setups.mean() == near(0.25, counts.size)
    assert np.bincount(counts, minlength=MOST + 1) / counts.size == near(
        [0.4, 0.3, 0.3], counts.size
    )
    # One does not hang on the other.
    assert np.corrcoef(setups, counts > 0)[0, 1] == pytest.approx(0, abs=5 / np.sqrt(counts.size))
    # Drawn plies are of the raw policy and teach no policy; the others are the search's.
    drawn = weight == 0
    first = rank[drawn & (ply < SETUP)]
    assert shares(first)[3:5] == near([0.25, 0.75], first.size)
    assert set(rank[~drawn & (ply < SETUP)]) == {2}


def test_share_of_random_openings():
    """Random ones take any legal ply."""
    rank, weight, ply = play(setup_prob=1.0, opening_plies=MOST, random_opening_prob=0.25)
    setups, counts = openings(weight, ply)
    assert setups.all() and counts.min() == 1 and counts.max() == MOST
    first = rank[(weight == 0) & (ply == 1)]
    others = [0.25 / LEGAL] * LEGAL
    others[3] += 0.75 / 4
    others[4] += 0.75 * 3 / 4
    assert shares(first) == near(others, first.size)


def test_first_games_stand_at_all_plies_and_go_on_from_there():
    """So that the first iterations search placements, too, whatever their coins are."""
    variant = tiny.variants(tiny.RULES, BOARDS)

    @jax.jit
    def start(key: jax.Array):
        return stagger(variant, first_boards(variant), key, plies=8)

    key, other_key = jax.random.split(jax.random.key(3))
    boards, same, other = start(key), start(key), start(other_key)
    ply = np.asarray(boards.position.ply)
    # All games have their placements, and none ends within four plies.
    shares = np.bincount(ply, minlength=9) / BOARDS
    assert (shares[:4] > 1 / 9 - 5 * np.sqrt(1 / 9 / BOARDS)).all()
    assert not np.asarray(boards.position.terminated).any()
    assert not np.asarray(boards.opening.plies).any()
    # As many stones as placements, as many walls as plays.
    stones = (np.asarray(boards.position.stones) >= 0).sum(axis=(1, 2))
    np.testing.assert_array_equal(stones, np.minimum(ply, SETUP))
    walls = np.bitwise_count(np.asarray(boards.position.walls)).sum(axis=(1, 2, 3))
    np.testing.assert_array_equal(walls, np.maximum(ply - SETUP, 0))
    chex.assert_trees_all_equal(boards, same)
    assert (ply != np.asarray(other.position.ply)).any()


def test_temperature_draws_from_the_policy_and_learns_it():
    """It is 1/2 at the second ply and next to nothing at the fourth."""
    rank, weight, ply = play(
        temperature=0.01 + 0.49 * 2**5, final_temperature=0.01, temperature_halflife=0.2
    )
    first = rank[ply == 1]
    assert shares(first)[:2] == near([0.2, 0.8], first.size)  # 1 : 2 squared
    assert (weight == 1).all()
    assert (rank[ply == 3] == 1).mean() > 0.9


def test_temperature_decays_by_halves():
    options = SelfPlayConfig(temperature=0.8, final_temperature=0.2, temperature_halflife=7.0)
    found = jax.jit(lambda ply: temperature_at(ply, options))(jnp.array([0, 7, 14, 1000]))
    np.testing.assert_allclose(found, [0.8, 0.5, 0.35, 0.2], rtol=1e-6)


@pytest.mark.parametrize("has_noise", [False, True])
def test_cheap_plies_keep_the_noise_where_asked(monkeypatch, has_noise):
    made = []

    def fake(evaluate, config, *, budgets, model):
        assert model is None
        made.extend(budgets)
        return lambda variables, states, key, budget: random_search()(variables, states, key)

    monkeypatch.setattr(stages, "make_search", fake)
    config = tiny.config(
        "--selfplay.full_search_prob=0.5",
        "--search.simulations=8",
        f"--selfplay.cheap_noise={str(has_noise).lower()}",
    )
    play = tables_of(config, all_devices(1)).play
    assert play is not None
    stages.selfplay_of(play, 8)
    assert made == [(8, True), (4, has_noise)]
