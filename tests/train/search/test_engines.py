"""The two engines make the same visits, choices and policies, and search the exact game alone; one
that is told its budget finds what a search of that budget finds."""

import dataclasses
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support import compiling
from tests.support.learner import hashed_game
from tests.support.learner.searching import (
    DUEL,
    FOUR_STONES,
    Grown,
    even_evaluator,
    grown,
    repeat,
)
from train.functions import Function
from train.network import MASKED
from train.search.config import ENGINES, SearchConfig
from train.search.gumbel import make_gumbel
from train.search.puct import make_puct
from train.search.search import make_engine, make_search
from train.search.tree import Budget
from wallgo_jax.game.state import State, initial_state

PLIES = (4, 1, 12)
GUMBEL = SearchConfig(simulations=32)


def _found(engine: str) -> Grown:
    return grown(FOUR_STONES, PLIES, dataclasses.replace(GUMBEL, engine=engine), False)


def _depth_below_an_end(found: Grown) -> int:
    """The depth of a tree below steps that end the game."""
    depth = np.zeros(found.parents.shape, int)
    edges = found.edges
    for board, node, child, discount in sorted(
        zip(edges.board, edges.node, edges.child, edges.discount, strict=True), key=lambda x: x[2]
    ):
        below = depth[board, node]
        depth[board, child] = below + 1 if below or discount == 0 else 0
    return int(depth.max())


def _assert_same(native: Grown, by_mctx: Grown) -> None:
    np.testing.assert_array_equal(native.root_visits, by_mctx.root_visits)
    np.testing.assert_array_equal(native.choice.slot, by_mctx.choice.slot)
    for name in ("policy", "value"):
        ours, theirs = (getattr(found.choice, name) for found in (native, by_mctx))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    # Whatever node we made, mctx made in the same simulation, at the same place.
    is_made = native.node_visits > 0
    np.testing.assert_array_equal(native.node_visits[is_made], by_mctx.node_visits[is_made])
    np.testing.assert_array_equal(native.parents[is_made], by_mctx.parents[is_made])
    np.testing.assert_allclose(native.values[is_made], by_mctx.values[is_made], atol=1e-5)


def _assert_all_asked(native: Grown, by_mctx: Grown) -> None:
    """There was all that the two could differ in: ends, and sides that move twice."""
    assert _depth_below_an_end(by_mctx) >= 3
    assert _depth_below_an_end(native) == 1
    assert {-1.0, 0.0, 1.0} <= set(np.unique(by_mctx.edges.discount))


def test_searches_of_the_game_are_the_same():
    """`tests/train/engine/test_reuse.py` compares PUCT with a slow search."""
    native, by_mctx = map(_found, ENGINES)
    _assert_same(native, by_mctx)
    _assert_all_asked(native, by_mctx)


# PUCT's ties are broken by noise that is drawn anew at each level, so the keys count as well. The
# last weighs the prior as little as mctx may without visits to illegal slots.
OTHER_WEIGHTS = [
    (hashed_game.GUMBEL, True, hashed_game.GUMBEL_BOARDS),
    (hashed_game.PUCT, True, hashed_game.PUCT_BOARDS),
    (SearchConfig(24, kind="puct", first_play="mctx", c_init=0.001, c_base=1e9), False, 7),
]


@pytest.mark.parametrize(("config", "explores", "boards"), OTHER_WEIGHTS)
def test_searches_of_a_game_of_hashes_are_the_same(config, explores, boards):
    native, by_mctx = (
        hashed_game.hashes_grown(
            dataclasses.replace(config, engine=engine), explores=explores, boards=boards
        )
        for engine in ENGINES
    )
    _assert_same(native, by_mctx)
    _assert_all_asked(native, by_mctx)
    assert (native.root_visits.sum(axis=1) == config.simulations).all()
    edges, logits = native.edges, native.choice.tree.logits
    assert (logits[edges.board, edges.node, edges.slot] > MASKED).all()


