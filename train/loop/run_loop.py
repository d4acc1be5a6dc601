"""The loop that every training shares: iterate, evaluate, write, show, save, stop when asked to."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import jax

from train.checkpoints.store import Store
from train.config import RunConfig, config_to_dict
from train.learning.learner import LearnerState
from train.loop.metrics import MetricsWriter, describe, describe_matches
from train.loop.run_directory import begin, naming_last_good
from train.runtime.devices import Mute, any_process, is_first_process
from train.runtime.display import Display
from train.runtime.host import fetch
from train.runtime.interrupts import interrupts

Row = dict[str, Any]
"""Figures of an iteration by name, as they are written; `iteration` counts from 0."""


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
    """

    config: RunConfig
    directory: Path
    display: Display
    writer: MetricsWriter | Mute
    store: Store | Mute


class LoopResult(NamedTuple, Generic[S]):
    """The end of a loop: last state, last row, and whether a signal ended it."""

    state: S
    row: Row | None  # the last iteration's; None where none was left
    is_interrupted: bool


@contextlib.contextmanager
def open_session(config: RunConfig, directory: Path, state: State) -> Iterator[Session]:
    """Make the run's directory ready to go on from a state, and close all files at the end.

    Raises:
      UsageError: the directory cannot be made.
    """
    done = int(fetch(state.iterations))
    weights = fetch(state.learner.player)
    display = Display(total=config.iterations, done=done, is_quiet=not is_first_process())
    if is_first_process():
        store = begin(directory, config, weights, done=done)
        writer = MetricsWriter(directory, from_iteration=done)
    else:
        store, writer = Mute(), Mute()
    try:
        with display:
            yield Session(config, directory, display, writer, store)
    finally:
        store.close()
        writer.close()


def run_loop(
    session: Session,
    state: S,
    iterate: Callable[[S, int], tuple[S, Row]],
    evaluate: Callable[[S, int], Row] = lambda state, done: {},
) -> LoopResult[S]:
    """Run all iterations that are left, or up to an interruption, and save.

    Args:
      session: the run.
      state: consumed.
      iterate: (state, iteration from 0) -> the next state and the iteration's row.
      evaluate: (state, iterations done) -> what to add to the row, before it is written; its
        `win_rate` decides which checkpoints are the best.

    Raises:
      UsageError: a loss or gradient is NaN or infinite; names the last good checkpoint.
    """
    row, last = None, session.config.iterations
    with (
        # Where one process ended at once, the others would wait for it.
        interrupts(_ANSWER, has_work=jax.process_count() > 1) as is_interrupted,
        naming_last_good(session.directory, session.store.wait),
    ):
        for iteration in range(int(fetch(state.iterations)), last):
            state, row = iterate(state, iteration)
            is_interrupted.keeps_work()
            done = iteration + 1
            row |= evaluate(state, done)
            # All processes ask at this point, so all stop after the same iteration.
            stops = any_process(is_interrupted())
            _report(session, row)
            if stops or done == last or is_due(done, session.config.checkpoint.every):
                _save(session, state, done, row)
            if stops:
                break
        session.store.wait()
        return LoopResult(state, row, any_process(is_interrupted()))


def say_saved(session: Session, state: State) -> None:
    """Tell how an interrupted run goes on."""
    done = int(fetch(state.iterations))
    session.display.say(f"saved after iteration {done}; the same command with --resume goes on")


def is_due(done: int, every: int) -> bool:
    """Whether something is due that happens once in `every` iterations; 0 stands for never."""
    return every > 0 and done % every == 0


def _report(session: Session, row: Row) -> None:
    session.writer.write(row)
    done = row["iteration"] + 1
    session.display.show(done, describe(row), describe_matches(row))
    if "warning" in row:
        session.display.say(f"iteration {done}: {row['warning']}")


def _save(session: Session, state: State, done: int, row: Row) -> None:
    # Read by all processes, since parts may lie with others; saved by the first.
    weights, whole = fetch((state.learner.player, state))
    config = config_to_dict(session.config)
    session.store.save(done, weights, whole, config, win_rate=row.get("win_rate"))
