"""The verb that compares changes of a config (`ablation`); nothing here loads JAX."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from train.api.arguments import Flag, Progress, ReadFile, WrittenFolder, arg
from train.api.signatures import verb, words_of
from train.runtime.fields import AtLeastOne, Count, Positive
from train.runtime.results import Result

if TYPE_CHECKING:
    from train.experiments.tables import Table
    from train.runtime import display


@dataclasses.dataclass(frozen=True, repr=False)
class Compared(Result):
    """Changes of a config, trained and matched.

    Attributes:
      counts: the table, each cell made from what was counted.
      written: the folder of the page.
    """

    counts: Table
    written: dict[Path, str]

    def __repr__(self) -> str:
        return f"<ablation of {len(self.counts.rows)} configs>"

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each change."""
        return [dict(row) for row in self.counts.rows]

    def summary(self) -> dict[str, Any]:
        """The counts of each change."""
        return {"title": self.counts.title, "changes": self.rows()}

    def table(self) -> display.Table:
        """The changes for a console."""
        return self.counts.shown()


@verb
def ablation(
    changes: Annotated[ReadFile, arg("LIST")],
    *,
    out: Annotated[WrittenFolder, arg("FOLDER")],
    only: Annotated[tuple[str, ...], arg("NAME ...", "")] = (),
    screening: Flag = False,
    minutes: Annotated[Positive | None, arg("FLOAT", "(default: 10)")] = None,
    seeds: Annotated[AtLeastOne | None, arg("INT", "(default: 6)")] = None,
    first_seed: Count = 0,
    games: AtLeastOne = 200,
    simulations: AtLeastOne = 64,
    opening_plies: Annotated[tuple[Count, ...], arg("INT ...")] = (2, 6),
    progress: Progress = False,
) -> Compared:
    """Train every change of a list, and the base that they change, for the same wall time, match
    them seed by seed, and write a page. The same call continues where it was interrupted.

    Args:
      changes: TOML file with the base and its changes (docs/training.md, Ablations).
      out: directory for the trainings, finished parts and pages.
      only: changes to compare; without it, all of the list.
      screening: one seed and five minutes, to see which changes are worth six seeds.
      minutes: minutes of each training without compiling; each change's number of iterations is
        derived from them once.
      seeds: number of paired seeds; fewer than six are a screening.
      first_seed: the first of the seeds; the others follow it.
      games: games of each seed's match, divided equally among the opening plies.
      simulations: simulations a move in the matches.
      opening_plies: numbers of random plies that the games of a match start with.
      progress: show lines and bars.

    Raises:
      UsageError: the list or a change is wrong, or the folder is another process's.
      KeyboardInterrupt: Ctrl-C came; what is finished is kept.

    Example:
      `train.ablation("configs/ablations/recipe.toml", out="out/recipe", screening=True)`
    """
    from train.experiments import ablation as comparing
    from train.experiments import lab
    from train.runtime.display import Display
    from train.runtime.interrupts import interrupts

    usual_minutes, usual_seeds = (5.0, 1) if screening else (10.0, 6)
    options: dict[str, Any] = {
        "minutes": usual_minutes if minutes is None else minutes,
        "seeds": usual_seeds if seeds is None else seeds,
        "first_seed": first_seed,
        "games": games,
        "simulations": simulations,
        "opening_plies": opening_plies,
    }
    how = comparing.validated(comparing.AblationOptions, options, where="ablation")
    listed = comparing.read_changes(Path(changes), only)
    folder = Path(out)
    asked = {"out": out, "only": only, "screening": screening, **options}
    asked |= {"minutes": minutes, "seeds": seeds}
    words = ["python", "-m", "train", "ablation", str(changes), *words_of(ablation, asked)]
    command = shlex.join(words)
    work = lab.Lab(Path(changes).stem, lab.Options(folder), command)
    display = progress if isinstance(progress, Display) else Display(is_quiet=not progress)
    with interrupts("what is finished is kept; the same command goes on"):
        table = comparing.Ablation(listed, how, work, display.say).run()
    return Compared(table, {folder / Path(changes).stem: "page and counts"})
