"""The loop that every training shares: iterate, evaluate, write, show, save, stop when asked to."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import jax
from rich.console import Console

from train.checkpoints.store import Store
from train.config import RunConfig, config_to_dict
from train.learning.learner import LearnerState
from train.loop.run_directory import (
    begin,
    naming_last_good,
    resume_command,
    tell_changed_rows,
)
from train.metrics.columns import describe_matches
from train.metrics.rows import Row, elapsed_seconds
from train.metrics.wandb_run import WandbRun
from train.metrics.writer import MetricsWriter
from train.runtime.devices import Mute, any_process, is_first_process
from train.runtime.display import Column, Display
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.interrupts import interrupts


class State(Protocol):
    """The part of a training's state that the loop reads."""

    @property
    def learner(self) -> LearnerState: ...

    @property
    def iterations(self) -> jax.Array:
        """int32, iterations done."""
        ...


S = TypeVar("S", bound=State)

_ANSWER = "this iteration is finished and saved first"


@dataclasses.dataclass(frozen=True)
class Session:
    """A run that is open: what it is, and where its results go.

    Attributes:
      config: the run.
      directory: its own.
      display: the console; quiet for all processes but the first.
      writer: of its metrics; mute for all processes but the first.
      store: of its checkpoints; likewise.
      compile_seconds: of the compiler before the session was opened.
    """

    config: RunConfig
    directory: Path
    display: Display
    writer: MetricsWriter | Mute
    store: Store | Mute
    compile_seconds: float = 0.0


class LoopResult(NamedTuple, Generic[S]):
    """The end of a loop: last state, last row, and whether a signal ended it."""

    state: S
    row: Row | None  # the last iteration's; None where none was left
    is_interrupted: bool


def compile_first(
    config: RunConfig, state: State, compile_from: Callable[[int], float], *, is_quiet: bool
) -> float:
    """Compile what the iterations that are left call, before a file is written: a run that does not
    fit in the memory leaves nothing behind.

    Returns:
      The compiler's seconds.
    """
    done = int(fetch(state.iterations))
    if done >= config.iterations:
        return 0.0
    console = Console(quiet=is_quiet or not is_first_process())
    with console.status(f"{config.name}: compiling"):
        return compile_from(done)


@contextlib.contextmanager
def open_session(
    config: RunConfig,
    directory: Path,
    state: State,
    columns: Sequence[Column],
    *,
    compile_seconds: float = 0.0,
    beside: Mapping[str, Any] = MappingProxyType({}),
    games_after: Callable[[int], int] = lambda done: 0,
    is_quiet: bool = False,
) -> Iterator[Session]:
    """Make the run's directory ready to go on from a state, and close all files at the end.

    Args:
      columns: figures of an iteration that the console shows.
      compile_seconds: of the compiler before this call.
      beside: further files of the directory, JSON-ready by name; it never exists without them.
      games_after: games of the matches that follow the iteration with that number.
      is_quiet: show nothing on the console.

    Raises:
      UsageError: the directory cannot be made.
    """
    done = int(fetch(state.iterations))
    weights = fetch(state.learner.player)
    with contextlib.ExitStack() as stack:
        store, writer, rows = Mute(), Mute(), []
        if is_first_process():
            store = begin(directory, config, weights, done=done, beside=beside)
            stack.callback(store.close)
            writer = MetricsWriter(directory, done=done, mirrors=_mirrors(config, directory))
            stack.callback(writer.close)
            tell_changed_rows(directory, done, writer.rows_sum)
            rows = writer.kept
        display = _make_display(config, done, columns, rows, games_after, is_quiet=is_quiet)
        stack.enter_context(display)
        yield Session(config, directory, display, writer, store, compile_seconds)


def _mirrors(config: RunConfig, directory: Path) -> tuple[WandbRun, ...]:
    """Further places that get the metrics, as the config says."""
    project = config.tracking.wandb
    if not project:
        return ()
    return (WandbRun(directory, config_to_dict(config), project=project, name=config.name),)


def _make_display(
    config: RunConfig,
    done: int,
    columns: Sequence[Column],
    rows: Sequence[Row],
    games_after: Callable[[int], int],
    *,
    is_quiet: bool,
) -> Display:
    """The console of a run that goes on after these rows."""
    before = elapsed_seconds(rows)[-1] if rows else 0.0
    display = Display(
        total=config.iterations,
        done=done,
        columns=columns,
        before=before,
        is_quiet=is_quiet or not is_first_process(),
    )
    played = [text for text in map(describe_matches, rows) if text]
    display.keep(played[-1] if played else "")
    return display


