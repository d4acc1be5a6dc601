"""The examples of docs/environments.md run, and a missing library is one line."""

import importlib
import re
import sys

import pytest

from tests.support.import_graph import ROOT

SLOW = ("gymnax", "pretrained:")
"""Words of the examples that compile the longest."""
PAGE = (ROOT / "docs" / "environments.md").read_text("utf-8")
PARTS = re.findall(r"^## (.*?)$|^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def examples() -> list:
    """The code of each example, called by the heading above it."""
    found, heading = [], ""
    for title, code in PARTS:
        heading = title or heading
        marks = [pytest.mark.slow] if any(word in code for word in SLOW) else []
        found += [pytest.param(code, id=heading, marks=marks)] if code else []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("code", examples())
def test_examples_run(code, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert len([line for line in code.splitlines() if line]) <= 10
    exec(compile(code, "docs/environments.md", "exec"), {"__name__": "example"})
    for name in re.findall(r'"([\w.]+\.svg)"', code):
        assert (tmp_path / name).read_text("utf-8").startswith("<svg ")


@pytest.mark.parametrize("name", ["pgx", "gymnasium", "pettingzoo"])
def test_a_missing_library_is_one_line(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"wallgo_jax.adapters.{name}", raising=False)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError) as error:
        importlib.import_module(f"wallgo_jax.adapters.{name}")
    expected = f"wallgo_jax.adapters.{name} needs {name}: pip install 'wallgo-jax[{name}]'"
    assert str(error.value) == expected
