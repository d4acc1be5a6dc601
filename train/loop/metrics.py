"""Curves and progress of a run: JSON lines, TensorBoard and the console; host side only."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tensorboardX
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from train.arena.match import MatchResult
from wallgo_jax.game.rules import name_of

METRICS_FILE = "metrics.jsonl"


class MetricsWriter:
    """Appends a row an iteration to `metrics.jsonl` and to TensorBoard's event file."""

    def __init__(self, directory: Path, *, from_iteration: int) -> None:
        self._path = directory / METRICS_FILE
        keep_rows_before(self._path, from_iteration)
        self._file = self._path.open("a", encoding="utf-8")
        self._board = tensorboardX.SummaryWriter(
            str(directory / "tensorboard"), purge_step=from_iteration or None
        )

    def write(self, row: Mapping[str, Any]) -> None:
        """One row; `iteration` is its place."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        rates = {f"win_rate/{name}": rate for name, rate in row.get("matches", {}).items()}
        for name, value in (dict(row) | rates).items():
            if name != "iteration" and isinstance(value, int | float):
                self._board.add_scalar(name, value, row["iteration"])

    def close(self) -> None:
        """Write out what is buffered."""
        self._file.close()
        self._board.close()


def keep_rows_before(path: Path, iteration: int) -> None:
    """Drop rows that a resumed run will write again, and a half-written last line."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row["iteration"] < iteration:
            kept.append(line)
    # In one step, so that a run killed meanwhile loses nothing.
    unnamed = path.with_name(f".{path.name}")
    unnamed.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    unnamed.replace(path)


class Display:
    """The run on the console: a live bar on a terminal, a line an iteration elsewhere."""

    def __init__(self, *, total: int = 0, done: int = 0, is_quiet: bool = False) -> None:
        self.console = Console(file=sys.stdout, quiet=is_quiet)
        self._win_rates = ""
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
        """A bar for a match; yields what is to be called with the games done."""
        task = self._bar.add_task("games", total=games, figures=title)
        try:
            yield lambda done: self._bar.update(task, completed=done)
        finally:
            self._bar.remove_task(task)

    def say(self, text: str) -> None:
        """A line above the bar."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def show(self, row: Mapping[str, Any]) -> None:
        """The newest row of metrics."""
        if row.get("matches"):
            rates = (f"{rate:.0%} against {name}" for name, rate in row["matches"].items())
            self._win_rates = " · " + ", ".join(rates)
        figures = describe(row) + self._win_rates
        self._bar.update(self._task, completed=row["iteration"] + 1, figures=figures)
        if not self.console.is_terminal:
            self.say(f"iteration {row['iteration'] + 1}: {figures}")


def describe(row: Mapping[str, Any]) -> str:
    """The figures of a row in short."""
    parts = [f"{row['positions_per_second']:.0f} pos/s"]
    if "games_per_second" in row:
        parts.insert(0, f"{row['games_per_second']:.1f} games/s")
    if row.get("policy_loss") is not None:
        parts.append(f"policy {row['policy_loss']:.3f}")
        parts.append(f"value {row['value_loss']:.3f}")
    if row.get("ownership_loss") is not None:
        parts.append(f"ownership {row['ownership_loss']:.3f}")
    for name in ("policy", "value", "ownership"):
        if row.get(f"validation_{name}_loss") is not None:
            parts.append(f"held back {name} {row[f'validation_{name}_loss']:.3f}")
    if row.get("policy_entropy") is not None:
        parts.append(f"entropy {row['policy_entropy']:.2f}")
    if row.get("mean_length") is not None:
        parts.append(f"{row['mean_length']:.1f} plies")
    return " · ".join(parts)


def match_table(results: list[MatchResult], *, caption: str) -> Table:
    """Matches of one player, a column an opponent, figures from that player's side."""
    first = results[0]
    table = Table(
        title=Text(f"{first.first} on {name_of(first.rules)}"),
        caption=caption,
        caption_justify="left",
    )
    table.add_column("")
    for result in results:
        table.add_column(Text(f"against {result.second}"), justify="right")
    for name, figure in _FIGURES:
        table.add_row(name, *(figure(result) for result in results))
    return table


def _interval(result: MatchResult) -> str:
    low, high = result.interval
    return f"{low:.1%} to {high:.1%}"


def _territory(result: MatchResult) -> str:
    own, other = result.territory.mean(axis=0)
    return f"{own:.1f} : {other:.1f}"


_FIGURES: tuple[tuple[str, Callable[[MatchResult], str]], ...] = (
    ("games", lambda result: str(len(result.outcome))),
    ("won, drawn, lost", lambda result: f"{result.wins}, {result.draws}, {result.losses}"),
    ("win rate", lambda result: f"{result.win_rate:.2%}"),
    ("95 % interval", _interval),
    ("win rate as Red", lambda result: f"{result.win_rate_as(red=True):.2%}"),
    ("win rate as Blue", lambda result: f"{result.win_rate_as(red=False):.2%}"),
    ("Red's win rate", lambda result: f"{result.red_win_rate:.2%}"),
    ("territory, cells", _territory),
    ("territory ratio", lambda result: f"{result.territory_ratio:.2f}"),
    ("plies a game", lambda result: f"{result.mean_length:.1f}"),
    ("distinct games", lambda result: str(result.distinct_games)),
)


def match_record(result: MatchResult) -> dict[str, Any]:
    """A match as JSON-ready figures."""
    return {
        "first": result.first,
        "second": result.second,
        "rules": name_of(result.rules),
        "games": len(result.outcome),
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        "win_rate": result.win_rate,
        "interval_95": list(result.interval),
        "territory": [float(x) for x in result.territory.mean(axis=0)],
        "territory_ratio": result.territory_ratio if result.territory[:, 1].any() else None,
        "mean_length": result.mean_length,
        "win_rate_as_red": result.win_rate_as(red=True),
        "win_rate_as_blue": result.win_rate_as(red=False),
        "red_win_rate": result.red_win_rate,
        "distinct_games": result.distinct_games,
    }
