"""Compiles the functions of a run before its first iteration, if all of it fits into the memory.

A function that has been compiled for shapes is not compiled again when it is called.
"""

import functools
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.stages import Traced

from train.config import RunConfig
from train.data.selfplay import plies_like
from train.game import Variant, initial_state
from train.loop import batches, programs
from train.loop.programs import TrainState
from train.loop.stages import BOOTSTRAP, simulations_of, variables_of
from train.loop.tables import HOST, Tables
from train.runtime.ahead import compile_together
from train.runtime.devices import BY_BOARD, EVERYWHERE, ROWS_BY_BOARD, shapes_of
from train.runtime.memory import (
    MemoryEstimate,
    check_fits,
    device_memory,
    host_memory,
    program_bytes,
    tree_bytes,
)
from wallgo_jax.formats.option_names import argument

if TYPE_CHECKING:
    from train.loop.recorded import GamesToLearn

SELFPLAY = "self-play"
WRITING = "adding to the replay"
REANALYSIS = "searching the replay again"
AT_HOST = "of the host's replay"
LEARNING = "learning"
PLIES = "the plies of an iteration"
_NETWORK = ("network.width", "another size of the network")
_KEYS = {
    SELFPLAY: ("selfplay.boards", "search.simulations", "network.width"),
    WRITING: ("selfplay.boards",),
    REANALYSIS: ("selfplay.boards", "replay.reanalyse_simulations", "network.width"),
    LEARNING: ("learner.batch", "network.width"),
}
"""What shrinks each function of the devices."""
_FIRST = np.int32(0)
_ACTION_BYTES = 4


def compile_run(
    config: RunConfig,
    tables: Tables,
    like: TrainState,
    variant: Any,
    opponent: Any,
    games: "GamesToLearn | None",
    *,
    done: int,
) -> float:
    """Compile all that the iterations after the first `done` call, so that none of them waits for
    the compiler, and check that all fits into the memory; nothing is computed but keys.

    Args:
      config: the run.
      tables: of the run.
      like: shapes of its state.
      variant: [B], what each board plays; None without self-play.
      opponent: weights of the frozen opponent, None without one.
      games: that are learned in place of self-play, None for none.
      done: iterations that are not run again.

    Returns:
      Seconds of the compiler.

    Raises:
      UsageError: the run needs more memory than a device or this host has.
    """
    started = time.perf_counter()
    # What is far too large is refused at once.
    held, running = check_arrays(config, tables, like, variant, games)
    if games is not None:
        traced = {LEARNING: games.traces(tables.learn, like.learner, _keys_like(tables))}
    else:
        traced = traces_of_run(config, tables, like, variant, opponent, done=done)
    programs.iteration_keys(tables.learn, config.seed, done)
    returned = {SELFPLAY: sum(need.bytes for need in held if need.name == PLIES)}
    for name, size in compiled_bytes(traced).items():
        if name in _KEYS:
            # What it returns is among the arrays already.
            size = max(size - returned.get(name, 0), 0)
            running.append(MemoryEstimate(name, size, _KEYS[name]))
    if games is None and config.replay.memory != HOST:
        running += _saving(like)
    check_fits(held, device_memory(), programs=running)
    return time.perf_counter() - started


def check_arrays(
    config: RunConfig,
    tables: Tables,
    like: TrainState,
    variant: Any,
    games: "GamesToLearn | None" = None,
) -> tuple[list[MemoryEstimate], list[MemoryEstimate]]:
    """Check the arrays of a run alone; nothing is compiled. The rest is as in `compile_run`.

    Returns:
      What lies on a device between two functions, and what matches take.

    Raises:
      UsageError: they need more memory than a device or this host has.
    """
    held = [MemoryEstimate("weights and optimizer", tree_bytes(like.learner), _NETWORK)]
    running: list[MemoryEstimate] = []
    if games is not None:
        size = tree_bytes(games.positions)
        held.append(MemoryEstimate("the recorded games", size, (argument("records"),)))
    else:
        boards = tree_bytes(like.boards)
        held.append(MemoryEstimate("the boards of self-play", boards, ("selfplay.boards",)))
        held.append(_plies(tables, variant))
        running += _matches(config, tables.learn.place.devices.count)
        if config.replay.memory == HOST:
            check_fits([_replay(config, like)], host_memory())
        else:
            held.append(_replay(config, like))
    check_fits(held, device_memory(), programs=running)
    return held, running


def _plies(tables: Tables, variant: Any) -> MemoryEstimate:
    play = tables.play
    assert play is not None
    plies = plies_like(variant, play.selfplay, has_root_value=play.has_root_value)
    size = tree_bytes(play.devices.like(plies, ROWS_BY_BOARD))
    return MemoryEstimate(PLIES, size, ("selfplay.boards", "selfplay.plies"))


