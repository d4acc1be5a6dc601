"""One step of learning: symmetric samples, the stated loss, weight decay."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.support.learner.small_run import CONFIG, RULES
from train.data import replay
from train.data.replay import Sample
from train.learning.config import LearnerConfig, LossWeights
from train.learning.learner import (
    NO_TENSOR,
    make_learner,
    tensor_names,
)
from train.learning.losses import make_targets
from train.learning.optimizer import make_optimizer, make_schedule
from train.loop.training import make_programs
from train.network import MASKED, NetworkConfig, make_network, slot_logits
from train.network.build import network_for, observer_for
from wallgo_jax import planes as planes_lib
from wallgo_jax.game import actions
from wallgo_jax.game.state import State, initial_state

VIEW = {"observe": observer_for(NetworkConfig(planes="BTR"))}

drawn = jax.jit(replay.sample, static_argnames="size")
legal_slots = jax.jit(jax.vmap(actions.legal_slots))


def step_of(learner, batch: int):
    """(state, replay_state, variant, key) -> a step on samples of the replay buffer."""

    def step(state, replay_state, variant, key):
        draw_key, turn_key = jax.random.split(key)
        return learner.update(
            state, replay.sample(replay_state, variant, draw_key, size=batch), turn_key
        )

    return step


@pytest.fixture(scope="module")
def replay_state():
    """A replay buffer filled by real self-play, and the boards' variant."""
    programs = make_programs(CONFIG)
    state = programs.init()
    variables, boards, filled = state.learner.variables, state.boards, state.replay_state
    for key in jax.random.split(jax.random.key(2), 4):
        boards, plies, _ = programs.selfplay_at(0)(variables, programs.variant, boards, key)
        filled, _ = programs.add(filled, plies)
    # On one device, from where nothing has to be moved.
    return jax.device_put(jax.device_get((filled, programs.variant)))


@pytest.fixture(scope="module")
def samples(replay_state):
    filled, variant = replay_state
    return drawn(filled, variant, jax.random.key(3), size=64)


def test_turned_samples_stay_samples(samples: Sample):
    """Under every symmetry the policy's mass stays on legal slots, and moves with them."""
    for symmetry in range(8):
        turn = jnp.full(64, symmetry)
        targets = jax.jit(make_targets)(samples, turn)
        policy = targets.policy
        legal = np.asarray(legal_slots(targets.states))
        assert (np.asarray(policy)[~legal] == 0).all()
        np.testing.assert_allclose(
            np.sort(policy, axis=1), np.sort(samples.policy.astype(jnp.float32), axis=1)
        )
        if symmetry == 0:
            np.testing.assert_array_equal(policy, samples.policy.astype(jnp.float32))


def test_the_loss_is_the_stated_one(replay_state):
    """NumPy gives the same loss on the untrained network: every slot even, every value 0."""
    filled, variant = replay_state
    network = make_network(NetworkConfig(width=8), planes_lib.channels("BTR", 2))
    config = LearnerConfig(
        batch=256, steps=1, warmup=0, weights=LossWeights(value=0.5, ownership=0.25)
    )
    learner = make_learner(network, config, total_steps=10, **VIEW)
    state = learner.init(jax.jit(network.init)(jax.random.key(0)))
    _, metrics = jax.jit(step_of(learner, 256))(state, filled, variant, jax.random.key(4))
    draw_key, _ = jax.random.split(jax.random.key(4))
    sample = drawn(filled, variant, draw_key, size=256)
    legal = np.asarray(legal_slots(State(sample.variant, sample.position)))
    mass = np.asarray(sample.policy, np.float32).sum(axis=1)
    policy_loss = (mass * np.log(legal.sum(axis=1))).mean()
    value_loss = (np.asarray(sample.outcome.rewards) ** 2).mean()
    found = metrics.losses
    np.testing.assert_allclose(found.policy_loss, policy_loss, rtol=1e-4)
    np.testing.assert_allclose(found.value_loss, value_loss, rtol=1e-5)
    np.testing.assert_allclose(found.ownership_loss, np.log(3), rtol=1e-5)
    total = policy_loss + 0.5 * value_loss + 0.25 * np.log(3)
    np.testing.assert_allclose(found.loss, total, rtol=1e-4)


