"""Models that come with the package: `export` writes them, players name them.

train/models/NAME/weights.npz   arrays by name
train/models/NAME/card.json     config, checksum of the weights, how they were made, how strong
train/models/NAME/README.md     the card in words
"""

import hashlib
import io
import json
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.config import RunConfig, config_from_dict, config_to_dict
from train.network import Variables
from train.runtime.errors import UsageError
from wallgo_jax.env import VERSION

WEIGHTS_FILE, CARD_FILE = "weights.npz", "card.json"


def models() -> list[str]:
    """Names of all models."""
    folder = _folder()
    found = folder.iterdir() if folder.is_dir() else []
    return sorted(entry.name for entry in found if entry.joinpath(CARD_FILE).is_file())


def read_card(name: str) -> dict[str, Any]:
    """A model's card.

    Raises:
      UsageError: there is no such model, or it is of another version of the game.
    """
    if name not in models():
        known = ", ".join(models()) or "none"
        raise UsageError(f"pretrained model {name!r}: unknown; known models: {known}")
    card = json.loads(_folder().joinpath(name, CARD_FILE).read_text(encoding="utf-8"))
    if card["env_version"] != VERSION:
        raise UsageError(
            f"pretrained model {name!r}: made with version {card['env_version']!r} of the game, "
            f"this program plays version {VERSION!r}"
        )
    return card


def read_config(name: str) -> RunConfig:
    """The config of the run that a model is from."""
    return config_from_dict(read_card(name)["config"], where=f"pretrained model {name!r}")


def read_weights(name: str, like: Variables) -> Variables:
    """A model's weights; `like` gives their shapes.

    Raises:
      UsageError: they do not have the checksum of the card.
    """
    data = _folder().joinpath(name, WEIGHTS_FILE).read_bytes()
    if hashlib.sha256(data).hexdigest() != read_card(name)["sha256"]:
        raise UsageError(f"pretrained model {name!r}: {WEIGHTS_FILE} is not what its card says")
    with np.load(io.BytesIO(data)) as arrays:
        paths, tree = jax.tree_util.tree_flatten_with_path(like)
        return tree.unflatten([jnp.asarray(arrays[_name_of(path)]) for path, _ in paths])


def write_model(
    folder: Path, variables: Variables, config: RunConfig, about: dict[str, Any]
) -> None:
    """Write weights and their card into a new folder.

    Args:
      folder: its name is the model's.
      variables: the weights.
      config: of their run.
      about: further entries of the card, JSON-ready.
    """
    paths, _ = jax.tree_util.tree_flatten_with_path(variables)
    buffer = io.BytesIO()
    arrays = {_name_of(path): np.asarray(leaf) for path, leaf in paths}
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    data = buffer.getvalue()
    card = {
        "model": folder.name,
        "env_version": VERSION,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "parameters": sum(x.size for x in jax.tree.leaves(variables.params)),
        **about,
        "config": config_to_dict(config),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS_FILE).write_bytes(data)
    (folder / CARD_FILE).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def _folder() -> Traversable:
    return resources.files("train").joinpath("models")


def _name_of(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
