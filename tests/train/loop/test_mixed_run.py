"""A run of several rule sets learns, is matched on each of them and goes on exactly."""

import json
import signal

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import read_rows, untimed
from train.loop import training

RULES = [
    {"rules": {"size": 3, "stones": 1, "order": [0, 1]}},
    {"rules": {"size": 4, "stones": 2, "order": [0, 1, 0, 1]}, "weight": 2, "name": "small"},
]
WORDS = (
    *("--rules", json.dumps(RULES), "--network.planes", "BTRV", "--network.playable", "true"),
    *("--selfplay.plies", "24", "--replay.positions", "256", "--iterations", "4"),
)


@pytest.mark.slow
def test_a_mixed_run_from_start_to_matches(tmp_path, monkeypatch, capsys):
    config = tiny.config(*WORDS)
    assert training.train(config, tmp_path / "whole", resume=False)
    said = capsys.readouterr().out
    assert "tiny on 3x3" in said and "tiny on small" in said
    rows = read_rows(tmp_path / "whole" / "tiny")
    assert set(rows[-1]["by_rules"]) == {"3x3", "small"}
    assert sum(row["by_rules"]["small"]["games"] for row in rows) > 0
    matched = [row for row in rows if "matches_by_rules" in row]
    assert matched and set(matched[0]["matches_by_rules"]) == {"3x3", "small"}

    run_iteration = training.run_iteration

    def stop_at_the_second(programs, state, iteration):
        if iteration == 1:
            signal.raise_signal(signal.SIGINT)
        return run_iteration(programs, state, iteration)

    with monkeypatch.context() as patch:
        patch.setattr(training, "run_iteration", stop_at_the_second)
        assert not training.train(config, tmp_path / "parts", resume=False)
    assert training.train(config, tmp_path / "parts", resume=True)
    parts = read_rows(tmp_path / "parts" / "tiny")
    assert [untimed(row) for row in parts] == [untimed(row) for row in rows]
