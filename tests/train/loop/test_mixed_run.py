"""A run of several rule sets learns, goes on exactly, is exported and plays each of them."""

import json
from pathlib import Path

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint, read_rows, untimed
from train.loop import training

SMALL = {"size": 4, "stones": 2, "order": [0, 1, 0, 1]}
RULES = [
    {"rules": {"size": 3, "stones": 1, "order": [0, 1]}},
    {"rules": SMALL, "weight": 2, "name": "small"},
]
WORDS = (
    *("run", tiny.PATH, "--rules", json.dumps(RULES), "--network.planes", "BTRV"),
    *("--network.playable", "true", "--selfplay.plies", "24", "--replay.positions", "256"),
)


class Killed(BaseException):
    """Stands in for a kill of the process."""


@pytest.mark.slow
def test_a_mixed_run_from_start_to_matches(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = command(*WORDS, "--name", "whole")
    assert said.code == 0
    assert "whole on 3x3" in said.out and "whole on small" in said.out
    rows = read_rows(Path("runs/whole"))
    assert set(rows[-1]["by_rules"]) == {"3x3", "small"}
    assert sum(row["by_rules"]["small"]["games"] for row in rows) > 0
    matched = [row for row in rows if "matches_by_rules" in row]
    assert matched and set(matched[0]["matches_by_rules"]) == {"3x3", "small"}

    run_iteration = training.run_iteration

    def stop_at_the_fifth(config, programs, state, iteration):
        if iteration == 4:
            raise Killed
        return run_iteration(config, programs, state, iteration)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(training, "run_iteration", stop_at_the_fifth)
        command(*WORDS, "--name", "parts")
    assert command("run", "--resume", "runs/parts").code == 0
    parts = read_rows(Path("runs/parts"))
    assert [untimed(row) for row in parts] == [untimed(row) for row in rows]

    assert command("export", "runs/whole", "out/model").code == 0
    for rules in (SMALL, RULES[0]["rules"]):
        words = ("match", "out/model@2", "random", "--games", "4", "--rules", json.dumps(rules))
        assert command(*words).code == 0
    unseen = json.dumps({"size": 5, "stones": 1, "order": [0, 1]})
    words = ("match", "out/model@2", "random", "--games", "4", "--rules", unseen)
    assert "--transfer lets networks play rules they have not learned" in complaint(command(*words))
    assert command(*words, "--transfer").code == 0
