"""The commands: their options, and what each does."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import tyro
from rich.console import Console

from train import (
    arena,
    attention,
    corridors,
    describe,
    fit,
    loop,
    metrics,
    probe,
    roster,
    rundir,
)
from train.config import read_config
from train.devices import join_hosts
from train.errors import UsageError
from wallgo_jax import records
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules

EXIT_USAGE, EXIT_INTERRUPTED = 2, 130
MAX_SEED = 2**31
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
        finished = loop.train(config, self.runs, resume=self.resume)
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
class Match:
    """Play a match between two players: random, greedy, net:RUN, search:RUN@simulations."""

    first: tyro.conf.Positional[str]
    """Player whose side the result takes."""
    second: tyro.conf.Positional[str]
    """Its opponent."""
    rules: str = "wallzero-4stone"
    """Name of a preset, or custom rules as a JSON object."""
    games: int = 400
    """How many, half of them with each colour."""
    batch: int = 400
    """Games at once."""
    opening_plies: int = 2
    """Random plies that both games of a pair start with."""
    seed: int = 0
    """Of everything random."""
    records: Path | None = None
    """Write the games to this file, a JSON object a line; compressed if it ends in .gz."""

    def run(self, overrides: Sequence[str]) -> int:
        """Returns the exit code."""
        del overrides
        rules = _read_rules(self.rules)
        _check_seed("match", self.seed)
        try:
            arena.check_match(
                rules, games=self.games, batch=self.batch, opening_plies=self.opening_plies
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        first, second = (roster.make_player(name, rules) for name in (self.first, self.second))
        if self.records is not None:
            rundir.make_directory(self.records.parent)
        display = metrics.Display()
        with display, display.match(f"{first.name} against {second.name}", self.games) as tick:
            result = arena.play_match(
                first,
                second,
                rules,
                games=self.games,
                key=jax.random.key(self.seed),
                batch=self.batch,
                opening_plies=self.opening_plies,
                on_progress=tick,
            )
        caption = f"seed {self.seed} · {self.opening_plies} random opening plies"
        display.console.print(metrics.match_table([result], caption=caption))
        if self.records is not None:
            _write_records(self.records, result)
        return 0


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
            _write_json(self.json, describe.describe_record(found))
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
        _check_seed("corridors", self.seed)
        try:
            made = corridors.make_corridors(
                _read_rules(self.rules),
                count=self.count,
                seed=self.seed,
                min_distance=self.min_distance,
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        rundir.make_directory(self.out.parent)
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
            _check_seed("probe", seed)
        try:
            rows = probe.probe_runs(
                self.targets,
                _read_rules(self.rules),
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
            _write_json(self.json, asked | probe.probe_record(rows))
        return 0


Command = (
    Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Fit, tyro.conf.subcommand("fit")]
    | Annotated[Match, tyro.conf.subcommand("match")]
    | Annotated[Describe, tyro.conf.subcommand("describe")]
    | Annotated[Attention, tyro.conf.subcommand("attention")]
    | Annotated[Ownership, tyro.conf.subcommand("ownership")]
    | Annotated[Corridors, tyro.conf.subcommand("corridors")]
    | Annotated[Probe, tyro.conf.subcommand("probe")]
)
CONFIGURED = {"run": Run, "fit": Fit}
"""Commands that read a config, and so take `--some.key value`."""


def own_options(command: type) -> set[str]:
    """The options of a command itself."""
    names = {field.name.replace("_", "-") for field in dataclasses.fields(command)} - {"config"}
    return {"--help", "--no-resume", "--no-distributed"} | {f"--{name}" for name in names}


def _check_seed(command: str, seed: int) -> None:
    if not 0 <= seed < MAX_SEED:
        raise UsageError(f"{command}: seed ({seed}) must be from 0 to {MAX_SEED - 1}")


def _read_rules(text: str) -> Rules:
    try:
        fields = json.loads(text) if text.startswith("{") else None
        return rules_lib.named(text) if fields is None else Rules.from_dict(fields)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _write_records(path: Path, result: arena.MatchResult) -> None:
    names = (result.first, result.second)
    try:
        records.write(
            path,
            (
                records.Record(
                    rules=result.rules,
                    actions=game,
                    players=names if is_red else names[::-1],
                    result=(float(won), -float(won)) if is_red else (-float(won), float(won)),
                )
                for game, is_red, won in zip(
                    result.games, result.first_is_red, result.outcome, strict=True
                )
            ),
        )
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _write_json(path: Path, data: object) -> None:
    rundir.make_directory(path.parent)
    try:
        rundir.write_json(path, data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