def run_loop(
    session: Session,
    state: S,
    compile_for: Callable[[S, int], float],
    iterate: Callable[[S, int], tuple[S, Row]],
    evaluate: Callable[[S, int], Row] = lambda state, done: {},
) -> LoopResult[S]:
    """Run all iterations that are left, or up to an interruption, and save.

    A signal before the first iteration has compiled ends the process at once, for nothing is lost.

    Args:
      session: the run.
      state: consumed.
      compile_for: as in `iterations`, as are the others.
      iterate: likewise.
      evaluate: likewise.

    Raises:
      UsageError: a loss or gradient is NaN or infinite; names the last good checkpoint.
    """
    ended = LoopResult[S](state, None, False)
    # Where one process ended at once, the others would wait for it.
    with interrupts(
        _ANSWER, show=session.display.note, has_work=jax.process_count() > 1
    ) as is_interrupted:

        def compile_and_keep(state: S, iteration: int) -> float:
            seconds = compile_for(state, iteration)
            is_interrupted.keeps_work()
            return seconds

        steps = iterations(
            session, state, compile_and_keep, iterate, evaluate, should_stop=is_interrupted
        )
        for newest, row in steps:
            ended = ended._replace(state=newest, row=row)
        return ended._replace(is_interrupted=any_process(is_interrupted()))


def iterations(
    session: Session,
    state: S,
    compile_for: Callable[[S, int], float],
    iterate: Callable[[S, int], tuple[S, Row]],
    evaluate: Callable[[S, int], Row] = lambda state, done: {},
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[S, Row]]:
    """Yield the state and the row after each iteration that is left, reported and, where that is
    due or weights have a win rate, saved. The row is the one that `metrics.jsonl` gets.

    Args:
      session: the run.
      state: consumed, as is each yielded one by the next iteration.
      compile_for: (state, iteration from 0) -> seconds; compiles what the iteration calls.
      iterate: (state, iteration from 0) -> the next state and the iteration's row.
      evaluate: (state, iterations done) -> what to add to the row, before it is written; its
        `win_rate` decides which checkpoints are the best.
      should_stop: asked after each iteration; True saves it and ends.

    Raises:
      UsageError: a loss or gradient is NaN or infinite; names the last good checkpoint. An error of
        `evaluate` comes once the iteration is saved.
    """
    last = session.config.iterations
    with naming_last_good(session.directory):
        session.writer.start()
        session.writer.leave_out(-session.compile_seconds)  # of this start, but before it
        began, before = time.perf_counter(), session.compile_seconds
        for iteration in range(int(fetch(state.iterations)), last):
            compile_seconds = compile_for(state, iteration)
            state, row = iterate(state, iteration)
            done, seconds = iteration + 1, time.perf_counter() - began - compile_seconds
            row |= {"compile_seconds": before + compile_seconds}
            before = 0.0
            row |= _evaluate(session, state, row, seconds, evaluate)
            # All processes ask at this point, so all stop after the same iteration.
            stops = any_process(should_stop())
            # Only weights on disk can be the best ones.
            is_rated = any_process("win_rate" in row)
            # The saving of the iteration before is part of these seconds.
            began = time.perf_counter()
            row = _report(session, row, seconds)
            is_over = stops or done == last
            if is_over or is_rated or is_due(done, session.config.checkpoint.every):
                save(session, state, row)
            waited = time.perf_counter()
            yield state, row
            # What the caller did is no part of the run.
            waited = time.perf_counter() - waited
            began += waited
            session.writer.leave_out(waited)
            if stops:
                return


def say_saved(session: Session, state: State) -> None:
    """Tell how an interrupted run goes on."""
    done = int(fetch(state.iterations))
    command = resume_command(session.directory)
    session.display.say(f"saved after iteration {done}; to go on: {command}", has_command=True)


def is_due(done: int, every: int) -> bool:
    """Whether something is due that happens once in `every` iterations; 0 stands for never."""
    return every > 0 and done % every == 0


def _evaluate(
    session: Session, state: S, row: Row, seconds: float, evaluate: Callable[[S, int], Row]
) -> Row:
    """What to add to the row of an iteration; an error costs the matches, not the iteration, which
    is reported and saved first."""
    try:
        return evaluate(state, row["iteration"])
    except Exception as error:
        if jax.process_count() > 1:  # the others wait elsewhere, and a save needs all
            raise
        save(session, state, _report(session, row, seconds))
        if isinstance(error, UsageError):
            command = resume_command(session.directory)
            raise UsageError(
                f"{error}; iteration {row['iteration']} is saved; to go on: {command}"
            ) from None
        say_saved(session, state)
        raise


def _report(session: Session, row: Row, seconds: float) -> Row:
    """Write and show a row; returns it as it is written, with its times."""
    row = session.writer.write(row) or row
    done, matches = row["iteration"], describe_matches(row)
    if matches:
        session.display.keep(matches)
    session.display.show(done, row)
    if "warning" in row:
        session.display.say(f"iteration {done}: {row['warning']}")
    return row


def save(session: Session, state: State, row: Row) -> None:
    """Save a checkpoint after the iteration that gave this row."""
    # Read by all processes, since parts may lie with others; saved by the first.
    weights, whole = fetch((state.learner.player, state))
    config = config_to_dict(session.config)
    session.store.save(
        row["iteration"],
        weights,
        whole,
        config,
        win_rate=row.get("win_rate"),
        rows_sum=None if isinstance(session.writer, Mute) else session.writer.rows_sum,
    )
