"""The command that writes weights as a model of their own."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a player's weights into a folder that is a player itself, with a card that says how
    they were made."""

    player: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN|PLAYER")]
    """Run directory, one of its checkpoints, RUN/checkpoints/ITERATION, or another trained
    player, named as in docs/players.md."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Folder to write; its name is the model's."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.cli import export

        trained = export.export(self.player, self.out)
        print(f"written: {self.out}, weights and card of {trained.source}")
        return 0
