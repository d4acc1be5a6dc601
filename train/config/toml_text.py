"""A config as a TOML file that `run` reads back, each key under a comment with its meaning."""

import itertools
import textwrap
from typing import Any

from train.config.keys import Key, keys_of
from train.config.run import RunConfig

_WIDTH = 98


def config_to_toml(config: RunConfig, *, opening: str = "") -> str:
    """Write a config as TOML; `read_config` gives the same config back.

    Args:
      config: the config.
      opening: a comment for the top of the file.
    """
    import tomlkit

    document = tomlkit.document()
    if opening:
        document.add(tomlkit.comment(opening))
        document.add(tomlkit.nl())
    for path, keys in itertools.groupby(keys_of(config), key=lambda key: key.table):
        place: Any = document
        *outer, name = path.split(".")
        for table in outer:
            if table not in place:
                place.add(table, tomlkit.table(is_super_table=True))
            place = place[table]
        if name:
            place.add(name, tomlkit.table())
            place = place[name]
        for key in keys:
            _add(place, key)
        place.add(tomlkit.nl())
    return tomlkit.dumps(document).rstrip("\n") + "\n"


def _add(table: Any, key: Key) -> None:
    import tomlkit

    unit = f" [{key.unit}]" if key.unit else ""
    changed = f" (default {in_toml(key.default)})" if key.is_changed else ""
    for line in textwrap.wrap(f"{key.meaning}{unit}{changed}", _WIDTH):
        table.add(tomlkit.comment(line))
    if key.value is None:
        # TOML has no word for it: a key that is left out says the same.
        table.add(tomlkit.comment(f"{key.name} is left out"))
    else:
        table.add(key.name, _item(key.value))


def in_toml(value: Any) -> str:
    """A value as TOML writes it; `none` for None, which TOML cannot write."""

    return "none" if value is None else _item(value).as_string()


def _item(value: Any) -> Any:
    """A value for TOML; lists of tables a line each, where they stand."""
    import tomlkit

    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return tomlkit.item(value)
    array = tomlkit.array()
    for each in value:
        array.append(_inline(each))
    return array.multiline(True)


def _inline(fields: dict[str, Any]) -> Any:
    """A table on one line; keys without a value are left out."""
    import tomlkit

    table = tomlkit.inline_table()
    for key, value in fields.items():
        if value is not None:
            table.append(key, _inline(value) if isinstance(value, dict) else value)
    return table
