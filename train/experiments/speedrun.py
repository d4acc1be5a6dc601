"""The verb of the speedrun; nothing here loads JAX."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from train.api.arguments import Progress, WrittenFolder, arg
from train.api.signatures import only, verb
from train.runtime.errors import UsageError
from train.runtime.fields import Seed
from train.runtime.results import Result
from wallgo_jax.formats.option_names import argument

if TYPE_CHECKING:
    from train.experiments.speedrun_records import Record
    from train.experiments.tables import Table
    from train.runtime import display


@dataclasses.dataclass(frozen=True, repr=False)
class Speedrun(Result):
    """A record of the speedrun.

    Attributes:
      record: what its folder holds.
      counts: its table, a row for each seed and one for all.
      notes: lines on what was done, and what that does not show.
      is_passed: the goal is reached and, where a seed was trained again, it gave the same.
      written: the folder of a new record.
    """

    record: Record
    counts: Table
    notes: tuple[str, ...] = ()
    is_passed: bool = True
    written: dict[Path, str] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<speedrun of {len(self.record.seeds)} seeds, {self.record.about}>"

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each seed."""
        return [seed._asdict() for seed in self.record.seeds]

    def summary(self) -> dict[str, Any]:
        """The record."""
        return self.record.to_dict() | {"is_passed": self.is_passed}

    def table(self) -> display.Table:
        """The seeds for a console."""
        return self.counts.shown()

    def shown(self) -> list[Any]:
        """What the command prints: the table, then the notes."""
        return [self.table(), *self.notes]


@verb
def speedrun(
    task: Annotated[Literal["run", "verify"], arg("run|verify")],
    path: Annotated[Path | str, arg("CONFIG|RECORD")],
    *,
    out: Annotated[WrittenFolder | None, only("task=run"), arg("FOLDER", "(needed to run)")] = None,
    goal: Annotated[Literal["cpu", "gpu"], only("task=run")] = "cpu",
    about: Annotated[str, only("task=run"), arg("TEXT", "(default: the config's name)")] = "",
    rerun: Annotated[Seed | None, only("task=verify"), arg("SEED", "(default: none)")] = None,
    progress: Progress = False,
) -> Speedrun:
    """Train a recipe to the goal of the speedrun and write a record of it, or verify a record. The
    goal: six trainings from random weights, seeds 0 to 5, win in the mean at least 90 % of 400
    games against heuristic-search:wjx@64. Both search 64 simulations and place the stones; 4 random
    plies follow. A record is better if a training takes fewer evaluations, operations and seconds.

    Args:
      task: run a recipe, or verify a record.
      path: the recipe's TOML file, or the record's folder.
      out: folder for the trainings and for RECORD, the folder that is a record. The same call
        continues where it was interrupted.
      goal: `cpu`, or `gpu`: 55 % against pretrained:wallzero-4stone-v4@64.
      about: what is special in the recipe, for the table of records.
      rerun: a seed to train and to match again. On the same kind of CPU and versions, weights and
        games are the same to the bit.
      progress: show lines and bars.

    Raises:
      UsageError: the recipe is not allowed; the record is refused, and why.
      KeyboardInterrupt: Ctrl-C came; what is finished is kept.

    Example:
      `train.speedrun("verify", "docs/results/data/speedrun/quickstart").record.seeds`
    """
    from train.experiments import speedrun_checks, speedrun_records
    from train.experiments.speedrun_records import table_of
    from train.runtime.display import Display
    from train.runtime.interrupts import interrupts

    display = progress if isinstance(progress, Display) else Display(is_quiet=not progress)
    with interrupts("what is finished is kept; the same command goes on"):
        if task == "verify":
            found = speedrun_checks.verify(
                Path(path), rerun=rerun, display=display, progress=bool(progress)
            )
            return Speedrun(found.record, table_of(found.record), found.notes, found.is_passed)
        if out is None:
            raise UsageError(f"speedrun: {argument('out')} must name a folder for the trainings")
        folder = Path(out)
        record = speedrun_records.run(
            Path(path), folder, goal=goal, about=about, display=display, progress=bool(progress)
        )
    missed = speedrun_records.missed(record)
    written = {folder / speedrun_records.FOLDER: "record"}
    return Speedrun(record, table_of(record), missed, not missed, written)
