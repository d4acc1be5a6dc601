"""The measured parts: core, env, peers, searches over public actions, self-play."""

import importlib.util
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from train.bench.harness import play
from train.bench.harness.timing import CHECKSUM
from train.bench.parts import alphazero, games, peers, plain, search, selfplay
from train.bench.parts.public import make_public_network_evaluator
from train.config import RunConfig
from train.network.build import network_for
from train.network.config import NetworkConfig
from train.runtime.devices import all_devices
from train.runtime.errors import UsageError
from train.search.evaluator import evaluator_for
from wallgo_jax.game import actions
from wallgo_jax.game.state import State


def first_states(boards: int) -> State:
    """Games of the tiny run before their first ply."""
    variant = tiny.variants(tiny.RULES, boards)
    return State(variant, jax.jit(jax.vmap(search.initial_position))(variant))


def test_core_plays_whole_games():
    bench = play.make_bench(games.core_game(tiny.RULES, on_bits=True), 8, all_devices(1))
    found = bench.run(40)
    assert found["plies"] == 320
    # A placed stone each, then a wall a ply: 12 edges inside, and two corners take 2 to close.
    assert 320 / 14 - 8 <= found["games"] <= 320 / 4
    assert found[CHECKSUM] > 0


@pytest.mark.slow
def test_steps_of_the_env_are_compiled_alone():
    found = dict(games.compiled_steps(tiny.RULES, 2, planes="B"))
    assert list(found) == ["env.step", "env.step_auto_reset"]
    assert found["env.step"].equations < found["env.step_auto_reset"].equations


@pytest.mark.skipif(importlib.util.find_spec("pgx") is None, reason="needs pgx")
@pytest.mark.filterwarnings("ignore")
def test_peers_play_the_same_way():
    without, with_planes = peers.peer_games(("tic_tac_toe",))
    assert (without.name, with_planes.name) == ("pgx tic_tac_toe", "pgx tic_tac_toe, planes")
    one, other = (
        play.make_bench(game, 4, all_devices(1)).run(18) for game in (without, with_planes)
    )
    # A game has 5 to 9 plies.
    assert 72 / 9 - 4 <= one["games"] <= 72 / 5
    assert (one["plies"], one["games"]) == (other["plies"], other["games"])
    assert one[CHECKSUM] != other[CHECKSUM]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pgx") is None, reason="needs pgx")
