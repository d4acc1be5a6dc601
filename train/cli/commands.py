"""The commands: their options, and what each does."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from train.analysis import attention, corridors, describe, probe
from train.cli import export, options
from train.cli.bench import Bench
from train.cli.match import Accuracy, Match
from train.cli.options import EXIT_INTERRUPTED
from train.cli.ratings import Elo, Tournament
from train.config import read_config
from train.loop import fit, training
from train.loop import run_directory as run_directory_lib
from train.runtime.devices import join_hosts
from train.runtime.errors import UsageError

Theme = Literal["light", "dark"]


@dataclasses.dataclass(frozen=True)
class Run:
    """Train from a config, evaluate, print the table. Any key of the config can be changed:
    --some.key value."""

    config: tyro.conf.Positional[Path | None] = None
    """TOML file of the run; without one, the quickstart that the program holds."""
    resume: bool = False
    """Go on from the newest checkpoint of the run."""
    runs: Path = Path("runs")
    """Directory of all runs."""
    distributed: bool = False
    """One of several processes: join the others, by the cluster's launch variables."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        config = read_config(self.config, overrides)
        if self.distributed:
            join_hosts()
        finished = training.train(config, self.runs, resume=self.resume)
        return 0 if finished else EXIT_INTERRUPTED


@dataclasses.dataclass(frozen=True)
class Fit:
    """Learn finished games of record files, no self-play; report losses on games held back. Any key
    of the config can be changed: --some.key value."""

    config: tyro.conf.Positional[Path | None] = None
    """TOML file: rules, network, learner, seed, name and iterations; the rest is idle."""
    records: tuple[Path, ...] = ()
    """Record files to learn from."""
    validation: float = 0.1
    """Share of the games that is held back."""
    resume: bool = False
    """Go on from the newest checkpoint."""
    runs: Path = Path("runs")
    """Directory of all runs."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        config = read_config(self.config, overrides)
        if not self.records:
            raise UsageError("fit: --records names no file")
        finished = fit.fit(
            config, self.records, self.runs, validation=self.validation, resume=self.resume
        )
        return 0 if finished else EXIT_INTERRUPTED


@dataclasses.dataclass(frozen=True)
class Describe:
    """Tell a network part by part: shapes, parameters, multiply-adds, and its speed here."""

    target: tyro.conf.Positional[Path | None] = None
    """TOML file or run directory; without one, the config that the program holds."""
    batch: int = describe.DEFAULT_BATCH
    """Boards of one evaluation, where its speed is measured."""
    measure: bool = True
    """Run the network for some seconds."""
    json: Path | None = None
    """Write the figures to this file as well."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        found = describe.describe(self.target, batch=self.batch, measure=self.measure)
        Console().print(describe.describe_report(found))
        if self.json is not None:
            options.write_json(self.json, describe.describe_record(found))
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Drawing:
    """What a run's network sees of a game, drawn."""

    target: tyro.conf.Positional[Path]
    """Run directory."""
    source: tyro.conf.Positional[str]
    """A game or a position, as `python -m wallgo_jax show` takes it."""
    out: Path
    """What to write: a picture (.svg, .png) or the arrays (.npz, .json)."""
    rules: str = ""
    """Preset, or JSON file of custom rules, that moves are played by."""
    game: int = 1
    """Which game of a record file, from 1."""
    theme: Theme = "light"
    """Colours of pictures."""

    def _options(self) -> dict[str, Any]:
        return {"out": self.out, "rules": self.rules, "game": self.game, "theme": self.theme}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention(_Drawing):
    """Draw what a cell attends to, in each T block and head of a run's network."""

    cell: str
    """The cell that asks, such as C3."""
    ply: int = -1
    """Plies of the game to play; -1 for all."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        ply = None if self.ply == -1 else self.ply
        attention.draw_attention(
            self.target, self.source, ply=ply, cell=self.cell, **self._options()
        )
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ownership(_Drawing):
    """Draw whose each cell will be, as a run's network sees it, beside how the game ended."""

    ply: int
    """Plies of the finished game to play before the network looks."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        attention.draw_ownership(self.target, self.source, ply=self.ply, **self._options())
        return 0


@dataclasses.dataclass(frozen=True)
class Corridors:
    """Draw positions that ask whether a cell is connected to a far enemy stone, with answers."""

    out: tyro.conf.Positional[Path]
    """File to write, a JSON object a line: diagram, cell, is_connected, distance."""
    rules: str = "wallzero-4stone"
    """Name of a preset, or custom rules as a JSON object."""
    count: int = 100
    """How many, an even number."""
    min_distance: int = 10
    """Steps to the nearest enemy, at the least."""
    seed: int = 0
    """Of everything random."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        options.check_seed("corridors", self.seed)
        try:
            made = corridors.make_corridors(
                options.read_rules(self.rules),
                count=self.count,
                seed=self.seed,
                min_distance=self.min_distance,
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        run_directory_lib.make_directory(self.out.parent)
        corridors.write_corridors(self.out, made)
        return 0


@dataclasses.dataclass(frozen=True)
class Probe:
    """Probe what the trunks of runs know of far corridors: the trunk stays, a linear probe is
    fitted."""

    targets: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories; each shape of trunk is also probed untrained."""
    rules: str = "wallzero-4stone"
    """Name of a preset, or custom rules as a JSON object."""
    count_train: int = 8000
    """Positions that a probe is fitted to, for each seed."""
    count_test: int = 4000
    """Positions that it is asked, for each seed."""
    min_distance: int = 10
    """Steps to the nearest enemy, at the least."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Of the positions and of the untrained trunks."""
    json: Path | None = None
    """Write the figures to this file as well."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        for seed in self.seeds:
            options.check_seed("probe", seed)
        try:
            rows = probe.probe_runs(
                self.targets,
                options.read_rules(self.rules),
                count_train=self.count_train,
                count_test=self.count_test,
                min_distance=self.min_distance,
                seeds=self.seeds,
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        seeds = ", ".join(map(str, self.seeds))
        caption = (
            f"seeds {seeds} · {self.count_train} positions fitted, {self.count_test} asked a seed "
            f"· at least {self.min_distance} steps · within ±0.5 is unknown · 95 % intervals by "
            "Wilson"
        )
        Console().print(probe.probe_table(rows, caption=caption))
        if self.json is not None:
            asked = {
                "rules": self.rules,
                "seeds": list(self.seeds),
                "count_train": self.count_train,
                "count_test": self.count_test,
                "min_distance": self.min_distance,
            }
            options.write_json(self.json, asked | probe.probe_record(rows))
        return 0


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a run's newest weights, and a card that says how they were made, into a folder."""

    run_directory: tyro.conf.Positional[Path]
    """Run directory, or one of its checkpoints, RUN/checkpoints/ITERATION."""
    out: tyro.conf.Positional[Path]
    """Folder to write; its name is the model's."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        export.export(self.run_directory, self.out)
        return 0


Command = (
    Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Fit, tyro.conf.subcommand("fit")]
    | Annotated[Match, tyro.conf.subcommand("match")]
    | Annotated[Accuracy, tyro.conf.subcommand("truth")]
    | Annotated[Elo, tyro.conf.subcommand("elo")]
    | Annotated[Tournament, tyro.conf.subcommand("tournament")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Describe, tyro.conf.subcommand("describe")]
    | Annotated[Attention, tyro.conf.subcommand("attention")]
    | Annotated[Ownership, tyro.conf.subcommand("ownership")]
    | Annotated[Corridors, tyro.conf.subcommand("corridors")]
    | Annotated[Probe, tyro.conf.subcommand("probe")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)
CONFIGURED = {"run": Run, "fit": Fit, "bench": Bench}
"""Commands that read a config, and so take `--some.key value`."""


def own_options(command: type) -> set[str]:
    """The options of a command itself."""
    names = {field.name.replace("_", "-") for field in dataclasses.fields(command)} - {"config"}
    return {"--help", "--no-resume", "--no-distributed"} | {f"--{name}" for name in names}
