"""One step of learning: the stated loss, averages, bad gradients, schedules, weight decay."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from tests.support.learner import tiny
from tests.support.learner.samples import SAMPLES, played
from tests.support.refusals import refusal
from train.learning.config import LearnerConfig, LossWeights
from train.learning.learner import (
    NO_TENSOR,
    LearnerState,
    StepMetrics,
    check_finite,
    make_learner,
    means_of,
    tensor_names,
    warning_of,
)
from train.learning.losses import Losses, cross_entropy, losses, make_targets
from train.learning.optimizer import make_optimizer, make_schedule
from train.network import MASKED, NetworkConfig, slot_logits
from train.network.build import network_for, observer_for
from wallgo_jax.game import actions
from wallgo_jax.game.state import State, initial_state

NETWORK = NetworkConfig(blocks="R", width=8, value_width=8, planes="B")
CONFIG = LearnerConfig(
    batch=SAMPLES,
    steps=1,
    learning_rate=1e-2,
    warmup=0,
    weight_decay=0.0,
    ema_decay=0.75,
    weights=LossWeights(value=0.5, ownership=0.25),
)


def learner_of(config: LearnerConfig):
    network = network_for(NETWORK, 2)
    return make_learner(network, config, total_steps=1000, observe=observer_for(NETWORK))


LEARNER = learner_of(CONFIG)
update = jax.jit(LEARNER.update)


@functools.cache
def untrained() -> LearnerState:
    """A learner whose network finds every slot even and every value 0, as new ones do."""
    weights = tiny.new_weights(network_for(NETWORK, 2))
    params = dict(weights.params)
    for head, layers in (("policy", ("here", "everywhere")), ("value", ("last",))):
        still = {name: jax.tree.map(np.zeros_like, params[head][name]) for name in layers}
        params[head] = {**params[head], **still}
    params["ownership"] = jax.tree.map(np.zeros_like, params["ownership"])
    return jax.jit(LEARNER.init)(weights._replace(params=params))


def test_the_loss_is_the_stated_one():
    """NumPy gives the same loss on the untrained network."""
    sample = played(2).sample
    _, metrics = update(untrained(), sample, jax.random.key(4))
    legal = np.asarray(
        jax.jit(jax.vmap(actions.legal_slots))(State(sample.variant, sample.position))
    )
    mass = np.asarray(sample.policy.share, np.float32).sum(axis=1)
    nats, weights = mass * np.log(legal.sum(axis=1)), sample.policy_weight
    policy_loss = np.average(nats, weights=weights)
    value_loss = (sample.outcome.rewards**2).mean()
    found = metrics.losses
    np.testing.assert_allclose(found.policy_loss, policy_loss, rtol=1e-4)
    np.testing.assert_allclose(found.value_loss, value_loss, rtol=1e-5)
    np.testing.assert_allclose(found.ownership_loss, np.log(3), rtol=1e-5)
    total = policy_loss + 0.5 * value_loss + 0.25 * np.log(3)
    np.testing.assert_allclose(found.loss, total, rtol=1e-4)


def test_steps_learn_the_samples():
    """Three hundred steps on some samples, turned in all ways, lower all their losses."""
    validation_losses, sample = jax.jit(LEARNER.validation_losses), played(2).sample
    state = untrained()
    first = validation_losses(state.variables, sample)
    for key in jax.random.split(jax.random.key(5), 300):
        state, _ = update(state, sample, key)
    last = validation_losses(state.variables, sample)
    assert last.policy_loss < first.policy_loss - 0.1
    assert last.value_loss < 0.8 * first.value_loss
    assert last.ownership_loss < np.log(3) - 0.02
    assert int(state.step) == 300


def test_running_statistics_follow_from_the_first_steps_on():
    """Self-play reads them: after fifty steps, the length of an iteration, and in the averaged
    weights, too, they serve as well as those of the batch."""
    network, sample, state = network_for(NETWORK, 2), played(2).sample, untrained()
    slow = jax.jit(learner_of(dataclasses.replace(CONFIG, learning_rate=1e-3)).update)
    for key in jax.random.split(jax.random.key(6), 50):
        state, _ = slow(state, sample, key)
    targets = make_targets(sample, jnp.zeros(SAMPLES, jnp.int32))
    observe = observer_for(NETWORK)
    shown = jax.jit(jax.vmap(lambda one: observe(one, None)))(targets.states)

    @jax.jit
    def value_losses(variables):
        outputs = network.evaluate(variables, shown), network.evaluate_batch(variables, shown)[0]
        return [losses(output, targets, CONFIG.weights).value_loss for output in outputs]

    for variables in (state.variables, state.averaged):
        running, batch = value_losses(variables)
        assert running < 1.05 * batch, (running, batch)


def test_averaged_weights_follow_slowly_and_play():
    state = untrained()
    expected = jax.device_get(state.variables)
    # It begins with a shorter memory than the config's.
    for step, key in enumerate(jax.random.split(jax.random.key(1), 30)):
        state, _ = update(state, played(2).sample, key)
        newest, kept = jax.device_get(state.variables), min(0.75, (1 + step) / (10 + step))
        expected = jax.tree.map(lambda a, b, k=kept: k * a + (1 - k) * b, expected, newest)
    for a, b in zip(jax.tree.leaves(state.weights), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert state.weights is state.averaged
    fresh = jax.eval_shape(learner_of(LearnerConfig()).init, state.variables)
    assert fresh.averaged is None
    assert fresh.weights is fresh.variables


def test_a_tensor_that_is_not_finite_is_named():
    state = untrained()
    _, metrics = update(state, played(2).sample, jax.random.key(1))
    assert int(metrics.bad_tensor) == NO_TENSOR
    # Where a head's output overflows, its own gradient is the first that is NaN.
    params = dict(state.variables.params)
    params["value"] = jax.tree.map(lambda x: np.asarray(x) + np.float32(np.nan), params["value"])
    broken = state._replace(variables=state.variables._replace(params=params))
    _, metrics = update(broken, played(2).sample, jax.random.key(1))
    names = tensor_names(params)
    assert len(names) == len(jax.tree.leaves(params))
    assert names[int(metrics.bad_tensor)] == names[0]
    assert not np.isfinite(float(metrics.losses.loss))


def updates_of(config: LearnerConfig, params: dict, *gradients: dict) -> tuple[list, list]:
    """The updates of an optimizer by one gradient after the other, and the arrays of its state."""
    optimizer = make_optimizer(config, total_steps=10)

    @jax.jit
    def compute(params, gradients):
        state, found = optimizer.init(params), []
        for gradient in gradients:
            updates, state = optimizer.update(gradient, state, params)
            found.append(updates)
        return found, state

    found, state = jax.device_get(compute(params, gradients))
    return found, jax.tree.leaves(state)


def test_decay_spares_norms_and_biases():
    params = {"kernel": np.ones((2, 2), np.float32), "bias": np.ones(2), "scale": np.ones(2)}
    config = LearnerConfig(learning_rate=0.1, weight_decay=0.5, warmup=0)
    (updates,), _ = updates_of(config, params, jax.tree.map(np.zeros_like, params))
    np.testing.assert_allclose(updates["kernel"], -0.1 * 0.5, rtol=1e-6)
    assert not updates["bias"].any() and not updates["scale"].any()


def test_gradients_are_clipped():
    params = {"kernel": np.zeros((1, 1), np.float32)}
    config = LearnerConfig(learning_rate=1.0, weight_decay=0.0, warmup=0, max_grad_norm=0.5)
    _, state = updates_of(config, params, {"kernel": np.full((1, 1), 1e6, np.float32)})
    moments = [x for x in state if x.shape == (1, 1)]
    assert 0 < max(float(np.abs(x).max()) for x in moments) <= 0.5 * 0.1 + 1e-6


def test_momentum_gathers_speed_and_decay_joins_the_gradient():
    params = {"kernel": np.ones((1, 1)), "offset_bias": np.ones((1, 1, 1))}
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
    (first, second), _ = updates_of(config, params, params, params)
    np.testing.assert_allclose(first["kernel"], -0.1 * 1.25, rtol=1e-6)
    np.testing.assert_allclose(second["kernel"], -0.1 * 1.5 * 1.25, rtol=1e-6)
    np.testing.assert_allclose(first["offset_bias"], -0.1, rtol=1e-6)


def test_masked_logits_give_finite_losses():
    start = initial_state(tiny.RULES)
    over = start._replace(position=start.position._replace(terminated=np.bool_(True)))

    @jax.jit
    def of(state):
        logits = slot_logits(jnp.zeros((3, 3, 53)), state)
        return logits, cross_entropy(logits, jnp.zeros_like(logits).at[0].set(1.0))

    logits, loss = jax.device_get(of(over))
    assert logits[0] == loss == 0.0
    assert (logits[1:] == MASKED).all()


def rates_of(total_steps: int, *steps: int, **options) -> np.ndarray:
    """The learning rates at some steps."""
    schedule = make_schedule(LearnerConfig(**options), total_steps=total_steps)
    return np.asarray(jax.jit(jax.vmap(schedule))(np.array(steps)))


def test_schedules():
    """Warm-up and cosine; and the steps of the ResTNet paper: 0.02, from 70 % on 0.01, from 90 % on
    0.005."""
    steps = (0, 69_999, 70_001, 89_999, 90_001, 99_999)
    rates = rates_of(100_000, *steps, learning_rate=0.02, schedule="steps", warmup=0)
    np.testing.assert_allclose(rates, [0.02, 0.02, 0.01, 0.01, 0.005, 0.005], rtol=1e-5)
    slow = rates_of(100, 0, 4, 20, learning_rate=1.0, schedule="steps", warmup=10)
    np.testing.assert_allclose(slow, [0.1, 0.5, 1.0])
    rates = rates_of(110, 0, 5, 10, 60, 110, learning_rate=1.0, final_rate=0.1, warmup=10)
    np.testing.assert_allclose(rates, [0.1, 0.6, 1.0, 0.55, 0.1], atol=1e-6)


LOSS = Losses(1.0, 0.5, 0.5, 0.1, None, None, None, None, None, None)


def step(norm: float, *, loss: float = 1.0, bad: int = NO_TENSOR) -> StepMetrics:
    """Metrics as the host has read them."""
    losses = jax.tree.map(np.float32, LOSS._replace(loss=loss))
    return StepMetrics(losses, np.float32(norm), np.int32(bad))


def test_a_gradient_far_larger_than_the_others_is_reported():
    steps = [step(norm) for norm in (1.0, 2.0, 30.0, 1.0)]
    text = warning_of(steps)["warning"]
    assert text.startswith("step 3 of 4: the norm of the gradient was 30, the median 1.5")
    assert warning_of([step(1.0), step(9.0), step(2.0)]) == {}
    assert warning_of([step(5.0)]) == warning_of([]) == {}
    assert means_of(steps)["largest_gradient_norm"] == 30.0
    assert means_of(steps)["gradient_norm"] == 8.5
    assert "ownership_loss" not in means_of(steps)


def test_the_first_bad_step_and_tensor_are_named():
    learner = untrained()
    check_finite([step(1.0), step(2.0)], learner, 0)
    steps = [step(1.0), step(1.0, loss=np.inf), step(1.0, bad=1)]
    assert refusal(check_finite, steps, learner, 3) == "iteration 4, step 2 of 3: the loss is inf"
    said = refusal(check_finite, [step(1.0, bad=0)], learner, 0)
    assert "the gradient of blocks.0.conv1.kernel is not finite" in said
