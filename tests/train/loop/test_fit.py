"""Supervised learning: losses fall on games held back, and a stopped run goes on bit for bit."""

import json
import math
import shutil

import pytest

from tests.support.learner import tiny
from tests.support.learner.checkpoints import assert_same_bits
from tests.support.learner.commands import command, complaint, read_rows, untimed
from tests.support.refusals import refusal
from tests.train.data.test_record_dataset import played
from tests.train.loop.test_resume import break_off
from train.loop import fit, reporting
from train.loop.recorded import RecordFiles, saved_records
from train.players.networks import load_network
from train.runtime.errors import UsageError
from wallgo_jax.formats import records
from wallgo_jax.game.rules import Rules

RULES = Rules(size=3, stones=1, order=(0, 1))
OPTIONS = (
    ("--iterations", "4"),
    ("--learner.steps", "6"),
    ("--learner.batch", "32"),
    ("--learner.learning_rate", "0.01"),
    ("--network.margin", "true"),
)
CONFIG = tiny.config(*(word for pair in OPTIONS for word in pair))


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    path = tmp_path_factory.mktemp("games") / "games.jsonl"
    records.write(path, [played(RULES, seed, stays=True) for seed in range(60)])
    return path


@pytest.fixture(scope="module")
def straight(games, tmp_path_factory):
    """A run without interruption."""
    runs = tmp_path_factory.mktemp("runs")
    assert fit.fit(CONFIG, RecordFiles((games,), 0.2), runs, resume=False)
    return runs / CONFIG.name


def rows_of(directory) -> list[dict]:
    return [untimed(row) for row in read_rows(directory)]


def test_losses_on_games_held_back_are_reported_and_fall(straight):
    rows = rows_of(straight)
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    heads = ("policy_loss", "value_loss", "ownership_loss", "margin_loss")
    for name in (*heads, "ownership_constant", "ownership_error", "accuracy"):
        assert all(math.isfinite(row[f"validation_{name}"]) for row in rows)
    assert rows[-1]["validation_policy_loss"] < rows[0]["validation_policy_loss"]
    assert rows[-1]["ownership_loss"] < math.log(3)
    final = json.loads((straight / "validation.json").read_text())
    assert final.pop("iterations") == 4
    assert final == {k: v for k, v in rows[-1].items() if k.startswith("validation_")}
    assert load_network(str(straight)).config.network == CONFIG.network


def test_stopped_by_a_signal_goes_on_bit_for_bit(games, straight, tmp_path, monkeypatch, capsys):
    # No checkpoint is due after it.
    break_off(monkeypatch, 2)
    assert not fit.fit(CONFIG, RecordFiles((games,), 0.2), tmp_path, resume=False)
    assert "saved after iteration 3" in capsys.readouterr().out
    assert fit.fit(CONFIG, RecordFiles((games,), 0.2), tmp_path, resume=True)
    directory = tmp_path / CONFIG.name
    assert rows_of(directory) == rows_of(straight)
    one, other = (load_network(str(path)).variables for path in (directory, straight))
    assert_same_bits(one, other)


def test_other_games_are_refused_on_resuming(games, straight, tmp_path):
    other = tmp_path / "other.jsonl"
    records.write(other, [played(RULES, seed) for seed in range(100, 160)])
    for path, share, said in (
        (other, 0.2, "cannot resume: sha256 was"),
        (games, 0.3, "validation was 0.2 when the run began and is 0.3"),
    ):
        files = RecordFiles((path,), share)
        assert said in refusal(fit.fit, CONFIG, files, straight.parent, resume=True)


def test_resume_finds_the_records_again(games, straight, tmp_path):
    """The directory alone says config, files and share; files that moved are named again."""
    directory, moved = tmp_path / CONFIG.name, tmp_path / "moved.jsonl"
    shutil.copytree(straight, directory)
    (directory / "validation.json").unlink()
    assert command("fit", "--resume", directory).code == 0
    assert rows_of(directory) == rows_of(straight)
    final = (directory / "validation.json").read_text()
    assert final == (straight / "validation.json").read_text()
    said = complaint(command("fit", "--resume", directory, "--validation", "0.3"))
    assert "validation was 0.2 when the run began and is 0.3 now" in said
    summary = json.loads((directory / "records.json").read_text())
    assert summary["paths"] == [str(games)]
    summary["paths"] = [str(tmp_path / "gone.jsonl")]
    (directory / "records.json").write_text(json.dumps(summary))
    said = complaint(command("fit", "--resume", directory))
    assert said.endswith(f"{tmp_path}/gone.jsonl: cannot be read: No such file or directory")
    shutil.copy(games, moved)
    assert command("fit", "--resume", directory, "--records", moved).code == 0


def test_a_run_that_never_began_is_one_of_fit(games, tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise UsageError("tracking.wandb: no key")

    files = RecordFiles((games,), 0.2)
    with monkeypatch.context() as patch, pytest.raises(UsageError, match="no key"):
        patch.setattr(reporting, "MetricsWriter", refuse)
        fit.fit(CONFIG, files, tmp_path, resume=False)
    directory = tmp_path / CONFIG.name
    assert saved_records(directory, (), None) == files
    said = refusal(fit.fit, CONFIG, files, tmp_path, resume=False)
    assert f"to go on with it: python -m train fit --resume {directory}" in said


def test_a_run_of_self_play_is_no_run_of_fit(games, straight, tmp_path):
    shutil.copytree(straight, tmp_path / CONFIG.name)
    (tmp_path / CONFIG.name / "records.json").unlink()
    said = refusal(fit.fit, CONFIG, RecordFiles((games,), 0.2), tmp_path, resume=True)
    assert "no run of `fit`: it has no records.json" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--validation", "1.5"], "--validation: Input should be less than 1"),
        (["--resume", "nowhere"], "CONFIG has no effect with --resume"),
    ],
)
def test_usage_errors_are_one_line(games, tmp_path, words, said):
    given = ["fit", tiny.PATH, "--runs", tmp_path, "--records", games]
    message = complaint(command(*given, *words))
    assert said in message and "\n" not in message
