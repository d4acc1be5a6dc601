"""Folders that `export` writes: a network's weights with a card that says what they are for.

FOLDER/weights.npz   arrays by name
FOLDER/card.json     config, checksum of the weights, how they were made, how strong
FOLDER/README.md     the card in words
"""

import hashlib
import io
import json
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.checkpoints.card_page import card_page
from train.config import RunConfig, config_from_dict, config_to_dict
from train.network import Variables
from train.runtime.errors import UsageError
from train.runtime.files import read_json, reason_of, replace_bytes, replace_text, write_json
from wallgo_jax.env import VERSION
from wallgo_jax.formats.files import is_unfinished

WEIGHTS_FILE, CARD_FILE, PAGE_FILE = "weights.npz", "card.json", "README.md"
OWN_KEYS = ("model", "env_version", "sha256", "bytes", "parameters", "config")
"""Entries of a card that `write_model` makes; the others are told to it."""

SUM_KEY, _SUMMED = "config_crc32", ("config", "calibration")
"""Entry with the checksum of the entries that decide how a model plays and what it expects."""


def is_model(folder: Path) -> bool:
    """Whether the folder is one that `write_model` wrote."""
    return (folder / CARD_FILE).is_file()


def read_card(folder: Path) -> dict[str, Any]:
    """Read a folder's card.

    Raises:
      UsageError: it cannot be read, or is of another version of the game.
    """
    card = read_json(folder / CARD_FILE)
    missing = [key for key in OWN_KEYS if not isinstance(card, dict) or key not in card]
    if missing:
        raise UsageError(f"{folder}: {CARD_FILE} is no card of `export`: it has no {missing[0]!r}")
    if card.get(SUM_KEY, _sum_of(card)) != _sum_of(card):
        raise UsageError(
            f"{folder}: {CARD_FILE}: its config or calibration is not what was written"
        )
    if card["env_version"] != VERSION:
        raise UsageError(
            f"{folder}: made with version {card['env_version']!r} of the game, "
            f"this program plays version {VERSION!r}"
        )
    return card


def read_config(folder: Path) -> RunConfig:
    """Read the config of the run that a folder's weights are from; errors as `read_card`."""
    return config_from_dict(read_card(folder)["config"], where=str(folder))


def read_weights(folder: Path, like: Variables) -> Variables:
    """Read a folder's weights; `like` gives their shapes.

    Raises:
      UsageError: they cannot be read, do not have the checksum of the card, or are of another
        network than its config describes.
    """
    path = folder / WEIGHTS_FILE
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}") from None
    if hashlib.sha256(data).hexdigest() != read_card(folder)["sha256"]:
        raise UsageError(f"{path}: is not what its card says")
    with np.load(io.BytesIO(data)) as arrays:

        def read(name: Any, wanted: Any) -> jax.Array:
            key = _name_of(name)
            shape = arrays[key].shape if key in arrays else "nothing"
            if shape != wanted.shape:
                raise UsageError(
                    f"{path}: has {shape} for {key}, where the card's config asks for "
                    f"{wanted.shape}"
                )
            return jnp.asarray(arrays[key])

        return jax.tree_util.tree_map_with_path(read, like)


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than a model.

    Raises:
      UsageError: it is a file, or a folder that is not empty and that `write_model` did not write.
    """
    if folder.is_dir():
        # All that a first writing may leave is the card, half written.
        held = [entry.name for entry in folder.iterdir() if not is_unfinished(entry.name)]
        try:
            card = read_json(folder / CARD_FILE) if held else dict.fromkeys(OWN_KEYS)
        except UsageError:
            card = None
        if not (isinstance(card, dict) and card.keys() >= set(OWN_KEYS)):
            raise UsageError(f"{folder}: is not empty and holds no exported model; choose another")
    elif folder.exists():
        raise UsageError(f"{folder}: is a file, not a folder")


def write_model(
    folder: Path,
    variables: Variables,
    config: RunConfig,
    about: dict[str, Any],
    *,
    player: str | None = None,
) -> None:
    """Write weights and their card into a folder, which is made if it is missing.

    Args:
      folder: its name is the model's.
      variables: the weights.
      config: of their run.
      about: further entries of the card, JSON-ready.
      player: the model's name as commands take it; the folder's path if it is None.

    Raises:
      UsageError: the folder holds something else.
    """
    check_folder(folder)
    leaves, buffer = jax.tree.leaves_with_path(variables), io.BytesIO()
    arrays = {_name_of(path): np.asarray(leaf) for path, leaf in leaves}
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
    # First, for it tells whose folder this is; without its weights it is refused by readers alone.
    write_json(folder / CARD_FILE, {SUM_KEY: _sum_of(card), **card})
    replace_bytes(folder / WEIGHTS_FILE, data)
    replace_text(folder / PAGE_FILE, card_page(card, player=player or str(folder)))


def add_to_card(folder: Path, entries: dict[str, Any]) -> None:
    """Add entries to a folder's card, or replace those of the same names.

    Raises:
      UsageError: there is no card, or it cannot be written.
    """
    card = read_card(folder)
    config = card.pop("config")
    card |= entries | {"config": config}
    write_json(folder / CARD_FILE, card | {SUM_KEY: _sum_of(card)})


def _sum_of(card: dict[str, Any]) -> int:
    entries = [card.get(key) for key in _SUMMED]
    return zlib.crc32(json.dumps(entries, sort_keys=True).encode())


def _name_of(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
