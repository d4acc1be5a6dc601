"""`python -m train run`: the files of a run, resuming."""

import dataclasses
import json
import shlex
import shutil
from pathlib import Path
from unittest.mock import Mock, call

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import CONFIG, command, complaint, read_rows, read_scalars
from tests.support.reference.referee import Game
from train.arena.figures import wilson_interval
from train.cli.command_line import _read_command
from train.config import RunConfig, config_to_dict
from train.data.record_dataset import read_recorded_games
from train.loop import training
from train.players.registry import make_player
from train.runtime.errors import UsageError
from wallgo_jax.__main__ import main as game_command
from wallgo_jax.env import VERSION
from wallgo_jax.formats import records
from wallgo_jax.formats.sources import SourceRequest, read_games
from wallgo_jax.notation import parse_moves


def test_run_leaves_everything(finished):
    directory, said = finished
    assert said.code == 0
    assert said.err == ""
    names = {path.name for path in directory.iterdir()}
    files = "config.json run.json metrics.jsonl evaluation.json game.txt game.jsonl"
    assert names == {*files.split(), "checkpoints", "resume", "tensorboard"}
    assert json.loads((directory / "config.json").read_text()) == config_to_dict(CONFIG)
    assert sorted(path.name for path in (directory / "checkpoints").iterdir()) == ["3", "4", "6"]
    assert sorted(path.name for path in (directory / "resume").iterdir()) == ["4", "6"]
    for number in range(1, 7):
        assert f"\niteration {number}: " in f"\n{said.out}"


def test_metrics_have_a_row_an_iteration(finished):
    rows = read_rows(finished[0])
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4, 5, 6]
    for row in rows:
        assert row["positions"] == CONFIG.selfplay.boards * CONFIG.selfplay.plies
        assert row["games"] > 0
        # A game on 3x3 has two placements and at most a wall on each of the twelve inner edges.
        assert 3 <= row["mean_length"] <= 14
        assert 0 <= row["red_win_rate"] <= 1
        assert row["games_per_second"] > 0
    learned = [row for row in rows if "loss" in row]
    assert rows[-1] in learned
    for row in learned:
        total = row["policy_loss"] + row["value_loss"] + 0.5 * row["ownership_loss"]
        assert row["loss"] == pytest.approx(total, rel=1e-4)
        assert row["replay_positions"] > 0
    assert [row["iteration"] for row in rows if "win_rate" in row] == [3]
    assert rows[2]["opponent"] == "random"
    assert rows[2]["matches"] == {"random": rows[2]["win_rate"]}


def test_tensorboard_has_the_same_numbers(finished):
    rows, scalars = read_rows(finished[0]), read_scalars(finished[0])
    tags = {
        "games": "selfplay/games",
        "policy_loss": "loss/policy",
        "loss": "loss/total",
        "replay_positions": "replay/positions",
        "games_per_second": "speed/games_per_second",
        "win_rate": "evaluation/win_rate",
    }
    for name, tag in tags.items():
        expected = {row["iteration"]: row[name] for row in rows if name in row}
        assert scalars[tag] == pytest.approx(expected, rel=1e-6)
    assert scalars["evaluation/win_rate/random"] == scalars["evaluation/win_rate"]
    groups = {"loss", "selfplay", "replay", "speed", "evaluation", "learner"}
    assert {tag.split("/")[0] for tag in scalars} == groups


def test_the_compiler_has_a_field_of_its_own(finished):
    rows = read_rows(finished[0])
    # Programs are shared by the tests of a process, so the first row may have nothing to compile.
    assert all(row["compile_seconds"] == 0 for row in rows[1:])
    for row in rows:
        seconds = row["selfplay_seconds"] + row["learn_seconds"]
        assert row["games"] / row["games_per_second"] == pytest.approx(seconds, rel=1e-2)
    elapsed = [row["elapsed_seconds"] for row in rows]
    assert elapsed == sorted(elapsed)
    assert elapsed[-1] > sum(row["selfplay_seconds"] + row["learn_seconds"] for row in rows)


def test_the_run_ends_with_commands_that_work(finished, tmp_path, monkeypatch):
    directory, said = finished
    lines = said.out.splitlines()[-4:]
    assert "python -m" not in lines.pop(0)
    assert lines[0].startswith(f"results: {directory} · match: ")
    assert [line.split(": python -m ")[0] for line in lines[1:]] == ["replay", "export"]
    for line in lines:
        program, *words = shlex.split(line.split(": python -m ")[1])
        monkeypatch.chdir(tmp_path)
        if words[0] == "match":
            # Playing it would take long; the other commands' tests play matches.
            assert _read_command(words)
            assert [make_player(name, tiny.RULES).name for name in words[1:]]
        elif program == "train":
            assert command(*words).code == 0
        else:
            assert game_command(words) == 0
    assert (tmp_path / "game.html").exists()
    assert (tmp_path / "models" / CONFIG.name).is_dir()


