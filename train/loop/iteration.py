"""One iteration: play, remember, learn."""

import time
from typing import Any

import jax
import numpy as np

from train.config import RunConfig
from train.learning.learner import NO_TENSOR, LearnerState, StepMetrics, tensor_names
from train.loop.programs import Programs, RunState, simulations_of
from train.runtime.errors import NotFiniteError
from train.runtime.host import fetch

EXPLOSION = 10.0
"""Times the median of an iteration, beyond which the norm of a gradient is reported."""


def run_iteration(
    config: RunConfig, programs: Programs, state: RunState, iteration: int
) -> tuple[RunState, dict[str, Any]]:
    """Play, remember, learn. The state is consumed; its key comes from seed and iteration alone.

    Returns:
      The next state and the iteration's row of metrics.
    """
    started = time.perf_counter()
    with jax.transfer_guard_device_to_host("disallow"):
        keys, learner = programs.keys(iteration), state.learner
        selfplay = programs.selfplay_at(iteration)
        boards, plies, played = selfplay(learner.player, programs.variant, state.boards, keys.play)
        replay_state = programs.append(state.replay_state, plies)
        played, rows = fetch((played, replay_state.ready))
        between, steps = time.perf_counter(), []
        # Compiled in the first iteration, even where there is nothing to learn yet.
        programs.prepare(learner, replay_state, programs.variant, keys.learn)
        if rows > 0:
            learner, steps = programs.learn(learner, replay_state, programs.variant, keys.learn)
        steps = _one_by_one(fetch(steps))
    ended = time.perf_counter()
    check_finite(steps, learner, iteration)
    games, full = float(played.games), float(played.full)
    row = {
        "iteration": iteration,
        "games": games,
        "positions": float(played.positions),
        "mean_length": float(played.length) / games if games else None,
        "red_win_rate": float(played.red_wins + played.draws / 2) / games if games else None,
        "simulations": simulations_of(config, iteration),
        "full_search_prob": full / float(played.positions),
        "policy_entropy": float(played.entropy) / full if full else None,
        "games_per_second": games / (ended - started),
        "positions_per_second": float(played.positions) / (ended - started),
        "selfplay_seconds": between - started,
        "learn_seconds": ended - between,
        "replay_rows": int(rows),
        "reuse": len(steps) * config.learner.batch / float(played.positions),
        **means_of(steps),
        **warning_of(steps),
    }
    held, played_rows = (
        replay_state.plies.terminated.shape[0],
        (iteration + 1) * config.selfplay.plies,
    )
    if rows == 0 and played_rows >= held + config.rules.max_plies:
        row["warning"] = (
            f"nothing to learn from: {held} plies of each board hold no whole games; raise "
            "replay.positions"
        )
    return RunState(learner, boards, replay_state, state.iterations + 1), row


def _one_by_one(steps: list[StepMetrics]) -> list[StepMetrics]:
    """Metrics of each step, of steps that came alone or as [S] together."""
    if steps and steps[0].gradient_norm.ndim:
        (joined,) = steps
        return [jax.tree.map(lambda x, i=i: x[i], joined) for i in range(len(joined.gradient_norm))]
    return steps


def check_finite(steps: list[StepMetrics], learner: LearnerState, iteration: int) -> None:
    """Stop a run at a loss or a gradient that is no number.

    Raises:
      NotFiniteError: which step and tensor.
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
    """`warning`: the step whose gradient was far larger than the others', if there was one."""
    norms = np.array([step.gradient_norm for step in steps])
    if len(norms) < 2 or norms.max() <= EXPLOSION * np.median(norms):
        return {}
    return {
        "warning": f"step {norms.argmax() + 1} of {len(norms)}: the norm of the gradient was "
        f"{norms.max():.3g}, the median {np.median(norms):.3g}; it was clipped"
    }


def means_of(steps: list[StepMetrics]) -> dict[str, float]:
    """Means over steps, by name, and the largest norm of a gradient; what the network has no head
    for is left out."""
    if not steps:
        return {}
    rows = [{**step.losses._asdict(), "gradient_norm": step.gradient_norm} for step in steps]
    present = [name for name, value in rows[0].items() if value is not None]
    means = {name: float(np.mean([row[name] for row in rows])) for name in present}
    return means | {"largest_gradient_norm": float(max(row["gradient_norm"] for row in rows))}
