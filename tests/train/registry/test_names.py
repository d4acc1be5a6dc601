"""Names of players are taken apart in one way; wrong ones are refused in one line."""

from pathlib import Path

import pytest

from train.registry import read_name
from train.registry.names import PLAYER_KINDS, read_network_name
from train.runtime.errors import UsageError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with a run whose name holds an @."""
    monkeypatch.chdir(tmp_path)
    for name in ("runs/one/checkpoints/9", "runs/a@b/checkpoints/3", "random", "model"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def complaint(text: str, read=read_name) -> str:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "target", "simulations", "full"),
    [
        ("random", "random", "", None, "random"),
        ("wjx", "wjx", "", None, "wjx"),
        ("two-ply:wjx", "two-ply", "wjx", None, "two-ply:wjx"),
        ("heuristic-search:wjx", "heuristic-search", "wjx", None, "heuristic-search:wjx@64"),
        ("net:runs/one", "net", "runs/one", None, "net:runs/one"),
        ("net:runs/a@b", "net", "runs/a@b", None, "net:runs/a@b"),
        ("search:runs/one@5", "search", "runs/one", 5, "search:runs/one@5"),
        ("search:runs/a@b", "search", "runs/a@b", None, "search:runs/a@b@64"),
        ("search:runs/a@b@5", "search", "runs/a@b", 5, "search:runs/a@b@5"),
        ("runs/one", "search", "runs/one", None, "search:runs/one@64"),
        ("runs/one@5", "search", "runs/one", 5, "search:runs/one@5"),
        ("runs/a@b@5", "search", "runs/a@b", 5, "search:runs/a@b@5"),
        ("runs/one/checkpoints/9@5", "search", "runs/one/checkpoints/9", 5, None),
        ("model", "search", "model", None, "search:model@64"),
        ("./random", "search", "./random", None, "search:./random@64"),
        ("runs/none", "search", "runs/none", None, "search:runs/none@64"),  # its reader complains
        ("pretrained:big@7", "pretrained", "big", 7, "pretrained:big@7"),
        ("net:pretrained:big", "net", "pretrained:big", None, "net:pretrained:big"),
    ],
)
def test_names_are_taken_apart(text, kind, target, simulations, full):
    name = read_name(text)
    assert (name.kind, name.target, name.simulations) == (kind, target, simulations)
    assert name.full == (full or f"search:{text}")
    again = read_name(name.full)
    assert again.full == name.full
    assert (again.kind, again.target) == (kind, target)
    assert name.is_bare == (text.partition(":")[0] not in PLAYER_KINDS)


def test_a_kind_is_not_a_folder_of_its_name():
    assert read_name("random").kind == "random"


def test_near_names_are_told():
    assert complaint("one").startswith("player 'one': unknown; did you mean runs/one? Known play")
    assert complaint("one@5").startswith("player 'one@5': unknown; did you mean runs/one@5? Known")
    assert complaint("gredy").startswith("player 'gredy': unknown; did you mean greedy? Known pl")
    assert complaint("xyz").startswith("player 'xyz': unknown; known players: random, greedy, ")


def test_networks_have_the_names_of_trained_players():
    for text in ("runs/one", "net:runs/one", "search:runs/one@3", "pretrained:big"):
        assert read_network_name(text) == read_name(text)
    assert read_network_name("nowhere").target == "nowhere"  # a path, whether it exists or not
    assert complaint("wjx", read_network_name) == (
        "player 'wjx': has no network; allowed: PATH, net:PATH, search:PATH, pretrained:NAME"
    )
