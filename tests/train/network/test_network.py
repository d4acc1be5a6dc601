"""Shapes, colours, padding, gradients and precision of the network."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from tests.support.forms import FORMS
from tests.support.learner import tiny
from tests.train.network.test_census import CHANNELS, SMALL
from train.network import (
    MASKED,
    POLICY_PLANES,
    NetworkConfig,
    cast_weights,
    make_network,
    slot_logits,
)
from train.network.heads import pool
from train.network.restnet import mover_first
from wallgo_jax import PRESETS
from wallgo_jax import planes as planes_lib
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import State, initial_state


@pytest.fixture(scope="module")
def network():
    return _jitted(SMALL, CHANNELS)


def _jitted(config, channels):
    plain = make_network(config, channels)
    return plain._replace(
        evaluate=jax.jit(plain.evaluate), evaluate_batch=jax.jit(plain.evaluate_batch)
    )


@jax.jit
def _move(state: State, bits: jax.Array) -> tuple[jax.Array, State]:
    """The legal slots of a 7x7 board, and the state after one of them."""
    slot = chance.choose_bit(bits, actions.legal_words(state))
    return actions.legal_slots(state), referee.play(state, slot)[0]


@pytest.fixture(scope="module")
def variables(network):
    return _shaken(tiny.new_weights(network))


def _shaken(fresh, scale: float = 0.1):
    """Weights away from zero everywhere, heads included."""
    draw = np.random.default_rng(1)

    def shaken(x):
        return jnp.asarray(x + scale * draw.standard_normal(x.shape), jnp.float32)

    return fresh._replace(params=jax.tree.map(shaken, jax.device_get(fresh.params)))


def _planes(key: int, size: int, batch: int = 4) -> jax.Array:
    planes = np.random.default_rng(key).random((batch, size, size, len(CHANNELS))) < 0.3
    red, blue = (CHANNELS.index(planes_lib.Channel("turn", p)) for p in (0, 1))
    to_move = np.arange(batch)[:, None, None] % 2 == 1
    planes[..., blue], planes[..., red] = to_move, ~to_move
    return jnp.asarray(planes)


def test_one_set_of_weights_runs_on_any_size(network, variables):
    for size in (3, 5, 9):
        output = jax.eval_shape(network.evaluate, variables, _planes(0, size))
        assert output.policy.shape == (4, size, size, POLICY_PLANES)
        assert output.value.shape == (4, 2)
        assert output.ownership.shape == (4, size, size, 3)
        assert output.policy.dtype == output.value.dtype == jnp.float32
        features = jax.eval_shape(network.features, variables, _planes(0, size))
        assert features.shape == (4, size, size, 8)
    output = jax.device_get(network.evaluate(variables, _planes(0, 5)))
    assert np.isfinite(output.policy).all()
    assert (np.abs(output.value) <= 1).all()
    np.testing.assert_allclose(output.value.sum(axis=1), 0.0, atol=1e-5)


def test_evaluation_does_not_look_at_the_other_boards(network, variables):
    planes, others = _planes(4, 5), _planes(14, 5)
    mixed = np.where(np.arange(4)[:, None, None, None] == 2, planes, others)
    first, second = jax.device_get([network.evaluate(variables, x) for x in (planes, mixed)])
    own, same = (jax.tree.map(lambda x: x[2], output) for output in (first, second))
    chex.assert_trees_all_close(own, same, atol=1e-5)
    assert (first.policy[0] != second.policy[0]).any()


def test_learning_moves_the_running_statistics(network, variables):
    _, stats = network.evaluate_batch(variables, _planes(5, 5))
    before, after = map(jax.tree.leaves, jax.device_get((variables.batch_stats, stats)))
    assert all((a != b).any() for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    "options",
    [{"blocks": "RW", "norm": "none"}, {"blocks": "RWT"}],
    ids=["RW", "variants"],
)
def test_padded_cells_do_not_count(options):
    """A board in a larger grid: neither the grid nor its rim's content changes the output for the
    board, nor, in learning, the statistics."""
    channels = planes_lib.channels("BTR", 2, has_playable=True)
    config = dataclasses.replace(SMALL, **options)
    padded = _jitted(config, channels)
    weights = _shaken(tiny.new_weights(padded))
    small = np.concatenate([_planes(9, 5), np.ones((4, 5, 5, 1), bool)], axis=-1)
    rim = ((0, 0), (0, 4), (0, 4), (0, 0))
    large = np.pad(small, rim)
    junk = np.random.default_rng(1).random(large[..., :-1].shape) < 0.5
    on_board = large[..., -1:]
    dirty = np.concatenate([np.where(on_board, large[..., :-1], junk), on_board], axis=-1)
    turn = np.array([c.kind == "turn" for c in channels])
    dirty = np.where(turn, large, dirty)
    alone, clean, strewn = (
        jax.tree.map(
            lambda x: x[:, :5, :5] if x.ndim == 4 and x.shape[1] > 1 else x,
            jax.device_get(padded.evaluate_batch(weights, planes)),
        )
        for planes in (small, large, dirty)
    )
    chex.assert_trees_all_close(clean, alone, atol=2e-5, rtol=1e-5)
    chex.assert_trees_all_close(strewn, alone, atol=2e-5, rtol=1e-5)


def test_pooled_maximum_hands_its_gradient_to_the_largest_cells():
    """Cells within rounding of the maximum share its gradient equally: a recomputed cell may be
    rounded another way, and if no cell equalled the maximum the gradient would be NaN."""
    near = np.nextafter(np.float32(3.0), np.float32(0.0))
    x = np.array([[[2.0, 3.0], [near, 1.0]], [[0.0, 0.0], [0.0, 0.0]]], np.float32)[..., None]
    gradient = jax.jit(jax.grad(lambda x: pool(x, None)[:, 1].sum()))(x)
    np.testing.assert_array_equal(gradient[0, ..., 0], [[0.0, 0.5], [0.5, 0.0]])
    np.testing.assert_array_equal(gradient[1, ..., 0], np.full((2, 2), 0.25))
    is_playable = np.array([[1.0, 0.0], [1.0, 1.0]], np.float32)[None, ..., None]
    inside = jax.jit(jax.grad(lambda x: pool(x, is_playable)[:, 1].sum()))(x[:1])
    np.testing.assert_array_equal(inside[0, ..., 0], [[0.0, 0.0], [1.0, 0.0]])


def test_pooled_maximum_of_bfloat16_tells_neighbouring_numbers_apart():
    top, below = jnp.bfloat16(3.0), jnp.bfloat16(3.0 - 2**-6)
    assert float(below) < float(top)
    x = jnp.array([top, below, top, jnp.bfloat16(2.9)], jnp.bfloat16).reshape(1, 2, 2, 1)
    gradient = jax.jit(jax.grad(lambda x: pool(x, None)[:, 1].sum().astype(jnp.float32)))(x)
    np.testing.assert_array_equal(gradient.reshape(-1).astype(np.float32), [0.5, 0.0, 0.5, 0.0])


def test_without_batch_norm_there_are_no_statistics():
    for norm in ("layer", "none"):
        network = make_network(dataclasses.replace(SMALL, blocks="R", norm=norm), CHANNELS)
        assert jax.tree.leaves(network.shapes.batch_stats) == []
        evaluated = jax.eval_shape(network.evaluate_batch, network.shapes, _planes(2, 5))
        assert evaluated == (jax.eval_shape(network.evaluate, network.shapes, _planes(2, 5)), {})


def test_offsets_that_no_board_has_read_stay_zero():
    """Learning on 5x5 moves the biases of offsets up to 4 cells and no others."""
    config = dataclasses.replace(SMALL, blocks="T")
    network = _jitted(config, CHANNELS)
    weights = _shaken(tiny.new_weights(network))

    def total(params):
        said, _ = network.evaluate_batch(weights._replace(params=params), _planes(1, 5))
        return jnp.square(said.policy).sum() + said.value[:, 0].sum()

    gradient = jax.jit(jax.grad(total))(weights.params)["blocks"][0]["offset_bias"]
    span = gradient.shape[-1]
    read = np.zeros((span, span), bool)
    read[span // 2 - 4 : span // 2 + 5, span // 2 - 4 : span // 2 + 5] = True
    assert (np.asarray(gradient)[:, ~read] == 0).all()
    assert (np.asarray(gradient)[:, read] != 0).any(axis=0).all()


@pytest.mark.parametrize(("kind", "players"), [("scalar", 3), ("wdl", 4)])
def test_values_of_several_players(players, kind):
    """One value a player, the mover first, within rewards, however players are numbered."""
    channels = planes_lib.channels("BTR", players)
    config = dataclasses.replace(SMALL, blocks="R", value=kind)
    network = _jitted(config, channels)
    weights = _shaken(tiny.new_weights(network), scale=1.0)
    planes = np.random.default_rng(4).random((6, 5, 5, len(channels))) < 0.4
    mover = np.arange(6) % players
    for player in range(players):
        index = channels.index(planes_lib.Channel("turn", player))
        planes[..., index] = (mover == player)[:, None, None]
    output = jax.device_get(network.evaluate(weights, planes))
    assert output.value.shape == (6, players)
    assert output.ownership.shape == (6, 5, 5, players + 1)
    assert (np.abs(output.value) <= 1).all()
    if kind == "wdl":
        np.testing.assert_allclose(output.value.sum(axis=1), 0.0, atol=1e-5)
        chances = scipy.special.softmax(output.result, axis=-1)
        shares = np.full((players, players + 1), -1 / (players - 1))
        np.fill_diagonal(shares, 1.0)
        shares[:, -1] = 0.0
        np.testing.assert_allclose(output.value, chances @ shares.T, atol=1e-5)
    turned = [
        channels.index(c if c.player is None else c._replace(player=(c.player - 1) % players))
        for c in channels
    ]
    again = network.evaluate(weights, planes[..., np.array(turned)])
    chex.assert_trees_all_close(again, output, atol=1e-5)


def test_each_t_block_has_attention():
    def attention_of(blocks: str):
        network = make_network(NetworkConfig(blocks=blocks, width=8, heads=2), CHANNELS)
        return jax.eval_shape(network.attention, network.shapes, _planes(5, 5))

    assert attention_of("TRT").shape == (4, 2, 2, 25, 25)
    with pytest.raises(ValueError, match="at least one array"):
        attention_of("R")


def test_weights_are_float32_where_floats_are_64_bit_by_default():
    with jax.enable_x64(True):
        network = make_network(
            dataclasses.replace(SMALL, blocks="RTW", destination_head=True),
            CHANNELS,
        )
        weights = jax.eval_shape(network.init, jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(weights)} == {jnp.dtype(jnp.float32)}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_slots_are_gathered_at_the_stones(form):
    """Against a plain loop over stones, moves and sides, in setup and in play."""
    rules = PRESETS["wallzero-4stone"]
    state = initial_state(rules)
    logits_of = jax.jit(slot_logits)
    for ply in range(8):
        policy = np.random.default_rng(ply).normal(size=(7, 7, POLICY_PLANES)).astype(np.float32)
        legal, after = _move(state, jnp.uint32(0x27D4EB2F * (ply + 1) % 2**32))
        with form():
            logits = np.asarray(logits_of(policy, state))
        expected = np.full(208, MASKED, np.float32)
        for slot in np.flatnonzero(legal):
            if ply < 4:
                expected[slot] = policy[slot // 7, slot % 7, 52]
            else:
                cell = int(state.position.stones[int(state.position.player), slot // 52])
                expected[slot] = policy[cell // 7, cell % 7, slot % 52]
        np.testing.assert_array_equal(logits, expected)
        state = after


def test_bfloat16_keeps_float32_parameters_and_agrees(network, variables):
    """Chances over the plays of a cell within 0.02, values within 0.05."""
    short = _jitted(dataclasses.replace(SMALL, dtype="bfloat16"), CHANNELS)
    assert {leaf.dtype for leaf in jax.tree.leaves(short.shapes)} == {jnp.dtype("float32")}
    a, b = jax.device_get([net.evaluate(variables, _planes(8, 5)) for net in (network, short)])
    assert {x.dtype for x in jax.tree.leaves(b)} == {jnp.dtype("float32")}
    first, second = (scipy.special.softmax(said.policy, axis=-1) for said in (a, b))
    np.testing.assert_allclose(first, second, atol=0.02)
    np.testing.assert_allclose(a.value, b.value, atol=0.05)
    assert (a.policy != b.policy).any()
    assert np.abs(a.value).mean() > 0.05
    assert first.max() > 0.1


@pytest.mark.parametrize("norm", ["batch", "none"])
def test_weights_that_are_cast_before_give_the_same_bits(norm):
    options = {"blocks": "WTR", "norm": norm, "dtype": "bfloat16"}
    config = dataclasses.replace(SMALL, **options)
    network = make_network(config, CHANNELS)
    weights = tiny.new_weights(network)
    cast = cast_weights(weights, config)
    assert {x.dtype for x in jax.tree.leaves(cast.batch_stats)} <= {jnp.dtype("float32")}
    kinds = {path[-1].key: x.dtype for path, x in jax.tree.leaves_with_path(cast.params)}
    assert kinds["kernel"] == kinds["bias"] == jnp.bfloat16
    assert kinds["offset_bias"] == jnp.float32
    # Else a CPU may leave out that numbers are rounded to bfloat16.
    exact = {"xla_allow_excess_precision": False}
    evaluate = jax.jit(network.evaluate, compiler_options=exact)
    found, expected = (jax.device_get(evaluate(x, _planes(8, 5))) for x in (cast, weights))
    chex.assert_trees_all_equal(found, expected)
    assert np.abs(found.policy).max() > 0.1


def test_each_block_costs_the_same_on_a_cpu():
    """A compiler that fuses the end of a block into all its readers computes it again in each."""

    def operations(blocks):
        network = make_network(NetworkConfig(blocks=blocks, width=48), CHANNELS)
        planes = jax.ShapeDtypeStruct((32, 7, 7, len(CHANNELS)), bool)
        program = jax.jit(network.evaluate).lower(network.shapes, planes).compile()
        return program.cost_analysis()["flops"]

    first, second, third = (operations(number * "W") for number in (1, 2, 3))
    assert third - second == pytest.approx(second - first, rel=0.001)


def test_mover_first_leaves_red_and_turns_blue():
    planes = np.asarray(_planes(7, 3))
    shown = np.asarray(jax.jit(mover_first, static_argnums=1)(planes, CHANNELS))
    stones = [CHANNELS.index(planes_lib.Channel("stone", p)) for p in (0, 1)]
    red_board, blue_board = 0, 1
    for mine, own in ((0, 0), (1, 1)):
        np.testing.assert_array_equal(
            shown[red_board, ..., stones[mine]], planes[red_board, ..., stones[own]]
        )
        np.testing.assert_array_equal(
            shown[blue_board, ..., stones[mine]], planes[blue_board, ..., stones[1 - own]]
        )
