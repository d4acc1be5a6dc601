"""The weights of a run with the config that says what they are for."""

from pathlib import Path

from train.checkpoints import store
from train.config import RunConfig, config_from_dict
from train.network import Variables
from train.network.build import network_for
from train.runtime.errors import UsageError


def load_weights(path: Path) -> tuple[RunConfig, Variables]:
    """A run's config and weights.

    Args:
      path: a run directory, which means its newest whole checkpoint, or one of its checkpoints,
        RUN/checkpoints/ITERATION.

    Raises:
      UsageError: there is no such directory or no checkpoint in it, or it cannot be read.
    """
    directory, iteration = path, None
    if path.parent.name == store.WEIGHTS and path.name.isdecimal():
        directory, iteration = path.parents[1], int(path.name)
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such run directory")
    meta = store.read_meta(directory, store.WEIGHTS, iteration)
    config = config_from_dict(meta["config"], where=f"{directory}: saved config")
    network = network_for(config.network, config.rules.players)
    return config, store.read_weights(directory, network.shapes, iteration)
