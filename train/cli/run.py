"""The commands that train: from self-play (`run`) and from record files (`fit`)."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from train.cli.options import ConfigFile
from train.config import read_config
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED


@dataclasses.dataclass(frozen=True)
class Run:
    """Train by self-play, evaluate, and print the table. Any key of the config can be changed:
    --some.key value."""

    config: ConfigFile = None
    """TOML file of the run; without one, the quickstart."""
    resume: bool = False
    """Continue from the newest checkpoint of the run."""
    runs: Path = Path("runs")
    """Directory of all runs."""
    distributed: bool = False
    """Join the other processes of a cluster, found by its launch variables."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        config = read_config(self.config, overrides)
        from train.loop import training
        from train.runtime.devices import initialize_distributed

        if self.distributed:
            initialize_distributed()
        finished = training.train(config, self.runs, resume=self.resume)
        return 0 if finished else EXIT_INTERRUPTED


@dataclasses.dataclass(frozen=True)
class Fit:
    """Train on the games of record files, without self-play, and report losses on held-out games.
    Any key of the config can be changed: --some.key value."""

    config: ConfigFile = None
    """TOML file: its rules, network, learner, seed, name and iterations are used."""
    records: tuple[Path, ...] = ()
    """Record files to learn from."""
    validation: float = 0.1
    """Share of the games that is held out, from 0 to 1."""
    resume: bool = False
    """Continue from the newest checkpoint of the run."""
    runs: Path = Path("runs")
    """Directory of all runs."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        config = read_config(self.config, overrides)
        if not self.records:
            raise UsageError("fit: --records names no file")
        from train.loop import fit

        finished = fit.fit(
            config, self.records, self.runs, validation=self.validation, resume=self.resume
        )
        return 0 if finished else EXIT_INTERRUPTED
