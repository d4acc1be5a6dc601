"""Reads the config of a run from TOML, JSON and `--some.key value` words; writes it as tables."""

import dataclasses
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from train.config.complaints import OWN_FIELD, describe, one_line, unknown_key, wrong_number
from train.config.rule_sets import write_rule_sets
from train.config.run import CONFIG_FILE, RunConfig
from train.functions import refuse_functions
from train.runtime.errors import UsageError
from wallgo_jax.formats.rules_text import read_rules
from wallgo_jax.game.rules import Rules

_ADAPTER = pydantic.TypeAdapter(RunConfig)


def read_config(path: str | Path | None, overrides: Sequence[str] = ()) -> RunConfig:
    """The config of a TOML file, changed by `--some.key value` words.

    Without a file it is `RunConfig()`, the quickstart.

    Raises:
      UsageError: file or key missing, wrong type or value: which, where, what is allowed.
    """
    defaults = _default_fields()
    fields = defaults if path is None else _read_toml(Path(path))
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
      UsageError: the directory holds none, or it cannot be read.
    """
    path = directory / CONFIG_FILE
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        reason = "no such directory"
        if directory.exists():
            reason = f"it has no {CONFIG_FILE}" if directory.is_dir() else "it is a file"
        raise UsageError(f"{directory}: not a run directory: {reason}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(one_line(f"{path}: not JSON: {error}")) from None
    return config_from_dict(fields, where=str(path))


def change_config(config: RunConfig, overrides: Sequence[str]) -> RunConfig:
    """The config changed by `--some.key value` words.

    Raises:
      UsageError: a key or a value that is not allowed: which, and what is.
    """
    fields = config_to_dict(config)
    _assign_all(fields, overrides)
    refuse_functions(config_to_dict(config), fields, where="command line")
    return config_from_dict(fields, where="command line")


def _default_fields() -> dict[str, Any]:
    """The fields that `RunConfig()` sets to other values than the defaults of its tables."""
    run, changed = RunConfig(), ("network", "search", "selfplay", "learner", "evaluation")
    return {key: dataclasses.asdict(getattr(run, key)) for key in changed}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise UsageError(f"config {path}: no such file") from None
    except IsADirectoryError:
        is_run = (path / CONFIG_FILE).is_file()
        hint = f"; --resume {path} goes on with the run in it" if is_run else ""
        raise UsageError(f"config {path}: is a directory, not a TOML file{hint}") from None
    except OSError as error:
        raise UsageError(f"config {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"config {path}: not a text file (UTF-8)") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"config {path}: not TOML: {one_line(str(error))}") from None


def config_from_dict(fields: Mapping[str, Any], *, where: str) -> RunConfig:
    """A config from nested tables; the message of a `UsageError` begins with `where`."""
    if not isinstance(fields, Mapping):
        raise UsageError(f"{where}: Input should be a dictionary (got {repr(fields)[:60]})")
    complaint = wrong_number(fields, RunConfig())
    if complaint:
        raise UsageError(one_line(f"{where}: {complaint}"))
    if OWN_FIELD in fields:
        raise UsageError(f"{where}: {unknown_key([OWN_FIELD])}")
    try:
        return _ADAPTER.validate_python(fields)
    except pydantic.ValidationError as error:
        raise UsageError(one_line(f"{where}: {describe(error)}")) from None


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
    for key, value in _pair_up(overrides):
        _assign(fields, key, value)


def _assign(fields: dict[str, Any], key: str, text: str) -> None:
    *tables, last = path = key.replace("-", "_").split(".")
    if tables == ["rules"] and isinstance(fields.get("rules", RunConfig.rules), str | Rules):
        fields["rules"] = _table_of_rules(fields.get("rules", RunConfig.rules))
    for name in tables:
        inner = fields.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UsageError(f"command line: --{key}: {name} is not a table")
        fields = inner
    fields[last] = _read_value(text, is_text=isinstance(_default_of(path), str))


def _table_of_rules(given: str | Rules) -> dict[str, Any]:
    """The rules as a table, of which one key is to be changed."""
    try:
        return (read_rules(given) if isinstance(given, str) else given).to_dict()
    except ValueError as error:
        raise UsageError(f"config: {error}") from None


def _default_of(path: Sequence[str]) -> Any:
    """The default of a key; None where there is no such key."""
    found: Any = RunConfig()
    for name in path:
        found = getattr(found, name, None) if dataclasses.is_dataclass(found) else None
    return found


def _read_value(text: str, *, is_text: bool) -> Any:
    """A TOML value where the text is one, else the text itself; of a key that holds text, a quoted
    text or the text itself."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
    return text if is_text and not isinstance(value, str) else value
