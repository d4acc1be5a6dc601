"""Folders that `export` writes: a network's weights with a card that says what they are for.

FOLDER/weights.npz   arrays by name
FOLDER/card.json     config, checksum of the weights, how they were made, how strong
FOLDER/README.md     the card in words

The card also holds the calibration of win chances, in the form of the files of
`calibrate`.
"""

import hashlib
import io
import itertools
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pydantic

from train.checkpoints.checkpoint import check_version
from train.config import (
    RunConfig,
    config_from_dict,
    config_to_dict,
    in_toml,
    keys_of,
    rule_sets_in_words,
)
from train.network import Variables
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import read_json, reading, replace_bytes, replace_text, write_json
from train.search.evaluator import Calibration
from wallgo_jax.env import VERSION
from wallgo_jax.formats.files import is_unfinished

CALIBRATION_KEY = "calibration"
"""Entry of a model's card that holds its calibration."""
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
    if not _is_card(card) or card.get(SUM_KEY, _sum_of(card)) != _sum_of(card):
        raise UsageError(
            f"{folder}: {CARD_FILE}: its config or calibration was changed after it was written"
        )
    check_version(folder, card["env_version"])
    return card


def _is_card(card: Any) -> bool:
    return isinstance(card, dict) and card.keys() >= set(OWN_KEYS)


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
    with reading(path):
        data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != read_card(folder)["sha256"]:
        raise UsageError(f"{path}: does not have the checksum of its card")
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
      UsageError: it is a folder that is not empty and that `write_model` did not write.
    """
    if folder.is_dir():
        # All that a first writing may leave is the card, half written.
        held = [entry.name for entry in folder.iterdir() if not is_unfinished(entry.name)]
        try:
            card = read_json(folder / CARD_FILE) if held else dict.fromkeys(OWN_KEYS)
        except UsageError:
            card = None
        if not _is_card(card):
            raise UsageError(f"{folder}: is not empty and holds no exported model; choose another")


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


def calibration_of_card(card: Mapping[str, Any], *, where: str) -> Calibration:
    """The calibration of a model's card; factors of 1 where it has none.

    Raises:
      UsageError: which entry is wrong.
    """
    fields = card.get(CALIBRATION_KEY)
    with usage_errors(f"{where}: {CALIBRATION_KEY}"):
        return Calibration() if fields is None else _ADAPTER.validate_python(fields)


def read_calibration(path: Path) -> Calibration:
    """Read the file that `calibrate --json` wrote.

    Raises:
      UsageError: it cannot be read, or holds no calibration.
    """
    fields = read_json(path)
    if not isinstance(fields, dict) or CALIBRATION_KEY not in fields:
        raise UsageError(f"{path}: no {CALIBRATION_KEY} of `python -m train calibrate`")
    return calibration_of_card(fields, where=str(path))


_ADAPTER = pydantic.TypeAdapter(Calibration)


def _sum_of(card: dict[str, Any]) -> int:
    entries = [card.get(key) for key in _SUMMED]
    return zlib.crc32(json.dumps(entries, sort_keys=True).encode())


def _name_of(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


_NOT_TRAINING = ("name", "evaluation", "checkpoint", "tracking")
"""Keys and tables that decide nothing about the weights."""


def card_page(card: dict[str, Any], *, player: str) -> str:
    """The page of a card.

    Args:
      card: as `write_model` writes it; entries that it lacks are left out.
      player: the model's name as commands take it.
    """
    config = config_from_dict(card["config"], where="card")
    about = f"{config.network.blocks}, width {config.network.width}, planes {config.network.planes}"
    parts = [
        f"# {card['model']}",
        f"A player of WallGo, by the rules {rule_sets_in_words(config.rule_sets)} alone. It is "
        f"`{player}@64` in every command that takes a player. Network: {about}, "
        f"{card['parameters']:,} parameters; `weights.npz` has {card['bytes'] / 1000:,.0f} kB.",
        *_training(card),
        *_matches(card),
        *_curve(card.get("curve") or ()),
        *_time_to_strength(card.get("strength")),
        "## Config",
        "Keys that differ from the defaults; `card.json` has all of them.",
        f"```toml\n{_toml(config)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _training(card: dict[str, Any]) -> list[str]:
    """Runs, hours, versions, and what a warm start took."""
    heads = ("run", "iteration", "seed", "began with", "hours", "compiling", "saving and matches")
    rows = []
    for stage in (*(card.get("stages") or []), card):
        config, hours = stage["config"], stage.get("hours")
        begin = config.get("start_weights") or config.get("init_from")
        times = ["not recorded", "", ""]
        if hours is not None:
            rest = hours["all"] - hours["training"] - hours["compiling"]
            times = [f"{part:.2f}" for part in (hours["training"], hours["compiling"], rest)]
        run, seed = f"`{stage.get('run')}`", str(config.get("seed", 0))
        begin = f"`{begin}`" if begin else "random weights"
        rows.append((run, str(stage.get("iteration")), seed, begin, *times))
    parts = ["## Training", _table(heads, rows)]
    for start in (card.get("starts") or [])[-1:]:
        versions, devices, git = start["versions"], start["devices"], start.get("git")
        named = ", ".join(f"{name} {versions[name]}" for name in ("wallgo-jax", "jax", "python"))
        revision = f", revision {git['revision'][:12]}" if git else ""
        changed = " with changes" if git and git["dirty"] else ""
        parts.append(
            f"Made by {named}{revision}{changed}, on {devices['count']} × {devices['kind']}, begun "
            f"{start['time'][:10]}; game version {start['env_version']}."
        )
    if transfer := card.get("transfer"):
        keys = ("taken", "new", "left")
        rows = [(part["name"], *(f"{part[key]:,}" for key in keys)) for part in transfer["parts"]]
        parts.append(f"Warm start from {transfer['source']}, in numbers of parameters:")
        parts.append(_table(("part", *keys), rows))
    return parts


def _matches(card: dict[str, Any]) -> list[str]:
    """The table of the final matches and of those that `export --matches` added."""
    final = card.get("evaluation") or {}
    shared = {key: final.get(key) for key in ("seed", "opening_plies", "players_place")}
    matches = [shared | match for match in final.get("matches", ())] + (card.get("matches") or [])
    if not matches:
        return []
    heads = ("player", "against", "won, drawn, lost", "win rate, 95 %", "openings", "seed")
    openings = (
        "Openings are random plies that both games of a pair start with; where they come after "
        "placements, the players have placed all stones."
    )
    rows = []
    for match in matches:
        low, high = match["interval_95"]
        by_rules = f" on `{match['rule_set']}`" if "rule_set" in match else ""
        placed = " after placements" if match.get("players_place") else ""
        counts = f"{match['wins']}, {match['draws']}, {match['losses']}"
        rate = f"{100 * match['win_rate']:.4g} % ({100 * low:.1f} to {100 * high:.1f})"
        plies = match.get("openings") or f"{match.get('opening_plies')}{placed}"
        pair = f"`{match['first']}`{by_rules}", f"`{match['second']}`"
        rows.append((*pair, counts, rate, plies, str(match.get("seed"))))
    return ["## Matches", openings, _table(heads, rows)]


def _curve(curve: Sequence[dict[str, Any]]) -> list[str]:
    """The table of a run's short matches."""
    if not curve:
        return []
    anchors = list(dict.fromkeys(name for point in curve for name in point["matches"]))
    rows = []
    for point in curve:
        rates = [point["matches"].get(name) for name in anchors]
        texts = ["" if rate is None else f"{100 * rate:.4g} %" for rate in rates]
        rows.append((str(point["iteration"]), f"{point['hours']:.2f}", *texts))
    table = _table(("iteration", "hours", *(f"`{name}`" for name in anchors)), rows)
    return ["## Curve", "Win rates in the short matches of the run.", table]


