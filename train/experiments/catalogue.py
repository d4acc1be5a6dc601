"""All experiments with a scale, by the names that users type, and how one is run."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from train.experiments import (
    adversary,
    balance,
    blocks,
    corridors,
    exact,
    features,
    footing,
    game_size,
    mixed,
    mobility,
    padding,
    setups,
    supervised,
    transfer,
)
from train.experiments.lib.pages import PAGE, Report, write_report
from train.experiments.lib.work import TaskMaker, Work
from train.experiments.scales import Scales
from train.runtime.files import check_writable, locked

EXPERIMENTS: Mapping[str, Callable[[Work], Report]] = {
    "features": features.report,
    "blocks": blocks.report,
    "size": game_size.report,
    "balance": balance.report,
    "mobility": mobility.report,
    "footing": footing.report,
    "transfer": transfer.report,
    "padding": padding.report,
    "corridors": corridors.report,
    "adversary": adversary.report,
    "mixed": mixed.report,
    "setups": setups.report,
    "exact": exact.report,
    "supervised": supervised.report,
}


def run_experiment(
    name: str, scale: Scales, out: Path, *, command: str, task: TaskMaker
) -> tuple[Report, list[Path]]:
    """Do what is left of an experiment and write its folder.

    Args:
      name: a key of EXPERIMENTS.
      scale: how much is done.
      out: folder of all experiments.
      command: that makes it again, for the page.
      task: shows a bar.

    Returns:
      The finished report, and its files.

    Raises:
      UsageError: a player or a file is not allowed, or another process works in the folder.
    """
    directory, work = out / name, Work(scale, out, task)
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked(directory))
        stack.callback(_remove_empty, directory)
        check_writable(directory / PAGE)
        report = EXPERIMENTS[name](work)
        used = {"seed": scale.seed, name: dataclasses.asdict(getattr(scale, name))}
        return report, write_report(report, directory, command=command, scale=used, work=work)


def _remove_empty(directory: Path) -> None:
    """Remove the folder of an experiment that never began."""
    with contextlib.suppress(OSError):
        directory.rmdir()
