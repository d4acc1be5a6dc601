"""The two engines make the same visits, choices and policies, and search the exact game alone."""

import dataclasses
import subprocess
import sys
from typing import Any

import jax
import mctx
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.searching import (
    FOUR_STONES,
    STANDARD,
    TRIO,
    Grown,
    grown,
    random_evaluator,
    random_states,
)
from train.bench.parts import search as bench_search
from train.players.learned import search_player
from train.programs.selfplay import selfplay_of, stage_at
from train.search import mctx_engine
from train.search.config import ENGINES, KINDS, SearchConfig
from train.search.engine import Choose, Root
from train.search.search import make_search
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

PLIES = {FOUR_STONES: (24, 1, 12), TRIO: (24, 1, 11), STANDARD: (4, 20, 60)}
GUMBEL = SearchConfig(simulations=32)
# Half of the draws by temperature, half of the plies too late for it.
PUCT = SearchConfig(simulations=32, kind="puct", c_init=2.0, c_base=100.0, temperature_plies=6)


@pytest.fixture(autouse=True)
def long_tests_compile_as_users(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("slow"):
        request.getfixturevalue("as_users_compile")


def _both(rules, config: SearchConfig, *, explores: bool) -> list[Grown]:
    configs = (dataclasses.replace(config, engine=engine) for engine in ENGINES)
    return [grown(rules, PLIES[rules], each, explores) for each in configs]


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
    for one, other in (
        (native.choice.policy, by_mctx.choice.policy),
        (native.choice.value, by_mctx.choice.value),
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    # Whatever node we made, mctx made in the same simulation, at the same place.
    is_made = native.node_visits > 0
    np.testing.assert_array_equal(native.node_visits[is_made], by_mctx.node_visits[is_made])
    np.testing.assert_array_equal(native.parents[is_made], by_mctx.parents[is_made])
    np.testing.assert_allclose(native.values[is_made], by_mctx.values[is_made], atol=1e-5)


@pytest.mark.parametrize(
    ("rules", "simulations", "considered", "explores"),
    [
        pytest.param(FOUR_STONES, 1, 16, True, marks=pytest.mark.slow),
        pytest.param(FOUR_STONES, 2, 1, True, marks=pytest.mark.slow),
        pytest.param(FOUR_STONES, 16, 4, False, marks=pytest.mark.slow),
        (FOUR_STONES, 32, 16, False),
        pytest.param(FOUR_STONES, 32, 16, True, marks=pytest.mark.slow),
        pytest.param(FOUR_STONES, 64, 16, True, marks=pytest.mark.slow),
        pytest.param(TRIO, 32, 16, False, marks=pytest.mark.slow),
        pytest.param(STANDARD, 32, 16, True, marks=pytest.mark.slow),
    ],
)
def test_gumbel_searches_are_the_same(rules, simulations, considered, explores):
    config = dataclasses.replace(GUMBEL, simulations=simulations, max_considered_actions=considered)
    native, by_mctx = _both(rules, config, explores=explores)
    _assert_same(native, by_mctx)
    if simulations >= 16:
        # The positions ask all that the two could differ in: ends, and sides that move twice.
        assert _depth_below_an_end(by_mctx) >= 3
        assert _depth_below_an_end(native) == 1
        # Only on small boards does the same side move twice running within a tree.
        wanted = {-1.0, 0.0} if rules == STANDARD else {-1.0, 0.0, 1.0}
        assert wanted <= set(np.unique(by_mctx.edges.discount))


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights",
    [{"value_scale": 1.0, "rescale_values": False}, {"value_scale": 0.3, "visit_offset": 5.0}],
    ids=str,
)
def test_gumbel_searches_weigh_values_alike(weights):
    config = dataclasses.replace(GUMBEL, **weights)
    native, by_mctx = _both(FOUR_STONES, config, explores=False)
    _assert_same(native, by_mctx)
    plain = grown(FOUR_STONES, PLIES[FOUR_STONES], GUMBEL, False)
    assert (native.root_visits != plain.root_visits).any()


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "explores"), [(FOUR_STONES, True), (TRIO, False)])
def test_puct_searches_without_rescaled_values_are_the_same(rules, explores):
    config = dataclasses.replace(PUCT, rescale_values=False)
    native, by_mctx = _both(rules, config, explores=explores)
    _assert_same(native, by_mctx)
    plain = grown(rules, PLIES[rules], PUCT, explores)
    assert (native.root_visits != plain.root_visits).any()


