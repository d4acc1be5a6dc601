"""A list of changes to a base config, read from TOML.

    [base]
    config = "../cpu.toml"          # beside this file; without it, the quickstart
    learner.steps = 16              # any keys of the config besides

    [[change]]
    name = "planes-d"               # names its runs, so a plain word
    about = "reach planes of 2 to 4 turns"
    against = "base"                # or an earlier change, whose player it meets
    network.planes = "BTRD"         # any keys of the config

A change starts from the base's config, whatever it is matched against.
"""

import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from train.config import RunConfig, config_from_dict, config_to_dict, read_config
from train.runtime.errors import UsageError
from train.runtime.files import reason_of
from train.study.frame.weights import digest_of, named_weights

BASE = "base"
_KEPT = ("rules", "network", "search", "selfplay", "replay", "learner", "heuristics")
"""What decides how a run learns, besides seed and length."""
_CHANGEABLE = ("network", "search", "selfplay", "replay", "learner")
_OWN = ("name", "about", "against")
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")


class Change(NamedTuple):
    """A config that differs from the base in what its name says; the base is one, too."""

    name: str
    config: RunConfig  # its seed, name and iterations are set for each run
    against: str  # the change whose players it meets; empty for the base
    about: str  # a sentence for the table
    keys: tuple[str, ...]  # what differs, as `table.key = value`
    weights: Mapping[str, str]  # checksums of those that the config names, by key

    @property
    def digest(self) -> str:
        """Checksum of everything that decides how it learns, besides seed and length."""
        fields = config_to_dict(self.config)
        kept = {key: fields[key] for key in _KEPT}
        for key in ("grid", "start_weights", "init_from"):
            if fields[key]:
                kept[key] = fields[key]
        if self.weights:
            kept["weights"] = dict(self.weights)
        text = json.dumps(kept, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_changes(path: Path, only: Sequence[str] = ()) -> tuple[Change, ...]:
    """Read a list of changes, the base first.

    Args:
      path: the list.
      only: names of the changes to keep, with those that they are matched against; all if empty.

    Raises:
      UsageError: the file or a change is wrong: which, where, and what is allowed.
    """
    tables = _read_toml(path)
    unknown = sorted(tables.keys() - {"base", "change"})
    if unknown:
        raise UsageError(f"{path}: unknown key {unknown[0]}; known keys: base, change")
    base_fields, entries = tables.get("base", {}), tables.get("change", [])
    if not isinstance(base_fields, dict) or not isinstance(entries, list) or not entries:
        raise UsageError(f"{path}: must have a table [base] and at least one [[change]]")
    base = _read_base(path, dict(base_fields))
    found = {BASE: base}
    for entry in entries:
        change = _read_change(path, base, entry, tuple(found))
        found[change.name] = change
    digest = functools.cache(_digest_or_none)
    return tuple(
        change._replace(weights=named_weights(change.config, digest))
        for change in _selected(path, found, only)
    )


def _digest_or_none(name: str) -> str:
    """The checksum of a player's weights; empty where they cannot be read, of which
    `ablation.Study.check` tells."""
    try:
        return digest_of(name)
    except UsageError:
        return ""


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not TOML: {' '.join(str(error).split())}") from None


def _read_base(path: Path, fields: dict[str, Any]) -> Change:
    named = fields.pop("config", None)
    if named is not None and not isinstance(named, str):
        raise UsageError(f"{path}: base.config must be the path of a config (got {named!r})")
    plain = read_config(None if named is None else path.parent / named)
    merged = _merged(config_to_dict(plain), fields)
    config = config_from_dict(merged, where=f"{path}: base")
    return Change(BASE, config, "", named or "the quickstart", tuple(_lines(fields)), {})


def _read_change(path: Path, base: Change, entry: Any, earlier: Sequence[str]) -> Change:
    if not isinstance(entry, dict):
        raise UsageError(f"{path}: change must be tables, each opened by [[change]]")
    own = {key: entry.get(key, "") for key in _OWN}
    name, against = own["name"], own["against"] or BASE
    if not all(isinstance(value, str) for value in own.values()) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{path}: change {name!r}: name must be a word of letters, digits, and any of . _ + -; "
            "about and against must be text"
        )
    if name in earlier:
        raise UsageError(f"{path}: change {name!r}: the name is taken")
    if against not in earlier:
        raise UsageError(
            f"{path}: change {name!r}: against {against!r} is not earlier in the list; "
            f"allowed: {', '.join(earlier)}"
        )
    fields = {key: value for key, value in entry.items() if key not in _OWN}
    wrong = [key for key in fields if key not in _CHANGEABLE]
    if wrong or not fields:
        told = f"{wrong[0]} cannot be changed" if wrong else "changes nothing"
        raise UsageError(
            f"{path}: change {name!r}: {told}; allowed: keys of {', '.join(_CHANGEABLE)}"
        )
    where = f"{path}: change {name!r}"
    config = config_from_dict(_merged(config_to_dict(base.config), fields), where=where)
    return Change(name, config, against, own["about"], tuple(_lines(fields)), {})


def _merged(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables with some of their keys changed."""
    merged = dict(fields)
    for key, value in changes.items():
        inner = merged.get(key)
        if isinstance(value, dict) and isinstance(inner, dict):
            value = _merged(inner, value)
        merged[key] = value
    return merged


def _lines(fields: Mapping[str, Any], opening: str = "") -> list[str]:
    """The keys of nested tables, as `table.key = value`."""
    found = []
    for key, value in fields.items():
        if isinstance(value, dict):
            found += _lines(value, f"{opening}{key}.")
        else:
            found.append(f"{opening}{key} = {json.dumps(value)}")
    return found


def _selected(path: Path, found: dict[str, Change], only: Sequence[str]) -> tuple[Change, ...]:
    """The changes of these names, and those that they are matched against."""
    for name in only:
        if name not in found:
            raise UsageError(f"{path}: no change {name!r}; there are: {', '.join(found)}")
    wanted, rest = {BASE}, list(only or found)
    while rest:
        name = rest.pop()
        wanted.add(name)
        if found[name].against:
            rest.append(found[name].against)
    return tuple(change for name, change in found.items() if name in wanted)
