"""Runs that are interrupted, or whose loss is not finite, and the process they run in."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest

from tests.support import compiling
from tests.support.learner import tiny
from tests.support.learner.commands import CONFIG, command, complaint, read_rows
from train.__main__ import main
from train.cli import command_line
from train.loop import iterations
from train.runtime import display
from train.runtime.interrupts import EXIT_INTERRUPTED


def test_interrupt_before_the_first_iteration(tmp_path, monkeypatch):
    monkeypatch.setattr(iterations, "compile_run", Mock(side_effect=KeyboardInterrupt))
    said = command("run", tiny.PATH, "--runs", tmp_path)
    assert (said.code, said.err) == (EXIT_INTERRUPTED, "stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch, capfd):
    check = iterations.check_finite

    def interrupted(steps, learner, iteration):
        if iteration == 2:
            signal.raise_signal(signal.SIGINT)
        check(steps, learner, iteration)

    monkeypatch.setattr(iterations, "check_finite", interrupted)
    said = command("run", tiny.PATH, "--runs", tmp_path)
    assert (said.code, said.err) == (EXIT_INTERRUPTED, "") and EXIT_INTERRUPTED == 130
    last, message = said.out.splitlines()[-2:]
    assert last.startswith("iteration 3: ")
    directory = tmp_path / CONFIG.name
    goes_on = f"python -m train run --resume {directory}"
    assert message == f"saved after iteration 3; to continue: {goes_on}"
    # What answers the signal writes to the terminal itself.
    assert "stopping: this iteration is finished and saved first" in capfd.readouterr().out
    assert {path.name for path in (directory / "resume").iterdir()} == {"2", "3"}
    assert [row["iteration"] for row in read_rows(directory)] == [1, 2, 3]


def test_final_matches_can_be_stopped_and_played_again(finished, copy, stopped_at):
    stopped_at(0)
    directory, left = copy / CONFIG.name, ("evaluation.json", "game.txt", "game.jsonl")
    for name in left:
        (directory / name).unlink()
    said = command("run", "--resume", directory)
    assert (said.code, said.err) == (EXIT_INTERRUPTED, "")
    goes_on = f"python -m train run --resume {directory}"
    assert said.out.splitlines()[-1] == f"saved after iteration 6; to continue: {goes_on}"
    assert not (directory / "evaluation.json").exists()
    said = command("run", "--resume", directory)
    assert said.code == 0
    assert "against random" in said.out
    for name in (*left, "metrics.jsonl"):
        assert (directory / name).read_text() == (finished[0] / name).read_text()


def test_loss_that_is_not_finite_ends_the_run(copy, monkeypatch):
    directory, one_by_one = copy / CONFIG.name, iterations.split_steps
    shutil.rmtree(directory / "resume" / "6")
    shutil.rmtree(directory / "checkpoints" / "6")

    def broken(steps):
        losses = [step.losses._replace(loss=float("nan")) for step in one_by_one(steps)]
        return [step._replace(losses=x) for step, x in zip(steps, losses, strict=True)]

    monkeypatch.setattr(iterations, "split_steps", broken)
    message = complaint(command("run", "--resume", directory))
    assert message.startswith("iteration 5, step 1 of 2: the loss is nan; ")
    assert f"{directory}/resume/4" in message
    assert {path.name for path in (directory / "resume").iterdir()} == {"4"}


def test_a_program_that_ends_at_once_waits_for_no_device(monkeypatch, capsys):
    leave = Mock()
    monkeypatch.setattr(command_line, "_read_command", Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(SystemExit):
        command_line.program()
    leave.assert_called_once_with(EXIT_INTERRUPTED)
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


def ended(words: list[str]) -> tuple[int, str, str]:
    """The exit code of a process, and what it printed and complained of."""
    environment = compiling.environment()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("program", "said"), [("train", "stopped\n"), ("wallgo_jax", "")])
def test_interrupt_while_a_program_is_imported(program, said):
    assert ended([sys.executable, "-c", INTERRUPTED, program]) == (EXIT_INTERRUPTED, "", said)


@pytest.mark.parametrize(
    ("words", "code"),
    [("wallgo_jax --version <&- >&-", 0), ("train nonsense 2>&-", 2)],
)
def test_streams_that_are_closed(words, code):
    assert ended(["sh", "-c", f"{shlex.quote(sys.executable)} -m {words}"]) == (code, "", "")


def test_output_that_nobody_reads():
    process = subprocess.Popen(
        [sys.executable, "-m", "train", "run", "--help"],
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
    check = iterations.check_finite
    read_end, write_end = os.pipe()

    def leave(steps, learner, iteration):
        if iteration == 1:
            os.close(read_end)
        check(steps, learner, iteration)

    monkeypatch.setattr(iterations, "check_finite", leave)
    with os.fdopen(write_end, "w") as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        code = main([str(word) for word in ("run", tiny.PATH, "--runs", tmp_path)])
    assert code == EXIT_INTERRUPTED
    # The line of iteration 2 met no reader: it is saved, and nothing more is done.
    saved = {path.name for path in (tmp_path / CONFIG.name / "resume").iterdir()}
    assert saved == {"2"}


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
def test_stopped_match_keeps_its_games(matched, tmp_path, stopped_at, number):
    stopped_at(20, number)
    records, figures = tmp_path / "games.jsonl", tmp_path / "match.json"
    said = command(*matched, "--games", "400", "--records", records, "--json", figures)
    games = len(records.read_text().splitlines())
    kept = f"stopped: the {games} games that are over count; the same command starts anew\n"
    assert (said.code, said.err) == (EXIT_INTERRUPTED, kept)
    assert 20 <= games < 400
    assert json.loads(figures.read_text())["games"] == games
    assert f"stopped after {games} of 400 games" in " ".join(said.out.split())


def test_match_stopped_before_a_game_is_over(matched, tmp_path, stopped_at):
    stopped_at(0)
    said = command(*matched, "--games", "20", "--records", tmp_path / "games.jsonl")
    kept = "stopped: nothing of this is kept; the same command starts it anew\n"
    assert (said.code, said.err) == (EXIT_INTERRUPTED, kept)
    assert list(tmp_path.iterdir()) == []