def test_mctx_is_told_how_values_weigh(monkeypatch):
    """In full by the slow test above."""

    class AskedError(Exception):
        """Stops the search with mctx's options."""

    def ask(**options: Any) -> None:
        raise AskedError(options["qtransform"].keywords)

    monkeypatch.setattr(mctx_engine.mctx, "gumbel_muzero_policy", ask)
    config = SearchConfig(value_scale=0.5, visit_offset=20.0, rescale_values=False)
    choose = mctx_engine.make_gumbel(config, explores=False)
    root = Root(np.zeros((1, 4)), np.zeros(1), (), np.ones((1, 4), bool))
    with pytest.raises(AskedError) as caught:
        choose(jax.random.key(0), root, lambda slot, position: None)
    assert caught.value.args == (
        {"value_scale": 0.5, "maxvisit_init": 20.0, "rescale_values": False},
    )


@pytest.mark.parametrize("rescale_values", [True, False])
def test_mctx_is_told_whether_puct_rescales_values(monkeypatch, rescale_values):
    """In full by the slow test above."""

    class AskedError(Exception):
        """Stops the search with mctx's options."""

    def ask(**options: Any) -> None:
        raise AskedError(options["qtransform"])

    monkeypatch.setattr(mctx_engine.mctx, "muzero_policy", ask)
    config = SearchConfig(kind="puct", rescale_values=rescale_values)
    choose = mctx_engine.make_puct(config, explores=False)
    states = random_states(FOUR_STONES, 1, 1, 1)
    root = Root(np.zeros((1, 4)), np.zeros(1), states.position, np.ones((1, 4), bool))
    with pytest.raises(AskedError) as caught:
        choose(jax.random.key(0), root, lambda slot, position: None)
    own, mctxs = mctx_engine.qtransform_by_first_play, mctx.qtransform_by_parent_and_siblings
    assert caught.value.args == (mctxs if rescale_values else own,)


@pytest.mark.parametrize(
    ("rules", "simulations", "explores"),
    [
        pytest.param(FOUR_STONES, 2, False, marks=pytest.mark.slow),
        pytest.param(FOUR_STONES, 32, False, marks=pytest.mark.slow),
        pytest.param(FOUR_STONES, 32, True, marks=pytest.mark.slow),
        pytest.param(FOUR_STONES, 64, False, marks=pytest.mark.slow),
        pytest.param(TRIO, 32, False, marks=pytest.mark.slow),
        pytest.param(STANDARD, 32, True, marks=pytest.mark.slow),
    ],
)
def test_puct_searches_are_the_same(rules, simulations, explores):
    """Ties are broken by noise that is drawn anew at each level, so the keys count as well. By
    default `tests/train/engine/test_reuse.py` compares PUCT with a slow search."""
    config = dataclasses.replace(PUCT, simulations=simulations)
    native, by_mctx = _both(rules, config, explores=explores)
    _assert_same(native, by_mctx)
    if simulations >= 16:
        assert _depth_below_an_end(by_mctx) >= 3
        assert _depth_below_an_end(native) == 1


EVERY = [
    ("native", "gumbel"),
    ("mctx", "gumbel"),
    pytest.param("native", "puct", marks=pytest.mark.slow),
    pytest.param("mctx", "puct", marks=pytest.mark.slow),
]


def _found(engine: str, kind: str) -> Grown:
    config = {"gumbel": GUMBEL, "puct": PUCT}[kind]
    config = dataclasses.replace(config, engine=engine)
    return grown(FOUR_STONES, PLIES[FOUR_STONES], config, False)


def _legal_of(found: Grown) -> np.ndarray:
    """bool[B, N, A]: the legal slots of all nodes."""
    variant = random_states(FOUR_STONES, *PLIES[FOUR_STONES]).variant
    of_nodes = jax.vmap(lambda v, p: actions.legal_slots(State(v, p)), (None, 0))
    return np.asarray(jax.jit(jax.vmap(of_nodes))(variant, found.positions))


