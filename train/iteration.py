"""One iteration: play, remember, learn; what it changes and what it compiles."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train import replay, roster
from train.config import RunConfig
from train.errors import UsageError
from train.host import fetch
from train.learner import LearnerState, StepMetrics, make_learner
from train.network import Network
from train.search import Search, make_search, simulations_at
from train.selfplay import first_boards, make_selfplay
from wallgo_jax.game.state import Position, Variant, make_variant


class RunState(NamedTuple):
    """All that an iteration changes; with the config, all that resuming needs."""

    learner: LearnerState
    boards: Position  # [B], games under way
    ring: replay.Ring
    iterations: jax.Array  # int32, iterations done


class Programs(NamedTuple):
    """What is compiled once a run."""

    init: Callable[[], RunState]
    variant: Variant  # [B], what each board plays
    selfplay_at: Callable[[int], Callable[..., Any]]
    """The program of an iteration; the first asked for brings those of all later ones."""
    append: Callable[..., Any]
    learn: Callable[..., Any]


def make_programs(config: RunConfig) -> Programs:
    """Build and jit the functions of a run; nothing is compiled yet."""
    rules = config.game
    network = roster.network_for(config.network, rules.players)
    view = {"grid": rules.size, "planes": config.network.planes, "has_playable": False}
    plies, boards = config.selfplay.plies, config.selfplay.boards
    learner = make_learner(
        network,
        config.learner,
        total_steps=config.iterations * config.learner.steps,
        has_reply=config.network.reply,
        **view,
    )
    variant = jax.tree.map(
        lambda x: jnp.broadcast_to(jnp.asarray(x), (boards, *np.shape(x))), make_variant(rules)
    )
    iteration_rows = -(-config.replay.positions // (boards * plies))

    def init() -> RunState:
        key = jax.random.fold_in(jax.random.key(config.seed), 2**31 - 1)
        variables = network.init(key)
        first = first_boards(variant)
        selfplay = selfplay_of(config, config.search.simulations)
        _, like, _ = jax.eval_shape(selfplay, variables, variant, first, key)
        ring = replay.make_ring(iteration_rows * plies, like)
        return RunState(learner.init(variables), first, ring, jnp.zeros((), jnp.int32))

    return Programs(
        init=init,
        variant=variant,
        selfplay_at=_make_selfplay_at(config, network, variant),
        append=jax.jit(replay.append, donate_argnums=0),
        learn=jax.jit(learner.step, donate_argnums=0),
    )


def selfplay_of(config: RunConfig, simulations: int) -> Callable[..., Any]:
    """An iteration of self-play with so many simulations a move, to be jitted with its boards
    donated."""
    evaluate = roster.evaluator_for(config.network, config.game)
    grid, options = config.game.size, config.selfplay

    def search_of(simulations: int, *, explores: bool) -> Search:
        search = dataclasses.replace(config.search, simulations=simulations, first_simulations=0)
        return make_search(evaluate, search, grid=grid, explores=explores)

    cheap = None
    if options.full_share < 1:
        cheap = search_of(min(options.cheap_simulations, simulations), explores=False)
    return make_selfplay(
        search_of(simulations, explores=True),
        grid=grid,
        plies=options.plies,
        cheap=cheap,
        full_share=options.full_share,
        surprise=options.surprise,
    )


def _make_selfplay_at(
    config: RunConfig, network: Network, variant: Variant
) -> Callable[[int], Callable[..., Any]]:
    def count_at(iteration: int) -> int:
        return simulations_at(config.search, iteration, config.iterations)

    def jitted(count: int) -> Any:
        return jax.jit(selfplay_of(config, count), donate_argnums=2)

    counts = [count_at(iteration) for iteration in range(config.iterations)]
    if len(set(counts)) == 1:
        only = jitted(counts[0])
        return lambda iteration: only
    shapes = (
        network.shapes,
        variant,
        jax.eval_shape(first_boards, variant),
        jax.eval_shape(jax.random.key, 0),
    )
    compiled: dict[int, Callable[..., Any]] = {}

    def selfplay_at(iteration: int) -> Callable[..., Any]:
        for count in counts[iteration:]:
            if count not in compiled:
                compiled[count] = jitted(count).lower(*shapes).compile()
        return compiled[count_at(iteration)]

    return selfplay_at


def run_iteration(
    config: RunConfig, programs: Programs, state: RunState, iteration: int
) -> tuple[RunState, dict[str, Any]]:
    """Play, remember, learn. The state is consumed; its key comes from seed and iteration alone.

    Returns:
      The next state and the iteration's row of metrics.
    """
    started = time.perf_counter()
    play_key, learn_key = jax.random.split(
        jax.random.fold_in(jax.random.key(config.seed), iteration)
    )
    learner = state.learner
    selfplay = programs.selfplay_at(iteration)
    boards, plies, played = selfplay(learner.variables, programs.variant, state.boards, play_key)
    ring = programs.append(state.ring, plies)
    played, rows = fetch((played, ring.ready))
    between = time.perf_counter()
    losses = []
    if rows > 0:
        for key in jax.random.split(learn_key, config.learner.steps):
            learner, loss = programs.learn(learner, ring, programs.variant, key)
            losses.append(loss)
    means = means_of(fetch(losses))
    ended = time.perf_counter()
    check_finite(means, iteration)
    games, full = float(played.games), float(played.full)
    row = {
        "iteration": iteration,
        "games": games,
        "positions": float(played.positions),
        "mean_length": float(played.length) / games if games else None,
        "red_win_rate": float(played.red_wins + played.draws / 2) / games if games else None,
        "simulations": simulations_at(config.search, iteration, config.iterations),
        "full_share": full / float(played.positions),
        "policy_entropy": float(played.entropy) / full if full else None,
        "games_per_second": games / (ended - started),
        "positions_per_second": float(played.positions) / (ended - started),
        "selfplay_seconds": between - started,
        "learn_seconds": ended - between,
        "replay_rows": int(rows),
        "reuse": len(losses) * config.learner.batch / float(played.positions),
        **means,
    }
    return RunState(learner, boards, ring, state.iterations + 1), row


def check_finite(means: dict[str, float], iteration: int) -> None:
    """Stop a run whose loss is no number.

    Raises:
      UsageError: which iteration, and what to do.
    """
    if means and not np.isfinite(means["loss"]):
        raise UsageError(
            f"iteration {iteration + 1}: the loss is {means['loss']}; the last checkpoint is good, "
            "start again with a lower learner.learning_rate"
        )


def means_of(steps: list[StepMetrics]) -> dict[str, float]:
    """Means over steps, by name; what the network has no head for is left out."""
    if not steps:
        return {}
    rows = [{**step.losses._asdict(), "gradient_norm": step.gradient_norm} for step in steps]
    present = [name for name, value in rows[0].items() if value is not None]
    return {name: float(np.mean([row[name] for row in rows])) for name in present}
