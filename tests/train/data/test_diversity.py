"""Figures of diversity, against plain counting on the host."""

import collections

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.random_search import random_search
from train.data import diversity
from train.data.config import SelfPlayConfig
from train.data.diversity import OPENING_PLIES, opening_diversity, policy_figures
from train.data.selfplay import first_boards, make_selfplay
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.game.state import State

BOARDS, PLIES = 60, 30
openings_of = jax.jit(opening_diversity)


@pytest.fixture(scope="module", params=["tiny", "wallzero-empty"])
def played(request):
    """(variant [B], random plies [T, B])."""
    rules = tiny.RULES if request.param == "tiny" else PRESETS[request.param]
    variant = tiny.variants(rules, BOARDS)
    selfplay = jax.jit(make_selfplay(random_search(), SelfPlayConfig(plies=PLIES)))
    _, plies, _ = selfplay((), variant, jax.jit(first_boards)(variant), jax.random.key(1))
    return jax.device_get((variant, plies))


def counted(positions, where: np.ndarray) -> tuple[int, int, int]:
    """Games, distinct ones and those of the most frequent, by what stands on the boards."""
    found = collections.Counter()
    for row, board in np.argwhere(where):
        stones = tuple(tuple(sorted(own)) for own in positions.stones[row, board].tolist())
        found[stones, positions.walls[row, board].tobytes()] += 1
    return sum(found.values()), len(found), max(found.values(), default=0)


def test_openings_are_counted(played):
    variant, plies = played
    setups, found = jax.device_get(openings_of(variant, plies.position))
    positions = jax.device_get(plies.position)
    setup = int(variant.num_placements[0])
    assert tuple(map(int, setups)) == counted(positions, positions.ply == setup)
    openings = counted(positions, positions.ply == OPENING_PLIES)
    assert tuple(map(int, found)) == openings
    assert openings[0] > 10


def test_repeats_are_counted_on_all_devices(played):
    """The join doubles the positions."""
    variant, plies = played
    join = jax.jit(lambda v, p: opening_diversity(v, p, lambda own: jax.numpy.stack([own, own])))
    (double, _), (alone, _) = (f(variant, plies.position) for f in (join, openings_of))
    assert int(double.games) == 2 * int(alone.games) > 0
    assert int(double.distinct) == int(alone.distinct)
    assert int(double.mode) == 2 * int(alone.mode)


def test_no_game_is_no_opening(played):
    """Boards before their first ply."""
    variant, plies = played
    first = jax.tree.map(lambda x: np.broadcast_to(x[:1], x.shape), plies.position)
    found = jax.device_get(openings_of(variant, first))
    assert [int(x) for x in jax.tree.leaves(found)] == [0] * 6


def entropy_of(weights: np.ndarray) -> float:
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log(share)).sum())


def test_entropies_by_phase_and_kind(played):
    variant, plies = played
    slots = plies.policy.shape[-1]
    rng = np.random.default_rng(0)
    policy = rng.dirichlet(np.ones(slots), (BOARDS,)).astype(np.float32)
    figures, names = jax.jit(policy_figures), ("stay", "one_step", "two_steps")
    for row in (0, 5, 20, 29):
        position = jax.tree.map(lambda x, row=row: x[row], plies.position)
        found = jax.device_get(figures(policy, State(variant, position)))
        shares = [found.pop(f"policy_share_{name}") for name in names]
        classes = [found.pop(f"policy_entropy_{name}") for name in names]
        found["policy_entropy_all"] = found.pop("policy_entropy")
        found = {name.removeprefix("policy_entropy_"): mean for name, mean in found.items()}
        for board in range(BOARDS):
            ply = int(position.ply[board])
            in_setup = ply < int(variant.num_placements[board])
            later = (ply >= diversity.MIDDLE_PLY) + (ply >= diversity.LATE_PLY)
            phase = "placement" if in_setup else ("opening", "middle", "late")[later]
            about = {name for name, mean in found.items() if mean.weight[board] == 1}
            assert about == {"all", phase} | (set() if in_setup else {"steps", "wall"})
            whole = entropy_of(policy[board])
            assert found[phase].total[board] == pytest.approx(whole, rel=1e-4)
            if in_setup:
                assert all(mean.weight[board] == 0 for mean in (*classes, *shares))
                continue
            stones = position.stones.shape[-1]
            plays = policy[board, : stones * 52].reshape(stones, 13, 4).astype(float)
            # Moves 1 to 4 have one step, those after them two.
            own = [plays[:, :1], plays[:, 1:5], plays[:, 5:]]
            steps = [each.sum() for each in own]
            assert found["steps"].total[board] == pytest.approx(
                entropy_of(np.array(steps)), rel=1e-3
            )
            for weight, each, inside, share in zip(steps, own, classes, shares, strict=True):
                assert share.weight[board] == 1
                assert share.total[board] == pytest.approx(weight, rel=1e-4)
                assert inside.weight[board] == pytest.approx(weight, rel=1e-4)
                nats = inside.total[board] / inside.weight[board]
                assert nats == pytest.approx(entropy_of(each.ravel()), rel=1e-3)
            moves = plays.sum(axis=-1).ravel()
            given = sum(
                share * entropy_of(walls)
                for share, walls in zip(moves, plays.reshape(-1, 4), strict=True)
                if share > 0
            )
            assert found["wall"].total[board] == pytest.approx(given, rel=1e-3)
