"""Runs that are interrupted, or whose loss is not finite, and the process they run in."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

from tests.support import compiling
from tests.support.learner import tiny
from tests.support.learner.commands import (
    CONFIG,
    MATCH,
    RULES,
    Said,
    command,
    complaint,
    read_rows,
)
from train.__main__ import main
from train.cli import command_line
from train.loop import training
from train.runtime import display
from train.runtime.interrupts import EXIT_INTERRUPTED
from train.runtime.lock import locked


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


def test_final_matches_can_be_stopped(copy, stopped_at):
    stopped_at(0)
    directory = copy / CONFIG.name
    (directory / "evaluation.json").unlink()
    said = command("run", "--resume", directory)
    assert (said.code, said.err) == (EXIT_INTERRUPTED, "")
    goes_on = f"python -m train run --resume {directory}"
    assert said.out.splitlines()[-1] == f"saved after iteration 6; to go on: {goes_on}"
    assert not (directory / "evaluation.json").exists()


def test_loss_that_is_not_finite_ends_the_run_in_one_line(copy, monkeypatch):
    one_by_one = training.split_steps

    def broken(steps):
        losses = [step.losses._replace(loss=float("nan")) for step in one_by_one(steps)]
        return [step._replace(losses=x) for step, x in zip(steps, losses, strict=True)]

    monkeypatch.setattr(training, "split_steps", broken)
    said = command("run", "--resume", copy / "tiny", "--iterations", "7")
    good = f"the last good checkpoint is {copy}/tiny/resume/6; start a run with a lower"
    assert complaint(said).startswith(f"iteration 7, step 1 of 2: the loss is nan; {good}")
    assert sorted(path.name for path in (copy / "tiny" / "resume").iterdir()) == ["4", "6"]


def test_a_program_that_ends_at_once_waits_for_no_device(monkeypatch, capsys):
    left = []

    def interrupt(words, set_up):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "_main", interrupt)
    monkeypatch.setattr(os, "_exit", left.append)
    command_line.program()
    assert left == [EXIT_INTERRUPTED]
    assert capsys.readouterr().err == "stopped\n"


INTERRUPTED = """
import runpy, sys

class Interrupt:
    def find_spec(self, name, *where):
        if name == "tyro":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(("program", "said"), [("train", "stopped\n"), ("wallgo_jax", "")])
def test_interrupt_while_a_program_is_imported(program, said):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, program],
        env=compiling.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (EXIT_INTERRUPTED, "", said)


