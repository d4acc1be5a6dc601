"""Frozen groups: neither parameters nor moments move, and bias is corrected from the thaw on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.learning.config import LearnerConfig, parse_freeze
from train.learning.freezing import frozen_steps, groups_of, keep_frozen
from train.learning.optimizer import make_optimizer, make_schedule
from train.runtime.errors import UsageError

PARAMS = {
    "stem": {"conv": {"kernel": jnp.full((2, 2), 0.5)}},
    "blocks": {0: {"scale": jnp.full(3, 0.25)}, 1: {"scale": jnp.full(3, 0.75)}},
    "policy": {"bias": jnp.ones(2)},
    "value": {"kernel": jnp.ones((2, 1))},
}
STEPS = 12


def config_of(*freeze: str, **others) -> LearnerConfig:
    options = {"steps": 2, "warmup": 3, "weight_decay": 0.0, "max_grad_norm": 1e9} | others
    return LearnerConfig(freeze=freeze, **options)


def gradients() -> list:
    draw = np.random.default_rng(0)
    return [
        jax.tree.map(lambda x: jnp.asarray(draw.normal(size=x.shape), jnp.float32), PARAMS)
        for _ in range(STEPS)
    ]


def learn(config: LearnerConfig, steps: int = STEPS):
    """Parameters and optimizer states after each step of fixed gradients."""
    frozen = frozen_steps(PARAMS, config)
    optimizer = make_optimizer(config, total_steps=STEPS, frozen=frozen)
    params, state, found = PARAMS, optimizer.init(PARAMS), []
    update = jax.jit(optimizer.update)
    for number, gradient in enumerate(gradients()[:steps]):
        if frozen is not None:
            still = jax.tree.map(jnp.zeros_like, gradient)
            gradient = keep_frozen(frozen, jnp.int32(number), still, gradient)
        updates, state = update(gradient, state, params)
        params = jax.tree.map(jnp.add, params, updates)
        found.append((params, state))
    return found


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


@pytest.mark.parametrize("group", ["head", "blocks.2", "block", "policy.bias"])
def test_a_group_that_is_not_there_is_told(group):
    told = rf"learner.freeze: no group '{group}'; this network has: trunk, stem, blocks, blocks.0, "
    with pytest.raises(UsageError, match=told):
        frozen_steps(PARAMS, config_of(f"{group}=1"))


@pytest.mark.parametrize("words", [["trunk"], ["=3"], ["stem=0"], ["stem=x"], ["stem=1", "stem=2"]])
def test_wrong_words_are_told(words):
    with pytest.raises(ValueError, match=r"^freeze '"):
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
    """NumPy's Adam, begun at the step of the thaw, on the schedule of the whole run."""
    config = config_of("trunk=2", "blocks.1=3")
    schedule = make_schedule(config, total_steps=STEPS)
    rates = [float(schedule(step)) for step in range(STEPS)]
    all_gradients, (params, _) = gradients(), learn(config)[-1]

    def wanted(pick, start):
        numbers = np.stack([np.asarray(pick(gradient)) for gradient in all_gradients])
        return np.asarray(pick(PARAMS)) + adam(numbers, rates, start=start)

    for pick, start in (
        (lambda tree: tree["stem"]["conv"]["kernel"], 4),
        (lambda tree: tree["blocks"][0]["scale"], 4),
        (lambda tree: tree["blocks"][1]["scale"], 6),
        (lambda tree: tree["policy"]["bias"], 0),
    ):
        np.testing.assert_allclose(pick(params), wanted(pick, start), rtol=2e-5)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_frozen_group_stays_as_it_is_to_the_bit(optimizer):
    config = config_of("stem=2", optimizer=optimizer, weight_decay=0.1, warmup=0)
    found = learn(config)
    for number, (params, state) in enumerate(found, start=1):
        kernel = params["stem"]["conv"]["kernel"]
        moments = [x for x in jax.tree.leaves(state) if getattr(x, "shape", ()) == (2, 2)]
        assert moments
        is_frozen = number <= 4
        assert bool((kernel == PARAMS["stem"]["conv"]["kernel"]).all()) == is_frozen
        assert all(bool((moment == 0).all()) == is_frozen for moment in moments)
        assert not (params["policy"]["bias"] == PARAMS["policy"]["bias"]).any()


def test_what_is_never_frozen_learns_the_same_as_without():
    with_frozen, without = learn(config_of("stem=6"))[-1][0], learn(config_of())[-1][0]
    for name in ("blocks", "policy", "value"):
        for one, other in zip(
            jax.tree.leaves(with_frozen[name]), jax.tree.leaves(without[name]), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-6)
