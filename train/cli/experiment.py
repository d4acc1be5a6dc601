"""The commands that measure results: those of the papers (`experiment WHAT`), what changes of a
config are worth (`ablation`), and the machine's levels (`levels`).
"""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from train.api.arguments import Topic, arg
from train.cli import options
from train.cli.options import Positional
from train.runtime.fields import Real, Whole
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from train.runtime.showing import tell
from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from train.experiments.lib.pages import Report

    Job = Callable[[str], tuple[Report, list[Path]]]
    """Measures; takes the command as it was typed, and returns the report and its files."""


ABLATION = "ablation"
_OUT = Path("out/study")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Measure one of the papers' results, or what changes of a config are worth: trainings, games
    and matches, written as a page with tables, plots and figures. The same command goes on where it
    was interrupted."""

    what: Annotated[Positional[Topic], arg("WHAT")]
    """features: plane sets trained and matched; blocks: residual, Transformer and walled blocks
    trained and matched; size: how large the game is; balance: who wins, and openings; mobility:
    reachability control and passing; footing: what a doubling of simulations is worth; transfer:
    warm starts against training from nothing; padding: small boards inside a large grid; corridors:
    what frozen trunks know of far corridors; adversary: adversaries trained against frozen victims;
    mixed: one network for several rule sets, and specialists; ppo: training without search; setups:
    how the stones should be placed; exact: who wins small boards; supervised: what keeps a network
    from exact play."""
    config: Annotated[Path | None, arg("FILE", "(default: the scale of a CPU)")] = None
    """TOML file with the scale (configs/study/)."""
    out: Annotated[Path, arg("FOLDER")] = _OUT
    """Directory of the trainings, the finished pieces and the pages."""
    players: Annotated[tuple[str, ...], arg("NAME ...", "")] = ()
    """size, balance, padding, setups, supervised: networks in place of the scale's."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.experiments.catalogue import run_experiment
        from train.experiments.lib.scales import read_scales, with_players
        from train.runtime.interrupts import follow

        scale, task = read_scales(self.config), functools.partial(follow, True)
        if self.players:
            scale = with_players(scale, self.what, self.players)

        def measure(command: str) -> tuple[Report, list[Path]]:
            return run_experiment(self.what, scale, self.out, command=command, task=task)

        return _run(["experiment", self.what, *options.changed_options(self, "what")], measure)


@dataclasses.dataclass(frozen=True)
class Ablation:
    """Train every change of a list, and the base that they change, for the same wall time, match
    them seed by seed, and write a page. The same command goes on where it was interrupted."""

    changes: Annotated[Positional[Path], arg("LIST")]
    """TOML file with the base and its changes (docs/training.md, Ablations)."""
    out: Annotated[Path, arg("FOLDER")]
    """Directory of the trainings, the finished pieces and the pages."""
    only: Annotated[tuple[str, ...], arg("NAME ...", "")] = ()
    """Changes to compare; without it, all of the list."""
    screening: Flag = False
    """One seed and five minutes, to see what is worth six."""
    minutes: Annotated[Real | None, arg("FLOAT", "(default: 10)")] = None
    """Minutes of each training, compiling apart; turned into iterations once for each change."""
    seeds: Annotated[Whole | None, arg("INT", "(default: 6)")] = None
    """Number of paired seeds; fewer than six are called screening."""
    first_seed: Whole = 0
    """The first of the seeds; the others follow it."""
    games: Whole = 200
    """Games of each seed's match, shared among the opening plies."""
    simulations: Whole = 64
    """Simulations a move in the matches."""
    opening_plies: tuple[Whole, ...] = (2, 6)
    """Numbers of random plies that the games of a match start with."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.experiments import ablation
        from train.experiments.lib.scales import read_scales, validated
        from train.experiments.lib.work import Work
        from train.runtime.display import Display
        from train.runtime.interrupts import follow

        minutes, seeds = (5.0, 1) if self.screening else (10.0, 6)
        names = ("games", "simulations", "opening_plies", "first_seed")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields["minutes"] = minutes if self.minutes is None else self.minutes
        fields["seeds"] = seeds if self.seeds is None else self.seeds
        how = validated(ablation.AblationOptions, fields, where=ABLATION)
        changes = ablation.read_changes(self.changes, self.only)
        work = Work(read_scales(), self.out, functools.partial(follow, True))
        title, say = self.changes.stem, Display().say

        def measure(command: str) -> tuple[Report, list[Path]]:
            return ablation.Ablation(changes, how, work, title, command, say).run()

        words = [ABLATION, str(self.changes), *options.changed_options(self, "changes")]
        return _run(words, measure)


def _run(words: list[str], job: Job) -> int:
    """Do the job of a command, print its report, and say how to go on after a signal."""
    from train.runtime.display import Display

    command = f"python -m train {shlex.join(words)}"
    try:
        with interrupts("what is finished is kept"):
            report, files = job(command)
    except KeyboardInterrupt:
        tell(f"stopped; to go on: {command}")
        return EXIT_INTERRUPTED
    Display().console.print(report)
    if files:
        print(f"written: {files[0]} and {len(files) - 1} more files in {files[0].parent}")
    return 0