def traces_of_run(
    config: RunConfig,
    tables: Tables,
    like: TrainState,
    variant: Variant,
    opponent: Any,
    *,
    done: int,
) -> dict[str, list[Traced]]:
    """The functions that the iterations after the first `done` call, traced for their shapes."""
    play = tables.play
    place = tables.learn.place
    assert play is not None
    plies = plies_like(variant, play.selfplay, has_root_value=play.has_root_value)
    plies = shapes_of(plies, place.shardings(ROWS_BY_BOARD))
    boards = place.devices.like(variant, BY_BOARD)
    key = place.devices.like(jax.eval_shape(jax.random.key, 0), EVERYWHERE)
    keys = _keys_like(tables)
    weights = like.learner.weights
    source = like.replay_state
    variables = variables_of(config, weights, 0, opponent)
    budgets = {simulations_of(config, number) for number in range(done, config.iterations)}
    traced = {
        SELFPLAY: [
            programs.play.trace(play, budget, variables, boards, like.boards, key)
            for budget in sorted(budgets)
        ]
    }
    if config.replay.reanalyse and budgets - {BOOTSTRAP}:
        again = config.replay.reanalyse, config.replay.reanalyse_simulations
        traced[REANALYSIS] = [
            programs.reanalyse.trace(play, *again, variables, boards, source, key)
        ]
    writing = programs.write_rows.trace(place, source, plies)
    if place.host is None:
        traced[WRITING] = [writing]
    else:
        at_host = place.shardings(EVERYWHERE)
        drawn_by = shapes_of(variant, at_host), shapes_of(keys, at_host)
        draw = batches.draw_batch
        traced[AT_HOST] = [writing, draw.trace(tables.learn, source, *drawn_by, _FIRST)]
        if config.learner.validation_every:
            held_out = batches.draw_held_out.trace(tables.learn, source, *drawn_by)
            traced[AT_HOST].append(held_out)
        batch = jax.eval_shape(draw, tables.learn, source, *drawn_by, _FIRST)
        source = place.devices.like(batch, BY_BOARD)
    traced[LEARNING] = [programs.trace_learning(tables.learn, like.learner, source, boards, keys)]
    if config.learner.validation_every:
        losses = programs.held_out_losses.trace(tables.learn, weights, source, boards, keys)
        traced[LEARNING].append(losses)
    return traced


def compiled_bytes(traced: Mapping[str, Sequence[Traced]]) -> dict[str, int]:
    """Compile functions; bytes on one device that the largest of each name takes in addition to its
    arguments."""
    jobs = [
        functools.partial(_compiled_bytes, each) for several in traced.values() for each in several
    ]
    sizes = iter(compile_together(jobs))
    return {name: max(itertools.islice(sizes, len(several))) for name, several in traced.items()}


def _compiled_bytes(traced: Traced) -> int:
    return program_bytes(traced.lower().compile())


def _keys_like(tables: Tables) -> Any:
    """Shapes of the keys [S] of an iteration's steps, and where they lie."""
    steps = tables.learn.learner.steps
    devices = tables.learn.place.devices
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), steps))
    return devices.like(keys, EVERYWHERE)


def _saving(like: TrainState) -> list[MemoryEstimate]:
    if jax.default_backend() != "cpu":
        return []
    # Saving takes two copies, and the host's memory is the device's.
    copies = 2 * tree_bytes(like.replay_state)
    return [MemoryEstimate("a checkpoint", copies, ("replay.positions",))]


def _replay(config: RunConfig, like: TrainState) -> MemoryEstimate:
    """An iteration of self-play decides the replay's size where it is larger."""
    options = config.selfplay
    is_least = options.boards * options.plies > config.replay.positions
    keys = ("selfplay.boards", "selfplay.plies") if is_least else ("replay.positions",)
    return MemoryEstimate("the replay", tree_bytes(like.replay_state), keys)


def _matches(config: RunConfig, devices: int) -> list[MemoryEstimate]:
    """Records of all games of the longest match, and its boards. What its program takes is checked
    when it is compiled."""
    options = config.evaluation
    if not options.opponents:
        return []
    games = max(options.games, options.final_games)
    rules = max(config.learned, key=lambda rules: rules.size)
    state = tree_bytes(jax.eval_shape(lambda: initial_state(rules)))
    record = state + _ACTION_BYTES * rules.max_plies
    boards = min(options.batch, games)
    keys = ("evaluation.final_games", "evaluation.games", "evaluation.batch")
    return [MemoryEstimate("matches", (games * record + boards * state) // devices, keys)]
