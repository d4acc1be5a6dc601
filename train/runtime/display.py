"""The console of a long command: live lines at the foot of a terminal, lasting lines above."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from train.runtime.clock import RunClock, TaskClock, duration
from train.runtime.lines import (
    Column,
    bar_line,
    columns_for,
    figures_line,
    header_line,
    line_every,
    phrases,
    row_line,
)

_REFRESHES = 4  # a second
_HEADER_EVERY = 20  # lasting rows; a terminal of 24 lines then always shows the headings


class Display:
    """A bar and the newest figures on a terminal, with a table of finished iterations above.

    Elsewhere, as in a file or a pipe, it prints one plain line for each iteration and whatever is
    said, and no bar.
    """

    def __init__(
        self,
        *,
        total: int = 0,
        done: int = 0,
        columns: Sequence[Column] = (),
        clock: RunClock | None = None,
        is_quiet: bool = False,
        console: Console | None = None,
    ) -> None:
        """Prepare the console; entering the context shows it.

        Args:
          total: iterations of the run; 0 for a command without iterations.
          done: iterations done before.
          columns: figures of an iteration.
          clock: of the run; a new one by default.
          is_quiet: whether nothing is shown at all.
          console: instead of standard output.
        """
        self.console = console or _Output(file=sys.stdout, quiet=is_quiet)
        self._clock = clock or RunClock(total)
        self._total, self._done, self._columns = total, done, columns
        self._every, self._rows = line_every(total), 0
        self._figures, self._lasting, self._note = ["compiling"], "", ""
        self._tasks: list[Task] = []
        self._match: Task | None = None
        # A terminal is asked for by its file too: FORCE_COLOR makes rich call a pipe a terminal.
        is_live = self.console.is_terminal and self.console.file.isatty()
        self.is_live = is_live and not self.console.is_dumb_terminal and not is_quiet
        self._live = Live(
            _Foot(self), console=self.console, refresh_per_second=_REFRESHES, transient=True
        )

    def __enter__(self) -> "Display":
        if self.is_live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def say(self, text: str, *, has_command: bool = False) -> None:
        """Print a lasting line; a terminal that is too narrow wraps it at words.

        Args:
          text: the line.
          has_command: it has a command to be copied, which no line break may part.
        """
        soft_wrap = has_command or not self.is_live
        self.console.print(text, highlight=False, markup=False, soft_wrap=soft_wrap)

    def note(self, text: str) -> bool:
        """Show a text below the bar from now on; returns False where there is no bar."""
        self._note = text
        return self.is_live

    def keep(self, lasting: str) -> None:
        """Show a figure in the live lines until another one comes, such as a win rate."""
        self._lasting = lasting

    @contextlib.contextmanager
    def task(self, title: str, total: int, unit: str) -> Iterator["Task"]:
        """A bar for something with a known number of parts; call what is yielded with the parts
        that are done."""
        task = Task(title, total, unit)
        self._tasks.append(task)
        try:
            yield task
        finally:
            self._tasks.remove(task)

    @contextlib.contextmanager
    def match(self, title: str, games: int) -> Iterator["Task"]:
        """A bar for a match; call what is yielded with the games that are done.

        In a run its time counts for the estimate of all matches to come.
        """
        with self.task(title, games, "games") as task:
            self._match = task
            yield task
        self._match = None
        self._clock.note_match(games, task.seconds)

    def show(self, done: int, row: Mapping[str, Any], *, seconds: float) -> None:
        """Show the figures of the newest iteration.

        Args:
          done: iterations done, that one included.
          row: its figures, as `columns` read them.
          seconds: its time, compilation and matches left out.
        """
        self._clock.note_iteration(done, seconds)
        self._done, self._figures = done, phrases(self._columns, row)
        if not self.is_live:
            self.say(f"iteration {done}: {' · '.join([*self._figures, *self._left()])}")
        elif done % self._every == 0 or done == self._total or not self._rows:
            columns = columns_for(self._columns, self.console.width)
            if self._rows % _HEADER_EVERY == 0:
                self.console.print(Text(header_line(columns), style="bold", no_wrap=True))
            self.say(row_line(columns, row))
            self._rows += 1

    def lines(self, width: int) -> list[Text]:
        """The live lines, none of them longer than the width."""
        found = []
        if self._total:
            tail = [
                f"{self._done / self._total:4.0%}",
                f"{duration(self._clock.elapsed())} elapsed",
            ]
            tail += self._left()
            title = f"iteration {self._done} of {self._total}"
            found.append(bar_line(title, self._done / self._total, tail, width))
            first, *rest = self._figures or [""]
            figures = [first, self._lasting, *rest] if self._lasting else self._figures
            found.append(figures_line(figures, width))
        for task in list(self._tasks):
            found += task.lines(width)
        if self._note:
            found.append(figures_line([self._note], width))
        return found

    def _left(self) -> list[str]:
        """What is left of the run; nothing where only matches are left and none has told its
        time."""
        match = self._match
        playing = (match.done, match.seconds) if match else (0, 0.0)
        seconds = self._clock.remaining(playing=playing)
        if seconds is None and self._done == self._total:
            return []
        return [f"{duration(seconds)} left"]


class Task:
    """A part of a command with a bar of its own."""

    def __init__(self, title: str, total: int, unit: str) -> None:
        self._title, self._unit, self._figures = title, unit, ""
        self._clock = TaskClock(total)

    def __call__(self, done: int) -> None:
        """Note how much is done; the first call says that compilation is over."""
        self._clock.note(done)

    def compile(self, total: int | None = None) -> None:
        """Say that something is compiled from here on, until the next call.

        Args:
          total: parts, where they were not known before.
        """
        self._clock.compile()
        self._clock.total = self._clock.total if total is None else total

    def keep(self, figures: str) -> None:
        """Show figures below the bar."""
        self._figures = figures

    @property
    def done(self) -> int:
        """Parts that are done."""
        return self._clock.done

    @property
    def seconds(self) -> float:
        """Seconds so far, compilation left out."""
        return self._clock.seconds()

    def lines(self, width: int) -> list[Text]:
        """The bar and, where there are some, the figures below it."""
        clock = self._clock
        count = f"{clock.done} of {clock.total} {self._unit}"
        state = "compiling" if clock.is_compiling else f"{duration(clock.remaining())} left"
        share = clock.done / clock.total if clock.total else 0.0
        found = [bar_line(self._title, share, (count, state), width, needs_bar=False)]
        return [*found, figures_line([self._figures], width)] if self._figures else found


class _Output(Console):
    """Standard output. Where its reader has left, as `head` does, the command is asked to stop."""

    def on_broken_pipe(self) -> None:
        """Send further output nowhere, and stop as after Ctrl-C: a run saves first."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        signal.raise_signal(signal.SIGINT)


class _Foot:
    """The live lines, drawn anew at each refresh."""

    def __init__(self, display: Display) -> None:
        self._display = display

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # A terminal echoes Ctrl-C as two characters behind the last line, which must not wrap.
        yield from self._display.lines(max(options.max_width - 2, 1))
