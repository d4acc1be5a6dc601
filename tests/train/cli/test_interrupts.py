"""Runs that are interrupted, or whose loss is not finite, and the process they run in."""

import re
import signal
import subprocess
import sys

import pytest

from tests.support import compiling
from tests.support.learner import tiny
from tests.support.learner.commands import CONFIG, Said, command, complaint, read_rows
from train.cli.options import EXIT_INTERRUPTED
from train.loop import training


def test_interrupt_before_the_first_iteration(tmp_path, monkeypatch):
    def interrupt(config):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "make_programs", interrupt)
    said = command("run", tiny.PATH, "--runs", tmp_path)
    assert (said.code, said.err) == (EXIT_INTERRUPTED, "stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    run_iteration = training.run_iteration

    def interrupted(config, programs, state, index):
        if index == 2:
            signal.raise_signal(signal.SIGINT)
        return run_iteration(config, programs, state, index)

    monkeypatch.setattr(training, "run_iteration", interrupted)
    said = command("run", tiny.PATH, "--runs", tmp_path)
    assert said.code == EXIT_INTERRUPTED == 130
    assert said.err == ""
    last, message = said.out.splitlines()[-2:]
    assert last.startswith("iteration 3: ")
    goes_on = f"python -m train run --resume {tmp_path / CONFIG.name}"
    assert message == f"saved after iteration 3; to go on: {goes_on}"


def test_loss_that_is_not_finite_ends_the_run_in_one_line(copy, monkeypatch):
    one_by_one = training.split_steps

    def broken(steps):
        losses = [step.losses._replace(loss=float("nan")) for step in one_by_one(steps)]
        return [step._replace(losses=x) for step, x in zip(steps, losses, strict=True)]

    monkeypatch.setattr(training, "split_steps", broken)
    said = command("run", tiny.PATH, "--runs", copy, "--resume", "--iterations", "7")
    good = f"the last good checkpoint is {copy}/tiny/resume/6; start a run with a lower"
    assert complaint(said).startswith(f"iteration 7, step 1 of 2: the loss is nan; {good}")
    assert sorted(path.name for path in (copy / "tiny" / "resume").iterdir()) == ["4", "6"]


def test_process_ends_without_a_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "train", "match", "random", "nobody"],
        cwd=tmp_path,
        env=compiling.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert complaint(Said(done.returncode, done.stdout, done.stderr)).startswith("player 'nobody'")
    assert done.stdout == ""


@pytest.mark.slow
def test_process_interrupted_and_resumed(tmp_path):
    words = ["--runs", str(tmp_path), "--evaluation.every", "0", "--checkpoint.every", "100"]
    words += ["--iterations", "30"]
    process = subprocess.Popen(
        [sys.executable, "-m", "train", "run", str(tiny.PATH), *words],
        env=compiling.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        about, first = process.stdout.readline(), process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert about.startswith(f"tiny on {compiling.DEVICES} × ")
    assert first.startswith("iteration 1: ")
    assert process.returncode == EXIT_INTERRUPTED
    assert err == ""
    assert "stopping: this iteration is finished and saved first" in out
    saved = re.search(
        r"^saved after iteration (\d+); to go on: python -m train run --resume ", out, re.M
    )
    done = int(saved.group(1))
    assert 1 <= done < 30
    directory = tmp_path / CONFIG.name
    assert len(read_rows(directory)) == done
    assert [path.name for path in (directory / "resume").iterdir()] == [str(done)]
    said = command("run", tiny.PATH, *words, "--resume")
    assert said.code == 0
    assert f"iteration {done + 1}: " in said.out
    assert [row["iteration"] for row in read_rows(directory)] == list(range(1, 31))
    assert (directory / "evaluation.json").exists()
