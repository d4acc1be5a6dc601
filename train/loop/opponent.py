"""The frozen opponent of a run's self-play, kept in the run's directory.

A resumed run reads it from there, so it goes on against the same weights, whatever has become of
the run or the folder that they are from.
"""

from pathlib import Path

from train.checkpoints.exported import is_model, write_model
from train.config import RunConfig
from train.loop.provenance import provenance
from train.loop.run_directory import has_checkpoint
from train.players.basic import Player
from train.programs.selfplay import load_opponent
from train.runtime.devices import is_first_process
from train.runtime.errors import UsageError
from train.runtime.files import writing

FOLDER = "opponent"
"""Folder of a run with `selfplay.opponent`: the weights that it plays against, as `export` writes
them."""


def opponent_of(config: RunConfig, directory: Path, *, resume: bool) -> Player | None:
    """The frozen opponent of a run, None where it has none.

    Args:
      config: the run.
      directory: the run's.
      resume: take the weights that the run began with.

    Raises:
      UsageError: as `load_opponent`, or a run that goes on has lost them.
    """
    folder = directory / FOLDER
    if not (config.selfplay.opponent and resume and has_checkpoint(directory)):
        return load_opponent(config)
    if not is_model(folder):
        raise UsageError(
            f"{folder}: the weights that the run plays against are gone, and "
            f"{config.selfplay.opponent!r} may have others by now: put the folder back, or start a "
            "new run"
        )
    return load_opponent(config, kept=folder)


def keep_opponent(directory: Path, opponent: Player | None) -> None:
    """Write the opponent's weights into the run's directory, unless they are from there; by the
    first process.

    Raises:
      UsageError: they cannot be written.
    """
    folder = directory / FOLDER
    if opponent is None or opponent.trained.source == str(folder) or not is_first_process():
        return
    trained = opponent.trained
    with writing(folder):
        write_model(folder, trained.variables, trained.config, provenance(trained))
