"""A page for any static host: its files, the engine's modules, and weights in the form that the
engine reads. All paths are relative, and nothing is fetched from elsewhere.

FOLDER/index.html, *.js     the page
FOLDER/choices.json         what it offers
FOLDER/engine/*.js          the engine
FOLDER/engine.json          its settings: which model plays which rules
FOLDER/weights/NAME.bin     arrays, one behind another, each at a multiple of four bytes
FOLDER/weights/NAME.json    their names, shapes, types and places; config, options and calibration
"""

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from train.checkpoints.exported import calibration_of_card
from train.checkpoints.weights import TrainedNetwork
from train.network import parse_blocks
from train.review.puzzle_file import Puzzle
from train.runtime.errors import UsageError
from train.runtime.files import replace_bytes, write_json
from train.runtime.host import fetch
from train.search.config import as_player
from train.ui.assets import OTHER, PAGE, choices
from wallgo_jax.drawing import theme
from wallgo_jax.formats.rules_text import write_rules
from wallgo_jax.game.rules import Rules

SETTINGS_FILE = "engine.json"
ENGINE = PAGE / "engine"
"""The folder of the engine's modules."""
HINT_IN_PAGE, GLANCE_IN_PAGE = 64, 16
"""Simulations of hints and evaluations, which take longer in a page than in Python."""
_FORMAT = 1
_NOT_PLAYED = ".reply."
"""Part of the names of arrays that only learning reads."""


def write_page(
    folder: Path, networks: Sequence[TrainedNetwork], rules: Rules, puzzles: Sequence[Puzzle] = ()
) -> None:
    """Write a page that plays by itself into a folder, which is new, empty, or of such a page.

    Args:
      folder: to write.
      networks: the first that has learned the rules of a game plays it.
      rules: of the first game.
      puzzles: to solve.

    Raises:
      UsageError: as `write_engine`, or the folder holds something else.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / SETTINGS_FILE).is_file():
        raise UsageError(f"{folder}: is not a page; name a new folder")
    settings = write_engine(folder, networks)
    for path in PAGE.iterdir():
        if path.is_file() and path.stem != "widget":
            shutil.copyfile(path, folder / path.name)
    (folder / "colours.css").write_text(theme.style(), encoding="utf-8")
    offered = choices(rules, settings["machines"], other=settings["other"], puzzles=puzzles)
    in_page = {"engine": "worker", "hint": HINT_IN_PAGE, "glance": GLANCE_IN_PAGE}
    write_json(folder / "choices.json", offered | in_page)


def write_engine(folder: Path, networks: Sequence[TrainedNetwork]) -> dict[str, Any]:
    """Write engine, weights and settings into a folder, and return the settings.

    Args:
      folder: is made if it is missing.
      networks: the first that has learned the rules of a game plays it.

    Raises:
      UsageError: the engine does not know a network, or how its run searches; nothing is written.
    """
    made = [pack_model(network) for network in networks]
    names = _names(networks)
    (folder / "weights").mkdir(parents=True, exist_ok=True)
    (folder / "engine").mkdir(exist_ok=True)
    for path in ENGINE.glob("*.js"):
        shutil.copyfile(path, folder / "engine" / path.name)
    for name, (card, data) in zip(names, made, strict=True):
        replace_bytes(folder / "weights" / f"{name}.bin", data)
        write_json(folder / "weights" / f"{name}.json", card)
    machines = [
        {
            "name": card["name"],
            "rules": card["rules"],
            "model": f"weights/{name}",
            "ratings": card["levels"],
        }
        for name, (card, _) in zip(names, made, strict=True)
    ]
    settings = {"machines": machines, "other": OTHER}
    write_json(folder / SETTINGS_FILE, settings)
    return settings


def pack_model(trained: TrainedNetwork) -> tuple[dict[str, Any], bytes]:
    """The card and the arrays of a network for the page's engine. Matrices are rounded to float16.

    Raises:
      UsageError: the engine does not know the network, or how its run searches.
    """
    config = trained.config
    _check(trained)
    search = as_player(config.search, config.search.simulations)
    arrays: list[dict[str, Any]] = []
    data = b""
    for path, leaf in jax.tree.leaves_with_path(fetch(trained.variables)):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if _NOT_PLAYED in name:
            continue
        array = round_weights(np.asarray(leaf))
        entry = {"name": name, "shape": array.shape, "type": array.dtype.name, "offset": len(data)}
        arrays.append(entry)
        packed = array.astype(array.dtype.newbyteorder("<")).tobytes()
        data += packed + bytes(-len(packed) % 4)
    card = {
        "format": _FORMAT,
        "name": trained.name,
        "players": config.rules.players,
        "rules": [write_rules(rules) for rules in config.learned],
        "blocks": parse_blocks(config.network.blocks),
        "network": dataclasses.asdict(config.network),
        "search": {
            "value_scale": float(search.value_scale),
            "visit_offset": float(search.visit_offset),
            "rescale_values": search.rescale_values,
            "least_spread": float(search.spread),
            "considered": config.search.player_max_considered_actions,
        },
        "calibration": calibration_of_card(trained.about, where=trained.source)._asdict(),
        "levels": trained.about.get("levels", {}),
        "arrays": arrays,
    }
    return json.loads(json.dumps(card)), data


def round_weights(array: np.ndarray) -> np.ndarray:
    """An array in the type in which the page has it: matrices and larger ones in float16, where
    that can hold them, else float32."""
    array = array.astype(np.float32)
    is_large = array.ndim > 1 and np.abs(array).max(initial=0.0) <= np.finfo(np.float16).max
    return array.astype(np.float16) if is_large else array


def _check(trained: TrainedNetwork) -> None:
    config = trained.config
    refused = {
        "network.custom": bool(config.network.custom),
        "network.custom_planes": bool(config.network.custom_planes),
        "search.custom": bool(config.search.custom),
        f"search.kind {config.search.kind!r}": config.search.kind != "gumbel",
        "search.opponents 'maxn'": (
            config.search.opponents == "maxn" and any(each.players > 2 for each in config.learned)
        ),
    }
    for key, is_refused in refused.items():
        if is_refused:
            raise UsageError(f"{trained.source}: {key}: the page's engine cannot do this")


def _names(networks: Sequence[TrainedNetwork]) -> list[str]:
    """A name of a file for each network."""
    plain = ["".join(c if c.isalnum() or c in "-_." else "-" for c in n.name) for n in networks]
    return [f"{name}-{i}" if plain.count(name) > 1 else name for i, name in enumerate(plain)]
