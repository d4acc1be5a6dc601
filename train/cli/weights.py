"""The command that writes weights as a model of their own."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from train.cli import options


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a run's weights into a folder, with a card that says how they were made."""

    EXAMPLES = ("export runs/quickstart out/quickstart",)

    run_directory: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Run directory, or one of its checkpoints, RUN/checkpoints/ITERATION."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Folder to write; its name is the model's."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.cli import export

        export.export(self.run_directory, self.out)
        options.say_written(self.out, "weights and their card")
        return 0
