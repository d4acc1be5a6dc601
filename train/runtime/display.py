"""The console of a long run or a match."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Display:
    """A live bar on a terminal, a line for each iteration elsewhere."""

    def __init__(self, *, total: int = 0, done: int = 0, is_quiet: bool = False) -> None:
        self.console = Console(file=sys.stdout, quiet=is_quiet)
        self._lasting = ""
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task(
            "iteration", total=total, completed=done, figures="compiling", visible=total > 0
        )

    def __enter__(self) -> "Display":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    @contextlib.contextmanager
    def match(self, title: str, games: int) -> Iterator[Callable[[int], None]]:
        """A bar for a match; yields a function that takes the number of games done."""
        task = self._bar.add_task("games", total=games, figures=title)
        try:
            yield lambda done: self._bar.update(task, completed=done)
        finally:
            self._bar.remove_task(task)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def show(self, done: int, figures: str, lasting: str = "") -> None:
        """Show the figures of the newest iteration.

        Args:
          done: iterations done, that one included.
          figures: of that iteration.
          lasting: further figures, repeated by later calls until others replace them.
        """
        self._lasting = lasting or self._lasting
        text = " · ".join(part for part in (figures, self._lasting) if part)
        self._bar.update(self._task, completed=done, figures=text)
        if not self.console.is_terminal:
            self.say(f"iteration {done}: {text}")
