"""Says in one line what is wrong with a config: the key, the value given, what is allowed."""

import dataclasses
import difflib
import re
from collections.abc import Sequence
from typing import Any

import pydantic

from train.config.run import RunConfig

OWN_FIELD = "mix"
"""Field of `RunConfig` that is no key: `rules` says the same."""
MAX_WHOLE = 10**15
"""The largest whole number of a config; sizes of arrays made from it can still be computed."""


def wrong_number(fields: Any, table: Any, path: str = "") -> str | None:
    """What is wrong with the first number that the validation would let pass.

    It takes `true` for 1, and whole numbers that no array can be built from.
    """
    for key, given in fields.items() if isinstance(fields, dict) else ():
        name, usual = f"{path}{key}", getattr(table, key, None)
        if dataclasses.is_dataclass(usual):
            complaint = wrong_number(given, usual, f"{name}.")
            if complaint:
                return complaint
        is_number = usual is None or type(usual) in (int, float)
        if is_number and hasattr(table, key) and isinstance(given, bool):
            return f"{name}: Input should be a number (got {str(given).lower()})"
        if type(usual) is int and isinstance(given, int | float) and given > MAX_WHOLE:
            return f"{name} must be at most {MAX_WHOLE} (got {given})"
    return None


def describe(failed: pydantic.ValidationError) -> str:
    """The first error of a validation, unknown keys before wrong values."""
    errors = failed.errors()
    unknown = [error for error in errors if error["type"] == "unexpected_keyword_argument"]
    if unknown:
        return unknown_key(_keys_of(unknown[0]))
    first = errors[0]
    keys, given, message = _keys_of(first), first["input"], first["msg"]
    message, subject = message.removeprefix("Value error, "), ".".join(keys)
    if first["type"] != "value_error" or not isinstance(given, dict):
        # Rules that are text or a list are named by their reader.
        is_told = isinstance(given, dict) or repr(given) in message
        is_told |= keys == ["rules"] and isinstance(given, str | list)
        told = "" if is_told else f" (got {given!r})"
        opening = f"{subject}: " if subject else ""
        return f"{opening}{message.removeprefix(f'{subject}: ')}{told}"
    # A table's own check opens with the key that it is about.
    key = re.split(r"\W", message, maxsplit=1)[0]
    if key not in _fields_of(keys):
        is_whole = not subject or message.startswith(f"{subject}: ")
        return message if is_whole else f"{subject}: {message}"
    is_told = key not in given or isinstance(given[key], dict)
    is_told |= bool(re.match(rf"{key}(:| is)? {re.escape(repr(given.get(key)))}", message))
    return ".".join([*keys, message]) + ("" if is_told else f" (got {given[key]!r})")


def _fields_of(tables: Sequence[str]) -> list[str]:
    """The keys of a table of the config; none where the keys lead to no table."""
    table: Any = RunConfig()
    for name in tables:
        table = getattr(table, name, None)
    fields = dataclasses.fields(table) if dataclasses.is_dataclass(table) else ()
    return [field.name for field in fields if field.name != OWN_FIELD]


def _keys_of(error: Any) -> list[str]:
    """Keys that lead to an error."""
    return [str(part) for part in error["loc"]]


def unknown_key(keys: list[str]) -> str:
    """An unknown key with the keys of its table, and the nearest of them if one is near."""
    *tables, key = keys
    known = _fields_of(tables)
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {'.'.join([*tables, *near])}? Known" if near else "; known"
    return f"unknown key {'.'.join(keys)}{hint} keys: {', '.join(known)}"


def one_line(text: str) -> str:
    return " ".join(text.split())
