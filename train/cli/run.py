"""The commands of runs: they train from self-play (`run`) and from records (`fit`), and show what a
config says (`config`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from train.api.arguments import arg
from train.api.signatures import without
from train.cli.options import ConfigFile, Positional
from train.config import CONFIG_FILE, RunConfig, change_config, read_config, read_saved_config
from train.runtime.errors import UsageError
from train.runtime.fields import Real
from train.runtime.interrupts import EXIT_INTERRUPTED
from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from rich.table import Table

    from train.config import Key

_RUNS = Path("runs")
_AUTO = Path("auto")
_MAX_WIDTH = 110
_RunConfigFile = Annotated[ConfigFile, without("resume")]
_RunDirectory = Annotated[Path | None, arg("RUN", "")]
_Runs = Annotated[Path, arg("FOLDER"), without("resume")]


@dataclasses.dataclass(frozen=True)
class RunCommand:
    """Train by self-play, evaluate, and print the table. Any key of the config can be changed:
    --some.key value; `python -m train config` lists them with their meanings. With --resume you may
    change iterations, deterministic and keys of evaluation, checkpoint, heuristics, tracking."""

    config: ConfigFile = None
    """TOML file of the run; without one, the quickstart."""
    resume: Annotated[Path | None, arg("RUN|auto", "")] = None
    """Continue the run in this directory, with the config that it holds. `auto` continues the run
    of this config's name if it was started before, and starts it otherwise; so the same line serves
    a job that is submitted again."""
    runs: Annotated[Path, arg("FOLDER")] = _RUNS
    """Directory of all runs."""
    distributed: Flag = False
    """Join the other processes of a cluster, found by its launch variables. A small parent watches
    each process, and prints how the run goes on where another process is lost."""

    profile: Annotated[Path | None, arg("FOLDER", "")] = None
    """Folder for a trace of two iterations, which TensorBoard and Perfetto show; the shares of the
    parts are printed."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        from train.loop import run_directory, training
        from train.runtime.devices import initialize_distributed

        if self.resume != _AUTO:
            for option, is_given in (("CONFIG", self.config), ("--runs", self.runs != _RUNS)):
                if self.resume is not None and is_given:
                    raise UsageError(f"run: {option} has no effect with --resume; leave it out")
        config, runs = _config_and_runs(self, overrides)
        directory = runs / config.name
        is_begun = self.resume == _AUTO and (directory / CONFIG_FILE).is_file()
        is_resumed = is_begun or self.resume not in (None, _AUTO)
        if is_resumed and run_directory.is_fit(directory):
            command = run_directory.resume_command(directory)
            raise UsageError(f"{directory}: learns recorded games; to go on with it: {command}")
        if self.distributed:
            initialize_distributed()
        finished = training.train(config, runs, resume=is_resumed, profile=self.profile)
        return 0 if finished else EXIT_INTERRUPTED

    def watch(self, overrides: Sequence[str]) -> int:
        """Run in a child that this process watches, which prints how the run goes on where a signal
        has ended it; returns the exit code."""
        from train.runtime.watching import watch

        def how_to_go_on() -> str:
            from train.loop.run_directory import going_on_together

            config, runs = _config_and_runs(self, overrides)
            return going_on_together(runs / config.name)

        return watch(how_to_go_on)


