"""A list of changes to a base config, read from TOML.

    [base]
    config = "../cpu.toml"          # a path from this file; without it, the quickstart
    learner.steps = 16              # any keys of the config besides

    [[change]]
    name = "planes-d"               # names its runs, so a plain word
    about = "reach planes of 2 to 4 turns"
    against = "base"                # or an earlier change, whose player it meets
    network.planes = "BTRD"         # any keys of the config

A change starts from the base's config, whatever it is matched against.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from train.config import RunConfig, config_from_dict, config_to_dict, read_config
from train.experiments.lib import trainings
from train.experiments.lib.scales import Scale, validated
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import read_toml

BASE = "base"
_DECISIVE = ("rules", "network", "search", "selfplay", "replay", "learner", "heuristics")
"""All settings that decide how a run learns, except seed and length."""
Table = Annotated[dict[str, Any], Field(default_factory=dict)]


class ChangeEntry(Scale):
    """An entry of the list."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*$")]
    about: str = ""
    against: str = BASE
    network: Table
    search: Table
    selfplay: Table
    replay: Table
    learner: Table

    @property
    def keys(self) -> dict[str, Table]:
        """The keys of the config that it changes, as tables."""
        return {key: table for key, table in self if isinstance(table, dict) and table}


class ChangeList(Scale):
    """A list as its file holds it."""

    base: Table
    change: Annotated[tuple[ChangeEntry, ...], Field(min_length=1)]


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
        decisive = {key: fields[key] for key in _DECISIVE}
        for key in ("grid", "start_weights", "init_from"):
            if fields[key]:
                decisive[key] = fields[key]
        if self.weights:
            decisive["weights"] = dict(self.weights)
        text = json.dumps(decisive, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_changes(path: Path, only: Sequence[str] = ()) -> tuple[Change, ...]:
    """Read a list of changes, the base first.

    Args:
      path: the list.
      only: names of the changes to keep, with those that they are matched against; all if empty.

    Raises:
      UsageError: the file or a change is wrong: which, where, and what is allowed.
    """
    listed = validated(ChangeList, read_toml(path), where=str(path))
    fields = dict(listed.base)
    named = fields.pop("config", None)
    plain = config_to_dict(read_config(None if named is None else path.parent / str(named)))
    base = config_from_dict(trainings.merge_tables(plain, fields), where=f"{path}: base")
    about = named or "the quickstart"
    changes = {BASE: Change(BASE, base, "", about, tuple(_lines(fields)), {})}
    for entry in listed.change:
        where, against = f"{path}: change {entry.name!r}", entry.against
        if entry.name in changes:
            raise UsageError(f"{where}: the name is taken")
        if against not in changes:
            allowed = ", ".join(changes)
            raise UsageError(f"{where}: against {against!r} is not earlier; allowed: {allowed}")
        if not entry.keys:
            raise UsageError(f"{where}: changes nothing")
        merged = trainings.merge_tables(config_to_dict(base), entry.keys)
        config, keys = config_from_dict(merged, where=where), tuple(_lines(entry.keys))
        changes[entry.name] = Change(entry.name, config, against, entry.about, keys, {})
    for name in only:
        if name not in changes:
            raise UsageError(f"{path}: no change {name!r}; there are: {', '.join(changes)}")
    wanted = {BASE, *(only or changes)}
    for change in reversed(changes.values()):  # each stands behind the one that it meets
        if change.name in wanted and change.against:
            wanted.add(change.against)

    chosen = [change for name, change in changes.items() if name in wanted]
    for place, change in enumerate(chosen):
        with usage_errors(f"ablation: {change.name}"):
            weights = trainings.named_weights(change.config)
        chosen[place] = change._replace(weights=weights)
    return tuple(chosen)


def _lines(fields: Mapping[str, Any], opening: str = "") -> list[str]:
    """The keys of nested tables, as `table.key = value`."""
    lines = []
    for key, value in fields.items():
        if isinstance(value, dict):
            lines += _lines(value, f"{opening}{key}.")
        else:
            lines.append(f"{opening}{key} = {json.dumps(value)}")
    return lines
