"""An ablation from its folder to its table: what the command `ablate` does."""

import gc
import sys
from pathlib import Path

import jax
from rich.console import Console

from train.arena.match_programs import check_opening
from train.runtime.errors import UsageError
from train.runtime.files import check_writable, locked, replace_text
from train.runtime.interrupts import interrupts
from train.study import report
from train.study.ablation import RESULTS_FILE, Study, steps_of
from train.study.changes import Change
from train.study.options import Options
from train.study.progress import Progress
from train.study.results import TRAINING, Results


def ablate(
    changes: tuple[Change, ...], options: Options, directory: Path, *, title: str, words: str
) -> bool:
    """Do what is left of an ablation and print its table.

    The table's file is written after each step, so it always shows what is done.

    Args:
      changes: the base first.
      options: how they are compared.
      directory: of the study.
      title: of the table's page.
      words: the command, for the page.

    Returns:
      Whether all is done; False where a training was interrupted and saved.

    Raises:
      UsageError: the folder is another process's or cannot be written, or a change cannot be
        trained or matched; what each plays and starts with is tried before anything is trained.
    """
    for change in changes:
        if change.config.rules.players != 2:
            raise UsageError(
                f"ablate: {change.name}: the rules are for {change.config.rules.players} players, "
                "a match is for 2"
            )
        check_opening(change.config.rules, max(options.opening_plies))
    with locked(directory):
        check_writable(directory / report.TABLE_FILE)
        study = Study(changes, options, directory, Results(directory / RESULTS_FILE))
        study.check()
        steps = list(steps_of(changes, options))
        left = sum(step.kind == TRAINING and study.is_left(step) for step in steps)

        def on_row() -> None:
            text = report.markdown(study, title=title, command=words)
            replace_text(directory / report.TABLE_FILE, text)
            # Each change has programs of its own, which would fill the memory.
            jax.clear_caches()
            gc.collect()

        if study.others:
            print(f"{study.others} trainings of another definition or budget are left out")
        try:
            with interrupts("what is finished is kept"):
                finished = study.run(Progress(options, left), on_row=on_row)
        except KeyboardInterrupt:
            finished = False
        replace_text(
            directory / report.TABLE_FILE, report.markdown(study, title=title, command=words)
        )
        Console().print(report.table(study))
        told = report.code_line(study)
        if told:
            print(told)
        print(f"written: {directory / report.TABLE_FILE} (table)")
        if not finished:
            print(f"stopped; to go on: {words}", file=sys.stderr)
        return finished
