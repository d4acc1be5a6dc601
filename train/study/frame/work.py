"""What a topic is given: its scale, its kept pieces, and how it shows progress."""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from train.study.frame.pieces import Pieces
from train.study.scale.reading import StudyConfig

Task = Callable[[int], Any]
"""Takes the number of parts done."""
TaskMaker = Callable[[str, int, str], contextlib.AbstractContextManager[Task]]
"""(title, parts in all, unit) -> a context with a bar."""


@dataclasses.dataclass(frozen=True)
class Work:
    """A topic's work.

    Attributes:
      scale: how much is done.
      pieces: what is done already.
      task: shows a bar.
    """

    scale: StudyConfig
    pieces: Pieces
    task: TaskMaker


@contextlib.contextmanager
def no_task(title: str, total: int, unit: str):
    """A bar that is not shown."""
    del title, total, unit
    yield lambda done: None
