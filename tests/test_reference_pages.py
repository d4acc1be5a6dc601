"""The pages of docs/reference/ are what docstrings, help pages and configs say."""

import dataclasses
import tomllib
from typing import Any

import pytest

from tests.support import reference_pages
from train.config import RunConfig
from train.config.reading import keys_of
from wallgo_jax.game.rules import Rules, name_of

HEURISTICS = ("ethen", "wjx")
OFF = {"full_search_prob": 1.0, "least_spread": 1e-8}
"""What a file writes for a number that is off, where that is not 0."""
ADVICE = "write it by `python -m tests.support.reference_pages`"


def defaults_of(table: Any, prefix: str = "") -> dict[str, Any]:
    """Each key of a config, such as `network.width`, with its default."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(table):
        if field.name == "mix":
            continue  # `rules` says the same
        value, key = getattr(table, field.name), prefix + field.name
        if isinstance(value, Rules):
            found[key] = name_of(value)
        elif value is None:
            found[key] = OFF.get(field.name, 0.0)
        elif dataclasses.is_dataclass(value):
            # A table that a file writes starts from its own defaults, not from those of the
            # quickstart that is built in. The two heuristics alone differ by where they stand.
            own = value if field.name in HEURISTICS else type(value)()
            found |= defaults_of(own, key + ".")
        else:
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


@pytest.mark.parametrize("name", reference_pages.PAGES)
def test_a_page_is_as_it_is_written(name):
    kept = (reference_pages.FOLDER / f"{name}.md").read_text("utf-8")
    assert kept == reference_pages.page(name), ADVICE


def test_every_key_is_described_with_its_default():
    found = {key.path: key.default for key in keys_of(RunConfig())}
    assert found == defaults_of(RunConfig())
    for row in reference_pages.config().splitlines():
        cells = row.split("|")
        key, default = (cells[1].strip(" `"), cells[-2].strip(" `")) if cells[2:] else ("", "")
        if key.startswith(("run", "network", "search", "learner")):
            assert tomllib.loads(f"value = {default}")["value"] == found[key]


def test_every_number_has_a_unit():
    for key in keys_of(RunConfig()):
        assert key.meaning, key.path
        assert not key.meaning.endswith((".", "]")), key.path
        assert key.unit or isinstance(key.default, bool | str), key.path