@pytest.mark.parametrize(("engine", "kind"), EVERY)
def test_legal_slots_alone_are_visited(engine, kind):
    found = _found(engine, kind)
    legal, edges = _legal_of(found), found.edges
    assert legal[edges.board, edges.node, edges.slot].all()
    assert len(edges.slot) > 1000
    # Most slots of most nodes are not legal, and by far not all edges are the root's.
    assert legal.mean() < 0.5
    assert (edges.node > 0).mean() > 0.3
    assert (found.choice.policy[~legal[:, 0]] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("rescale_values", [True, False])
def test_mctx_keeps_to_legal_slots_by_the_least_weight_of_the_prior(rescale_values):
    config = dataclasses.replace(PUCT, c_init=0.001, c_base=1e9, rescale_values=rescale_values)
    config = dataclasses.replace(config, engine="mctx")
    found = grown(FOUR_STONES, PLIES[FOUR_STONES], config, False)
    edges = found.edges
    assert _legal_of(found)[edges.board, edges.node, edges.slot].all()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_legacy_keys_find_what_typed_ones_find(engine, kind):
    """By default `test_tree` grows a tree by both."""
    states = random_states(FOUR_STONES, 3, 4, 4)
    config = SearchConfig(simulations=12, kind=kind, engine=engine)
    search = jax.jit(make_search(random_evaluator, config, explores=True))
    for seed in range(3):
        typed, legacy = (
            search((), states, make(seed)) for make in (jax.random.key, jax.random.PRNGKey)
        )
        for one, other in zip(typed, legacy, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("engine", "kind"), EVERY)
def test_finished_games_are_exact_leaves(engine, kind):
    found = _found(engine, kind)
    edges = found.edges
    over = found.positions.terminated
    ended = over[edges.board, edges.child]
    assert ended.sum() > 100 and (~ended).sum() > 100
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


@pytest.mark.parametrize("kind", KINDS)
def test_visits_add_up(kind):
    """Each simulation visits one slot of the root; a node's visits are one more than its slots'."""
    found = _found("native", kind)
    np.testing.assert_array_equal(found.root_visits, found.choice.tree.root_visits)
    assert (found.root_visits.sum(axis=1) == GUMBEL.simulations).all()
    by_node = np.zeros(found.node_visits.shape, int)
    np.add.at(by_node, (found.edges.board, found.edges.node), found.edges.visits)
    over = found.positions.terminated.copy()
    over[:, 0] = False
    counted = (found.node_visits > 0) & ~over
    np.testing.assert_array_equal(by_node[counted] + 1, found.node_visits[counted])


def test_mctx_is_not_loaded_for_the_native_engine():
    code = (
        "import sys\n"
        "from train.search.search import make_engine\n"
        "from train.search.config import SearchConfig\n"
        "for kind in ('gumbel', 'puct'):\n"
        "    make_engine(SearchConfig(kind=kind), explores=True)\n"
        "assert 'mctx' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_self_play_matches_and_bench_take_the_engine_of_the_config(engine, monkeypatch):
    explored = []

    def make_gumbel(config: SearchConfig, *, explores: bool) -> Choose:
        explored.append(explores)
        return original(config, explores=explores)

    original = mctx_engine.make_gumbel
    monkeypatch.setattr(mctx_engine, "make_gumbel", make_gumbel)
    # Simulations that no other test asks for: players of one config are shared.
    config = tiny.config("--search.engine", engine, "--search.simulations", "3")
    no_weights: Any = ()
    used = {
        "self-play": lambda: selfplay_of(config, stage_at(config, 0)),
        "matches": lambda: search_player(
            "", no_weights, config.network, config.search, config.rules, simulations=3
        ),
        "bench": lambda: bench_search.searcher(bench_search.UNIFORM, config, 3),
    }
    for name, build in used.items():
        explored.clear()
        build()
        assert set(explored) == ({name != "matches"} if engine == "mctx" else set()), name
