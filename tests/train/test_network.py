"""Shapes, sizes, colours and counts of the network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.network import (
    MASKED,
    POLICY_PLANES,
    NetworkConfig,
    count_parameters,
    make_network,
    mover_first,
    slot_logits,
)
from wallgo_jax import PRESETS, make, observation
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import initial_state

CHANNELS = observation.channels("BTR", 2)
SMALL = NetworkConfig(blocks="RT", width=8, heads=2, value_width=8)


@pytest.fixture(scope="module")
def network():
    return _jitted(SMALL, CHANNELS)


def _jitted(config, channels):
    plain = make_network(config, channels)
    return plain._replace(
        evaluate=jax.jit(plain.evaluate), evaluate_batch=jax.jit(plain.evaluate_batch)
    )


@pytest.fixture(scope="module")
def variables(network):
    """Weights away from zero everywhere, heads included."""
    fresh = network.init(jax.random.key(0))
    leaves, tree = jax.tree.flatten(fresh.params)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    noisy = [x + 0.1 * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys, strict=True)]
    return fresh._replace(params=jax.tree.unflatten(tree, noisy))


def _planes(key: int, size: int, batch: int = 4) -> jax.Array:
    planes = jax.random.bernoulli(jax.random.key(key), 0.3, (batch, size, size, len(CHANNELS)))
    red, blue = (CHANNELS.index(observation.Channel("turn", p)) for p in (0, 1))
    to_move = jnp.arange(batch) % 2 == 1
    planes = planes.at[..., blue].set(to_move[:, None, None])
    return planes.at[..., red].set(~to_move[:, None, None])


def test_one_set_of_weights_runs_on_any_size(network, variables):
    for size in (3, 7, 9):
        output = network.evaluate(variables, _planes(0, size))
        assert output.policy.shape == (4, size, size, POLICY_PLANES)
        assert output.value.shape == (4,)
        assert output.policy.dtype == output.value.dtype == jnp.float32
        assert bool(jnp.isfinite(output.policy).all())
        assert bool((jnp.abs(output.value) <= 1).all())


def test_a_new_network_prefers_nothing(network):
    output = network.evaluate(network.init(jax.random.key(2)), _planes(3, 7))
    assert bool((output.policy == 0).all())
    assert bool((output.value == 0).all())


def test_evaluation_does_not_look_at_the_other_boards(network, variables):
    planes = _planes(4, 5, batch=6)
    together = network.evaluate(variables, planes)
    alone = network.evaluate(variables, planes[2:3])
    np.testing.assert_allclose(together.policy[2:3], alone.policy, atol=1e-5)
    np.testing.assert_allclose(together.value[2:3], alone.value, atol=1e-5)


def test_learning_moves_the_running_statistics(network, variables):
    _, stats = network.evaluate_batch(variables, _planes(5, 5))
    before, after = (jax.tree.leaves(x) for x in (variables.batch_stats, stats))
    assert all(bool((a != b).any()) for a, b in zip(before, after, strict=True))


def test_colours_exchanged_give_the_same_answer_to_the_mover(network, variables):
    """Mover first: a board and its copy with the colours exchanged look the same."""
    planes = _planes(6, 7)
    swap = {0: 1, 1: 0, None: None}
    order = np.array([CHANNELS.index(c._replace(player=swap[c.player])) for c in CHANNELS])
    other = planes[..., order]
    first, second = (network.evaluate(variables, x) for x in (planes, other))
    np.testing.assert_allclose(first.policy, second.policy, atol=1e-5)
    np.testing.assert_allclose(first.value, second.value, atol=1e-5)
    assert bool((planes != other).any())


def test_mover_first_leaves_red_and_turns_blue():
    planes = _planes(7, 3)
    shown = mover_first(planes, CHANNELS)
    stones = [CHANNELS.index(observation.Channel("stone", p)) for p in (0, 1)]
    red_board, blue_board = 0, 1
    for mine, own in ((0, 0), (1, 1)):
        np.testing.assert_array_equal(
            shown[red_board, ..., stones[mine]], planes[red_board, ..., stones[own]]
        )
        np.testing.assert_array_equal(
            shown[blue_board, ..., stones[mine]], planes[blue_board, ..., stones[1 - own]]
        )


def test_padded_cells_do_not_count():
    """A board in a larger grid: what stands in the rim changes nothing on the board."""
    channels = observation.channels("BTR", 2, has_playable=True)
    padded = _jitted(SMALL, channels)
    weights = padded.init(jax.random.key(8))
    weights = jax.tree.map(lambda x: x + 0.05, weights)
    playable = jnp.zeros((2, 7, 7, 1), jnp.bool_).at[:, :5, :5].set(True)
    planes = jnp.concatenate([jnp.pad(_planes(9, 5, batch=2), _RIM), playable], axis=-1)
    small = jnp.concatenate([_planes(9, 5, batch=2), playable[:, :5, :5]], axis=-1)
    large, alone = padded.evaluate(weights, planes), padded.evaluate(weights, small)
    np.testing.assert_allclose(large.policy[:, :5, :5], alone.policy, atol=1e-4)
    np.testing.assert_allclose(large.value, alone.value, atol=1e-5)


_RIM = ((0, 0), (0, 2), (0, 2), (0, 0))


@pytest.mark.parametrize(
    ("blocks", "millions"), [("R", 1.181), ("T", 0.528)], ids=["residual", "transformer"]
)
def test_blocks_have_the_papers_size(blocks, millions):
    """Table 1 of the ResTNet paper: 9x9, 256 channels, 4 heads. One more block of a kind adds what
    the table's slope and its text say, to the table's three decimals and the bias table's size."""

    def size(text: str) -> int:
        config = NetworkConfig(blocks=text, width=256, heads=4, mlp_ratio=2.0)
        return count_parameters(make_network(config, CHANNELS).shapes)

    assert (size(2 * blocks) - size(blocks)) / 1e6 == pytest.approx(millions, abs=0.001)