def test_steps_learn_the_replay(replay_state):
    """Two hundred steps on one small replay buffer lower all losses of the same samples. (That of
    the policy has little room: few simulations on an untrained network give mostly noise.)"""
    filled, variant = replay_state
    network = network_for(NetworkConfig(width=16), 2)
    config = LearnerConfig(batch=128, steps=1, learning_rate=1e-2, warmup=0, weight_decay=0.0)
    learner = make_learner(network, config, total_steps=1000, **VIEW)
    step = jax.jit(step_of(learner, 128), donate_argnums=0)
    state = learner.init(jax.jit(network.init)(jax.random.key(0)))
    validation_losses, fixed = (
        jax.jit(learner.validation_losses),
        drawn(filled, variant, jax.random.key(3), size=1024),
    )
    first = validation_losses(state.variables, fixed)
    for key in jax.random.split(jax.random.key(5), 200):
        state, _ = step(state, filled, variant, key)
    last = validation_losses(state.variables, fixed)
    assert last.policy_loss < first.policy_loss - 0.01
    assert last.value_loss < 0.8 * first.value_loss
    assert last.ownership_loss < np.log(3) - 0.04
    assert int(state.step) == 200


def test_every_ply_of_a_game_has_the_games_ending(replay_state):
    filled, _ = replay_state
    ended = np.asarray(filled.plies.terminated)[:48]
    stored, step_outcome = jax.tree.map(
        lambda x: np.asarray(x)[:48], (filled.outcome, filled.plies.step_outcome)
    )
    for board in range(ended.shape[1]):
        start = 0
        for row in np.flatnonzero(ended[:, board]):
            for found, given in zip(stored, step_outcome, strict=True):
                assert (found[start : row + 1, board] == given[row, board]).all()
            start = row + 1
    assert (np.abs(stored.rewards) == 1).any()
    assert stored.owned.any()


def test_decay_spares_norms_and_biases():
    params = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2), "scale": jnp.ones(2)}
    optimizer = make_optimizer(
        LearnerConfig(learning_rate=0.1, weight_decay=0.5, warmup=0), total_steps=10
    )
    still = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(still, optimizer.init(params), params)
    after = optax.apply_updates(params, updates)
    np.testing.assert_allclose(after["kernel"], 1 - 0.1 * 0.5, rtol=1e-6)
    np.testing.assert_array_equal(after["bias"], params["bias"])
    np.testing.assert_array_equal(after["scale"], params["scale"])


def test_gradients_are_clipped():
    params = {"kernel": jnp.zeros((1, 1))}
    config = LearnerConfig(learning_rate=1.0, weight_decay=0.0, warmup=0, max_grad_norm=0.5)
    optimizer = make_optimizer(config, total_steps=10)
    state = optimizer.init(params)
    _, state = optimizer.update({"kernel": jnp.full((1, 1), 1e6)}, state, params)
    moments = [x for x in jax.tree.leaves(state) if x.shape == (1, 1)]
    assert max(float(jnp.abs(x).max()) for x in moments) <= 0.5 * 0.1 + 1e-6


def test_masked_logits_give_finite_losses():
    policy, start = jnp.zeros((4, 4, 53)), initial_state(RULES)
    over = start._replace(position=start.position._replace(terminated=jnp.bool_(True)))
    logits = jax.jit(slot_logits)(policy, over)
    assert float(logits[0]) == 0.0
    assert bool((logits[1:] == MASKED).all())
    target = jnp.zeros(52).at[0].set(1.0)
    assert float(optax.safe_softmax_cross_entropy(logits, target)) == pytest.approx(0.0)