@pytest.mark.filterwarnings("ignore")
def test_peers_and_the_env_play_as_their_users_write_it():
    """16 plies a call of games of 5 to 9 plies, and of 3x3 games of 3 to 14."""
    played = [*peers.plain_games(("tic_tac_toe",)), *games.plain_envs(tiny.RULES, planes="B")]
    for game, shortest, longest in zip(played, (5, 3, 3), (9, 14, 14), strict=True):
        done = plain.make_bench(game, 4).run(2)
        assert done["plies"] == 4 * 32
        assert 4 * (32 // longest - 1) <= done["games"] <= 4 * (32 / shortest)
        assert done[CHECKSUM] >= done["games"]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pgx") is None, reason="needs pgx")
@pytest.mark.filterwarnings("ignore")
def test_loop_of_pgx_plays_whole_games_by_search():
    """32 plies of 4 boards of a game of 5 to 9 plies; the network tells positions apart."""
    network = NetworkConfig(blocks="RR", width=8)
    bench = alphazero.make_bench("tic_tac_toe", network, 3, 4)
    done = bench.run(4)
    assert (done["positions"], done["evaluations"]) == (4 * 32, 4 * 32 * 4)
    assert 4 * (32 // 9) - 4 <= done["games"] <= 4 * (32 / 5)
    weights = alphazero.init(jax.random.key(0), network, (3, 3, 2), 9)
    planes = jax.random.bernoulli(jax.random.key(1), shape=(5, 3, 3, 2))
    logits, value = alphazero.apply(weights, planes)
    assert logits.shape == (5, 9)
    assert np.ptp(value) > 0 and (np.abs(value) < 1).all()


def test_the_network_of_pgx_has_the_blocks_of_the_config():
    """A block string tells blocks once and how often they are repeated."""
    network = NetworkConfig(blocks="R3(RRT)", width=8)
    assert len(alphazero.init(jax.random.key(0), network, (3, 3, 2), 9).blocks) == 10


def test_peers_without_pgx_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(UsageError, match=r"needs pgx: pip install 'wallgo-jax\[bench\]'"):
        peers.peer_games()


def test_public_evaluator_allows_what_is_legal():
    evaluate = jax.jit(search.make_public_evaluator(players=2))
    legal = np.asarray(evaluate((), first_states(2)).logits) == 0
    # Only the nine placements, the last of the ids.
    np.testing.assert_array_equal(legal, np.broadcast_to(np.arange(477) >= 468, (2, 477)))


@pytest.mark.slow
def test_public_network_says_of_an_action_what_it_says_of_its_slot():
    """The same logits as over slots, wherever an action is legal, in setup and in play."""
    config = tiny.config()
    network = network_for(config.network, 2)
    variables = tiny.new_weights(network)
    _, positions = search.spread_boards(tiny.RULES, 16, all_devices(1))
    states = State(tiny.variants(tiny.RULES, 16), positions)

    def both(variables, states):
        in_slots = evaluator_for(config.network, tiny.RULES)(variables, states)
        evaluate = make_public_network_evaluator(network, planes=config.network.planes)
        legal = jax.vmap(lambda s: actions.legal_actions(s))(states)
        slots = jax.vmap(
            jax.vmap(lambda s, a: actions.slot_of_action(s, a), in_axes=(None, 0)),
            in_axes=(0, None),
        )(states, jnp.arange(legal.shape[1]))
        return in_slots, evaluate(variables, states), legal, slots

    in_slots, in_actions, legal, slots = jax.device_get(jax.jit(both)(variables, states))
    assert legal[:, :468].any() and legal[:, 468:].any()
    expected = np.take_along_axis(in_slots.logits, np.where(legal, slots, 0), axis=1)
    np.testing.assert_allclose(in_actions.logits[legal], expected[legal], rtol=1e-5)
    assert np.ptp(expected[legal]) > 0.01
    assert (in_actions.logits[~legal] < -1e30).all()
    np.testing.assert_allclose(in_actions.value, in_slots.value, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [search.PUBLIC, search.PUBLIC_NETWORK])
def test_public_search_finds_a_legal_slot(kind):
    config = tiny.config()
    found = search.searcher(kind, config, 4)
    states = first_states(4)
    result = jax.jit(found.search)(found.variables, states, jax.random.key(0))
    legal = jax.jit(jax.vmap(actions.legal_slots))(states)
    assert np.take_along_axis(np.asarray(legal), np.asarray(result.slot)[:, None], 1).all()
    assert result.policy.shape == (4, 477)
    np.testing.assert_allclose(result.policy.sum(axis=1), 1, rtol=1e-5)


def test_self_play_counts_roots_and_leaves():
    """A full search of 16 simulations makes 17 evaluations, a cheap one of 4 makes 5."""
    config = RunConfig()
    metrics = SimpleNamespace(full=np.float32(3), positions=np.float32(10))
    assert selfplay.evaluations(config, metrics) == 3 * 17 + 7 * 5


def test_steady_config_has_one_program():
    words = ["--search.first_simulations", "1", "--selfplay.bootstrap_iterations", "2"]
    config = tiny.config(*words, "--search.prior_boost", '["stay=2"]')
    found = selfplay.steady(config, 12)
    assert found.selfplay.boards == 12
    assert (found.selfplay.bootstrap_iterations, found.search.first_simulations) == (0, 0)
    assert found.search.prior_boost == ()