def test_slots_are_gathered_at_the_stones():
    """Against a plain loop over stones, moves and sides, in setup and in play."""
    rules = PRESETS["wallzero-4stone"]
    state = initial_state(rules)
    logits_of = jax.jit(slot_logits)
    for ply in range(8):
        policy = jax.random.normal(jax.random.key(ply), (7, 7, POLICY_PLANES))
        legal = np.asarray(actions.legal_slots(state, grid=7))
        logits = np.asarray(logits_of(policy, state))
        expected = np.full(208, MASKED, np.float32)
        for slot in np.flatnonzero(legal):
            if ply < 4:
                expected[slot] = policy[slot // 7, slot % 7, 52]
            else:
                cell = int(state.position.stones[int(state.position.player), slot // 52])
                expected[slot] = policy[cell // 7, cell % 7, slot % 52]
        np.testing.assert_array_equal(logits, expected)
        bits = jnp.uint32(0x27D4EB2F * (ply + 1) % 2**32)
        state, _ = referee.play(
            state, chance.choose_bit(bits, actions.legal_words(state, grid=7)), grid=7
        )


def test_bfloat16_keeps_float32_parameters_and_agrees():
    exact = _jitted(NetworkConfig(blocks="RT", width=16, dtype="float32"), CHANNELS)
    short = _jitted(NetworkConfig(blocks="RT", width=16, dtype="bfloat16"), CHANNELS)
    weights = jax.tree.map(lambda x: x + 0.02, exact.init(jax.random.key(3)))
    assert {leaf.dtype for leaf in jax.tree.leaves(short.shapes)} == {jnp.dtype("float32")}
    a, b = (net.evaluate(weights, _planes(11, 7)) for net in (exact, short))
    np.testing.assert_allclose(a.policy, b.policy, atol=0.05, rtol=0.02)
    np.testing.assert_allclose(a.value, b.value, atol=0.05)


def test_bad_shapes_are_refused():
    with pytest.raises(ValueError, match="width 10 is not a multiple of heads 4"):
        NetworkConfig(blocks="T", width=10, heads=4)
    with pytest.raises(ValueError, match="dtype 'float8'"):
        NetworkConfig(dtype="float8")
    assert make("wallzero-4stone", planes="BTR").observation_shape == (7, 7, len(CHANNELS))
