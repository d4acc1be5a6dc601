"""Tournaments as users run them, with matches that are over at once."""

import json
import signal
from collections import Counter

import pytest

from tests.support.learner import matches
from tests.support.learner.commands import RULES, command, complaint
from train.arena import match
from train.runtime.errors import UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED

SEATED = ("--rules", json.dumps({"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]}))
FAILURE = UsageError("player 'external:b': gave no answer within 60 s")


@pytest.fixture
def meetings(monkeypatch):
    """The names and the pairs before of each match; the first player wins all. A third match raises
    `meetings.failure`, or is stopped by the signal that it names."""

    class Meetings(list):
        failure = None

    found = Meetings()

    def play_meeting(players, rules, options, *, seed, before, on_progress):
        names, games = [player.name for player in players], options.games
        if found.failure and len(found) == 2:
            if isinstance(found.failure, Exception):
                raise found.failure
            signal.raise_signal(found.failure)
            assert options.should_stop()
            games = 2
        found.append((*names, before, games // 2))
        if len(names) > 2:
            return matches.at_table(names, rules, games)
        return matches.of_two(*names, rules, [1] * games)

    monkeypatch.setattr(match, "play_meeting", play_meeting)
    return found


def test_an_elimination_plays_no_pair_of_its_heats_again(meetings, tmp_path):
    names = ["random", "greedy", "wjx", "ethen"]
    words = ["--rules", RULES, "--format", "double-elimination", "--heats", 2, "--games", 4]
    assert command("tournament", *names, *words, "--json", tmp_path / "t.json").code == 0
    played = Counter(
        (frozenset(two), before + pair) for *two, before, pairs in meetings for pair in range(pairs)
    )
    assert max(played.values()) == 1
    assert max(Counter(both for both, _ in played).values()) > 2  # two met again
    assert sorted(json.loads((tmp_path / "t.json").read_text())["places"]) == sorted(names)


def test_double_elimination_has_a_winner(meetings, tmp_path):
    words = ["--rules", RULES, "--format", "double-elimination", "--games", 4]
    said = command("tournament", "wjx", "greedy", "random", *words, "--json", tmp_path / "t.json")
    assert said.code == 0
    record = json.loads((tmp_path / "t.json").read_text())
    assert sorted(record["places"]) == ["greedy", "random", "wjx"]
    lost = [m["first"] if m["winner"] == m["second"] else m["second"] for m in record["meetings"]]
    champion = record["places"][0]
    assert all(lost.count(name) == 2 for name in record["places"] if name != champion)
    assert lost.count(champion) < 2


@pytest.mark.parametrize("failure", [FAILURE, signal.SIGTERM], ids=["failed", "stopped"])
def test_finished_meetings_are_kept(meetings, tmp_path, failure):
    meetings.failure = failure
    said = command(
        *("tournament", "random", "greedy", "wjx", "--rules", RULES, "--games", 4),
        *("--json", tmp_path / "t.json", "--records", tmp_path / "t.jsonl"),
    )
    if failure is FAILURE:
        assert complaint(said) == str(FAILURE)
    else:
        assert said.code == EXIT_INTERRUPTED
    assert "stopped after 8 of 12 games" in " ".join(said.out.split())
    found = json.loads((tmp_path / "t.json").read_text())
    assert found["is_stopped"] and len(found["meetings"]) == 2
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 8


def test_a_failure_after_some_tables_keeps_them(meetings, tmp_path):
    meetings.failure = FAILURE
    words = [*SEATED, "--json", tmp_path / "t.json", "--records", tmp_path / "t.jsonl"]
    said = command("tournament", "random", "greedy", "wjx", "ethen", *words)
    assert complaint(said) == str(FAILURE)
    assert "stopped after 12 of 24 games" in " ".join(said.out.split())
    found = json.loads((tmp_path / "t.json").read_text())
    assert found["is_stopped"] and len(found["tables"]) == 2
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 12
