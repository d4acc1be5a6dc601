"""The command that measures results: those of the papers, and what changes of a config are worth
(`experiment`)."""

import contextlib
import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from train.cli.common import options
from train.cli.common.unused import refuse_unused
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED, interrupts
from wallgo_jax.cli.parsing import Flag

if TYPE_CHECKING:
    from train.experiments.lib.pages import Report

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
    "ablation",
]
_OUT = Path("out/study")
_OF_ABLATION = ("only", "screening", "minutes", "seeds", "first_seed", "games", "simulations")
_OF_ABLATION += ("opening_plies",)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Measure one of the papers' results, or what changes of a config are worth: trainings, games
    and matches, written as a page with tables, plots and figures. The same command goes on where it
    was interrupted."""

    EXAMPLES = (
        "experiment balance",
        "experiment footing --config configs/study/accelerator.toml --out out/large",
        "experiment setups --players pretrained:wallzero-4stone runs/quickstart",
        "experiment ablation configs/ablations/recipe.toml --out out/recipe --screening",
        "experiment ablation configs/ablations/recipe.toml --out out/recipe --only width-64",
    )

    what: Annotated[tyro.conf.Positional[What], tyro.conf.arg(metavar="WHAT")]
    """features: plane sets trained and matched; blocks: residual, Transformer and walled blocks
    trained and matched; size: how large the game is; balance: who wins, and openings; mobility:
    reachability control and passing; footing: equal time, many simulations, what a doubling is
    worth; transfer: warm starts against training from nothing; padding: small boards inside a large
    grid; corridors: what frozen trunks know of far corridors; adversary: adversaries trained
    against frozen victims; mixed: one network for several rule sets, and specialists; setups: how
    the stones should be placed; exact: who wins small boards; ablation:
    every change of a LIST, and the base that they change, trained for the same wall time and
    matched, seed by seed."""
    changes: Annotated[
        tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[LIST]", help_behavior_hint="")
    ] = None
    """ablation: TOML file with the base and its changes (docs/training.md, Ablations)."""
    config: Annotated[
        options.OptionalFile, tyro.conf.arg(help_behavior_hint="(default: the scale of a CPU)")
    ] = None
    """TOML file with the scale of all but ablation (configs/study/)."""
    out: Annotated[
        Path | None,
        tyro.conf.arg(metavar="FOLDER", help_behavior_hint=f"(default: {_OUT}; ablation has none)"),
    ] = None
    """Directory of the trainings, the finished pieces and the pages."""
    players: Annotated[
        tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint="")
    ] = ()
    """size, balance, padding, setups: networks in place of the scale's."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint="")] = ()
    """ablation: changes to compare; without it, all of the list."""
    screening: Flag = False
    """ablation: one seed and five minutes, to see what is worth six."""
    minutes: Annotated[
        float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="(default: 10)")
    ] = None
    """ablation: minutes of each training, compiling apart; turned into iterations once for each
    change."""
    seeds: Annotated[
        int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 6)")
    ] = None
    """ablation: how many paired seeds; fewer than six are called screening."""
    first_seed: int = 0
    """ablation: the first of the seeds; the others follow it."""
    games: int = 200
    """ablation: games of each seed's match, shared among the opening plies."""
    simulations: int = 64
    """ablation: simulations a move in the matches."""
    opening_plies: tuple[int, ...] = (2, 6)
    """ablation: numbers of random plies that the games of a match start with."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.runtime.display import Display

        words, run = self._words(), self._read()
        try:
            with interrupts("what is finished is kept"):
                report, files = run(words)
        except KeyboardInterrupt:
            print(f"stopped; to go on: {words}", file=sys.stderr)
            return EXIT_INTERRUPTED
        Display().console.print(report)
        print(f"written: {files[0]} and {len(files) - 1} more files in {files[0].parent}")
        return 0

    def _read(self) -> Callable[[str], tuple["Report", list[Path]]]:
        """Reads scale or list; the result takes the command's words and does the work."""
        if self.what == ABLATION:
            return self._read_ablation()
        refuse_unused(self, "changes", *_OF_ABLATION, where=f"with {self.what}")
        from train.experiments.catalogue import run_experiment
        from train.experiments.scales import read_scales, with_players

        scale, out = read_scales(self.config), self.out or _OUT
        if self.players:
            scale = with_players(scale, self.what, self.players)
        return lambda words: run_experiment(self.what, scale, out, command=words, task=_task)

    def _read_ablation(self) -> Callable[[str], tuple["Report", list[Path]]]:
        from train.experiments.ablation import Ablation, Options, run_ablation
        from train.experiments.changes import read_changes
        from train.experiments.lib.cache import ResultCache
        from train.experiments.lib.scale import validated
        from train.experiments.lib.work import Work
        from train.experiments.scales import read_scales
        from train.runtime.devices import machine
        from train.runtime.display import Display

        refuse_unused(self, "config", "players", where=f"with {ABLATION}")
        if self.changes is None or self.out is None:
            raise UsageError(f"experiment: {ABLATION} needs a LIST and --out FOLDER")
        minutes, seeds = (5.0, 1) if self.screening else (10.0, 6)
        fields = {
            "minutes": minutes if self.minutes is None else self.minutes,
            "seeds": seeds if self.seeds is None else self.seeds,
            "games": self.games,
            "simulations": self.simulations,
            "opening_plies": self.opening_plies,
            "first_seed": self.first_seed,
        }
        how = validated(Options, fields, where=ABLATION)
        changes = read_changes(self.changes, self.only)
        work = Work(read_scales(), ResultCache(self.out, machine=machine()), _task)
        ablation, title = Ablation(changes, how, work), self.changes.stem
        say = Display().say
        return lambda words: run_ablation(ablation, title=title, command=words, say=say)

    def _words(self) -> str:
        """The command with all that is not by default."""
        words = [self.what, *([str(self.changes)] if self.changes else [])]
        words += options.changed_options(self, "what", "changes")
        return f"python -m train experiment {shlex.join(words)}"


@contextlib.contextmanager
def _task(title: str, total: int, unit: str) -> Iterator[Callable[[int], Any]]:
    """A bar for one piece of work: a training between two of them shows one, too."""
    from train.runtime.display import Display

    with Display() as display, display.task(title, total, unit) as shown:
        yield shown
