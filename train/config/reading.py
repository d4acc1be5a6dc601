"""Reads the config of a run from TOML, JSON and `--some.key value` words; writes it as tables.

The docstrings of the config's dataclasses are the one source of what keys mean: an entry of
`Attributes` is the meaning, in one sentence, then the unit in brackets if there is one, then
further sentences:

    warmup: linear warm-up [steps]. More sentences.
"""

import dataclasses
import itertools
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pydantic

from train.config.rule_sets import read_any_rules, write_rule_sets
from train.config.run import CONFIG_FILE, OWN_FIELD, RunConfig
from train.functions import refuse_functions
from train.runtime.errors import UsageError, usage_errors, validation_errors
from train.runtime.files import read_json, read_toml
from wallgo_jax.formats.docstrings import docstring_of
from wallgo_jax.formats.near_names import did_you_mean
from wallgo_jax.game.rules import PRESETS, Rules, name_of

_ADAPTER = pydantic.TypeAdapter(RunConfig)
_GONE: dict[str, dict[str, Any]] = {
    "": {"loops_in_graphs": False},
    "network": {
        "destination_width": 0,
        "destination_rank": 0,
        "destination_path": False,
        "walled_convolutions": 1,
        "stones_close_gates": False,
        "walking_bias": False,
    },
}
"""Keys that a config, or a table of it, had once, with the value at which one that was saved loads
on."""


def read_config(path: str | Path | None, overrides: Sequence[str] = ()) -> RunConfig:
    """The config of a TOML file, changed by `--some.key value` words.

    Without a file it is `RunConfig()`, the quickstart.

    Raises:
      UsageError: file or key missing, wrong type or value: which, where, what is allowed.
    """
    if path is not None and (Path(path) / CONFIG_FILE).is_file():
        raise UsageError(
            f"config {path}: is a run's directory; python -m train run --resume {path} goes on "
            "with it"
        )
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
    if isinstance(fields, Mapping):  # JSON of a damaged file may hold anything
        fields = _without_gone(fields, "", where)
        if isinstance(network := fields.get("network"), Mapping):
            fields["network"] = _without_gone(network, "network", where)
    try:
        config = _ADAPTER.validate_python(fields)
    except pydantic.ValidationError as error:
        raise UsageError(f"{where}: {validation_errors(error)}{_known_keys(error)}") from None
    if OWN_FIELD in fields:
        raise UsageError(f"{where}: {OWN_FIELD}: is no key; rules may be a list")
    return config


def _without_gone(fields: Mapping[str, Any], table: str, where: str) -> dict[str, Any]:
    """The fields of a table without keys that are gone; a `UsageError` where one is in use."""
    gone = _GONE[table]
    for key in gone.keys() & fields.keys():
        if fields[key] != gone[key] or type(fields[key]) is not type(gone[key]):
            name = f"{table}.{key}" if table else key
            raise UsageError(
                f"{where}: {name}: no longer exists, because it gained nothing; leave it out"
            )
    return {key: value for key, value in fields.items() if key not in gone}


def key_paths(table: Any = None, above: str = "") -> Iterator[str]:
    """The dotted paths of all keys and tables of a config, or of one of its tables."""
    table = RunConfig() if table is None else table
    for field in dataclasses.fields(table):
        if field.name == OWN_FIELD:
            continue
        path = f"{above}{field.name}"
        value = getattr(table, field.name)
        yield path
        if dataclasses.is_dataclass(value):
            yield from key_paths(value, f"{path}.")


def _known_keys(error: pydantic.ValidationError) -> str:
    """The keys of the table that has an unknown one, and which key of all is near to that."""
    unknown = [e["loc"] for e in error.errors() if e["type"] == "unexpected_keyword_argument"]
    if not unknown:
        return ""
    table: Any = RunConfig()
    *names, key = map(str, unknown[0])
    for name in names:
        table = getattr(table, name)
    known = [field.name for field in dataclasses.fields(table) if field.name != OWN_FIELD]
    path = ".".join((*names, key))
    return f"{did_you_mean(path, key_paths())}; known keys: {', '.join(known)}"


def config_to_dict(config: RunConfig) -> dict[str, Any]:
    """JSON-ready tables that `config_from_dict` reads back."""
    fields = _ADAPTER.dump_python(config, mode="json", exclude={OWN_FIELD})
    return fields | {"rules": write_rule_sets(config.mix)} if config.mix else fields


def _pair_up(words: Sequence[str]) -> list[tuple[str, str]]:
    """`--a.b value` and `--a.b=value` as pairs; a value that begins with -- stands behind a =."""
    pairs, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        key, equals, value = word.removeprefix("--").partition("=")
        has_value = equals or (rest and not rest[0].startswith("--"))
        if not word.startswith("--") or not key or not has_value:
            raise UsageError(f"command line: {word!r}: write --some.key value")
        pairs.append((key, value if equals else rest.pop(0)))
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
        with usage_errors("config"):
            fields["rules"] = read_any_rules(fields.get("rules", RunConfig.rules)).to_dict()
    for name in tables:
        fields = fields.setdefault(name, {})
        if not isinstance(fields, dict):
            raise UsageError(f"config: {path}: {name} is not a table")
    fields[last] = value


