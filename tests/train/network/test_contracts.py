"""Public functions of the network refuse arrays of a wrong shape or type when they are traced."""

import jax
import jax.numpy as jnp
import pytest

from tests.support.learner import tiny
from train.network import reply_logits, slot_logits
from train.network.build import network_for
from train.network.convolutions import convolve
from wallgo_jax import planes as planes_lib
from wallgo_jax.game.state import initial_state


def planes_of(channels: int, dtype) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((2, 3, 3, channels), dtype)


@pytest.fixture(scope="module")
def network():
    return network_for(tiny.config().network, 2)


@pytest.mark.parametrize("logits", [slot_logits, reply_logits])
@pytest.mark.parametrize("shape", [(3, 3, 52), (5, 5, 53), (2, 3, 3, 53)])
def test_policy_planes_fit_the_board(logits, shape):
    with pytest.raises(AssertionError):
        jax.eval_shape(logits, jax.ShapeDtypeStruct(shape, jnp.float32), initial_state(tiny.RULES))


def test_kernel_fits_the_planes():
    x = jax.ShapeDtypeStruct((2, 3, 3, 8), jnp.float32)
    for shape in ((3, 3, 7, 4), (1, 1, 8, 4)):
        with pytest.raises(AssertionError):
            jax.eval_shape(convolve, x, jax.ShapeDtypeStruct(shape, jnp.float32))


@pytest.mark.parametrize("verb", ["evaluate", "evaluate_batch", "features"])
def test_planes_are_boolean_and_those_of_the_config(network, verb):
    channels = len(planes_lib.channels(tiny.config().network.planes, 2))
    function = getattr(network, verb)
    jax.eval_shape(function, network.shapes, planes_of(channels, jnp.bool_))
    for wrong in (planes_of(channels, jnp.float32), planes_of(channels + 1, jnp.bool_)):
        with pytest.raises(AssertionError):
            jax.eval_shape(function, network.shapes, wrong)