def _time_to_strength(strength: dict[str, Any] | None) -> list[str]:
    """The table of `bench --what strength`, and when levels were passed."""
    if not strength:
        return []
    rows = [
        (str(p["iteration"]), f"{p['minutes']:.2f}", f"{100 * p['rate']:.4g} %", str(p["games"]))
        for p in strength["points"]
    ]
    passings = []
    for each in strength["passings"]:
        minutes = [each[key] for key in ("minutes", "low", "high")]
        texts = ["not passed" if each is None else f"{each:.2f}" for each in minutes]
        passings.append((f"{100 * each['level']:g} %", *texts))
    earlier = strength.get("earlier") or {"minutes": 0, "unrecorded": ()}
    before = f", {earlier['minutes']:.2f} of them in stages before" if earlier["minutes"] else ""
    if earlier["unrecorded"]:
        before += f", those of {', '.join(earlier['unrecorded'])} not recorded"
    return [
        "## Time to strength",
        f"Checkpoints with {strength['simulations']} simulations against "
        f"`{strength['opponent']}`, {strength['opening_plies']} random opening plies, seed "
        f"{strength['seed']}; minutes are those of self-play and learning{before}.",
        _table(("iteration", "minutes", "win rate", "games"), rows),
        _table(("level", "passed after minutes", "95 % from", "to"), passings),
    ]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _toml(config: RunConfig) -> str:
    """The keys that decide the weights and differ from their defaults, as TOML."""
    named = ("seed", "iterations", "rules")
    keys = [
        key
        for key in keys_of(config)
        if (key.path in named or key.is_changed) and key.path.partition(".")[0] not in _NOT_TRAINING
    ]
    lines = []
    for table, group in itertools.groupby(keys, key=lambda key: key.table):
        lines += ["", f"[{table}]"] if table else []
        lines += [f"{key.name} = {in_toml(key.value)}" for key in group]
    return "\n".join(lines)
