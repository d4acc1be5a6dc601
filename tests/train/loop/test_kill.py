"""A run whose process is killed, again and again, ends exactly as one that was left alone."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import compiling
from tests.support.learner import tiny
from tests.support.learner.commands import read_scalars
from tests.train.loop.test_resume import assert_same_run, kept
from train.checkpoints import store
from train.loop import run_directory, training

WORDS = ["--iterations=24", "--checkpoint.every=3", "--checkpoint.keep=3", "--evaluation.every=6"]
CONFIG = tiny.config(*WORDS)
SEED = 20
KILLS = 2  # at moments drawn, beside those inside a save

# The same command, but that one checkpoint's saving halts before it is given its name.
HALTING = """
import pathlib, sys, time
from train.__main__ import main

kind, iteration, flag, *arguments = sys.argv[1:]
rename = pathlib.Path.rename

def halt(self, target):
    if pathlib.Path(target).parts[-2:] == (kind, iteration):
        pathlib.Path(flag).touch()
        time.sleep(600)
    return rename(self, target)

pathlib.Path.rename = halt
sys.exit(main(arguments))
"""

pytestmark = pytest.mark.slow


def arguments(runs: Path, *, resume: bool) -> list[str]:
    """The words of the command."""
    if resume:
        return ["run", "--resume", str(runs / CONFIG.name)]
    return ["run", str(tiny.PATH), "--runs", str(runs), *WORDS]


def kill_when(ready: Callable[[Path], bool], command: list[str], runs: Path) -> str:
    """Start a process, kill it once `ready(output file)` is true, and return its output."""
    output = runs / "output.txt"
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, *command],
            env=compiling.environment() | {"PYTHONUNBUFFERED": "1"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 300
        while not ready(output):
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.002)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL, output.read_text()
    return output.read_text()


def kill_in_save(runs: Path, kind: str, iteration: int, *, resume: bool) -> None:
    """Kill the run when all of a checkpoint is written and only its name is missing."""
    flag = runs / "flag"
    words = [kind, str(iteration), str(flag), *arguments(runs, resume=resume)]
    kill_when(lambda output: flag.exists(), ["-c", HALTING, *words], runs)
    flag.unlink()
    folder = runs / CONFIG.name / kind
    assert list(folder.glob(f"{iteration}.orbax-checkpoint-tmp*"))
    assert not (folder / str(iteration)).exists()


def kill_after(runs: Path, iteration: int, delay: float) -> str:
    """Kill the run some seconds after it told of an iteration."""

    def ready(output: Path) -> bool:
        if f"iteration {iteration}: " not in output.read_text():
            return False
        time.sleep(delay)
        return True

    return kill_when(ready, ["-m", "train", *arguments(runs, resume=True)], runs)


def test_killed_run_ends_as_one_that_was_left_alone(tmp_path):
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    killed.mkdir()
    assert training.train(CONFIG, straight, resume=False)

    draw = random.Random(SEED)
    kill_in_save(killed, store.RESUME, 6, resume=False)
    # Each goes further than the one before, so that it has something to resume from.
    said = [
        kill_after(killed, draw.randint(8 + 3 * number, 10 + 3 * number), draw.uniform(0, 0.1))
        for number in range(KILLS)
    ]
    (line,) = [line for line in said[0].splitlines() if "cannot be read" in line]
    assert "/resume/6.orbax-checkpoint-tmp" in line
    assert line.endswith("cannot be read: its saving was never finished; taking iteration 3")
    kill_in_save(killed, store.WEIGHTS, 24, resume=True)
    done = subprocess.run(
        [sys.executable, "-m", "train", *arguments(killed, resume=True)],
        env=compiling.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr

    directory, expected = killed / CONFIG.name, straight / CONFIG.name
    assert_same_run(directory, expected, CONFIG)
    found, wanted = read_scalars(directory), read_scalars(expected)
    assert found.keys() == wanted.keys()
    for tag, values in wanted.items():
        assert found[tag].keys() == values.keys(), tag
        assert tag.startswith("speed/") or found[tag] == values, tag
    assert set(found["selfplay/games"]) == set(range(1, CONFIG.iterations + 1))
    for kind in (store.WEIGHTS, store.RESUME):
        assert kept(directory, kind) == kept(expected, kind)
    starts = json.loads((directory / run_directory.STARTS_FILE).read_text())["starts"]
    resumed = [start["iterations"][0] for start in starts]
    assert len(resumed) == KILLS + 3
    assert resumed == sorted(resumed)
    assert resumed[:2] == [0, 3]
    assert len(set(resumed)) >= 4
    assert not list(directory.rglob("*.orbax-checkpoint-tmp*"))
