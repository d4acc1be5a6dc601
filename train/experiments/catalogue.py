"""All experiments with a scale, by the names that users type, and how one is run."""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from train.experiments import (
    balance,
    blocks,
    exact,
    features,
    footing,
    mixed,
    mobility,
    ppo,
    setups,
    size,
    supervised,
    transfer,
)
from train.experiments.lib import pages
from train.experiments.lib.pages import PAGE, Report, write_report
from train.experiments.lib.scales import Scales
from train.experiments.lib.work import TaskMaker, Work
from train.runtime.files import check_writable, locked
from wallgo_jax.formats.docstrings import docstring_of

EXPERIMENTS: Mapping[str, Callable[[Work], Report]] = {
    "features": features.report,
    "blocks": blocks.report,
    "size": size.report,
    "balance": balance.report,
    "mobility": mobility.report,
    "footing": footing.report,
    "transfer": transfer.report,
    "mixed": mixed.report,
    "ppo": ppo.report,
    "setups": setups.report,
    "exact": exact.report,
    "supervised": supervised.report,
}


def run_experiment(
    name: str, scale: Scales, out: Path, *, command: str, task: TaskMaker
) -> tuple[Report, list[Path]]:
    """Do what is left of an experiment, a key of EXPERIMENTS, and write its folder below `out`; its
    page begins with the docstring of its module.

    Returns:
      The finished report, and its files.

    Raises:
      UsageError: a player or a file is not allowed, or another process works in the folder.
    """
    directory, work, table = out / name, Work(scale, out, task), getattr(scale, name)
    try:
        with locked(directory):
            check_writable(directory / PAGE)
            report = EXPERIMENTS[name](work)
            module = sys.modules[EXPERIMENTS[name].__module__]
            about = pages.paragraphs(docstring_of(module))
            report = dataclasses.replace(
                report, text=[*about, pages.scale_line(table), *report.text]
            )
            used = {"seed": scale.seed, name: table.model_dump()}
            return report, write_report(report, directory, command=command, scale=used, work=work)
    finally:
        with contextlib.suppress(OSError):  # The folder of an experiment that never began goes.
            directory.rmdir()