_ENTRY = re.compile(r"(?P<meaning>.*?)(?: \[(?P<unit>[^\]]*)\])?\.(?:\s+(?P<more>.*))?", re.DOTALL)
_HEURISTICS = ("ethen", "wjx")


class Key(NamedTuple):
    """One key of a config.

    Attributes:
      table: its table, such as `learner.weights`; empty for the keys above all tables.
      name: its own name.
      value: its value: what TOML can hold, or None.
      default: its value where a file leaves it out.
      unit: the unit, or the range; empty where there is none.
      meaning: one sentence without its full stop.
      more: further sentences; mostly empty.
    """

    table: str
    name: str
    value: Any
    default: Any
    unit: str
    meaning: str
    more: str

    @property
    def path(self) -> str:
        """The key as the command line has it, such as `learner.weights.policy`."""
        return f"{self.table}.{self.name}" if self.table else self.name

    @property
    def is_changed(self) -> bool:
        """Whether the value differs from the default."""
        return self.value != self.default


def keys_of(config: RunConfig) -> list[Key]:
    """The keys of a config: first those above all tables, then table by table."""
    return list(_keys_of_table(config, "", RunConfig()))


def _keys_of_table(values: Any, table: str, defaults: Any) -> Iterator[Key]:
    entries, tables = _entries_of(type(values)), []
    written, usual = written_values(values), written_values(defaults)
    for field in dataclasses.fields(values):
        if table == "" and field.name == OWN_FIELD:
            continue
        value, default = (getattr(each, field.name) for each in (values, defaults))
        if isinstance(value, Rules):
            mix = values.mix if isinstance(values, RunConfig) else ()
            if mix or name_of(value) in PRESETS:
                text = write_rule_sets(mix) if mix else name_of(value)
                yield Key(table, field.name, text, name_of(default), *entries[field.name])
            else:
                tables.append((value, field.name, Rules()))
        elif dataclasses.is_dataclass(value):
            # A table that a file writes starts from its own defaults, not from those of the
            # quickstart that is built in. The two heuristics alone differ by where they stand.
            base = default if field.name in _HEURISTICS else type(value)()
            tables.append((value, f"{table}.{field.name}".lstrip("."), base))
        else:
            said = written[field.name], usual[field.name]
            yield Key(table, field.name, *said, *entries[field.name])
    for inner, path, base in tables:
        yield from _keys_of_table(inner, path, base)


def written_values(table: Any) -> dict[str, Any]:
    """The values of a config's table as JSON has them: lists for tuples, names for functions, the
    number that switches something off for None."""
    return pydantic.TypeAdapter(type(table)).dump_python(table, mode="json", exclude={OWN_FIELD})


def _entries_of(table: type) -> dict[str, tuple[str, str, str]]:
    """Unit, meaning and further sentences of each attribute that a docstring describes; empty ones
    where Python runs without docstrings and the source is not there."""
    from docstring_parser import DocstringStyle, parse

    entries = {}
    docstring = docstring_of(table)
    if not docstring:
        return dict.fromkeys((field.name for field in dataclasses.fields(table)), ("", "", ""))
    for attribute in parse(docstring, style=DocstringStyle.GOOGLE).params:
        text = " ".join((attribute.description or "").split())
        entry = _ENTRY.fullmatch(text)
        assert entry is not None, f"{table.__name__}.{attribute.arg_name}: {text!r} is no sentence"
        unit, meaning, more = (part or "" for part in entry.group("unit", "meaning", "more"))
        entries[attribute.arg_name] = (unit, meaning, more)
    return entries


_WIDTH = 98


def config_to_toml(config: RunConfig, *, opening: str = "") -> str:
    """Write a config as TOML; `read_config` gives the same config back.

    Args:
      config: the config.
      opening: a comment for the top of the file.
    """
    lines = [f"# {opening}", ""] if opening else []
    for table, keys in itertools.groupby(keys_of(config), key=lambda key: key.table):
        lines += [f"[{table}]"] if table else []
        for key in keys:
            unit = f" [{key.unit}]" if key.unit else ""
            changed = f" (default {in_toml(key.default)})" if key.is_changed else ""
            said = textwrap.wrap(f"{key.meaning}{unit}{changed}", _WIDTH)
            # TOML has no word for None: a key that is left out says the same.
            value = f"# {key.name} is left out" if key.value is None else None
            lines += [*(f"# {line}" for line in said), value or f"{key.name} = {_item(key.value)}"]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def in_toml(value: Any) -> str:
    """A value as TOML writes it; `none` for None, which TOML cannot write."""
    return "none" if value is None else _item(value)


def _item(value: Any) -> str:
    """A value on one line, but each table of a list on a line of its own; in a table keys without a
    value are left out."""
    if isinstance(value, dict):
        items = [f"{key} = {_item(each)}" for key, each in value.items() if each is not None]
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list):
        items = [_item(each) for each in value]
        has_tables = bool(value) and isinstance(value[0], dict)
        return (
            "[\n    {},\n]".format(",\n    ".join(items)) if has_tables else f"[{', '.join(items)}]"
        )
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
