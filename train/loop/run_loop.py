"""The loop that every training shares: iterate, evaluate, write, show, save, stop when asked to."""

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
from rich.console import Console

from train.checkpoints.store import Store
from train.config import RunConfig, config_to_dict
from train.loop.run_directory import (
    GAME_FILE,
    begin,
    naming_last_good,
    resume_command,
    tell_changed_rows,
)
from train.loop.train_step import TrainState
from train.metrics.columns import describe_matches
from train.metrics.rows import Row, elapsed_seconds
from train.metrics.wandb_run import WandbRun
from train.metrics.writer import MetricsWriter
from train.runtime.devices import NullWriter, any_process, is_first_process
from train.runtime.display import Column, Display
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.interrupts import interrupts

_ANSWER = "this iteration is finished and saved first"
_OPPONENT = "wjx"  # of the match that the end of a run proposes
Iterate = Callable[[TrainState, int], tuple[TrainState, Row]]
"""(state, which is consumed, iteration from 0) -> the next state and the iteration's row."""
Evaluate = Callable[[TrainState, int, Display], Row]
"""(state, iterations done, console) -> what to add to the row, before it is written; its `win_rate`
decides which checkpoints are the best."""


@dataclasses.dataclass(frozen=True)
class OpenRun:
    """A run whose directory is this process's, compiled and ready for its next iteration.

    Attributes:
      config: the run.
      directory: its own.
      state: to begin with.
      iterate: runs an iteration.
      evaluate: evaluates the weights after it.
      display: the console; quiet for all processes but the first.
      writer: of its metrics; a `NullWriter` for all processes but the first.
      store: of its checkpoints; a `NullWriter` for all processes but the first.
      compile_seconds: of the compiler before the run was opened.
    """

    config: RunConfig
    directory: Path
    state: TrainState
    iterate: Iterate
    evaluate: Evaluate
    display: Display
    writer: MetricsWriter | NullWriter
    store: Store | NullWriter
    compile_seconds: float = 0.0


class LoopResult(NamedTuple):
    """The end of a loop: last state, last row, and whether a signal ended it."""

    state: TrainState
    row: Row | None  # the last iteration's; None where none was left
    is_interrupted: bool


@contextlib.contextmanager
def opened(
    config: RunConfig,
    directory: Path,
    state: TrainState,
    columns: Sequence[Column],
    iterate: Iterate,
    evaluate: Evaluate = lambda state, done, display: {},
    *,
    compile_from: Callable[[int], float],
    more_files: Mapping[str, Any] = MappingProxyType({}),
    is_quiet: bool = False,
) -> Iterator[OpenRun]:
    """Compile what the iterations that are left call, make the run's directory ready to go on from
    a state, and close all files at the end. A run that does not fit in the memory leaves nothing
    behind.

    Args:
      columns: figures of an iteration that the console shows.
      compile_from: compiles for the iteration with that number and all later ones; returns the
        compiler's seconds.
      more_files: of the directory, JSON-ready by name; it never exists without them.
      is_quiet: show nothing on the console.

    Raises:
      UsageError: the directory cannot be made.
    """
    is_quiet, seconds = is_quiet or not is_first_process(), 0.0
    done, weights = int(fetch(state.iterations)), fetch(state.learner.player)
    if done < config.iterations:
        with Console(quiet=is_quiet).status(f"{config.name}: compiling"):
            seconds = compile_from(done)
    with contextlib.ExitStack() as stack:
        store, writer, rows = NullWriter(), NullWriter(), []
        if is_first_process():
            store = begin(directory, config, weights, done=done, more_files=more_files)
            stack.callback(store.close)
            writer = MetricsWriter(directory, done=done, mirrors=_mirrors(config, directory))
            stack.callback(writer.close)
            tell_changed_rows(directory, done, writer.rows_sum)
            rows = writer.kept
        before = elapsed_seconds(rows)[-1] if rows else 0.0
        total = config.iterations
        display = Display(total=total, done=done, columns=columns, before=before, is_quiet=is_quiet)
        display.keep(next(filter(None, map(describe_matches, reversed(rows))), ""))
        stack.enter_context(display)
        yield OpenRun(config, directory, state, iterate, evaluate, display, writer, store, seconds)


def _mirrors(config: RunConfig, directory: Path) -> tuple[WandbRun, ...]:
    """Further places that get the metrics, as the config says."""
    project = config.tracking.wandb
    if not project:
        return ()
    return (WandbRun(directory, config_to_dict(config), project=project, name=config.name),)


