"""Every key of a config with its value, default, unit and meaning.

The docstrings of the config's dataclasses are the one source: an entry of `Attributes` is the
meaning, in one sentence, then the unit in brackets if there is one, then further sentences:

    warmup: linear warm-up [steps]. More sentences.
"""

import dataclasses
import itertools
import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from train.config.rule_sets import write_rule_sets
from train.config.run import OWN_FIELD, RunConfig
from train.functions import Function
from wallgo_jax.game.rules import PRESETS, Rules, name_of

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
            yield Key(table, field.name, _plain(value), _plain(default), *entries[field.name])
    for inner, path, base in tables:
        yield from _keys_of_table(inner, path, base)


def _entries_of(table: type) -> dict[str, tuple[str, str, str]]:
    """Unit, meaning and further sentences of each attribute that a docstring describes."""
    from docstring_parser import DocstringStyle, parse

    entries = {}
    for attribute in parse(table.__doc__ or "", style=DocstringStyle.GOOGLE).params:
        text = " ".join((attribute.description or "").split())
        entry = _ENTRY.fullmatch(text)
        if entry is None:
            raise ValueError(f"{table.__name__}.{attribute.arg_name}: {text!r} is no sentence")
        unit, meaning, more = (part or "" for part in entry.group("unit", "meaning", "more"))
        entries[attribute.arg_name] = (unit, meaning, more)
    return entries


def _plain(value: Any) -> Any:
    """The value as TOML and JSON have it: lists for tuples, names for functions."""
    if isinstance(value, Function):
        return value.name
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


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
