"""The table of config keys in docs/training.md has every key, and each default."""

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

from train.config import RunConfig
from wallgo_jax.game.rules import Rules, name_of

PAGE = Path(__file__).parents[1] / "docs" / "training.md"
HEURISTICS = ("ethen", "wjx")


def defaults_of(table: Any, prefix: str = "") -> dict[str, Any]:
    """Each key of a config, such as `network.width`, with its default."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(table):
        value, key = getattr(table, field.name), prefix + field.name
        if isinstance(value, Rules):
            found[key] = name_of(value)
        elif dataclasses.is_dataclass(value):
            # A table that a file writes starts from its own defaults, not from those of the
            # quickstart that is built in. The two heuristics alone differ by where they stand.
            own = value if field.name in HEURISTICS else type(value)()
            found |= defaults_of(own, key + ".")
        else:
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


def printed_defaults() -> dict[str, Any]:
    """The same, as the page prints it; `NAME` stands for either heuristic."""
    text = PAGE.read_text(encoding="utf-8")
    text = text[text.index("<!-- config table") : text.index("## Replay memory")]
    found: dict[str, Any] = {}
    for key, default in re.findall(r"^\| `([^`]+)` \|.*\| `([^`]+)` \|$", text, re.MULTILINE):
        for name in HEURISTICS if "NAME" in key else ("",):
            value = tomllib.loads(f"value = {default.replace('NAME', name)}")["value"]
            found[key.replace("NAME", name)] = value
    return found


def test_every_key_is_in_the_table_and_nothing_else():
    assert set(printed_defaults()) == set(defaults_of(RunConfig()))


def test_the_defaults_are_the_printed_ones():
    printed, defaults = printed_defaults(), defaults_of(RunConfig())
    both = printed.keys() & defaults.keys()
    assert {key: printed[key] for key in both} == {key: defaults[key] for key in both}
