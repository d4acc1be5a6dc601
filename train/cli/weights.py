"""The command that writes weights as a model of their own."""

import dataclasses
from pathlib import Path

import tyro


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a run's weights into a folder, with a card that says how they were made."""

    run_directory: tyro.conf.Positional[Path]
    """Run directory, or one of its checkpoints, RUN/checkpoints/ITERATION."""
    out: tyro.conf.Positional[Path]
    """Folder to write; its name is the model's."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.cli import export

        export.export(self.run_directory, self.out)
        return 0