def run_to_end(run: OpenRun) -> LoopResult:
    """Run all iterations that are left, or up to an interruption, and save; errors are those of
    `iterations`."""
    ended = LoopResult(run.state, None, False)
    with interrupts(_ANSWER, show=run.display.note, has_work=True) as is_interrupted:
        for state, row in iterations(run, should_stop=is_interrupted):
            ended = LoopResult(state, row, False)
        return ended._replace(is_interrupted=any_process(is_interrupted()))


def iterations(
    run: OpenRun, *, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[tuple[TrainState, Row]]:
    """Yield the state and the row after each iteration that is left, reported and, where that is
    due or weights have a win rate, saved. The row is the one that `metrics.jsonl` gets.

    Args:
      run: its state is consumed, as is each yielded one by the next iteration.
      should_stop: asked after each iteration; True saves it and ends.

    Raises:
      UsageError: a loss or gradient is NaN or infinite; names the last good checkpoint. An error of
        `evaluate` comes once the iteration is saved.
    """
    config, state, compile_seconds = run.config, run.state, run.compile_seconds
    with naming_last_good(run.directory):
        run.writer.start()
        run.writer.leave_out(-compile_seconds)  # of this start, but before it
        began = time.perf_counter()
        for iteration in range(int(fetch(state.iterations)), config.iterations):
            state, row = run.iterate(state, iteration)
            done, seconds = iteration + 1, time.perf_counter() - began
            row |= {"compile_seconds": compile_seconds}
            compile_seconds = 0.0
            row |= _evaluate(run, state, row, seconds)
            # All processes ask at this point, so all stop after the same iteration.
            stops = any_process(should_stop())
            # Only weights on disk can be the best ones.
            is_rated = any_process("win_rate" in row)
            # The saving of the iteration before is part of these seconds.
            began = time.perf_counter()
            row = _report(run, row, seconds)
            is_over = stops or done == config.iterations
            if is_over or is_rated or is_due(done, config.checkpoint.every):
                save(run, state, row)
            waited = time.perf_counter()
            yield state, row
            # What the caller did is no part of the run.
            waited = time.perf_counter() - waited
            began += waited
            run.writer.leave_out(waited)
            if stops:
                return


def say_saved(run: OpenRun, state: TrainState) -> None:
    """Say how an interrupted run goes on."""
    done, command = int(fetch(state.iterations)), resume_command(run.directory)
    run.display.say(f"saved after iteration {done}; to go on: {command}", has_command=True)


def say_next(run: OpenRun) -> None:
    """Say where the results lie, and the commands of a match, of a replay and of an export."""
    directory, game = run.directory, run.directory / GAME_FILE
    where, model = shlex.quote(str(directory)), shlex.quote(str(Path("models") / run.config.name))
    lines = [f"results: {directory} · match: python -m train match {where} {_OPPONENT}"]
    if game.exists():
        record = shlex.quote(str(game))
        lines.append(f"replay: python -m wallgo_jax replay {record} --out game.html")
    for line in (*lines, f"export: python -m train export {where} {model}"):
        run.display.say(line, has_command=True)


def is_due(done: int, every: int) -> bool:
    """Whether something is due that happens once in `every` iterations; 0 stands for never."""
    return every > 0 and done % every == 0


def _evaluate(run: OpenRun, state: TrainState, row: Row, seconds: float) -> Row:
    """What to add to the row of an iteration; an error costs the matches, not the iteration, which
    is reported and saved first."""
    try:
        return run.evaluate(state, row["iteration"], run.display)
    except Exception as error:
        if jax.process_count() > 1:  # the others wait elsewhere, and a save needs all
            raise
        save(run, state, _report(run, row, seconds))
        if isinstance(error, UsageError):
            command = resume_command(run.directory)
            raise UsageError(
                f"{error}; iteration {row['iteration']} is saved; to go on: {command}"
            ) from None
        say_saved(run, state)
        raise


def _report(run: OpenRun, row: Row, seconds: float) -> Row:
    """Write and show a row; returns it as it is written, with its times."""
    row = run.writer.write(row) or row
    done, matches = row["iteration"], describe_matches(row)
    if matches:
        run.display.keep(matches)
    run.display.show(done, row)
    if "warning" in row:
        run.display.say(f"iteration {done}: {row['warning']}")
    return row


def save(run: OpenRun, state: TrainState, row: Row) -> None:
    """Save a checkpoint after the iteration that gave this row."""
    # Read by all processes, since parts may lie with others; saved by the first.
    weights, whole = fetch((state.learner.player, state))
    run.store.save(
        row["iteration"],
        weights,
        whole,
        config_to_dict(run.config),
        win_rate=row.get("win_rate"),
        rows_sum=None if isinstance(run.writer, NullWriter) else run.writer.rows_sum,
    )
