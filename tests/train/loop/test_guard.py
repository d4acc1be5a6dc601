"""NaN or infinite losses stop a run, and far too large gradients are reported."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from train.learning.learner import NO_TENSOR, StepMetrics, check_finite, means_of, warning_of
from train.learning.losses import Losses
from train.loop.train_step import make_run_programs
from train.loop.training import run_iteration
from train.runtime.errors import UsageError

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


def test_weights_that_overflow_stop_the_run_and_are_named():
    """A real run whose value head has grown beyond all bounds."""
    train_step = make_run_programs(tiny.config())
    state = train_step.init()
    iteration, row = 0, {}
    while "loss" not in row:
        state, row = run_iteration(train_step, state, iteration)
        iteration += 1
    params = dict(state.learner.variables.params)
    params["value"] = jax.tree.map(lambda x: x + jnp.inf, params["value"])
    variables = state.learner.variables._replace(params=params)
    broken = state._replace(learner=state.learner._replace(variables=variables))
    with pytest.raises(UsageError) as caught:
        run_iteration(train_step, broken, iteration)
    message = str(caught.value)
    assert message.startswith(f"iteration {iteration + 1}, step 1 of 2: the loss is ")
    assert ", the gradient of " in message
    assert message.endswith(" is not finite")
    assert "\n" not in message


def test_the_first_bad_step_and_tensor_are_named():
    learner = make_run_programs(tiny.config()).init().learner
    check_finite([step(1.0), step(2.0)], learner, 0)
    with pytest.raises(UsageError, match=r"iteration 4, step 2 of 3: the loss is inf$"):
        check_finite([step(1.0), step(1.0, loss=np.inf), step(1.0, bad=1)], learner, 3)
    with pytest.raises(UsageError, match=r"the gradient of blocks\.0\.conv1\.kernel is not finite"):
        check_finite([step(1.0, bad=0)], learner, 0)
