"""The page of an ablation, written after each of its steps."""

import dataclasses
import gc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from train.arena.match_programs import check_opening
from train.experiments.ablation import Ablation, ChangeResult
from train.experiments.changes import Change
from train.experiments.lib import pages, stats
from train.experiments.lib.pages import PAGE, Report, Table
from train.experiments.lib.stats import EARNEST_SEEDS
from train.loop.start import code_in_words
from train.runtime.errors import UsageError
from train.runtime.files import check_writable, locked

_HEADS = ("change", "against", "win rate", "95 % interval", "verdict", "by seed", "iterations")
_HEADS += ("minutes", "compiling")


def report(ablation: Ablation, *, title: str) -> Report:
    """The table of an ablation as it stands: a line for each change, those that lost as well."""
    lines = ablation.lines()
    about = [f"- `{line.change.name}`: {_about(line.change)}" for line in lines]
    changes = "\n".join(["What each changes:", "", *about])
    text = [_caption(ablation, lines), *_code_lines(lines), changes]
    table = Table("Changes", _HEADS, [_cells(line) for line in lines])
    data = {line.change.name: [each._asdict() for each in line.trained] for line in lines}
    return Report(title, text, [table], [], {"trainings": data})


def _caption(ablation: Ablation, lines: Sequence[ChangeResult]) -> str:
    """The terms of the comparison, in a sentence or two."""
    options, cache = ablation.options, ablation.work.cache
    plies = " and ".join(map(str, options.opening_plies))
    kind = "" if options.seeds >= EARNEST_SEEDS else "Screening: it decides nothing. "
    # A line of one seed has the interval of its games, also while others are still to come.
    seeds = {len(line.rates) for line in lines if line.rates} or {options.seeds}
    interval = ", or ".join(dict.fromkeys(map(stats.interval_kind, sorted(seeds, reverse=True))))
    where = " and ".join(cache.noted("where")) or "not yet trained"
    return (
        f"{kind}{options.minutes:g} minutes of training each, compiling apart; {options.seeds} "
        f"paired seed(s), {options.games} games a seed at {options.simulations} simulations from "
        f"shared random openings of {plies} plies; interval: {interval}; {where}; "
        f"{', '.join(cache.noted('day')) or 'no day yet'}."
    )


def _code_lines(lines: Sequence[ChangeResult]) -> list[str]:
    """The versions of the code that trained the rows of the table, where they differ."""
    numbers = Counter(code_in_words(each.code) for line in lines for each in line.trained)
    versions = ", ".join(f"{code} ({number})" for code, number in numbers.items())
    line = f"The trainings are of different versions of the code: {versions}."
    return [line] if len(numbers) > 1 else []


def _cells(line: ChangeResult) -> list[str]:
    score, trained = line.score, line.trained
    cells = [line.change.name, line.change.against or "–"]
    if score is None:
        cells += ["", "", "" if line.change.against else "the base", ""]
    else:
        by_seed = " ".join(f"{100 * rate:.1f}" for rate in line.rates)
        cells += [*score.cells(), score.verdict, by_seed]
    if line.diverged:
        cells[_HEADS.index("verdict")] = f"diverged with seed {' '.join(map(str, line.diverged))}"
    if not trained:
        return [*cells, "", "", ""]
    minutes = " ".join(f"{each.minutes:.1f}" for each in trained)
    compiling = sum(each.compile_seconds for each in trained) / len(trained)
    iterations = " or ".join(dict.fromkeys(str(each.iterations) for each in trained))
    return [*cells, iterations, minutes, f"{compiling:.0f} s"]


def _about(change: Change) -> str:
    keys = ", ".join(f"`{key}`" for key in change.keys)
    return "; ".join(text for text in (change.about, keys) if text)


def run_ablation(
    ablation: Ablation, *, title: str, command: str, say: Callable[[str], Any]
) -> tuple[Report, list[Path]]:
    """Do what is left of an ablation and write its page, after each step.

    Args:
      ablation: the changes and how they are compared.
      title: of the page.
      command: that makes it again, for the page.
      say: shows a line.

    Returns:
      The finished report, and its files.

    Raises:
      KeyboardInterrupt: a training was interrupted and saved.
      UsageError: the folder is another process's or cannot be written, or a change cannot be
        trained or matched; what each plays and starts with is tried before anything is trained.
    """
    options, directory = ablation.options, ablation.work.cache.directory
    for change in ablation.changes:
        rules = change.config.rules
        if rules.players != 2:
            reason = f"the rules are for {rules.players} players, a match is for 2"
            raise UsageError(f"ablation: {change.name}: {reason}")
        check_opening(rules, max(options.opening_plies))
    scale = {"seed": options.first_seed} | dataclasses.asdict(options)

    def write() -> tuple[Report, list[Path]]:
        finished = report(ablation, title=title)
        cache = ablation.work.cache
        return finished, pages.write_report(
            finished, directory, command=command, scale=scale, cache=cache
        )

    def on_step() -> None:
        write()
        # Each change has programs of its own, which would fill the memory.
        jax.clear_caches()
        gc.collect()

    with locked(directory):
        check_writable(directory / PAGE)
        ablation.check()
        ablation.run(say, on_step=on_step)
        return write()
