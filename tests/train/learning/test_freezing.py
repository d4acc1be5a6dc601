"""Frozen groups: neither parameters nor moments move, and bias is corrected from the thaw on."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.learning.config import LearnerConfig, parse_freeze
from train.learning.optimizer import (
    frozen_steps,
    groups_of,
    keep_frozen,
    make_optimizer,
    make_schedule,
)
from train.runtime.errors import UsageError

PARAMS = {
    "stem": {"conv": {"kernel": np.full((2, 2), 0.5, np.float32)}},
    "blocks": {
        0: {"scale": np.full(3, 0.25, np.float32)},
        1: {"scale": np.full(3, 0.75, np.float32)},
    },
    "policy": {"bias": np.ones(2, np.float32)},
    "value": {"kernel": np.ones((2, 1), np.float32)},
}
STEPS = 12


def config_of(*freeze: str, **others) -> LearnerConfig:
    options = {"steps": 2, "warmup": 3, "weight_decay": 0.0, "max_grad_norm": 1e9} | others
    return LearnerConfig(freeze=freeze, **options)


@functools.cache
def gradients():
    """float32[STEPS, ...] of each parameter."""
    draw = np.random.default_rng(0)
    return jax.tree.map(lambda x: draw.normal(size=(STEPS, *x.shape)).astype(np.float32), PARAMS)


def learn(config: LearnerConfig):
    """[STEPS, ...]: parameters and optimizer states after each step of fixed gradients."""
    frozen = frozen_steps(PARAMS, config)
    optimizer = make_optimizer(config, total_steps=STEPS, frozen=frozen)

    def step(carry, given):
        (params, state), (number, gradient) = carry, given
        still = jax.tree.map(jnp.zeros_like, gradient)
        gradient = keep_frozen(frozen, number, still, gradient)
        updates, state = optimizer.update(gradient, state, params)
        after = jax.tree.map(jnp.add, params, updates), state
        return after, after

    @jax.jit
    def all_steps(params, gradients):
        first = params, optimizer.init(params)
        return jax.lax.scan(step, first, (jnp.arange(STEPS), gradients))[1]

    return jax.device_get(all_steps(PARAMS, gradients()))


def test_groups_are_those_of_the_network():
    wanted = ["trunk", "stem", "blocks", "blocks.0", "blocks.1", "policy", "value"]
    assert groups_of(PARAMS) == wanted
    frozen = frozen_steps(PARAMS, config_of("trunk=2", "blocks.1=3", "value=1"))
    assert frozen == {
        "stem": {"conv": {"kernel": 4}},
        "blocks": {0: {"scale": 4}, 1: {"scale": 6}},
        "policy": {"bias": 0},
        "value": {"kernel": 2},
    }
    assert frozen_steps(PARAMS, config_of()) is None


@pytest.mark.parametrize("group", ["blocks.2", "block", "policy.bias"])
def test_a_group_that_is_not_there_is_told(group):
    with pytest.raises(UsageError, match=f"no group '{group}'"):
        frozen_steps(PARAMS, config_of(f"{group}=1"))


@pytest.mark.parametrize("words", [["trunk"], ["=3"], ["stem=0"], ["stem=1", "stem=2"]])
def test_wrong_words_are_told(words):
    with pytest.raises(ValueError, match=r"GROUP|again"):
        parse_freeze(words)


def adam(gradient: np.ndarray, rates: list[float], *, start: int) -> np.ndarray:
    """The sum of Adam's updates (Kingma and Ba, 2015, algorithm 1) that begin at a step."""
    first = second = np.zeros(gradient.shape[1:])
    total = np.zeros(gradient.shape[1:])
    for number in range(start, len(gradient)):
        first = 0.9 * first + 0.1 * gradient[number]
        second = 0.999 * second + 0.001 * gradient[number] ** 2
        count = number - start + 1
        mean, square = first / (1 - 0.9**count), second / (1 - 0.999**count)
        total -= rates[number] * mean / (np.sqrt(square) + 1e-8)
    return total


def test_thawed_parameters_learn_as_if_they_began_there():
    """NumPy's Adam, begun at the step of the thaw, on the schedule of the whole run; what is never
    frozen learns as if nothing were."""
    config = config_of("trunk=2", "blocks.1=3")
    schedule = make_schedule(config, total_steps=STEPS)
    rates = np.asarray(jax.jit(jax.vmap(schedule))(np.arange(STEPS)))
    params, _ = learn(config)
    for pick, start in (
        (lambda tree: tree["stem"]["conv"]["kernel"], 4),
        (lambda tree: tree["blocks"][0]["scale"], 4),
        (lambda tree: tree["blocks"][1]["scale"], 6),
        (lambda tree: tree["policy"]["bias"], 0),
        (lambda tree: tree["value"]["kernel"], 0),
    ):
        wanted = pick(PARAMS) + adam(pick(gradients()), rates, start=start)
        np.testing.assert_allclose(pick(params)[-1], wanted, rtol=2e-5)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_frozen_group_stays_as_it_is_to_the_bit(optimizer):
    params, state = learn(config_of("stem=2", optimizer=optimizer, weight_decay=0.1, warmup=0))
    is_frozen = np.arange(STEPS) < 4

    def stays(found: np.ndarray, first) -> np.ndarray:
        """bool[STEPS]"""
        return (found == first).all(axis=(1, 2))

    first = PARAMS["stem"]["conv"]["kernel"]
    np.testing.assert_array_equal(stays(params["stem"]["conv"]["kernel"], first), is_frozen)
    moments = [x for x in jax.tree.leaves(state) if x.shape == (STEPS, 2, 2)]
    assert len(moments) == {"adamw": 2, "sgd": 1}[optimizer]
    for moment in moments:
        np.testing.assert_array_equal(stays(moment, 0), is_frozen)
    assert not (params["policy"]["bias"] == PARAMS["policy"]["bias"]).any()
