"""Trained networks, wherever their weights lie: a run, a checkpoint, an exported folder, a model.

RUN                          the newest whole checkpoint of a run directory
RUN/checkpoints/ITERATION    that checkpoint
FOLDER                       a folder that `export` wrote
"""

import difflib
import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from train.checkpoints import exported, pretrained, store
from train.config import CONFIG_FILE, RunConfig, config_from_dict
from train.network import Variables
from train.network.build import network_for
from train.runtime.errors import UsageError
from train.runtime.host import fetch

_MOST_TOLD = 8


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
    leaves = jax.tree.leaves(fetch(variables))
    found = hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in leaves))
    return found.hexdigest()[:32] if leaves else ""


def read_network_config(path: Path) -> RunConfig:
    """The config of the run that made the weights at a path, without reading them.

    Raises:
      UsageError: there are none.
    """
    if exported.is_model(path):
        return exported.read_config(path, where=str(path))
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
        variables = exported.read_weights(path, like, where=str(path))
        about = _about(exported.read_card(path, where=str(path)))
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
    config = pretrained.read_config(name)
    like = network_for(config.network, config.rules.players, size=config.grid_side).shapes
    variables = pretrained.read_weights(name, like)
    about = _about(pretrained.read_card(name))
    return TrainedNetwork(config, variables, name, f"pretrained:{name}", None, about)


def is_run(path: Path) -> bool:
    """Whether a path is the directory of a run, and so stands for several checkpoints."""
    return (path / store.WEIGHTS).is_dir() and not exported.is_model(path)


def _about(card: dict[str, Any]) -> dict[str, Any]:
    own = (*exported.OWN_KEYS, exported.SUM_KEY)
    return {key: value for key, value in card.items() if key not in own}


def _checkpoint_at(path: Path) -> tuple[Path, int | None]:
    """The run's directory and the iteration that a path names, None for the newest.

    Raises:
      UsageError: it names neither a run nor a checkpoint, nor an exported folder.
    """
    if path.parent.name == store.WEIGHTS and path.parents[1].is_dir():
        if path.name.isdecimal():
            return path.parents[1], int(path.name)
        known = ", ".join(map(str, store.iterations_of(path.parents[1]))) or "none"
        raise UsageError(f"{path}: no such checkpoint; there are: {known}")
    wanted = "run directory, checkpoint or exported folder"
    if not path.exists():
        raise UsageError(f"{path}: no such {wanted}{_hint(path)}")
    if (path / store.WEIGHTS).is_dir():
        return path, None
    if (path / CONFIG_FILE).is_file():
        raise UsageError(f"{path}: no checkpoint here yet (looked for {store.WEIGHTS}/ITERATION)")
    if path.name == store.WEIGHTS and store.iterations_of(path.parent):
        known = ", ".join(map(str, store.iterations_of(path.parent)))
        raise UsageError(f"{path}: no {wanted}; the checkpoints here: {known}")
    missing = f"neither {store.WEIGHTS}/ITERATION nor {exported.CARD_FILE}"
    raise UsageError(f"{path}: no {wanted}: it has {missing}{_told(_networks_in(path))}")


def _hint(path: Path) -> str:
    """What stands beside a missing path: the one most like it, or the few that there are."""
    names = _networks_in(path.parent)
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.parent / near[0]}?" if near else _told(names)


def _told(names: list[str]) -> str:
    return f"; there are: {', '.join(names)}" if 0 < len(names) <= _MOST_TOLD else ""


def _networks_in(folder: Path) -> list[str]:
    """Names of the runs and exported folders in a folder."""
    try:
        entries = [entry for entry in folder.iterdir() if is_run(entry) or exported.is_model(entry)]
    except OSError:
        return []
    return sorted(entry.name for entry in entries)
