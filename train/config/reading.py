"""Reads the config of a run from TOML, JSON and `--some.key value` words; writes it as tables."""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from train.config.rule_sets import write_rule_sets
from train.config.run import CONFIG_FILE, OWN_FIELD, RunConfig
from train.functions import refuse_functions
from train.runtime.errors import UsageError, validation_errors
from train.runtime.files import read_json, read_toml
from wallgo_jax.formats.near_names import did_you_mean
from wallgo_jax.formats.rules_text import read_rules
from wallgo_jax.game.rules import Rules

_ADAPTER = pydantic.TypeAdapter(RunConfig)


def read_config(path: str | Path | None, overrides: Sequence[str] = ()) -> RunConfig:
    """The config of a TOML file, changed by `--some.key value` words.

    Without a file it is `RunConfig()`, the quickstart.

    Raises:
      UsageError: file or key missing, wrong type or value: which, where, what is allowed.
    """
    if path is not None and (Path(path) / CONFIG_FILE).is_file():
        raise UsageError(f"config {path}: is a run's directory; --resume {path} goes on with it")
    # The fields that `RunConfig()` sets to other values than the defaults of its tables.
    run, changed = RunConfig(), ("network", "search", "selfplay", "learner", "evaluation")
    defaults = {key: dataclasses.asdict(getattr(run, key)) for key in changed}
    fields = defaults if path is None else read_toml(Path(path))
    for table in {key.partition(".")[0] for key, _ in _pair_up(overrides)} & defaults.keys():
        # A table that the file leaves out is the quickstart's, whichever of its keys changes.
        fields.setdefault(table, defaults[table])
    _assign_all(fields, overrides)
    where = "config" if path is None else f"config {path}"
    refuse_functions({}, fields, where=where)
    return config_from_dict(fields, where=where)


def read_saved_config(directory: Path) -> RunConfig:
    """The config that a run directory holds.

    Raises:
      UsageError: it cannot be read.
    """
    path = directory / CONFIG_FILE
    return config_from_dict(read_json(path), where=str(path))


def change_config(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """The config changed by `--some.key value` words.

    Raises:
      UsageError: a key or a value that is not allowed: which, and what is.
    """
    fields = config_to_dict(config)
    _assign_all(fields, overrides)
    refuse_functions(config_to_dict(config), fields, where="command line")
    return config_from_dict(fields, where="command line")


def config_from_dict(fields: Mapping[str, Any], *, where: str) -> RunConfig:
    """A config from nested tables; the message of a `UsageError` begins with `where`."""
    try:
        config = _ADAPTER.validate_python(fields)
    except pydantic.ValidationError as error:
        raise UsageError(f"{where}: {validation_errors(error)}{_known_keys(error)}") from None
    if OWN_FIELD in fields:
        raise UsageError(f"{where}: {OWN_FIELD}: is no key; rules may be a list")
    return config


def _known_keys(error: pydantic.ValidationError) -> str:
    """The keys of the table that has an unknown one, and which is near to that."""
    unknown = [e["loc"] for e in error.errors() if e["type"] == "unexpected_keyword_argument"]
    if not unknown:
        return ""
    table: Any = RunConfig()
    *names, key = map(str, unknown[0])
    for name in names:
        table = getattr(table, name)
    known = [field.name for field in dataclasses.fields(table) if field.name != OWN_FIELD]
    return f"{did_you_mean(key, known)}; known keys: {', '.join(known)}"


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    """JSON-ready tables that `config_from_dict` reads back."""
    fields = _ADAPTER.dump_python(config, mode="json", exclude={OWN_FIELD})
    return fields | {"rules": write_rule_sets(config.mix)} if config.mix else fields


def _pair_up(words: Sequence[str]) -> list[tuple[str, str]]:
    """`--a.b value` and `--a.b=value` as pairs; a value that begins with -- stands behind a =."""
    pairs, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or len(word) == 2:
            raise UsageError(f"command line: {word!r} is not an option; write --some.key value")
        key, equals, value = word[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise UsageError(f"command line: --{key} has no value")
            value = rest.pop(0)
        pairs.append((key, value))
    return pairs


def _assign_all(fields: dict[str, Any], overrides: Sequence[str]) -> None:
    for key, text in _pair_up(overrides):
        path = key.replace("-", "_")
        default: Any = RunConfig()
        for name in path.split("."):
            default = getattr(default, name, None) if dataclasses.is_dataclass(default) else None
        # A TOML value where the text is one, else the text itself; of a key that holds text, a
        # quoted text or the text itself.
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):
            value = text
        is_text = isinstance(default, str)
        assign(fields, path, text if is_text and not isinstance(value, str) else value)


def assign(fields: dict[str, Any], path: str, value: Any) -> None:
    """Set a key of a config's nested tables by its dotted path.

    Raises:
      UsageError: the path leads through what is no table.
    """
    *tables, last = path.split(".")
    if tables == ["rules"] and isinstance(fields.get("rules", RunConfig.rules), str | Rules):
        given = fields.get("rules", RunConfig.rules)
        try:
            fields["rules"] = (read_rules(given) if isinstance(given, str) else given).to_dict()
        except ValueError as error:
            raise UsageError(f"config: {error}") from None
    for name in tables:
        fields = fields.setdefault(name, {})
        if not isinstance(fields, dict):
            raise UsageError(f"config: {path}: {name} is not a table")
    fields[last] = value
