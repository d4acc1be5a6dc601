"""The loop that every training shares: iterate, evaluate, write, show, save, stop when asked to."""

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from train.checkpoints.store import read_run, save_checkpoint
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
from train.loop.start import Start, keep_opponent, note_start, start_of
from train.loop.train_step import TrainState
from train.metrics.rows import Row, describe_matches, elapsed_seconds
from train.metrics.writer import MetricsWriter, check_wandb
from train.players.basic import Player
from train.runtime.devices import (
    any_process,
    is_first_process,
    set_gpu_flags,
    sync_processes,
)
from train.runtime.display import Display, waiting
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
      programs: `init` makes the first state, with random weights or with given ones; `place` puts
        a state of NumPy arrays, such as a checkpoint's, onto the devices; `compile` compiles for
        the iteration with a number and all later ones, and returns the compiler's seconds.
      iterate: (state, which is consumed, iteration from 0) -> the next state and the iteration's
        row.
      finish: (run, last state, last row or None) -> whether the end of the run was reached.
      about: a line on the run, by its first state.
      figures: of an iteration that the console shows, as `Display` takes them.
      evaluate: (state, iterations done, console) -> what to add to the row, before it is written;
        its `win_rate` decides which checkpoints are the best.
      files: of the directory, JSON-ready by name; it never exists without them.
      opponent: the frozen one of self-play, whose weights the directory keeps.
    """

    programs: Any
    iterate: Callable[[TrainState, int], tuple[TrainState, Row]]
    finish: Callable[["OpenRun", TrainState, Row | None], bool]
    about: Callable[[TrainState], str]
    figures: Mapping[str, str]
    evaluate: Callable[[TrainState, int, Display], Row] = lambda *_: {}
    files: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    opponent: Player | None = None


@dataclasses.dataclass(frozen=True)
class OpenRun:
    """A run whose directory is this process's, compiled and ready for its next iteration.

    Attributes:
      config: the run.
      directory: the run's.
      procedure: what its iterations do.
      state: to begin with.
      display: the console; quiet for all processes but the first.
      writer: of its metrics; None for all processes but the first.
      rows: metrics of earlier starts, as the first process has read them.
      compile_seconds: of the compiler before the run was opened.
    """

    config: RunConfig
    directory: Path
    procedure: Procedure
    state: TrainState
    display: Display
    writer: MetricsWriter | None
    rows: Sequence[Row] = ()
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
    is_first, seconds, writer, rows = is_first_process(), 0.0, None, list[Row]()
    is_quiet = is_quiet or not is_first
    with contextlib.ExitStack() as stack:
        if is_first:
            stack.enter_context(locked(directory))
        check_directory(directory, config, resume=resume)
        check_wandb(config.tracking.wandb)
        procedure, start = make(), start_of(config, directory, resume=resume)
        state = _first_state(procedure, directory, start, resume=resume)
        done, weights = int(fetch(state.iterations)), fetch(state.learner.player)
        if done < config.iterations:
            with waiting(f"{config.name}: compiling", is_quiet=is_quiet):
                seconds = procedure.programs.compile(done)
        if is_first:
            begin(directory, config, weights, done=done, files=procedure.files)
            writer = MetricsWriter(directory, done=done, config=config_to_dict(config))
            stack.callback(writer.close)
            tell_changed_rows(directory, done, writer.rows_sum)
            rows = writer.kept
        display = Display(
            total=config.iterations,
            done=done,
            figures=procedure.figures,
            before=[0.0, *elapsed_seconds(rows)][-1],
            is_quiet=is_quiet,
        )
        display.keep(next(filter(None, map(describe_matches, reversed(rows))), ""))
        stack.enter_context(display).say(procedure.about(state))
        if is_first:
            note_start(directory, start, display)
            keep_opponent(directory, procedure.opponent)
        yield OpenRun(config, directory, procedure, state, display, writer, rows, seconds)


def _first_state(
    procedure: Procedure, directory: Path, start: Start | None, *, resume: bool
) -> TrainState:
    """The state of the newest checkpoint, or one with the weights to begin with."""
    if resume and has_checkpoint(directory):
        like = jax.eval_shape(lambda: procedure.programs.init(None))
        state = procedure.programs.place(read_run(directory, like))
    else:
        state = procedure.programs.init(None if start is None else start.variables)
    sync_processes("every process has its first state")
    return state


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
            for after in iterations(run, should_stop=is_interrupted):
                last = after
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
    # That of the compiler is of this start, but before it.
    began = time.monotonic() - compile_seconds - [0.0, *elapsed_seconds(run.rows)][-1]
    with naming_last_good(run.directory):
        for iteration in range(int(fetch(state.iterations)), config.iterations):
            state, row = run.procedure.iterate(state, iteration)
            row |= {"compile_seconds": compile_seconds, "elapsed_seconds": time.monotonic() - began}
            done, compile_seconds = iteration + 1, 0.0
            row |= _evaluate(run, state, row)
            # All processes ask at this point, so all stop after the same iteration.
            stops = any_process(should_stop())
            # Only weights on disk can be the best ones.
            is_rated = any_process("win_rate" in row)
            row = _report_or_save(run, state, row | {"elapsed_seconds": time.monotonic() - began})
            is_over = stops or done == config.iterations
            if is_over or is_rated or is_due(done, config.checkpoint.every):
                save(run, state, row)
            waited = time.monotonic()
            yield state, row
            began += time.monotonic() - waited  # what the caller did is no part of the run
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


def _report_or_save(run: OpenRun, state: TrainState, row: Row) -> Row:
    """`_report`; an iteration whose row cannot be written is saved before the error ends the run,
    where there is room for that."""
    try:
        return _report(run, row)
    except UsageError as error:
        if jax.process_count() > 1 or not run.directory.is_dir():
            raise
        try:
            save(run, state, row)
        except UsageError:
            raise error from None
        command = resume_command(run.directory)
        raise UsageError(
            f"{error}; iteration {row['iteration']} is saved; to go on: {command}"
        ) from None


def _report(run: OpenRun, row: Row) -> Row:
    """Write and show a row; returns it as it is written, with its times."""
    row = row if run.writer is None else run.writer.write(row)
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
    if run.writer is not None:
        save_checkpoint(
            run.directory,
            row["iteration"],
            weights,
            whole,
            config_to_dict(run.config),
            win_rate=row.get("win_rate"),
            rows_sum=run.writer.rows_sum,
        )
