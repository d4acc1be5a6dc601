"""The loop that every training shares: iterate, evaluate, write, show, save, stop when asked to."""

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from train.checkpoints.store import Store, read_run
from train.config import RunConfig, config_to_dict
from train.loop.run_directory import (
    GAME_FILE,
    begin,
    check_directory,
    has_checkpoint,
    naming_last_good,
    resume_command,
    tell_changed_rows,
)
from train.loop.start import keep_opponent, note_start, start_of
from train.loop.train_step import TrainState
from train.metrics.rows import Row, describe_matches, elapsed_seconds
from train.metrics.writer import MetricsWriter, WandbRun, check_wandb
from train.network import Variables
from train.players.basic import Player
from train.runtime.devices import (
    NullWriter,
    any_process,
    is_first_process,
    set_gpu_flags,
    sync_processes,
)
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.files import locked
from train.runtime.host import fetch
from train.runtime.interrupts import interrupts

_ANSWER = "this iteration is finished and saved first"
_OPPONENT = "wjx"  # of the match that the end of a run proposes


@dataclasses.dataclass(frozen=True)
class Procedure:
    """What the iterations of a run do: they learn from self-play, or from recorded games.

    Attributes:
      init: the first state, with random weights or with these.
      place: puts a state of NumPy arrays, such as a checkpoint's, onto the devices.
      compile: compiles for the iteration with that number and all later ones; returns the
        compiler's seconds.
      iterate: (state, which is consumed, iteration from 0) -> the next state and the iteration's
        row.
      evaluate: (state, iterations done, console) -> what to add to the row, before it is written;
        its `win_rate` decides which checkpoints are the best.
      finish: (run, last state, last row or None) -> whether the end of the run was reached.
      about: a line on the run, by its first state.
      figures: of an iteration that the console shows, as `Display` takes them.
      files: of the directory, JSON-ready by name; it never exists without them.
      opponent: the frozen one of self-play, whose weights the directory keeps.
    """

    init: Callable[[Variables | None], TrainState]
    place: Callable[[TrainState], TrainState]
    compile: Callable[[int], float]
    iterate: Callable[[TrainState, int], tuple[TrainState, Row]]
    evaluate: Callable[[TrainState, int, Display], Row]
    finish: Callable[["OpenRun", TrainState, Row | None], bool]
    about: Callable[[TrainState], str]
    figures: Mapping[str, str]
    files: Mapping[str, Any]
    opponent: Player | None


@dataclasses.dataclass(frozen=True)
class OpenRun:
    """A run whose directory is this process's, compiled and ready for its next iteration.

    Attributes:
      config: the run.
      directory: the run's.
      procedure: what its iterations do.
      state: to begin with.
      display: the console; quiet for all processes but the first.
      writer: of its metrics; a `NullWriter` for all processes but the first.
      store: of its checkpoints; a `NullWriter` for all processes but the first.
      compile_seconds: of the compiler before the run was opened.
    """

    config: RunConfig
    directory: Path
    procedure: Procedure
    state: TrainState
    display: Display
    writer: MetricsWriter | NullWriter
    store: Store | NullWriter
    compile_seconds: float = 0.0


