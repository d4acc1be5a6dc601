"""The examples of docs/api.md run one after another, as a reader would type them."""

import re

import pytest

from tests.support.import_graph import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_public_name_is_on_the_page():
    import train

    missing = [name for name in train.__all__ if not re.search(rf"\b{name}\b", PAGE)]
    assert missing == []


def test_a_function_of_ones_own_is_short():
    (custom,) = (text for text in EXAMPLES if "def my_network" in text)
    assert all(len(part.splitlines()) < 40 for part in re.split(r"\ndef ", custom))


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    names = {"__name__": "__main__"}
    for text in EXAMPLES:
        exec(compile(text, "docs/api.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "simulations: value" in shown
    assert "Part(name='stem'" in shown
