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

TWO = ("random", "greedy", "wjx"), ("--rules", RULES, "--games", 4), (8, 12), "meetings"
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


@pytest.mark.parametrize(
    ("failure", "names", "rules", "games", "key"),
    [
        (FAILURE, *TWO),
        (signal.SIGTERM, *TWO),
        (FAILURE, ("random", "greedy", "wjx", "ethen"), SEATED, (12, 24), "tables"),
    ],
    ids=["failed", "stopped", "failed-at-tables"],
)
def test_finished_meetings_are_kept(meetings, tmp_path, failure, names, rules, games, key):
    meetings.failure = failure
    outputs = ("--json", tmp_path / "t.json", "--records", tmp_path / "t.jsonl")
    said = command("tournament", *names, *rules, *outputs)
    if failure is FAILURE:
        assert complaint(said) == str(FAILURE)
    else:
        assert said.code == EXIT_INTERRUPTED
        assert (
            said.err
            == "stopped: the 2 meetings that are over count; the same command starts anew\n"
        )
    assert f"stopped after {games[0]} of {games[1]} games" in " ".join(said.out.split())
    found = json.loads((tmp_path / "t.json").read_text())
    assert found["is_stopped"] and len(found[key]) == 2
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == games[0]
