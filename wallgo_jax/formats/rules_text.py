"""Rules from text: a preset's name, a JSON object, or a file.

Both programs and the configs of runs read rules here, so they all take the same.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from wallgo_jax.formats.near_names import did_you_mean
from wallgo_jax.game.rules import PRESETS, Rules, name_of


def read_rules(text: str) -> Rules:
    """Read rules from what a user writes after `--rules`.

    Args:
      text: a preset's name; a JSON object, or a TOML inline table, of rules; or the path of a JSON
        or TOML file. A file holds the fields of the rules, or has them, or a preset's name, under
        its key `rules`, as configs and records do.

    Raises:
      ValueError: in one line, what is wrong, where, and what is allowed.
    """
    if text in PRESETS:
        return PRESETS[text]
    if _is_object(text):
        return Rules.from_dict(_read_object(text))
    path = Path(text)
    if _exists(path):
        try:
            return _rules_of(_read_file(path))
        except ValueError as error:
            raise ValueError(f"rules: {path}: {str(error).removeprefix('rules: ')}") from None
    missing = "no such file, and " if path.suffix or "/" in text else ""
    raise ValueError(f"rules: {missing}{_unknown_preset(text)}; or a JSON object, or a file")


def write_rules(rules: Rules) -> str | dict[str, Any]:
    """The name of a preset, or the fields of the rules."""
    name = name_of(rules)
    return name if name in PRESETS else rules.to_dict()


def _unknown_preset(name: str) -> str:
    known = ", ".join(PRESETS)
    return f"unknown preset {name!r}{did_you_mean(name, PRESETS)}; known presets: {known}"


def _is_object(text: str) -> bool:
    return text.lstrip().startswith("{")


def _read_object(text: str) -> dict[str, Any]:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        try:
            return tomllib.loads(f"rules = {text.strip()}")["rules"]
        except (ValueError, RecursionError):
            raise ValueError(f"rules: not JSON: {error}") from None


def _exists(path: Path) -> bool:
    try:
        return bool(path.name) and path.exists()
    except (OSError, ValueError):  # Too long for a path, or with a character that none may have.
        return False


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # Some editors write a byte order mark.
    except IsADirectoryError:
        raise ValueError("is a directory, not a JSON or TOML file") from None
    except UnicodeDecodeError:
        raise ValueError("not a text file") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if not text.strip():
        raise ValueError("is empty")
    if _is_object(text):
        return _read_object(text)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"neither JSON nor TOML: {error}") from None


def _rules_of(fields: dict[str, Any]) -> Rules:
    """The rules of a file's fields, or of its key `rules`."""
    found = fields.get("rules", fields)
    if isinstance(found, dict):
        return Rules.from_dict(found)
    if isinstance(found, list):
        raise ValueError("lists several rule sets; name one of them")
    if not isinstance(found, str) or found not in PRESETS:
        raise ValueError(_unknown_preset(str(found)))
    return PRESETS[found]
