"""The frozen opponent of a run's self-play, whose weights the run's directory keeps."""

from pathlib import Path
from typing import Any

from train.checkpoints.exported import is_model, write_model
from train.config import RunConfig
from train.loop.history import provenance
from train.loop.run_directory import has_checkpoint
from train.loop.tables import Tables
from train.network import cast_weights
from train.players import registry
from train.players.basic import Player
from train.runtime.devices import EVERYWHERE
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import writing

FOLDER = "opponent"
"""Folder of a run with `selfplay.opponent`: the weights that it plays against, as `export` writes
them. A resumed run reads them there, whatever has become of the run that they are from."""


def load_opponent(
    config: RunConfig, directory: Path | None = None, *, resume: bool = False
) -> Player | None:
    """The frozen opponent of a run's self-play, None where it has none; a run that goes on takes
    the weights that its directory keeps.

    Raises:
      UsageError: there is no such player, it has no weights, or it plays other rules; a run that
        goes on has lost them.
    """
    name, kept = config.selfplay.opponent, None
    if not name:
        return None
    if directory is not None and resume and has_checkpoint(directory):
        kept = directory / FOLDER
        if not is_model(kept):
            raise UsageError(
                f"{kept}: the weights that the run plays against are gone, and {name!r} may have "
                "others by now: put the folder back, or start a new run"
            )
    with usage_errors("selfplay.opponent"):
        return registry.make_frozen_opponent(name, config.rules, kept=kept)


def place_opponent(opponent: Player | None, tables: Tables) -> Any:
    """The opponent's weights on the run's devices, in the type that its network computes in; None
    without an opponent."""
    if opponent is None:
        return None
    weights = cast_weights(opponent.trained.variables, opponent.trained.config.network)
    return tables.learn.place.devices.place(weights, EVERYWHERE)


def keep_opponent(directory: Path, opponent: Player) -> None:
    """Write the opponent's weights into the run's directory, unless they are from there.

    Raises:
      UsageError: they cannot be written.
    """
    folder = directory / FOLDER
    trained = opponent.trained
    if trained.source != str(folder):
        with writing(folder):
            write_model(folder, trained.variables, trained.config, provenance(trained))
