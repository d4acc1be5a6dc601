"""The tree grows as mctx's own does, visit for visit, and holds no more than it must."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from train.network import MASKED
from train.runtime.devices import BY_BOARD, EVERYWHERE, all_devices
from train.search.evaluator import Evaluation, Evaluator
from train.search.search import SearchConfig, make_recurrent_fn, make_search
from train.search.tree import NO_CHILD, ROOT, Node, Step, init_tree, node_view, simulate
from wallgo_jax import PRESETS, Rules
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import State, initial_state

DUEL = Rules(size=3, players=2, stones=2, start=(), order=(0, 1, 1, 0))
TRIO = Rules(size=3, players=3, stones=1, start=(), order=(0, 1, 2))
STANDARD = PRESETS["wallzero-4stone"]


@functools.cache
def _random_states(rules: Rules, games: int, first: int, last: int) -> State:
    """Random games, at each ply from the first to the last, over or not: [B]."""
    start = initial_state(rules)

    def play(state: State, bits: jax.Array) -> tuple[State, State]:
        slot = chance.choose_bit(bits, actions.legal_words(state))
        after, _ = referee.play(state, slot)
        return after, after

    bits = jax.random.bits(jax.random.key(0), (games, last), jnp.uint32)
    states = jax.jit(jax.vmap(lambda row: jax.lax.scan(play, start, row)[1]))(bits)
    return jax.tree.map(lambda x: x[:, first - 1 :].reshape(-1, *x.shape[2:]), states)


def _random_evaluator(grid: int) -> Evaluator:
    """Any logits and values, always the same of the same position, to the bit."""

    def judge(variables: Any, states: State, analysis: Any = None) -> Evaluation:
        del variables, analysis
        legal = jax.vmap(actions.legal_slots)(states)
        leaves = jax.tree.leaves(states.position)
        flat = [x.reshape(len(x), -1).astype(jnp.uint32) for x in leaves]
        seed = jnp.zeros(len(legal), jnp.uint32)
        for number in jnp.concatenate(flat, axis=1).T:
            seed = _stir(seed ^ number)
        draws = jnp.arange(legal.shape[1] + states.position.stones.shape[1], dtype=jnp.uint32)
        uniform = (_stir(seed[:, None] + draws[None]) >> 8) / jnp.float32(2**24)
        slots, values = uniform[:, : legal.shape[1]], uniform[:, legal.shape[1] :]
        return Evaluation(jnp.where(legal, 4.0 * slots, MASKED), 2.0 * values - 1.0)

    return judge


def _stir(bits: jax.Array) -> jax.Array:
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    return bits ^ (bits >> 16)


class _ByMctx:
    """What mctx finds by itself, whose policy is one of its own."""

    def __init__(self, states: State, config: SearchConfig, *, grid: int, **options: Any):
        judge = _random_evaluator(grid)
        policy = {"gumbel": mctx.gumbel_muzero_policy, "puct": mctx.muzero_policy}[config.kind]

        def search(states: State, key: jax.Array) -> Any:
            root = judge((), states)
            legal = jax.vmap(actions.legal_slots)(states)
            return policy(
                params=((), states.variant, states.position.player),
                rng_key=key,
                root=mctx.RootFnOutput(
                    prior_logits=root.logits,  # pyright: ignore[reportCallIssue]
                    value=root.value[:, 0],  # pyright: ignore[reportCallIssue]
                    embedding=states.position,  # pyright: ignore[reportCallIssue]
                ),
                recurrent_fn=make_recurrent_fn(judge),
                num_simulations=config.simulations,
                invalid_actions=~legal,
                **options,
            )

        found = jax.device_get(jax.jit(search)(states, jax.random.key(11)))
        self.slot, self.policy, self.tree = found.action, found.action_weights, found.search_tree
        self.value = found.search_tree.node_values[:, ROOT]


def _assert_same(found: Any, expected: _ByMctx) -> None:
    np.testing.assert_allclose(found.policy, expected.policy, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.value, expected.value, rtol=0, atol=1e-5)


def _depth_below_an_end(tree: Any) -> int:
    """How far mctx goes on below steps that end the game."""
    boards = np.arange(len(tree.parents))
    below = np.zeros(tree.parents.shape, int)
    for node in range(1, tree.parents.shape[1]):
        parent, slot = tree.parents[:, node], tree.action_from_parent[:, node]
        over = tree.children_discounts[boards, parent, slot] == 0
        below[:, node] = np.where(over & (parent >= 0), below[boards, parent] + 1, 0)
    return int(below.max())


PLIES = {DUEL: (24, 1, 12), TRIO: (24, 1, 11), STANDARD: (4, 20, 60)}


@pytest.mark.parametrize(
    ("rules", "simulations", "considered", "explores"),
    [
        pytest.param(DUEL, 1, 16, True, marks=pytest.mark.slow),
        pytest.param(DUEL, 2, 1, True, marks=pytest.mark.slow),
        pytest.param(DUEL, 16, 4, False, marks=pytest.mark.slow),
        (DUEL, 32, 16, True),
        pytest.param(DUEL, 64, 16, True, marks=pytest.mark.slow),
        pytest.param(TRIO, 32, 16, False, marks=pytest.mark.slow),
        pytest.param(STANDARD, 32, 16, True, marks=pytest.mark.slow),
    ],
)
def test_gumbel_search_is_mctxs(rules, simulations, considered, explores):
    states = _random_states(rules, *PLIES[rules])
    config = SearchConfig(simulations=simulations, max_considered_actions=considered)
    search = make_search(_random_evaluator(rules.size), config, explores=explores)
    found = jax.jit(search)((), states, jax.random.key(11))
    expected = _ByMctx(
        states,
        config,
        grid=rules.size,
        max_num_considered_actions=considered,
        gumbel_scale=float(explores),
    )
    np.testing.assert_array_equal(found.slot, expected.slot)
    _assert_same(found, expected)
    if simulations >= 16:
        assert _depth_below_an_end(expected.tree) >= 3
        # Only on small boards does the same side move twice running within a tree.
        wanted = {-1.0, 0.0} if rules == STANDARD else {-1.0, 0.0, 1.0}
        assert wanted <= set(np.unique(expected.tree.children_discounts))


@pytest.mark.parametrize(
    ("rules", "simulations"),
    [
        pytest.param(DUEL, 2, marks=pytest.mark.slow),
        (DUEL, 32),
        pytest.param(DUEL, 64, marks=pytest.mark.slow),
        pytest.param(TRIO, 32, marks=pytest.mark.slow),
        pytest.param(STANDARD, 32, marks=pytest.mark.slow),
    ],
)
def test_puct_search_is_mctxs(rules, simulations):
    """Ties are broken by noise that is drawn anew at each level, so the keys count as well."""
    states = _random_states(rules, *PLIES[rules])
    config = SearchConfig(simulations=simulations, kind="puct", c_init=2.0, c_base=100.0)
    search = make_search(_random_evaluator(rules.size), config, explores=False)
    found = jax.jit(search)((), states, jax.random.key(11))
    expected = _ByMctx(
        states, config, grid=rules.size, dirichlet_fraction=0.0, pb_c_init=2.0, pb_c_base=100.0
    )
    _assert_same(found, expected)
    assert _depth_below_an_end(expected.tree) >= (3 if simulations >= 16 else 0)


@pytest.mark.slow
def test_search_works_inside_other_programs():
    """Half of the boards a device, a branch that is taken and one that is not, three moves in turn:
    each finds what the search finds alone."""
    states = _random_states(DUEL, *PLIES[DUEL])
    search = functools.partial(
        make_search(_random_evaluator(3), SearchConfig(simulations=16), explores=False), ()
    )
    keys = jax.random.split(jax.random.key(2), 3)
    alone = [jax.jit(search)(states, key) for key in keys]

    def moves(states: State, keys: jax.Array) -> Any:
        nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(search, states, keys[0]))

        def move(count: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
            found = jax.lax.cond(count != 1, lambda: search(states, key), lambda: nothing)
            return count + 1, found

        return jax.lax.scan(move, jnp.int32(0), keys)[1]

    per_device = all_devices(1).per_device(moves, (BY_BOARD, EVERYWHERE), (EVERYWHERE))
    found = jax.jit(per_device)(states, keys)
    for index, expected in enumerate(alone):
        for one, other in zip(found, expected, strict=True):
            wanted = np.zeros_like(other) if index == 1 else other
            np.testing.assert_allclose(one[index], wanted, atol=1e-6)


def _equations(jaxpr: Any) -> Any:
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _equations(getattr(inner, "jaxpr", inner))


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns")


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_nothing_chooses_between_whole_trees(kind):
    """No select and no cond over nodes times slots, and two arrays of that size from one simulation
    to the next."""
    states = _random_states(DUEL, *PLIES[DUEL])
    config = SearchConfig(simulations=20, kind=kind)
    search = make_search(_random_evaluator(3), config, explores=True)
    program = jax.make_jaxpr(search)((), states, jax.random.key(0))
    shape = (len(states.position.ply), 21, actions.num_slots(DUEL.stones, grid=DUEL.size))
    kept = []
    for equation in _equations(program.jaxpr):
        sizes = [getattr(x.aval, "shape", ()) for x in equation.outvars]
        if equation.primitive.name in ("select_n", "cond"):
            assert shape not in sizes
        if equation.primitive.name in ("scan", "while") and shape in sizes:
            kept.append(sizes.count(shape))
    assert kept == [2]


@pytest.mark.parametrize(("nodes", "number"), [(2, "uint8"), (256, "uint8"), (257, "uint16")])
def test_children_are_counted_in_no_more_bytes_than_needed(nodes, number):
    tree = init_tree(jnp.zeros((3, 5)), jnp.zeros(3), jnp.zeros(3), nodes=nodes)
    assert tree.children.dtype == number
    assert tree.logits.shape == tree.children.shape == (3, nodes, 5)


# Two slots: "end" pays 1 and ends the game; "pass" hands the turn over in a position worth 1/4.
END, PASS = 0, 1


def _play(slot: jax.Array, position: jax.Array) -> Step:
    is_end = slot == END
    return Step(
        reward=jnp.where(is_end, 1.0, 0.0),
        discount=jnp.where(is_end, 0.0, -1.0),
        logits=jnp.zeros((len(slot), 2)),
        value=jnp.where(is_end, 0.0, 0.25),
        position=2 * position + slot,
    )


def _least_visited(keys: jax.Array | None, node: Node) -> jax.Array:
    return node.slot_visits.argmin(axis=1).astype(jnp.int32)


def test_a_tree_by_hand():
    """Four visits of one board, each to the least visited slot of each node:

        end            node 1, worth 1:    root (1/2 + 1) / 2
        pass           node 2, worth -1/4: root (3/2 - 1/4) / 3
        end            node 1 again:       root (5/4 + 1) / 4
        pass, end      node 4, worth 1:    node 2 (1/4 + 1) / 2, root (9/4 - 1) / 5

    Node 3 is left out: the third visit ended where the first had.
    """
    tree = init_tree(jnp.zeros((1, 2)), jnp.array([0.5]), jnp.array([1]), nodes=5)
    grown = simulate(
        tree, jax.random.key(0), at_root=_least_visited, below=_least_visited, play=_play
    )
    assert grown.visits.tolist() == [[5, 2, 2, 0, 1]]
    assert grown.parents.tolist() == [[ROOT, ROOT, ROOT, ROOT, 2]]
    assert grown.children[0].tolist() == [[1, 2], [0, 0], [4, 0], [0, 0], [0, 0]]
    assert NO_CHILD == 0
    np.testing.assert_allclose(grown.values, [[0.25, 0.0, 0.625, 0.0, 0.0]])
    np.testing.assert_allclose(grown.qvalues[0, 1:], [1.0, -0.625, 0.0, 1.0])
    assert grown.positions.tolist() == [[1, 2, 3, 0, 6]]
    root = node_view(grown, jnp.array([ROOT]))
    assert root.slot_visits.tolist() == [[2, 2]]
    assert root.slot_qvalues.tolist() == [[1.0, -0.625]]
    assert node_view(grown, jnp.array([2])).slot_visits.tolist() == [[1, 0]]


def test_boards_do_not_see_one_another():
    """Boards of different depth in one batch grow as each does alone."""
    starts = jnp.array([1, 7, 100])

    def least_by_taste(keys: jax.Array | None, node: Node) -> jax.Array:
        taste = jnp.where(node.raw_value[:, None] > 0.5, jnp.array([[0, 9]]), jnp.array([[9, 0]]))
        return (node.slot_visits + taste).argmin(axis=1).astype(jnp.int32)

    def grown(starts: jax.Array) -> Any:
        value = starts / 100.0
        tree = init_tree(jnp.zeros((len(starts), 2)), value, starts, nodes=13)
        return simulate(
            tree, jax.random.key(0), at_root=least_by_taste, below=least_by_taste, play=_play
        )

    together = grown(starts)
    for board in range(3):
        alone = grown(starts[board : board + 1])
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[0], other[board])
    assert len({tuple(row) for row in together.parents.tolist()}) > 1
