"""Runs that begin with the weights of another one, or play against them."""

import json
import shutil
import signal
from pathlib import Path

import jax
import pytest

from tests.support.learner import saved, tiny
from tests.support.learner.checkpoints import assert_same_bits
from tests.support.learner.commands import command, complaint, read_rows, untimed
from tests.support.learner.loop import Loop
from tests.support.refusals import refusal
from tests.train.loop.test_resume import break_off
from train.checkpoints import exported, store
from train.checkpoints.weights import load_network
from train.config import RunConfig, read_saved_config
from train.loop import iterations, opponent_weights, run_directory, training
from train.loop.first_weights import start_of
from train.loop.opponent_weights import FOLDER, keep_opponent, load_opponent


def config_after(player) -> RunConfig:
    return tiny.config("--start_weights", str(player))


@pytest.fixture(scope="module")
def second(tiny_run, tmp_path_factory):
    """A run that begins with the weights of the tiny run."""
    runs = tmp_path_factory.mktemp("second")
    assert training.train(config_after(tiny_run), runs, resume=False)
    return runs / "tiny"


def pointers(tree) -> list[int]:
    return [x.addressable_data(0).unsafe_buffer_pointer() for x in jax.tree.leaves(tree)]


def figures(run) -> list[dict]:
    return [untimed(row) for row in read_rows(run)]


def test_the_first_state_has_the_others_weights(tiny_run, tmp_path):
    config = config_after(tiny_run)
    start = start_of(config, tmp_path / "tiny", resume=False)
    assert start is not None
    made = Loop(config, weights=start.variables).state
    assert_same_bits(made.learner.variables, load_network(tiny_run).variables)
    new = Loop(config).state
    assert_same_bits(made.learner.optimizer, new.learner.optimizer)
    assert (int(made.learner.step), int(made.iterations)) == (0, 0)
    # The first step consumes the state, and with it no other array.
    assert not set(pointers(made.learner.variables)) & set(pointers(start.variables))
    averaging = tiny.config("--start_weights", str(tiny_run), "--learner.ema_decay", "0.9")
    learner = Loop(averaging, weights=start.variables).state.learner
    assert_same_bits(learner.averaged, start.variables)


def test_a_stopped_run_repeats_the_other_and_does_not_load_again(
    tiny_run, second, tmp_path, monkeypatch
):
    assert figures(second)[0]["games"] > 0
    assert figures(tiny_run) != figures(second)
    source = tmp_path / "source"
    shutil.copytree(tiny_run, source)
    break_off(monkeypatch, 3)
    assert not training.train(config_after(source), tmp_path, resume=False)
    shutil.rmtree(source)
    assert training.train(config_after(source), tmp_path, resume=True)
    assert figures(tmp_path / "tiny") == figures(second)
    assert_same_bits(load_network(tmp_path / "tiny").variables, load_network(second).variables)


def test_the_chain_of_runs_is_in_config_and_card(tiny_run, second, tmp_path):
    assert read_saved_config(second).start_weights == str(tiny_run)
    model = tmp_path / "model"
    assert command("export", second, model).code == 0
    third = config_after(model)
    start = start_of(third, tmp_path / "tiny", resume=False)
    assert start is not None
    assert [stage["config"]["start_weights"] for stage in start.stages] == ["", str(tiny_run)]
    assert [(stage["run"], stage["iteration"]) for stage in start.stages] == [("tiny", 6)] * 2
    hours = exported.read_card(model)["hours"]
    assert start.stages[1]["hours"] == hours
    parts = [row["selfplay_seconds"] + row["learn_seconds"] for row in read_rows(second)]
    assert hours["training"] == pytest.approx(sum(parts) / 3600)
    assert hours["all"] >= hours["training"] > 0
    page = (model / exported.PAGE_FILE).read_text()
    for begin in ("random weights", f"`{tiny_run}`"):
        assert f"| `tiny` | 6 | 7 | {begin} | " in page


TRIO = '{"size": 3, "players": 3, "stones": 1, "order": [0, 1, 2]}'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--start_weights", "{run}", "--network.width", "16"],
            "start_weights: {run}: has network.width 8, the run's is 16; they must agree",
        ),
        (
            ["--start_weights", "{run}", "--rules.walls", "5"],
            "start_weights: {run}: learned custom rules on 3x3 (",
        ),
        (
            ["--start_weights", "random"],
            "start_weights: player 'random': has no network; allowed: ",
        ),
        (
            ["--start_weights", "runs/none"],
            "start_weights: runs/none: no network here: no such file or directory",
        ),
        (["--init_from", "random"], "init_from: player 'random': has no network; allowed: "),
        (
            ["--init_from", "{run}", "--start_weights", "{run}"],
            "Value error, init_from must be empty where start_weights is set: one takes what fits",
        ),
        (
            ["--init_from", "{run}", "--network.width", "16"],
            "init_from: {run}: has network.width 8, the run's is 16; they must agree",
        ),
        (
            ["--init_from", "{run}", "--rules", TRIO, "--evaluation.opponents", "[]"],
            "init_from: {run}: learned games of 2 players, the run's have 3",
        ),
        (["--learner.freeze", '["margin=3"]'], "learner.freeze: no group 'margin'; this network "),
        (
            ["--search.prior_boost", '["jump=2"]'],
            "search: Value error, prior_boost 'jump=2' is not CLASS=LOGITS with one of ",
        ),
    ],
)
def test_a_warm_start_that_cannot_be_is_refused_in_a_line(words, told, tiny_run, tmp_path):
    fixed = ["run", tiny.PATH, "--runs", tmp_path / "runs"]
    given = [tiny_run if word == "{run}" else word for word in words]
    message = complaint(command(*fixed, *given)).removeprefix(f"config {tiny.PATH}: ")
    assert message.startswith(told.replace("{run}", str(tiny_run)))
    assert not (tmp_path / "runs" / "tiny").exists()