@dataclasses.dataclass(frozen=True)
class FitCommand:
    """Train on the games of record files, without self-play, and report losses on held-out games.
    Any key of the config can be changed: --some.key value; `python -m train config` lists them."""

    config: _RunConfigFile = None
    """TOML file: its rules, network, learner, seed, name and iterations are used."""
    records: Annotated[tuple[Path, ...], arg("RECORD [RECORD ...]", "")] = ()
    """Record files to learn from. With --resume they must be where they were at the start."""
    validation: Annotated[
        Annotated[Real, Field(gt=0, lt=1)] | None, arg("FLOAT", "(default: 0.1)")
    ] = None
    """Share of the games that is held out to measure losses, from 0 to 1."""
    resume: _RunDirectory = None
    """Continue the run in this directory, with its config, records and validation share."""
    runs: _Runs = _RUNS
    """Directory of all runs."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        config, runs = _config_and_runs(self, overrides)
        if not self.records and self.resume is None:
            raise UsageError("fit: --records names no file")
        from train.loop.fit import fit
        from train.loop.recorded import DEFAULT_VALIDATION, RecordFiles, saved_records

        if self.resume is None:
            records = RecordFiles(self.records, self.validation or DEFAULT_VALIDATION)
        else:
            records = saved_records(runs / config.name, self.records, self.validation)
        finished = fit(config, records, runs, resume=self.resume is not None)
        return 0 if finished else EXIT_INTERRUPTED


def _config_and_runs(
    command: RunCommand | FitCommand, overrides: Sequence[str]
) -> tuple[RunConfig, Path]:
    """The config of a run that starts or goes on, and the directory of all runs that it is in."""
    if command.resume in (None, _AUTO):
        return read_config(command.config, overrides), command.runs
    from train.loop.run_directory import plain_path, resumed_config

    config = change_config(resumed_config(command.resume), overrides)
    return config, plain_path(command.resume).parent


@dataclasses.dataclass(frozen=True)
class ConfigCommand:
    """Print every key of a config: value, default, unit and meaning. Any key can be changed:
    --some.key value."""

    config: Annotated[Positional[Path | None], arg("[CONFIG|RUN]", "")] = None
    """TOML file or run directory; without one, the quickstart."""
    toml: Flag = False
    """Print a TOML file that `run` reads back, with the meanings as comments."""
    only: Annotated[str, arg("TABLE", ""), without("toml")] = ""
    """Table or key to print in full, and nothing else, such as search or learner.batch."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        if self.config is not None and (self.config / CONFIG_FILE).is_file():
            config = change_config(read_saved_config(self.config), overrides)
        else:
            config = read_config(self.config, overrides)
        if self.toml:
            from train.config import config_to_toml

            opening = "The config of a run: `python -m train run FILE` trains it."
            print(config_to_toml(config, opening=opening))
            return 0
        from rich.console import Console
        from rich.text import Text

        from train.config import keys_of

        only = self.only.replace("-", "_")
        keys = keys_of(config)
        shown = [key for key in keys if f"{key.path}.".startswith(f"{only}." if only else "")]
        if not shown:
            tables = ", ".join(dict.fromkeys(key.path.partition(".")[0] for key in keys))
            raise UsageError(f"config: --only {self.only}: no such key or table: {tables}")
        console = Console(highlight=False)
        console.print(_table(shown, width=min(console.width, _MAX_WIDTH), is_full=bool(only)))
        if any(key.is_changed for key in shown):
            console.print(Text("* differs from its default, which stands below it"))
        return 0


def _table(keys: Sequence[Key], *, width: int, is_full: bool) -> Table:
    """A row a key, under the names of their tables; what differs from its default is marked."""
    from rich.table import Table
    from rich.text import Text

    from train.config import in_toml

    table = Table(box=None, pad_edge=False, width=width, show_header=False)
    table.add_column(width=max(24, 2 + max(len(key.name) for key in keys)), no_wrap=True)
    table.add_column(width=17, overflow="fold")
    table.add_column()
    for name, group in itertools.groupby(keys, key=lambda key: key.table):
        if name:
            if table.row_count:
                table.add_row()
            table.add_row(Text(f"[{name}]", style="bold"))
        for key in group:
            mark, style = ("* ", "bold") if key.is_changed else ("  ", "")
            value = Text(in_toml(key.value), style=style)
            if key.is_changed:
                value.append(f"\n({in_toml(key.default)})", style="not bold")
            unit = f" [{key.unit}]" if key.unit else ""
            more = f". {key.more}" if is_full and key.more else ""
            table.add_row(
                Text(mark + key.name, style=style), value, Text(key.meaning + unit + more)
            )
    return table