def test_evaluation_is_complete(finished):
    record = json.loads((finished[0] / "evaluation.json").read_text())
    (match,) = record.pop("matches")
    shared = {"seed": 7, "iterations": 6, "simulations": 2, "opening_plies": 0}
    assert record == shared | {"players_place": False}
    assert (match["first"], match["second"], match["rules"]) == ("tiny@2", "random", "custom")
    assert match["games"] == match["wins"] + match["draws"] + match["losses"] == 40
    assert match["win_rate"] == pytest.approx((match["wins"] + match["draws"] / 2) / 40)
    assert match["interval_95"] == pytest.approx(wilson_interval(match["win_rate"], 40))
    both = (match["win_rate_as_red"] + match["win_rate_as_blue"]) / 2
    assert match["win_rate"] == pytest.approx(both)
    own, other = match["territory"]
    assert 0 < own + other <= 9
    assert match["territory_ratio"] == pytest.approx(own / other)


def test_game_is_one_of_the_referee(finished):
    moves, board = (finished[0] / "game.txt").read_text().split("\n\n", 1)
    game = Game(tiny.RULES.to_dict())
    for move in parse_moves(moves, grid=3):
        assert move.player == game.player
        assert move.action in game.legal()
        game.act(move.action)
    assert game.over
    assert f"Territory: Red {game.territory()[0]}, Blue {game.territory()[1]}." in board


def test_game_is_a_record_beside_its_text(finished):
    directory, _ = finished
    (record,) = records.read(directory / "game.jsonl")
    assert (record.rules, record.players) == (tiny.RULES, ("tiny", "tiny"))
    assert record.env_version == VERSION
    (recorded,), (written,) = (
        list(read_games(SourceRequest(str(directory / name))))
        for name in ("game.jsonl", "game.txt")
    )
    assert recorded.game.is_over
    assert recorded.game.rewards == record.result
    assert (written.game.rules, written.game.actions) == (tiny.RULES, record.actions)
    assert read_recorded_games([directory / "game.jsonl"], tiny.RULES).records == (record,)
    with pytest.raises(UsageError, match=r"game.txt: moves, not records"):
        read_recorded_games([directory / "game.txt"], tiny.RULES)


def test_run_directory_is_no_game_but_names_it(finished, capsys):
    assert game_command(["show", str(finished[0])]) == 2
    assert f"this one keeps its game in {finished[0]}/game.jsonl\n" in capsys.readouterr().err


def test_run_without_a_file_is_the_quickstart(monkeypatch, tmp_path):
    train = Mock(return_value=True)
    monkeypatch.setattr(training, "train", train)
    assert command("run").code == 0
    assert command("run", "--runs", tmp_path, "--seed", "3").code == 0
    changed = dataclasses.replace(RunConfig(), seed=3)
    assert train.call_args_list == [
        call(RunConfig(), Path("runs"), resume=False, profile=None),
        call(changed, tmp_path, resume=False, profile=None),
    ]


def test_resume_goes_on_without_gaps(copy):
    """From the checkpoint before the last, which is lost."""
    directory = copy / CONFIG.name
    for kind in ("resume", "checkpoints"):
        shutil.rmtree(directory / kind / "6")
    (directory / "evaluation.json").unlink()
    said = command("run", "--resume", directory)
    assert said.code == 0
    assert "iteration 4: " not in said.out
    assert "iteration 5: " in said.out
    assert [row["iteration"] for row in read_rows(directory)] == list(range(1, 7))
    assert set(read_scalars(directory)["selfplay/games"]) == set(range(1, 7))
    assert json.loads((directory / "evaluation.json").read_text())["iterations"] == 6
    assert (directory / "resume" / "6").is_dir()


def test_a_job_that_is_submitted_again_is_the_same_line(copy, tmp_path, monkeypatch):
    """It begins where there is no run, and goes on where there is one."""
    asked = []

    def train_run(config, runs, *, resume, profile):
        asked.append((runs / config.name, resume))
        return True

    monkeypatch.setattr(training, "train", train_run)
    for runs, is_there in ((tmp_path / "new", False), (copy, True)):
        words = ["run", tiny.PATH, "--runs", runs, "--resume", "auto"]
        assert command(*words).code == 0
        assert asked[-1] == (runs / CONFIG.name, is_there)
    assert "--resume" in complaint(command("run", tiny.PATH, "--resume", copy / CONFIG.name))


def test_resume_keeps_what_was_changed_and_may_change_matches(copy, monkeypatch):
    """The saved config goes on, by whatever path the directory is named; a moved one is renamed."""
    train = Mock(return_value=True)
    monkeypatch.setattr(training, "train", train)
    moved = copy / "moved"
    (copy / "tiny").rename(moved)
    (copy / "link").symlink_to(moved)
    words = ["--evaluation.games", "2", "--checkpoint.keep", "9", "--iterations", "8"]
    assert command("run", "--resume", moved, *words).code == 0
    monkeypatch.chdir(moved)
    assert command("run", "--resume", ".").code == 0
    assert command("run", "--resume", copy / "link").code == 0
    changed, same = (dataclasses.replace(c, name="moved") for c in (tiny.config(*words), CONFIG))
    again = call(same, copy.resolve(), resume=True, profile=None)
    assert train.call_args_list == [call(changed, copy, resume=True, profile=None), again, again]
