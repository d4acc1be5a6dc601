"""The console of a long command: rich's bars at the foot of a terminal, lasting lines above.

Tables of text are alike on the console, in a notebook and on a Markdown page.
"""

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import rich.table
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Task as Bar
from rich.text import Text

from train.runtime.errors import require
from train.runtime.showing import spared

if TYPE_CHECKING:
    import pandas

_REFRESHES = 4  # a second
_WINDOW = 4 * 3600.0  # seconds whose mean speed stands for what is left
_MOST_LINES = 200  # lasting lines of a run on a terminal
_LOG_WIDTH = 80  # characters of an iteration's line elsewhere


class Display:
    """Bars and the newest figures on a terminal, with lines of finished iterations above.

    Elsewhere, as in a file or a pipe, it prints the line of every iteration, with the figures that
    fit into 80 characters, and whatever is said, and no bar.
    """

    def __init__(
        self,
        *,
        total: int = 0,
        done: int = 0,
        figures: Mapping[str, str] = MappingProxyType({}),
        before: float = 0.0,
        is_quiet: bool = False,
        console: Console | None = None,
    ) -> None:
        """Prepare the console; entering the context shows it.

        Args:
          total: iterations of the run; 0 for a command without iterations.
          done: iterations done before.
          figures: of an iteration that are shown: a format by the name in a row, such as
            `{:.1f} games/s`, the most important first.
          before: seconds that earlier starts of the run have taken.
          is_quiet: show nothing at all.
          console: instead of standard output.
        """
        self.console = console or _Output(file=spared(sys.stdout), quiet=is_quiet)
        # A terminal is asked for by its file too: FORCE_COLOR makes rich call a pipe a terminal.
        is_live = self.console.is_terminal and self.console.file.isatty()
        is_live = is_live and not self.console.is_dumb_terminal
        self.is_live = (is_live or self.console.is_jupyter) and not is_quiet
        self._bars = _Bars(self.console)
        self._formats, self._total = figures, total
        self._every = max(1, -(-total // _MOST_LINES))
        self._figures, self._lasting = list[str](), ""
        fields = {"unit": "iterations", "after": 0.0}
        self._run = self._bars.add_task("run", total=total, completed=done, **fields)
        run = self._bars.tasks[0]
        run.visible, run.start_time = total > 0, self._bars.get_time() - before

    def __enter__(self) -> "Display":
        if self.is_live:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_live:
            self._bars.stop()

    def say(self, text: str, *, has_command: bool = False) -> None:
        """Print a lasting line; a terminal that is too narrow wraps it at words, but for a command
        that is to be copied."""
        soft_wrap = has_command or not self.is_live
        self.console.print(text, highlight=False, markup=False, soft_wrap=soft_wrap)

    def note(self, text: str) -> bool:
        """Show a text below the bars from now on; returns False where there are none."""
        self._bars.note = text
        return self.is_live

    def keep(self, lasting: str) -> None:
        """Show a figure in the live lines until another one comes, such as a win rate."""
        self._lasting = lasting
        self._show_figures()

    @contextlib.contextmanager
    def task(self, title: str, total: int, unit: str) -> Iterator["Task"]:
        """A bar for something with a known number of parts; call what is yielded with the parts
        that are done."""
        if self._bars.tasks[0].finished:
            self._bars.update(self._run, after=0.0)  # what comes after has begun
        task = Task(self._bars, title, total, unit)
        try:
            yield task
        finally:
            self._bars.remove_task(task.id)

    def show(self, done: int, row: Mapping[str, Any], *, after: float = 0.0) -> None:
        """Show a row of figures of the newest iteration.

        Args:
          done: iterations done with it.
          row: its figures.
          after: seconds that what follows the last iteration will take.
        """
        self._bars.update(self._run, completed=done, after=after)
        present = [name for name in self._formats if row.get(name) is not None]
        self._figures = [self._formats[name].format(row[name]) for name in present]
        self._show_figures()
        if not self.is_live:
            self.say(_log_line(done, self._figures, _seconds_left(self._bars.tasks[0])))
        elif done % self._every == 0 or done == self._total:
            line = Text(f"iteration {done}: {' · '.join(self._figures)}")
            self.console.print(line, no_wrap=True, overflow="ellipsis")

    def _show_figures(self) -> None:
        first, rest = self._figures[:1], self._figures[1:]
        self._bars.figures = " · ".join([*first, *filter(None, [self._lasting]), *rest])


class Task:
    """A part of a command with a bar of its own."""

    def __init__(self, bars: Progress, title: str, total: int, unit: str) -> None:
        self._bars, self._before = bars, 0.0
        self._since: float | None = None  # when work began after the last compilation
        self.id = bars.add_task(title, total=total, start=False, unit=unit)

    def __call__(self, done: int) -> None:
        """Note how much is done; the first call says that compilation is over."""
        if self._since is None:
            self._since = time.monotonic()
            self._bars.start_task(self.id)
        self._bars.update(self.id, completed=done)

    def compile(self, total: int | None = None) -> None:
        """Say that something is compiled from here on, until the next call; and the number of
        parts, where it was not known before."""
        self._before, self._since = self.seconds, None
        self._bars.update(self.id, total=total)

    def keep(self, figures: str) -> None:
        """Show figures behind the title."""
        self._bars.update(self.id, figures=figures)

    @property
    def seconds(self) -> float:
        """Seconds so far, compilation left out."""
        return self._before + (0.0 if self._since is None else time.monotonic() - self._since)


def _log_line(done: int, figures: Sequence[str], left: float | None) -> str:
    """The first figures that fit, and the time left."""
    line = f"iteration {done}: "
    end = f"{duration(left)} left"
    for figure in figures:
        longer = f"{line}{figure} · "
        if len(longer) + len(end) > _LOG_WIDTH:
            break
        line = longer
    return line + end


def _seconds_left(bar: Bar) -> float | None:
    """Seconds to the end, with those after the last part; None where they are not known."""
    seconds = bar.time_remaining
    return None if seconds is None else seconds + bar.fields.get("after", 0.0)


@contextlib.contextmanager
def waiting(text: str, *, is_quiet: bool = False) -> Iterator[None]:
    """Show a text on a terminal or in a notebook while something takes long; a log gets a line."""
    # A console that is quiet would still leave an empty output in a notebook.
    console = None if is_quiet else _Output(file=spared(sys.stdout))
    if console is not None and not (console.is_terminal or console.is_jupyter):
        console.print(text, highlight=False, soft_wrap=True)
    with console.status(text) if console else contextlib.nullcontext():
        yield


def duration(seconds: float | None) -> str:
    """Hours, minutes and seconds, such as 1:02:03; unknown ones as dashes."""
    if seconds is None:
        return "-:--:--"
    minutes, second = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


class _TimeLeft(ProgressColumn):
    """The time to the end of a bar."""

    max_refresh = 0.5  # seconds, so that it can be read

    def render(self, task: Bar) -> Text:
        return Text(duration(_seconds_left(task)), style="progress.remaining")


class _Bars(Progress):
    """Bars with lines of figures below."""

    def __init__(self, console: Console) -> None:
        self.figures, self.note = "", ""
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f} {task.fields[unit]}"),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=console,
            refresh_per_second=_REFRESHES,
            speed_estimate_period=_WINDOW,
            transient=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars, then the figures of a run and of tasks, then the note."""
        yield from super().get_renderables()
        for text in (self.figures, *(task.fields.get("figures") for task in self.tasks), self.note):
            if text:
                yield Text(text, style="dim", no_wrap=True, overflow="ellipsis")


class _Output(Console):
    """Standard output. Where its reader has left, as `head` does, the command is asked to stop."""

    def on_broken_pipe(self) -> None:
        """Send further output nowhere, and stop as after Ctrl-C: a run saves first."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        signal.raise_signal(signal.SIGINT)


_FIGURE = re.compile(r"[-+−–·∞]?\d*|[-+−]?\d.*")
"""A cell of figures, which stands at the right; so does one that is empty or a mark."""

_LABEL = 12
"""Characters of the first head that stay on one line."""


class Table(NamedTuple):
    """Rows of text below heads; backquotes are for Markdown alone."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def markdown(self) -> str:
        """The table as Markdown, below its title."""
        lines = [self.heads, ["---"] * len(self.heads), *self.rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in lines)])

    def __rich__(self) -> rich.table.Table:
        shown = rich.table.Table(
            title=Text(self.title) if self.title else None,
            caption=Text(self.caption) if self.caption else None,
            title_justify="left",
            caption_justify="left",
        )
        for place, head in enumerate(self.heads):
            are_figures = all(_FIGURE.fullmatch(row[place]) for row in self.rows)
            justify = "right" if place and are_figures else "left"
            least = None if place else min(_LABEL, len(head))
            shown.add_column(Text(_plain(head)), overflow="fold", justify=justify, min_width=least)
        for row in self.rows:
            shown.add_row(*(Text(_plain(cell)) for cell in row))
        return shown


def _plain(cell: str) -> str:
    return cell.replace("`", "")


def to_dataframe(rows: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    """A table of pandas with a line for each row.

    Raises:
      UsageError: pandas is not installed.
    """
    require("to_dataframe", "notebooks", "pandas")
    import pandas

    return pandas.DataFrame(list(rows))
