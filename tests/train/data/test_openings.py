"""Plies that self-play draws: openings, random or by the raw policy, and a temperature."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from train.bench.parts.search import random_search
from train.data.openings import Exploration, temperature_at
from train.data.selfplay import first_boards, make_selfplay
from train.network import MASKED
from train.programs import selfplay as selfplay_programs
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

BOARDS, PLIES = 400, 24
LEGAL = 8
"""Cells left for the second placement of the 3x3 board."""


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
    exploration = Exploration(**options)
    selfplay = jax.jit(make_selfplay(third_search, plies=PLIES, exploration=exploration))
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


def lengths(weight: np.ndarray, ply: np.ndarray) -> np.ndarray:
    """The number of drawn plies of each game that lasted more than four, and no others."""
    found = []
    for board in range(weight.shape[1]):
        starts = np.flatnonzero(ply[:, board] == 0)
        for start, end in itertools.pairwise(starts):
            drawn = weight[start:end, board] == 0
            assert (drawn == (np.arange(end - start) < drawn.sum())).all()
            if end - start > 4:
                found.append(drawn.sum())
    return np.array(found)


def test_each_game_draws_its_own_number_of_first_plies():
    rank, weight, ply = play(opening_plies=3)
    found = lengths(weight, ply)
    assert found.size > 500
    assert shares(found)[:4] == near([0.25] * 4, found.size)
    # Drawn plies are of the raw policy and teach no policy; the others are the search's.
    drawn = weight == 0
    first = rank[drawn & (ply < 2)]
    assert shares(first)[3:5] == near([0.25, 0.75], first.size)
    assert set(rank[~drawn & (ply < 2)]) == {2}


def test_share_of_random_openings():
    """Random ones take any legal ply, and at least one."""
    rank, weight, ply = play(opening_plies=3, random_opening_prob=0.25)
    found = lengths(weight, ply)
    least, more = 0.75 / 4, 0.75 / 4 + 0.25 / 3
    assert shares(found)[:4] == near([least, more, more, more], found.size)
    first = rank[(weight == 0) & (ply == 1)]
    # Of the games with two drawn plies or more, a quarter of 2/3 random ones, the rest of 2/4.
    share = 0.25 * 2 / 3 / (0.25 * 2 / 3 + 0.75 * 2 / 4)
    others = [share / LEGAL] * LEGAL
    others[3] += (1 - share) / 4
    others[4] += (1 - share) * 3 / 4
    assert shares(first) == near(others, first.size)


def test_temperature_draws_from_the_policy_and_learns_it():
    """It is 1/2 at the second ply and next to nothing at the fourth."""
    rank, weight, ply = play(
        temperature=0.01 + 0.49 * 2**10, final_temperature=0.01, temperature_halflife=0.1
    )
    first = rank[ply == 1]
    assert shares(first)[:2] == near([0.2, 0.8], first.size)  # 1 : 2 squared
    assert (weight == 1).all()
    assert (rank[ply == 3] == 1).mean() > 0.9


def test_temperature_decays_by_halves():
    options = Exploration(temperature=0.8, final_temperature=0.2, temperature_halflife=7.0)
    found = jax.jit(lambda ply: temperature_at(ply, options))(jnp.array([0, 7, 14, 1000]))
    np.testing.assert_allclose(found, [0.8, 0.5, 0.35, 0.2], rtol=1e-6)


@pytest.mark.parametrize("has_noise", [False, True])
def test_cheap_plies_keep_the_noise_where_asked(monkeypatch, has_noise):
    made = []

    def fake(evaluate, config, budgets, *, has_boosts, model):
        assert not has_boosts and model is None
        made.extend(budgets)
        return lambda variables, states, key, budget: random_search()(variables, states, key)

    monkeypatch.setattr(selfplay_programs, "make_budgeted_search", fake)
    config = tiny.config(
        "--selfplay.full_search_prob=0.5",
        "--search.simulations=8",
        f"--selfplay.cheap_noise={str(has_noise).lower()}",
    )
    selfplay_programs.selfplay_of(config, selfplay_programs.stage_at(config, 0))
    assert made == [(8, True), (4, has_noise)]
