"""Lists of changes: what a list means, and wrong ones refused in one line."""

from pathlib import Path

import pytest

from train.config import read_config
from train.experiments.ablation import read_changes
from train.runtime.errors import UsageError

ROOT = Path(__file__).parents[3]
LISTS = sorted((ROOT / "configs" / "ablations").glob("*.toml"))
GOOD = """
[base]
search.simulations = 8
[[change]]
name = "wide"
network.width = 48
[[change]]
name = "wide-slow"
against = "wide"
about = "slower"
network.width = 48
learner.learning_rate = 1e-3
[[change]]
name = "deep"
network.blocks = "RR"
"""


@pytest.fixture
def listed(tmp_path):
    def read(text, *only):
        path = tmp_path / "list.toml"
        path.write_text(text)
        return read_changes(path, only)

    return read


def test_changes_start_from_the_base(listed):
    base, wide, slow, deep = listed(GOOD)
    plain = read_config(None)
    assert base.config.search.simulations == 8 and base.config.network == plain.network
    assert (wide.config.network.width, wide.config.search.simulations) == (48, 8)
    assert (slow.config.learner.learning_rate, slow.against, slow.about) == (1e-3, "wide", "slower")
    assert (deep.config.network.blocks, deep.config.network.width) == ("RR", plain.network.width)
    assert slow.keys == ("network.width = 48", "learner.learning_rate = 0.001")
    assert len({change.digest for change in (base, wide, slow, deep)}) == 4


def test_chosen_changes_bring_those_they_meet(listed):
    assert [change.name for change in listed(GOOD, "wide-slow")] == ["base", "wide", "wide-slow"]
    with pytest.raises(UsageError, match="tall"):
        listed(GOOD, "tall")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[bass]\n" + GOOD, "bass"),
        (GOOD.replace('"deep"', '"base"'), "taken"),
        (GOOD.replace('against = "wide"', 'against = "deep"'), "earlier"),
        (GOOD.replace('network.blocks = "RR"', ""), "nothing"),
        (GOOD.replace("blocks", "blcks"), "'deep'"),
    ],
)
def test_wrong_list_is_one_line(listed, text, word):
    with pytest.raises(UsageError, match=word) as refused:
        listed(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_shipped_lists_are_read(path):
    changes = read_changes(path)
    assert len({change.digest for change in changes}) == len(changes)
    assert path.read_text().startswith("# ")
