"""Python's hash seed, which differs from process to process, changes no result, file or picture."""

import json
import subprocess
import sys

from tests.support import compiling
from tests.support.learner.ordered_results import ordered_results


def test_the_order_of_sets_reaches_no_result(tmp_path):
    """This process has a seed of its own."""
    program = [sys.executable, "-m", "tests.support.learner.ordered_results"]
    others = {
        seed: subprocess.Popen(
            program,
            env=compiling.environment() | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for seed in ("1", "2")
    }
    expected = json.loads(json.dumps(ordered_results(tmp_path)))
    names = [match["names"] for match in expected["matches"]]
    scores = [(each["wins"], each["losses"]) for each in expected["matches"]]
    assert names == [["alice", "club"], ["self as Red", "self as Blue"], ["b", "a"], ["c", "d"]]
    assert scores == [(0, 2), (0, 1), (0, 1), (0, 1)]
    for seed, process in others.items():
        out, error = process.communicate()
        assert process.returncode == 0, error.decode()
        assert json.loads(out) == expected, seed
