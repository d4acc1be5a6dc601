"""What an ablation shows: a lasting line for each step, and a bar while it is at it.

A training shows its own bar and table between these lines.
"""

import contextlib
import time
from collections.abc import Iterator

from train.runtime.display import Display, Task, duration
from train.study.ablation import Step
from train.study.options import Options
from train.study.results import TRAINING


class Progress:
    """The console of an ablation.

    Args:
      options: the study's, for the time that is left.
      left: trainings that are to be done.
    """

    def __init__(self, options: Options, left: int) -> None:
        self._options, self._left = options, left
        self._began, self._trained = time.monotonic(), 0

    def step(self, step: Step, done: int, total: int, iterations: int) -> None:
        """Say which training or match begins, and what is left of the study."""
        title = f"[{done + 1} of {total}] seed {step.seed}, {step.change.name}"
        if step.kind != TRAINING:
            text = f"{title} against {step.change.against}, {step.opening_plies} opening plies"
            Display().say(text)
            return
        left = duration(self._remaining())
        minutes = f"{iterations} iterations in about {self._options.minutes:g} min"
        Display().say(f"{title}: {minutes} · {self._left} trainings and {left} left")
        self._left, self._trained = self._left - 1, self._trained + 1

    @contextlib.contextmanager
    def task(self, title: str, total: int, unit: str) -> Iterator[Task]:
        """A bar of its own."""
        with Display() as display, display.task(title, total, unit) as task:
            yield task

    def _remaining(self) -> float:
        """Seconds, by the trainings so far with all that came with them."""
        if not self._trained:
            return 60 * self._options.minutes * self._left
        return (time.monotonic() - self._began) / self._trained * self._left