def test_schedules():
    """Warm-up and cosine; and the steps of the ResTNet paper: 0.02, from 70 % on 0.01, from 90 % on
    0.005."""
    config = LearnerConfig(learning_rate=0.02, schedule="steps", warmup=0)
    steps = make_schedule(config, total_steps=100_000)
    rates = [float(steps(step)) for step in (0, 69_999, 70_001, 89_999, 90_001, 99_999)]
    np.testing.assert_allclose(rates, [0.02, 0.02, 0.01, 0.01, 0.005, 0.005], rtol=1e-5)
    slow = make_schedule(
        LearnerConfig(learning_rate=1.0, schedule="steps", warmup=10), total_steps=100
    )
    np.testing.assert_allclose([float(slow(step)) for step in (0, 4, 20)], [0.1, 0.5, 1.0])
    cosine = make_schedule(
        LearnerConfig(learning_rate=1.0, final_rate=0.1, warmup=10), total_steps=110
    )
    rates = [float(cosine(step)) for step in (0, 5, 10, 60, 110)]
    np.testing.assert_allclose(rates, [0.0, 0.5, 1.0, 0.55, 0.1], atol=1e-6)


def test_momentum_gathers_speed_and_decay_joins_the_gradient():
    params = {"kernel": jnp.ones((1, 1)), "offset_bias": jnp.ones((1, 1, 1))}
    config = LearnerConfig(
        optimizer="sgd",
        schedule="steps",
        learning_rate=0.1,
        momentum=0.5,
        weight_decay=0.25,
        warmup=0,
        max_grad_norm=100.0,
        lr_drops=(),
    )
    optimizer = make_optimizer(config, total_steps=10)
    state = optimizer.init(params)
    gradient = jax.tree.map(jnp.ones_like, params)
    first, state = optimizer.update(gradient, state, params)
    second, _ = optimizer.update(gradient, state, params)
    np.testing.assert_allclose(first["kernel"], -0.1 * 1.25, rtol=1e-6)
    np.testing.assert_allclose(second["kernel"], -0.1 * 1.5 * 1.25, rtol=1e-6)
    np.testing.assert_allclose(first["offset_bias"], -0.1, rtol=1e-6)


@pytest.fixture(scope="module")
def plain():
    return make_network(NetworkConfig(width=8), planes_lib.channels("BTR", 2))


@pytest.fixture(scope="module")
def untrained(plain):
    """The weights of `plain` as they start."""
    return jax.jit(plain.init)(jax.random.key(0))


def test_averaged_weights_follow_slowly_and_play(replay_state, plain, untrained):
    filled, variant = replay_state
    config = LearnerConfig(batch=32, steps=1, warmup=0, ema_decay=0.75)
    learner = make_learner(plain, config, total_steps=10, **VIEW)
    state = learner.init(untrained)
    step, expected = jax.jit(step_of(learner, 32)), state.variables
    for key in jax.random.split(jax.random.key(1), 3):
        state, _ = step(state, filled, variant, key)
        expected = jax.tree.map(lambda a, b: 0.75 * a + 0.25 * b, expected, state.variables)
    for a, b in zip(jax.tree.leaves(state.player), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert state.player is state.averaged
    without = make_learner(plain, LearnerConfig(), total_steps=10, **VIEW)
    fresh = without.init(untrained)
    assert fresh.averaged is None
    assert fresh.player is fresh.variables


def test_a_tensor_that_is_not_finite_is_named(replay_state, plain, untrained):
    filled, variant = replay_state
    learner = make_learner(plain, LearnerConfig(batch=8, steps=1), total_steps=10, **VIEW)
    state = learner.init(untrained)
    step = jax.jit(step_of(learner, 8))
    _, metrics = step(state, filled, variant, jax.random.key(1))
    assert int(metrics.bad_tensor) == NO_TENSOR
    # Where a head's output overflows, its own gradient is the first that is NaN.
    params = dict(state.variables.params)
    params["value"] = jax.tree.map(lambda x: x + jnp.nan, params["value"])
    broken = state._replace(variables=state.variables._replace(params=params))
    _, metrics = step(broken, filled, variant, jax.random.key(1))
    names = tensor_names(params)
    assert len(names) == len(jax.tree.leaves(params))
    assert names[int(metrics.bad_tensor)] == names[0]
    assert not np.isfinite(float(metrics.losses.loss))