@pytest.mark.parametrize(
    ("words", "code"),
    [("train --version >&-", 0), ("wallgo_jax --version <&- >&-", 0), ("train nonsense 2>&-", 2)],
)
def test_streams_that_are_closed(words, code):
    done = subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m {words}"],
        env=compiling.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize(
    ("program", "words"),
    [("train", ["run", "--help"]), ("train", ["--version"]), ("wallgo_jax", ["show", "hkoi"])],
)
def test_output_that_nobody_reads(program, words):
    process = subprocess.Popen(
        [sys.executable, "-m", program, *words],
        env={**compiling.environment(), "PYTHONUNBUFFERED": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=300) == 0
    process.stderr.close()


def test_run_whose_output_nobody_reads_is_saved(tmp_path, monkeypatch):
    run_iteration = training.run_iteration
    read_end, write_end = os.pipe()

    def leave(config, programs, state, index):
        if index == 1:
            os.close(read_end)
        return run_iteration(config, programs, state, index)

    monkeypatch.setattr(training, "run_iteration", leave)
    with os.fdopen(write_end, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        code = main([str(word) for word in ("run", tiny.PATH, "--runs", tmp_path)])
    assert code == EXIT_INTERRUPTED
    # The line of iteration 2 met no reader; the iteration after it was finished and saved.
    saved = {path.name for path in (tmp_path / CONFIG.name / "resume").iterdir()}
    assert saved == {"2", "3"}


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


@pytest.fixture
def stopped_at(monkeypatch):
    """Makes SIGTERM come when so many games are done."""
    # Also where the tests run under nohup, which ignores hangups.
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def stop(games: int, number: int = signal.SIGTERM) -> None:
        call, sent = display.Task.__call__, []

        def call_and_stop(task, done):
            call(task, done)
            if done >= games and not sent:
                sent.append(done)
                signal.raise_signal(number)

        monkeypatch.setattr(display.Task, "__call__", call_and_stop)

    yield stop
    signal.signal(signal.SIGHUP, hangup)  # ignored from the first one on


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_match_keeps_its_games(tmp_path, stopped_at, number):
    stopped_at(20, number)
    records, figures = tmp_path / "games.jsonl", tmp_path / "match.json"
    words = ["--rules", RULES, "--games", "400", "--batch", "20"]
    words += ["--records", records, "--json", figures]
    said = command("match", "random", "greedy", *words)
    assert (said.code, said.err) == (EXIT_INTERRUPTED, "")
    games = len(records.read_text().splitlines())
    assert 20 <= games < 400
    assert json.loads(figures.read_text())["games"] == games
    assert f"stopped after {games} of 400 games" in " ".join(said.out.split())


def test_match_stopped_before_a_game_is_over(tmp_path, stopped_at):
    stopped_at(0)
    said = command("match", "random", "greedy", *MATCH, "--records", tmp_path / "games.jsonl")
    assert (said.code, said.err) == (EXIT_INTERRUPTED, "stopped\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_stopped_tournament_shows_its_finished_meetings(tmp_path, stopped_at):
    stopped_at(21)
    records, figures = tmp_path / "games.jsonl", tmp_path / "cup.json"
    # In this order and with 20 games, pairs share their programs with matches elsewhere.
    words = ["--rules", RULES, "--games", "20", "--records", records, "--json", figures]
    said = command("tournament", "wjx", "random", "greedy", *words)
    assert said.code == EXIT_INTERRUPTED
    found = json.loads(figures.read_text())
    assert found["is_stopped"]
    # The second meeting may be over with the plies in which the signal comes.
    assert len(found["meetings"]) in (1, 2)
    games = 20 * len(found["meetings"])
    assert f"stopped after {games} of 60 games" in " ".join(said.out.split())
    assert len(records.read_text().splitlines()) == games


@pytest.mark.slow
def test_stopped_elo_keeps_its_finished_pairings(tmp_path, stopped_at):
    stopped_at(41)
    cache = tmp_path / "games.jsonl"
    words = ["--rules", RULES, "--games", "20", "--budget", "200", "--cache", cache]
    words += ["--anchors", "random", "greedy", "wjx"]
    said = command("elo", *words)
    assert said.code == EXIT_INTERRUPTED
    assert f"stopped; the games of finished pairings are kept in {cache}" in said.err
    assert len(cache.read_text().splitlines()) == 2


@pytest.mark.parametrize("name", ["match", "tournament"])
def test_records_are_tried_before_the_games(tmp_path, name, stopped_at):
    stopped_at(0)  # no game is played
    (tmp_path / "file").write_text("")
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "file" / "x", "File exists")):
        words = ["--rules", RULES, "--games", "4", "--records", path]
        assert complaint(command(name, "random", "greedy", *words)) == (
            f"{path}: cannot be written: {reason}"
        )


@pytest.mark.parametrize("resumes", [False, True])
def test_run_that_another_process_holds(copy, resumes):
    words = ["--resume", copy / CONFIG.name] if resumes else [tiny.PATH, "--runs", copy]
    with locked(copy / CONFIG.name):
        said = complaint(command("run", *words))
    assert said.startswith(f"{copy / CONFIG.name}: in use by process ")


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
    said = command("run", "--resume", directory)
    assert said.code == 0
    assert f"iteration {done + 1}: " in said.out
    assert [row["iteration"] for row in read_rows(directory)] == list(range(1, 31))
    assert (directory / "evaluation.json").exists()