@pytest.mark.parametrize("config", [OTHER_WEIGHTS[0], OTHER_WEIGHTS[2]], ids=["gumbel", "puct"])
def test_legacy_keys_find_what_typed_ones_find(config):
    config, explores, boards = config
    typed = hashed_game.chosen(config, explores, boards)
    search = hashed_game.compiled(make_engine(config, explores=explores))
    legacy = search(jax.random.PRNGKey(hashed_game.SEED), hashed_game.roots(boards))
    jax.tree.map(np.testing.assert_array_equal, typed, legacy)


@pytest.mark.parametrize("engine", ENGINES)
def test_finished_games_are_exact_leaves(engine):
    found = _found(engine)
    edges = found.edges
    over = found.positions.terminated
    ended = over[edges.board, edges.child]
    assert ended.sum() > 30 and (~ended).sum() > 100
    assert (edges.discount[ended] == 0).all()
    assert (np.abs(edges.discount[~ended]) == 1).all()
    assert set(np.unique(edges.reward[ended])) <= {-1.0, 0.0, 1.0}
    assert {-1.0, 1.0} <= set(np.unique(edges.reward[ended]))
    assert (edges.reward[~ended] == 0).all()
    assert (edges.value[ended] == 0).all()
    if engine == "native":
        # Nothing is below an end, but for boards that were over at the root.
        from_end = over[edges.board, edges.node]
        assert (edges.node[from_end] == 0).all()


def test_mctx_is_not_loaded_for_the_native_engine():
    code = (
        "import sys\n"
        "from train.search.search import make_engine\n"
        "from train.search.config import SearchConfig\n"
        "for kind in ('gumbel', 'puct'):\n"
        "    make_engine(SearchConfig(kind=kind), explores=True)\n"
        "assert 'mctx' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=compiling.environment())


BUDGETS = Budget(24, True), Budget(9, False)


@pytest.mark.parametrize(
    ("make", "weights"),
    [(make_gumbel, OTHER_WEIGHTS[0]), (make_puct, OTHER_WEIGHTS[1])],
    ids=["gumbel", "puct"],
)
def test_each_budget_finds_what_it_finds_alone(make, weights):
    """`test_search` asks such a search of real games."""
    config, _, boards = weights
    search, slots = hashed_game.compiled(make(config, BUDGETS)), []
    for index, (simulations, explores) in enumerate(BUDGETS):
        root = hashed_game.roots(boards)._replace(budget=np.int32(index))
        found = search(jax.random.key(hashed_game.SEED), root)
        alone = dataclasses.replace(config, simulations=simulations)
        expected = hashed_game.chosen(alone, explores, boards)
        np.testing.assert_array_equal(found.slot, expected.slot)
        for one, other in ((found.policy, expected.policy), (found.value, expected.value)):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
        slots.append(found.slot.tolist())
    assert slots[0] != slots[1]


def test_elsewhere_each_budget_is_a_search_of_its_own():
    """A search that Python passes: it plays the last legal slot, and its value is its budget."""

    def own(ask: Any, states: State, key: jax.Array, *, simulations: int, explores: bool) -> Any:
        legal = ask(states).logits == 0
        slot = legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1)
        value = jnp.full(len(slot), simulations + 0.5 * explores)
        return slot, jax.nn.one_hot(slot, legal.shape[1]), value

    config = SearchConfig(custom=Function("own", own))
    search = jax.jit(make_search(even_evaluator, config, budgets=BUDGETS))
    states = repeat(initial_state(DUEL), 2)
    for index, value in enumerate((24.5, 9.0)):
        found = jax.device_get(search((), states, jax.random.key(0), jnp.int32(index)))
        assert found.value.tolist() == [value] * 2
        assert found.slot.tolist() == [8] * 2
        np.testing.assert_allclose(found.surprise, np.log(9), rtol=1e-5)
        assert ((found.prior == 0).sum(axis=1) == 9).all()
