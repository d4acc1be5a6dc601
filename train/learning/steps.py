"""Reads an iteration's steps on the host: means, jumps of the gradient, NaNs.

S steps an iteration.
"""

from typing import Any

import jax
import numpy as np

from train.learning.learner import NO_TENSOR, LearnerState, StepMetrics, tensor_names
from train.learning.losses import Losses
from train.runtime.errors import NotFiniteError

EXPLOSION = 10.0
"""A gradient norm above this many medians of its iteration is reported."""


def split_steps(metrics: list[StepMetrics]) -> list[StepMetrics]:
    """Metrics of single steps, from S metrics of scalars or one of arrays [S]."""
    if metrics and metrics[0].gradient_norm.ndim:
        (joined,) = metrics
        return [jax.tree.map(lambda x, i=i: x[i], joined) for i in range(len(joined.gradient_norm))]
    return metrics


def check_finite(steps: list[StepMetrics], learner: LearnerState, iteration: int) -> None:
    """Stop a run at a NaN or infinite loss or gradient.

    Args:
      steps: metrics of single steps, on the host.
      learner: has the parameters that the metrics number.
      iteration: counted from 0.

    Raises:
      NotFiniteError: names the first such step, its loss and the tensor.
    """
    for number, step in enumerate(steps, start=1):
        place = int(step.bad_tensor)
        if place == NO_TENSOR and np.isfinite(step.losses.loss):
            continue
        loss = f"the loss is {float(step.losses.loss)}"
        names = tensor_names(learner.variables.params)
        tensor = "" if place == NO_TENSOR else f", the gradient of {names[place]} is not finite"
        raise NotFiniteError(
            f"iteration {iteration + 1}, step {number} of {len(steps)}: {loss}{tensor}"
        )


def warning_of(steps: list[StepMetrics]) -> dict[str, str]:
    """`warning`: the step whose gradient norm is above `EXPLOSION` medians; empty without one."""
    norms = np.array([step.gradient_norm for step in steps])
    if len(norms) < 2 or norms.max() <= EXPLOSION * np.median(norms):
        return {}
    return {
        "warning": f"step {norms.argmax() + 1} of {len(norms)}: the norm of the gradient was "
        f"{norms.max():.3g}, the median {np.median(norms):.3g}; it was clipped"
    }


def validation_figures(losses: list[Losses]) -> dict[str, float]:
    """Means of the losses of batches held back, on the host, by name with `validation_` before it.

    Losses of heads that the network lacks are left out; without a batch the result is empty.
    """
    means = _means([each._asdict() for each in losses])
    return {f"validation_{name}": mean for name, mean in means.items()}


def means_of(steps: list[StepMetrics]) -> dict[str, float]:
    """Means over steps by name, and the largest gradient norm.

    Losses of heads that the network lacks are left out; without a step the result is empty.
    """
    rows = [{**step.losses._asdict(), "gradient_norm": step.gradient_norm} for step in steps]
    if not rows:
        return {}
    largest = float(max(row["gradient_norm"] for row in rows))
    return _means(rows) | {"largest_gradient_norm": largest}


def _means(rows: list[dict[str, Any]]) -> dict[str, float]:
    present = [name for name, value in rows[0].items() if value is not None] if rows else []
    return {name: float(np.mean([row[name] for row in rows])) for name in present}
