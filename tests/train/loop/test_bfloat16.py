"""Learning in bfloat16, as on accelerators, stays finite for as long as a short run lasts."""

import json

import pytest

from tests.support.learner import tiny
from train.loop import training

STEPS, ITERATIONS = 150, 20
WORDS = [
    *("--iterations", f"{ITERATIONS}"),
    *("--network.planes", "BTRHD", "--network.width", "8", "--network.dtype", "bfloat16"),
    *("--network.blocks", "RTW", "--network.reply", "true", "--network.destination_head", "true"),
    *("--selfplay.boards", "16", "--selfplay.plies", "32", "--replay.positions", "4096"),
    # On one device, for 15 samples cannot be split: devices that share a core wait for each other.
    *("--learner.batch", "15", "--learner.steps", f"{STEPS}", "--learner.learning_rate", "0.01"),
    *("--evaluation.every", "0", "--evaluation.opponents", "[]", "--checkpoint.every", "100"),
]


@pytest.mark.slow
def test_three_thousand_steps_are_finite(tmp_path):
    """A loss or gradient that is not ends the run with an error."""
    config = tiny.config(*WORDS)
    assert training.train(config, tmp_path, resume=False)
    lines = (tmp_path / config.name / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert sum(row["steps"] for row in rows) > 0.9 * STEPS * ITERATIONS
    assert rows[-1]["loss"] < rows[1]["loss"]
