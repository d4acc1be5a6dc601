"""The command that writes weights as a model of their own."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from train.cli import options


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a player's weights into a folder that is a player itself, with a card that says how
    they were made."""

    EXAMPLES = ("export runs/quickstart out/quickstart",)

    player: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN|PLAYER")]
    """Run, one of its checkpoints, or another trained player, named as in docs/players.md."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Folder to write; its name is the model's."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.cli import export

        trained = export.export(self.player, self.out)
        options.say_written(self.out, f"weights and card of {trained.source}")
        return 0
