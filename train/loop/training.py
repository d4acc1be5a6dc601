"""Trains to the end, as the command does: iterates, stops when asked to, finishes."""

import contextlib
from collections.abc import Callable, Generator
from pathlib import Path

from train.config import RunConfig
from train.loop.finish import finish
from train.loop.iterations import Iteration, iterations
from train.loop.reporting import save, say_saved
from train.runtime.devices import any_process
from train.runtime.interrupts import interrupts

_ANSWER = "this iteration is finished and saved first"


def train(config: RunConfig, runs: Path, *, resume: bool) -> bool:
    """Train to the end of the budget, evaluate, print the table.

    Args:
      config: the run.
      runs: directory of all runs.
      resume: go on from the newest whole checkpoint instead of starting.

    Returns:
      Whether the run reached its end; False when it was interrupted and saved.

    Raises:
      UsageError: as `iterations`.
    """
    steps = iterations(config, runs / config.name, resume=resume)
    return to_end(steps, lambda last: finish(last.run, last.state))


def to_end(steps: Generator[Iteration, None, None], finish: Callable[[Iteration], bool]) -> bool:
    """Run all iterations that are left, then finish; a signal ends it with the iteration saved.

    Returns:
      What `finish` returns, which gets the last iteration; False after a signal.
    """
    with contextlib.closing(steps):
        with interrupts("nothing is lost"):
            now = next(steps)
        show = now.run.display.note
        with interrupts(_ANSWER, show=show, has_work=True) as is_interrupted:
            for now in steps:
                # All processes ask at this point, so all stop after the same iteration.
                if any_process(is_interrupted()):
                    save(now.run, now.state, now.row)
                    say_saved(now.run, now.state)
                    return False
        return finish(now)
