"""The examples of docs/environments.md run, and a missing library is one line."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import wallgo_jax
from tests.support.game.small import SMALL, read_game
from tests.support.import_graph import ROOT
from wallgo_jax import env as env_lib
from wallgo_jax.adapters import opponents
from wallgo_jax.game import rules as rules_lib

PAGE = (ROOT / "docs" / "environments.md").read_text("utf-8")
PARTS = re.findall(r"^## (.*?)$|^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def examples() -> list:
    """The code of each example of the game, called by the heading above it."""
    found, heading = [], ""
    for title, code in PARTS:
        heading = title or heading
        is_of_the_game = code and "from train" not in code
        found += [pytest.param(code, id=heading)] if is_of_the_game else []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("code", examples())
def test_examples_run(code, monkeypatch, capsys):
    """Every preset is the smallest board here, of few planes, which compiles quickly."""
    make = env_lib.make

    def make_small(rules, **options):
        return make(rules, **options | {"planes": "B"})

    monkeypatch.setattr(opponents, "play_randomly", read_game)  # as `test_gymnax` has it
    for module in (env_lib, wallgo_jax):
        monkeypatch.setattr(module, "make", make_small)
    for name in rules_lib.PRESETS:
        monkeypatch.setitem(rules_lib.PRESETS, name, SMALL)
    assert len([line for line in code.splitlines() if line]) <= 10
    exec(compile(code, "docs/environments.md", "exec"), {"__name__": "example"})
    for name in re.findall(r'"([\w.]+\.svg)"', code):
        assert Path(name).read_text("utf-8").startswith("<svg ")


@pytest.mark.parametrize("name", ["pgx", "gymnasium", "pettingzoo"])
def test_a_missing_library_is_one_line(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"wallgo_jax.adapters.{name}", raising=False)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as error:
        importlib.import_module(f"wallgo_jax.adapters.{name}")
    expected = f"wallgo_jax.adapters.{name} needs {name}: pip install 'wallgo-jax[{name}]'"
    assert str(error.value) == expected
