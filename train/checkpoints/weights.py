"""Trained networks, wherever their weights lie: a run, a checkpoint, an exported folder, a model.

RUN                          the newest whole checkpoint of a run directory
RUN/checkpoints/ITERATION    that checkpoint
FOLDER                       a folder that `export` wrote
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from train.checkpoints import exported, pretrained, store
from train.config import RunConfig, config_from_dict
from train.network import Variables, network_for
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax.formats.near_names import did_you_mean

_MOST_TOLD = 8
_NOT_ABOUT = (*exported.OWN_KEYS, exported.SUM_KEY)


class TrainedNetwork(NamedTuple):
    """A network's weights with the config of the run that made them."""

    config: RunConfig
    variables: Variables
    name: str  # short, for titles
    source: str  # where the weights are from, in words
    run: Path | None  # the directory of the run that they lie in
    about: dict[str, Any]  # what is known of how they were made; the card's further entries

    @property
    def digest(self) -> str:
        """The `weights_digest` of its weights."""
        return weights_digest(self.variables)


def weights_digest(variables: Variables | None) -> str:
    """A checksum of weights, empty where there are none."""
    data = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(fetch(variables)))
    return hashlib.sha256(data).hexdigest()[:32] if data else ""


def read_network_config(path: Path) -> RunConfig:
    """The config of the run that made the weights at a path, without reading them.

    Raises:
      UsageError: there are none.
    """
    if exported.is_model(path):
        return exported.read_config(path)
    directory, iteration = _checkpoint_at(path)
    meta = store.read_meta(directory, store.WEIGHTS, iteration)
    return config_from_dict(meta["config"], where=f"{directory}: saved config")


def load_network(path: Path) -> TrainedNetwork:
    """The network at a path.

    Raises:
      UsageError: there is no run, checkpoint or exported folder, or it cannot be read.
    """
    config = read_network_config(path)
    like = network_for(config.network, config.rules.players, size=config.grid_side).shapes
    name = path.resolve().name
    if exported.is_model(path):
        card = exported.read_card(path)
        about = {key: value for key, value in card.items() if key not in _NOT_ABOUT}
        variables = exported.read_weights(path, like)
        return TrainedNetwork(config, variables, name, str(path), None, about)
    directory, iteration = _checkpoint_at(path)
    taken, variables = store.read_checkpoint(directory, like, iteration)
    if iteration is not None:
        name = f"{directory.resolve().name}/{iteration}"
    about = {"run": config.name, "iteration": taken}
    source = f"{directory}, iteration {taken}"
    return TrainedNetwork(config, variables, name, source, directory, about)


def load_pretrained(name: str) -> TrainedNetwork:
    """A network that comes with the package.

    Raises:
      UsageError: there is no model of this name.
    """
    return load_network(pretrained.folder_of(name))._replace(source=f"pretrained:{name}")


def is_run(path: Path) -> bool:
    """Whether a path is the directory of a run, and so stands for several checkpoints."""
    return (path / store.WEIGHTS).is_dir() and not exported.is_model(path)


def _checkpoint_at(path: Path) -> tuple[Path, int | None]:
    """The run's directory and the iteration that a path names, None for the newest.

    Raises:
      UsageError: it names neither a run nor a checkpoint, nor an exported folder.
    """
    if path.parent.name == store.WEIGHTS and path.name.isdecimal():
        return path.parents[1], int(path.name)
    if (path / store.WEIGHTS).is_dir():
        return path, None
    wanted = f"neither {store.WEIGHTS}/ITERATION nor {exported.CARD_FILE} in it"
    reason = wanted if path.exists() else f"no such file or directory; {wanted}"
    raise UsageError(f"{path}: no network here: {reason}{_hint(path)}")


def _hint(path: Path) -> str:
    """The name that a missing path is near to, or the few networks that there are beside it."""
    folder = path if path.is_dir() else path.parent
    names = [str(iteration) for iteration in store.iterations_of(folder.parent)]
    if folder.name != store.WEIGHTS:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        names = [entry.name for entry in entries if is_run(entry) or exported.is_model(entry)]
    listed = f"; there are: {', '.join(names)}" if 0 < len(names) <= _MOST_TOLD else ""
    return did_you_mean(path.name, names) or listed
