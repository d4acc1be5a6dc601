"""The commands that measure results: those of the papers (`experiment WHAT`), and what changes of a
config are worth (`experiment ablation`)."""

from __future__ import annotations

import dataclasses
import functools
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from train.cli import options
from train.cli.levels import Levels
from train.cli.options import File, Positional, arg
from train.cli.review import Calibrate
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from wallgo_jax.cli.parsing import Flag, Program

if TYPE_CHECKING:
    from train.experiments.lib.pages import Report

    Work = Callable[[str], tuple[Report, list[Path]]]
    """Takes the command's words and does the work."""

ABLATION = "ablation"
What = Literal[
    "features",
    "blocks",
    "size",
    "balance",
    "mobility",
    "footing",
    "transfer",
    "padding",
    "corridors",
    "adversary",
    "mixed",
    "setups",
    "exact",
    "supervised",
]
_OUT = Path("out/study")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Measure one of the papers' results, or what changes of a config are worth: trainings, games
    and matches, written as a page with tables, plots and figures. The same command goes on where it
    was interrupted. `experiment ablation`, `levels` and `calibrate` have options of their own."""

    EXAMPLES = (
        "experiment balance",
        "experiment footing --config configs/study/accelerator.toml --out out/large",
        "experiment setups --players pretrained:wallzero-4stone runs/quickstart",
        "experiment ablation configs/ablations/recipe.toml --out out/recipe --screening",
    )

    what: Annotated[Positional[What], arg("WHAT")]
    """features: plane sets trained and matched; blocks: residual, Transformer and walled blocks
    trained and matched; size: how large the game is; balance: who wins, and openings; mobility:
    reachability control and passing; footing: equal time, many simulations, what a doubling is
    worth; transfer: warm starts against training from nothing; padding: small boards inside a large
    grid; corridors: what frozen trunks know of far corridors; adversary: adversaries trained
    against frozen victims; mixed: one network for several rule sets, and specialists; setups: how
    the stones should be placed; exact: who wins small boards; supervised: what keeps a network from
    exact play. ablation: changes of a config; levels: Elo of the levels of `play`; calibrate: win
    chances of a player (each with --help)."""
    config: Annotated[File, arg(hint="(default: the scale of a CPU)")] = None
    """TOML file with the scale (configs/study/)."""
    out: Annotated[Path, arg("FOLDER")] = _OUT
    """Directory of the trainings, the finished pieces and the pages."""
    players: Annotated[tuple[str, ...], arg("NAME ...", "")] = ()
    """size, balance, padding, setups, supervised: networks in place of the scale's."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.progress import follow
        from train.experiments.catalogue import run_experiment
        from train.experiments.lib.scales import read_scales, with_players

        scale, task = read_scales(self.config), functools.partial(follow, True)
        if self.players:
            scale = with_players(scale, self.what, self.players)

        def work(words: str) -> tuple[Report, list[Path]]:
            return run_experiment(self.what, scale, self.out, command=words, task=task)

        return _run([self.what, *options.changed_options(self, "what")], work)


@dataclasses.dataclass(frozen=True)
class Ablation:
    """Train every change of a list, and the base that they change, for the same wall time, match
    them seed by seed, and write a page. The same command goes on where it was interrupted."""

    EXAMPLES = (
        "ablation configs/ablations/recipe.toml --out out/recipe --screening",
        "ablation configs/ablations/recipe.toml --out out/recipe --only width-64",
    )

    changes: Annotated[Positional[Path], arg("LIST")]
    """TOML file with the base and its changes (docs/training.md, Ablations)."""
    out: Annotated[Path, arg("FOLDER")]
    """Directory of the trainings, the finished pieces and the pages."""
    only: Annotated[tuple[str, ...], arg("NAME ...", "")] = ()
    """Changes to compare; without it, all of the list."""
    screening: Flag = False
    """One seed and five minutes, to see what is worth six."""
    minutes: Annotated[float | None, arg("FLOAT", "(default: 10)")] = None
    """Minutes of each training, compiling apart; turned into iterations once for each change."""
    seeds: Annotated[int | None, arg("INT", "(default: 6)")] = None
    """Number of paired seeds; fewer than six are called screening."""
    first_seed: int = 0
    """The first of the seeds; the others follow it."""
    games: int = 200
    """Games of each seed's match, shared among the opening plies."""
    simulations: int = 64
    """Simulations a move in the matches."""
    opening_plies: tuple[int, ...] = (2, 6)
    """Numbers of random plies that the games of a match start with."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.api.progress import follow
        from train.experiments import ablation
        from train.experiments.changes import read_changes
        from train.experiments.lib.scales import read_scales, validated
        from train.experiments.lib.work import Work
        from train.runtime.display import Display

        minutes, seeds = (5.0, 1) if self.screening else (10.0, 6)
        names = ("games", "simulations", "opening_plies", "first_seed")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields["minutes"] = minutes if self.minutes is None else self.minutes
        fields["seeds"] = seeds if self.seeds is None else self.seeds
        how = validated(ablation.AblationOptions, fields, where=ABLATION)
        changes = read_changes(self.changes, self.only)
        pieces = Work(read_scales(), self.out, functools.partial(follow, True))
        title, say = self.changes.stem, Display().say

        def work(words: str) -> tuple[Report, list[Path]]:
            return ablation.Ablation(changes, how, pieces, title, words, say).run()

        words = [ABLATION, str(self.changes), *options.changed_options(self, "changes")]
        return _run(words, work)


def _run(words: list[str], work: Work) -> int:
    """Do the work of a command, print its report, and say how to go on after a signal."""
    from train.runtime.display import Display

    command = f"python -m train experiment {shlex.join(words)}"
    try:
        with interrupts("what is finished is kept"):
            report, files = work(command)
    except KeyboardInterrupt:
        print(f"stopped; to go on: {command}", file=sys.stderr)
        return EXIT_INTERRUPTED
    Display().console.print(report)
    print(f"written: {files[0]} and {len(files) - 1} more files in {files[0].parent}")
    return 0


EXPERIMENTS = Program(
    name="python -m train experiment",
    description="Measure one of the papers' results, or what changes of a config are worth.",
    groups={"WHAT": {ABLATION: Ablation, "levels": Levels, "calibrate": Calibrate}},
)
"""What `Experiment` does not take."""
