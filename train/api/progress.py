"""Follows long work: its bar, its lines, and what stops it, alike in Python and on the command
line."""

import contextlib
from collections.abc import Iterator
from typing import Any

from train.runtime.display import Display
from train.runtime.interrupts import StopRequest, interrupts

Shown = bool | Display
"""Whether a bar is shown; or a command's console, where a signal ends the work with what is done
and the result says so."""


class Follower:
    """Follows the work of a call.

    Attributes:
      display: the console, which is quiet where nothing is shown.
      should_stop: whether a signal came that the work answers; its `keeps_work` says that from now
        on there is something to keep.
      task: the bar of the work, if it has one.
    """

    def __init__(self, display: Display, should_stop: StopRequest, task: Any) -> None:
        self.display, self.should_stop, self.task = display, should_stop, task

    def __call__(self, done: int) -> None:
        """Show how many parts are done, which are kept from the first one on."""
        if done > 0:
            self.should_stop.keeps_work()
        self.task(done)


@contextlib.contextmanager
def follow(
    shown: Shown, title: str = "", total: int = 0, unit: str = "games", *, answer: str = ""
) -> Iterator[Follower]:
    """Follow work, with a bar if it has a title.

    Args:
      shown: a bar, nothing, or a command's console.
      title: of the bar.
      total: parts of the work.
      unit: of the parts.
      answer: what a command tells who interrupts it, such as what is kept.
    """
    display = shown if isinstance(shown, Display) else Display(is_quiet=not shown)
    with display, contextlib.ExitStack() as stack:
        task = stack.enter_context(display.task(title, total, unit)) if title else None
        request = StopRequest(answer, lambda text: False)
        if isinstance(shown, Display):
            request = stack.enter_context(interrupts(answer, show=display.note))
        try:
            yield Follower(display, request, task)
        except KeyboardInterrupt as stop:
            if stop.args or not (answer and isinstance(shown, Display)):
                raise
            raise KeyboardInterrupt(
                "nothing of this is kept; the same command starts it anew"
            ) from None
