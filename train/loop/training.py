"""The run: self-play, replay, learn, evaluate, save, again."""

from collections.abc import Callable
from pathlib import Path

import jax

from train.checkpoints.store import Store
from train.config import RunConfig, config_to_dict
from train.data import replay
from train.loop.evaluation import check_opponents, final_matches, short_matches
from train.loop.iteration import run_iteration
from train.loop.metrics import Display, MetricsWriter
from train.loop.programs import Programs, RunState, make_programs
from train.loop.run_directory import (
    GAME_FILE,
    begin,
    check_directory,
    first_state,
    naming_last_good,
)
from train.runtime.devices import Mute, any_process, is_first_process, meet
from train.runtime.host import fetch
from train.runtime.interrupts import interrupts
from wallgo_jax import render


def train(config: RunConfig, runs: Path, *, resume: bool) -> bool:
    """Train to the end of the budget, evaluate, print the table.

    Args:
      config: the run.
      runs: directory of all runs.
      resume: go on from the newest whole checkpoint instead of starting.

    Returns:
      Whether the run came to its end; False when it was interrupted and saved.

    Raises:
      UsageError: the run exists already, or cannot be resumed with this config; an opponent does
        not exist.
    """
    directory = runs / config.name
    check_directory(directory, config, resume=resume)
    check_opponents(config)
    programs = make_programs(config)
    state = first_state(directory, programs.init, programs.place, resume=resume)
    meet("every process has its first state")
    done = int(fetch(state.iterations))
    display = Display(total=config.iterations, done=done, is_quiet=not is_first_process())
    if is_first_process():
        store = begin(directory, config, fetch(state.learner.player), done=done)
        writer = MetricsWriter(directory, from_iteration=done)
    else:
        store, writer = Mute(), Mute()
    display.say(_about(config, state))
    try:
        with display:
            with interrupts() as is_interrupted, naming_last_good(directory, store.wait):
                state, stopped = _iterate(
                    config, programs, state, directory, display, writer, store, is_interrupted
                )
            if stopped:
                done = int(fetch(state.iterations))
                display.say(f"saved after iteration {done}; the same command with --resume goes on")
                return False
            _finish(config, programs, state, directory, display)
        return True
    finally:
        store.close()
        writer.close()


def _iterate(
    config: RunConfig,
    programs: Programs,
    state: RunState,
    directory: Path,
    display: Display,
    writer: MetricsWriter | Mute,
    store: Store | Mute,
    is_interrupted: Callable[[], bool],
) -> tuple[RunState, bool]:
    """All iterations that are left, or up to an interruption; and whether there was one."""
    for iteration in range(int(fetch(state.iterations)), config.iterations):
        state, row = run_iteration(config, programs, state, iteration)
        done = iteration + 1
        if _has_match(config, done) and is_first_process():
            store.wait()
            row |= short_matches(config, state.learner.player, done, directory, display)
        stops = any_process(is_interrupted())
        writer.write(row)
        display.show(row)
        if "warning" in row:
            display.say(f"iteration {done}: {row['warning']}")
        if stops or done == config.iterations or _is_due(done, config.checkpoint.every):
            weights, run = fetch((state.learner.player, state))
            saved = config_to_dict(config)
            store.save(done, weights, run, saved, win_rate=row.get("win_rate"))
        if stops:
            break
    store.wait()
    return state, any_process(is_interrupted())


def _finish(
    config: RunConfig, programs: Programs, state: RunState, directory: Path, display: Display
) -> None:
    """A game, and the final matches, by the first process."""
    if not is_first_process():
        return
    if jax.process_count() == 1:
        _write_game(config, programs, state, directory)
    if config.evaluation.opponents:
        final_matches(config, state.learner.player, directory, display)


def _about(config: RunConfig, state: RunState) -> str:
    """What the run's memory holds, in a line."""
    rows, boards = state.replay_state.plies.terminated.shape
    size = replay.position_bytes(state.replay_state)
    positions = config.selfplay.boards * config.selfplay.plies
    reuse = config.learner.steps * config.learner.batch / positions
    where = f"{jax.device_count()} × {jax.devices()[0].device_kind}"
    return (
        f"{config.name} on {where}: replay of {rows * boards} positions, {size} bytes each, "
        f"{rows * boards * size / 2**20:.0f} MiB on the {config.replay.memory}; "
        f"{reuse:.1f} samples learned a new position"
    )


def _is_due(done: int, every: int) -> bool:
    return every > 0 and done % every == 0


def _has_match(config: RunConfig, done: int) -> bool:
    is_due = _is_due(done, config.evaluation.every) and done < config.iterations
    return is_due and bool(config.evaluation.opponents)


def _write_game(config: RunConfig, programs: Programs, state: RunState, directory: Path) -> None:
    game = replay.newest_game(state.replay_state, programs.variant)
    if game:
        text = render.game_text(config.rules, game)
        (directory / GAME_FILE).write_text(text + "\n", encoding="utf-8")
