"""Names of players are taken apart in one way; wrong ones are refused in one line."""

from pathlib import Path

import pytest

from train.players.names import PLAYER_KINDS, read_name, read_network_name
from train.players.networks import common_rules, load_network
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


@pytest.mark.parametrize(
    ("text", "target", "seconds", "symmetries", "full"),
    [
        ("pretrained:big@1s", "big", 1.0, 1, "pretrained:big@1s"),
        ("pretrained:big@0.50s?symmetries=8", "big", 0.5, 8, "pretrained:big@0.5s?symmetries=8"),
        ("pretrained:big@7?symmetries=2", "big", None, 2, "pretrained:big@7?symmetries=2"),
        ("pretrained:big?symmetries=8", "big", None, 8, "pretrained:big@64?symmetries=8"),
        ("pretrained:big@7?symmetries=1", "big", None, 1, "pretrained:big@7"),
        ("net:runs/one?symmetries=8", "runs/one", None, 8, "net:runs/one?symmetries=8"),
        ("heuristic-search:wjx@2s", "wjx", 2.0, 1, "heuristic-search:wjx@2s"),
        ("runs/one@.25s?symmetries=3", "runs/one", 0.25, 3, "search:runs/one@0.25s?symmetries=3"),
        ("runs/a@b?symmetries=3", "runs/a@b", None, 3, "search:runs/a@b@64?symmetries=3"),
        ("runs/one@0.00001s", "runs/one", 1e-5, 1, "search:runs/one@0.00001s"),
        ("runs/what?", "runs/what?", None, 1, "search:runs/what?@64"),
        ("runs/what??symmetries=3", "runs/what?", None, 3, "search:runs/what?@64?symmetries=3"),
    ],
)
def test_time_and_options_are_taken_apart(text, target, seconds, symmetries, full, here):
    (here / "runs" / "what?").mkdir()
    name = read_name(text)
    assert (name.target, name.seconds, name.symmetries) == (target, seconds, symmetries)
    assert name.full == full == read_name(full).full
    assert name.has_budget == ("@" in text.removeprefix("runs/a@b"))
    counted = name.with_simulations(9)
    assert (counted.simulations, counted.seconds, counted.symmetries) == (9, None, symmetries)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((f"pretrained:big@{time}", "600s") for time in ("0s", "s", "nans", "601s")),
        *(
            (f"{name}?{options}", said)
            for name in ("pretrained:big@5", "runs/one")
            for options, said in (
                ("symmetries=9", "1 to 8"),
                ("symmetries=8@64", "1 to 8"),
                ("symmetries=8&symmetries=8", "once"),
                ("", "unknown option"),
                ("turns=8", "unknown option"),
                ("rounds=yes", "true|false"),
                ("considered=0", "1 to 1024"),
            )
        ),
        ("", "is not of the form search:PATH"),
        ("greedy@5", "unknown"),
        ("random:", "is not of the form random;"),
        ("search:@16", "is not of the form search:PATH"),
        ("net:runs/one@16", "is not of the form net:PATH;"),
        ("heuristic-search:", "is not of the form heuristic-search:ethen|wjx"),
        *((f"runs/one@{count}", "1 to 100000") for count in ("", "0", "1.5", "100001")),
        ("wjx?symmetries=8", "unknown; did you mean wjx?"),
        ("heuristic-search:wjx@1s?symmetries=8", "unknown option"),
        ("one", "did you mean runs/one?"),
        ("one@5", "did you mean runs/one@5?"),
        ("gredy", "did you mean greedy?"),
        ("xyz", "known players"),
    ],
)
def test_wrong_names_are_refused_in_one_line(name, said):
    message = complaint(name)
    assert message.startswith(f"player {name!r}: ") and said in message


def test_options_of_a_search_are_read_and_written():
    name = read_name("heuristic-search:wjx@5?opponents=maxn&rounds=false&considered=3")
    assert (name.opponents, name.rounds, name.considered) == ("maxn", False, 3)
    assert read_name(name.full) == name._replace(text=name.full)
    assert read_name("pretrained:big").rounds is None


def test_names_that_cannot_be_printed_are_refused():
    for text in ("external:bot \t", "runs/a\nb"):
        for read in (read_name, read_network_name, load_network):
            assert "printed" in complaint(text, read)


def test_names_that_are_too_long_for_a_file():
    long = "x" * 300
    for text in (long, f"{long}@5", f"{long}?symmetries=2"):
        assert "unknown" in complaint(text)
        assert "too long" in complaint(text, load_network)
    for text in (f"net:{long}", f"search:{long}@5", f"runs/{long}"):
        assert read_name(text).target == text.partition("@")[0].rpartition(":")[2]
        for read in (load_network, lambda text: common_rules([text])):
            assert "too long" in complaint(text, read)
    assert read_name(f"pretrained:{long}@5").target == long


def test_networks_have_the_names_of_trained_players():
    budgets = ("search:runs/one@3", "runs/one@1s?symmetries=2")
    for text in ("runs/one", "net:runs/one", *budgets, "pretrained:big?symmetries=8"):
        assert read_network_name(text) == read_name(text)
    assert read_network_name("nowhere").target == "nowhere"  # a path, whether it exists or not
    assert "has no network" in complaint("wjx", read_network_name)