OPTIONS = (
    *("--rules.size", "4", "--network.blocks", "RW", "--network.planes", "BT"),
    *("--network.margin", "true", "--learner.freeze", '["trunk=3", "blocks.1=1"]'),
    *("--learner.ema_decay", "0.9", "--search.prior_boost", '["stay=2.0"]'),
    *("--learner.value_mix", "0.5", "--evaluation.opponents", "[]"),
)


@pytest.mark.slow
def test_a_run_with_all_options_resumes_bit_for_bit(tiny_run, tmp_path, monkeypatch):
    """A warm start that takes what fits, groups that thaw, averages, boosts, and a frozen opponent
    with other planes and heads, which is gone when the run goes on."""
    rules = tiny.config("--rules.size", "4")
    victim = saved.save_run(tmp_path / "victim", seeds={1: 3}, config=rules)
    words = ("--init_from", str(tiny_run), "--selfplay.opponent", f"{victim}@2")
    config = tiny.config(*words, *OPTIONS)
    opponents, seen = [], []
    place_opponent, play = opponent_weights.place_opponent, iterations.play

    def noted(opponent, tables):
        opponents.append(opponent.trained.variables)
        return place_opponent(opponent, tables)

    monkeypatch.setattr(opponent_weights, "place_opponent", noted)
    like = Loop(config).like
    assert training.train(config, tmp_path / "whole", resume=False)
    whole, run = tmp_path / "whole" / "tiny", tmp_path / "tiny"
    compare = iterations.learn

    def interrupted(tables, learner, *rest):
        seen.append(jax.device_get(learner))
        return compare(tables, learner, *rest)

    def stopped(*arguments):
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)
        return play(*arguments)

    monkeypatch.setattr(iterations, "learn", interrupted)
    monkeypatch.setattr(iterations, "play", stopped)
    assert not training.train(config, tmp_path, resume=False)
    shutil.rmtree(victim)
    assert training.train(config, tmp_path, resume=True)
    assert figures(run) == figures(whole)
    assert_same_bits(*(store.read_run(path, like) for path in (run, whole)))
    # The boost falls from iteration to iteration, and nothing compiles again.
    assert not any(row["compile_seconds"] for row in read_rows(whole)[1:])
    sides = ("learner_win_rate_red", "learner_win_rate_blue")
    assert all(any(row[side] is not None for row in figures(whole)) for side in sides)
    assert len(opponents) == 3
    assert_same_bits(opponents[2], opponents[0])
    assert load_network(run / FOLDER).config.network.planes == "B"
    _assert_frozen(config, seen, load_network(tiny_run).variables)
    parts = json.loads((run / run_directory.TRANSFER_FILE).read_text())["parts"]
    assert {part["name"] for part in parts if not part["taken"]} == {"blocks.1", "margin"}
    model = tmp_path / "model"
    assert command("export", run, model).code == 0
    assert exported.read_card(model)["transfer"]["parts"] == parts
    assert "Warm start from" in (model / exported.PAGE_FILE).read_text()


def _assert_frozen(config: RunConfig, seen: list, source) -> None:
    """The stem of the learners stays as it was taken, with its average, until it thaws."""
    stems = [learner.variables.params["stem"]["conv"]["kernel"] for learner in seen]
    taken = source.params["stem"]["conv"]["kernel"]
    for learner, stem in zip(seen, stems, strict=True):
        is_frozen = int(learner.step) <= 3 * config.learner.steps
        assert bool((stem == stems[0]).all()) == is_frozen
        averaged = learner.averaged.params["stem"]["conv"]["kernel"]
        assert bool((averaged == stems[0]).all()) == is_frozen
    assert (stems[0][:, :, : taken.shape[2]] == taken).all()
    assert int(seen[-1].step) > 3 * config.learner.steps


def test_a_run_does_not_go_on_with_other_start_weights(second):
    message = complaint(command("run", "--resume", second, "--start_weights", ""))
    assert message.startswith(f"{second}: cannot resume: start_weights was '")


@pytest.fixture
def victim(tmp_path) -> Path:
    """A run to play against."""
    return saved.save_run(tmp_path / "victim", seeds={1: 3})


def test_wrong_opponents_end_a_run_in_one_line(victim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, said in (
        ("nobody", "selfplay.opponent: player 'nobody': unknown; known players: "),
        ("greedy", "selfplay.opponent: player 'greedy': allowed are players with a network"),
        ("pretrained:wallzero-4stone", "learned wallzero-4stone, asked to play custom rules on 3"),
    ):
        words = ["run", tiny.PATH, "--name", "attack", "--selfplay.opponent", name]
        assert said in complaint(command(*words))
        assert not (tmp_path / "runs" / "attack").exists()


def test_a_run_that_has_lost_its_opponents_weights_does_not_go_on(victim, tmp_path):
    config = tiny.config(f"--selfplay.opponent={victim}@2")
    directory = saved.save_run(tmp_path / config.name, seeds={1: 0}, config=config)
    assert refusal(load_opponent, config, directory, resume=True) == (
        f"{directory / FOLDER}: the weights that the run plays against are gone, and "
        f"'{victim}@2' may have others by now: put the folder back, or start a new run"
    )
    keep_opponent(directory, load_opponent(config, directory, resume=False))
    shutil.rmtree(victim)
    kept = load_opponent(config, directory, resume=True)
    assert kept.trained.source == str(directory / FOLDER)
