"""A run's config from a file, a directory, a dict or keywords, checked as on the command line."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from train import functions
from train.api.signatures import valid
from train.config import (
    CONFIG_FILE,
    RunConfig,
    assign,
    config_from_dict,
    config_to_dict,
    read_any_rules,
    read_config,
    read_saved_config,
)
from train.functions import Function
from train.network import read_network
from train.runtime.errors import usage_errors
from wallgo_jax.game.rules import Rules

Source = RunConfig | Mapping[str, object] | str | Path
"""A config, tables of one, a TOML file, or a run's directory."""
AnyRules = Rules | Mapping[str, object] | str
"""Rules, their fields, or a preset's name, a JSON object, or a JSON or TOML file."""


def make_config(
    source: Source | None = None, changes: Mapping[str, object] | None = None, /, **keys: object
) -> RunConfig:
    """Make a config; without arguments it is the quickstart's.

    In each argument a key is one above all tables, a table, or dotted, such as `network.width`; a
    table is a dict of keys. Only what is named changes, but a dict of `rules` takes the place of
    all rules.

    Args:
      source: what to begin with; a dict is read as a TOML file is.
      changes: values by key, such as `{"network.width": 64}`.
      keys: values by key, such as `seed=3`.

    Raises:
      UsageError: in the command line's words, a file, key or value that is not allowed.
    """
    config, where = _read(source)
    fields = config_to_dict(config)
    given = valid(dict[str, Any], changes=changes or {})
    _assign_all(fields, {**given, **keys})
    functions.refuse_functions(config_to_dict(config), fields, where=where)
    return config_from_dict(fields, where=where)


def read_rules(rules: AnyRules) -> Rules:
    """Rules from a preset's name, a dict, a JSON or TOML file, or as they are.

    Raises:
      UsageError: what is wrong with them.
    """
    with usage_errors():
        return read_any_rules(rules)


class Functions(TypedDict, total=False):
    """Functions of your own that replace parts of a run, as docs/api.md describes them."""

    network: object
    """A module of Flax, or (init, evaluate)."""
    planes: Callable[..., object] | None
    """Shows more planes."""
    search: Callable[..., object] | None
    """Searches."""
    loss: Callable[..., object] | None
    """Gives a number that is added to the loss."""
    targets: Callable[..., object] | None
    """Changes what is learned."""


def use_functions(**given: Unpack[Functions]) -> dict[str, Function]:
    """Register the functions of a run that another process trained (docs/api.md), so that this
    process can make players of its checkpoints.

    Args:
      given: `network`, `planes`, `search`, `loss` and `targets`.

    Returns:
      By the key of the config.

    Raises:
      UsageError: one has no name, or is no function.
    """
    if unknown := set(given) - set(Functions.__annotations__):
        raise TypeError(f"use_functions: no function of a run is called {', '.join(unknown)}")
    by_key: dict[str, Function] = {}
    for name_of_function, key in functions.KEYS.items():
        call: Any = given.get(name_of_function)
        if call is None:
            continue
        pair, name = call, ""
        if key == "network.custom":
            pair, name = read_network(call)
        else:
            valid(Callable[..., Any], **{name_of_function: call})
        with usage_errors():
            by_key[key] = functions.tell(key, pair, name=name)
    return by_key


def with_functions(config: RunConfig, by_key: Mapping[str, Function]) -> RunConfig:
    """A config that has these functions, by its keys."""
    for path, function in by_key.items():
        table, key = path.split(".")
        changed = dataclasses.replace(getattr(config, table), **{key: function})
        config = dataclasses.replace(config, **{table: changed})
    return config


def _read(source: Source | None) -> tuple[RunConfig, str]:
    """A config, and its name in messages."""
    if source is None:
        return read_config(None), "config"
    if isinstance(source, RunConfig):
        return source, "config"
    if isinstance(source, Mapping):
        fields = _tables_of(source)
        _assign_all(fields, source)
        functions.refuse_functions({}, fields, where="config")
        return config_from_dict(fields, where="config"), "config"
    path = valid(Path, config=source)
    if (path / CONFIG_FILE).is_file():
        return read_saved_config(path), f"config {path}"
    return read_config(path), f"config {path}"


def _tables_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of nested tables, without a value: an empty one counts too."""
    return {
        key: _tables_of(value)
        for key, value in given.items()
        if isinstance(value, Mapping) and key != "rules" and "." not in str(key)
    }


def _assign_all(fields: dict[str, Any], tables: Mapping[str, Any]) -> None:
    """Set the values of tables, whose keys may be dotted, in nested tables."""
    for path, value in _leaves(tables):
        assign(fields, path, value)


def _leaves(tables: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables by dotted keys; rules are a value."""
    for key, value in tables.items():
        if isinstance(value, Mapping) and key != "rules":
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", _plain(value)


def _plain(value: Any) -> Any:
    """A value of which changing what it holds changes nothing of the caller's."""
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Path) else value