@contextlib.contextmanager
def opened(
    config: RunConfig,
    directory: Path,
    make: Callable[[], Procedure],
    *,
    resume: bool,
    is_quiet: bool = False,
) -> Iterator[OpenRun]:
    """Hold and check a run's directory, compile what the iterations that are left call, make the
    directory ready to go on, and close all files at the end. A run that does not fit in the memory
    leaves nothing behind.

    Args:
      config: the run.
      directory: the run's.
      make: makes its functions once the directory is held and can be used.
      resume: go on from the newest whole checkpoint instead of starting.
      is_quiet: show nothing on the console.

    Raises:
      UsageError: the run exists already, or cannot be resumed with this config; another process is
        at it; its directory cannot be made; an error of `make` or of the compiler.
    """
    set_gpu_flags(deterministic=config.deterministic, loops_in_graphs=config.loops_in_graphs)
    is_first, seconds = is_first_process(), 0.0
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(directory) if is_first else contextlib.nullcontext())
        check_directory(directory, config, resume=resume)
        check_wandb(config.tracking.wandb)
        procedure, start = make(), start_of(config, directory, resume=resume)
        if resume and has_checkpoint(directory):
            like = jax.eval_shape(lambda: procedure.init(None))
            state = procedure.place(read_run(directory, like))
        else:
            state = procedure.init(None if start is None else start.variables)
        sync_processes("every process has its first state")
        done, weights = int(fetch(state.iterations)), fetch(state.learner.player)
        if done < config.iterations:
            with Console(quiet=is_quiet or not is_first).status(f"{config.name}: compiling"):
                seconds = procedure.compile(done)
        store, writer, rows = NullWriter(), NullWriter(), []
        if is_first:
            store = begin(directory, config, weights, done=done, files=procedure.files)
            stack.callback(store.close)
            writer = MetricsWriter(directory, done=done, mirrors=_mirrors(config, directory))
            stack.callback(writer.close)
            tell_changed_rows(directory, done, writer.rows_sum)
            rows = writer.kept
        display = Display(
            total=config.iterations,
            done=done,
            figures=procedure.figures,
            before=elapsed_seconds(rows)[-1] if rows else 0.0,
            is_quiet=is_quiet or not is_first,
        )
        display.keep(next(filter(None, map(describe_matches, reversed(rows))), ""))
        stack.enter_context(display)
        display.say(procedure.about(state))
        if is_first:
            note_start(directory, start, display)
            keep_opponent(directory, procedure.opponent)
        yield OpenRun(config, directory, procedure, state, display, writer, store, seconds)


def _mirrors(config: RunConfig, directory: Path) -> tuple[WandbRun, ...]:
    """Further places that get the metrics, as the config says."""
    project = config.tracking.wandb
    if not project:
        return ()
    return (WandbRun(directory, config_to_dict(config), project=project, name=config.name),)


def run_to_end(opening: contextlib.AbstractContextManager[OpenRun]) -> bool:
    """Open a run, run all iterations that are left, and finish it; errors are those of `opened` and
    of `iterations`.

    Returns:
      Whether the run reached its end; False when it was interrupted and saved.
    """
    with contextlib.ExitStack() as stack:
        with interrupts("nothing is lost"):
            run = stack.enter_context(opening)
        last: tuple[TrainState, Row | None] = run.state, None
        with interrupts(_ANSWER, show=run.display.note, has_work=True) as is_interrupted:
            for step in iterations(run, should_stop=is_interrupted):
                last = step
            stops = any_process(is_interrupted())
        if stops:
            say_saved(run, last[0])
            return False
        return run.procedure.finish(run, *last)


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
        for iteration in range(int(fetch(state.iterations)), config.iterations):
            state, row = run.procedure.iterate(state, iteration)
            row |= {"compile_seconds": compile_seconds}
            done, compile_seconds = iteration + 1, 0.0
            row |= _evaluate(run, state, row)
            # All processes ask at this point, so all stop after the same iteration.
            stops = any_process(should_stop())
            # Only weights on disk can be the best ones.
            is_rated = any_process("win_rate" in row)
            row = _report(run, row)
            is_over = stops or done == config.iterations
            if is_over or is_rated or is_due(done, config.checkpoint.every):
                save(run, state, row)
            waited = time.perf_counter()
            yield state, row
            # What the caller did is no part of the run.
            run.writer.leave_out(time.perf_counter() - waited)
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


def _evaluate(run: OpenRun, state: TrainState, row: Row) -> Row:
    """What to add to the row of an iteration; an error costs the matches, not the iteration, which
    is reported and saved first."""
    try:
        return run.procedure.evaluate(state, row["iteration"], run.display)
    except Exception as error:
        if jax.process_count() > 1:  # the others wait elsewhere, and a save needs all
            raise
        save(run, state, _report(run, row))
        if isinstance(error, UsageError):
            command = resume_command(run.directory)
            raise UsageError(
                f"{error}; iteration {row['iteration']} is saved; to go on: {command}"
            ) from None
        say_saved(run, state)
        raise


def _report(run: OpenRun, row: Row) -> Row:
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
