"""A run as an object: the same numbers as the command's, stopped, looked at, gone on with."""

import dataclasses
import os
import signal
from unittest.mock import Mock

import jax
import numpy as np
import pytest

import train
from tests.support.learner import tiny
from tests.support.learner.commands import read_rows, untimed
from train.api import runs
from train.config.run import HeuristicConfig, HeuristicsConfig
from train.loop import iterations
from train.players.networks import load_network
from train.players.registry import make_player


def assert_equal(one, other) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_numbers_are_those_of_the_command_through_a_stop(tiny_run, tmp_path, capsys):
    seen = []
    with train.start(tiny.PATH, runs=tmp_path) as run:
        for row in run:
            seen.append(row)
            if run.iterations == 3:
                break
    assert "closed" in repr(run)
    again = train.resume(tmp_path / "tiny")
    assert again.iterations == 3
    seen += list(again)
    (result,) = again.finish()
    expected = [untimed(row) for row in read_rows(tiny_run)]
    assert [untimed(row) for row in again.rows] == expected
    assert seen == again.rows == read_rows(tmp_path / "tiny")
    for name in ("evaluation.json", "game.jsonl", "game.txt"):
        assert (tmp_path / "tiny" / name).read_text() == (tiny_run / name).read_text()
    assert len(result.games) == 40
    # Closed, it keeps what it has learned, and plays.
    assert again.newest_games(1)[0].is_over
    assert again.player(simulations=0).name == "net:tiny/6"
    won = train.match(again, run, games=2, opening_plies=1)
    assert {won.first, won.second} == {"tiny/6@2", "tiny/3@2"}
    both = (load_network(str(path)).variables for path in (tiny_run, run.directory))
    assert_equal(*both)
    assert capsys.readouterr().out == ""


def test_a_run_can_be_looked_at(api_run):
    config, replay = api_run.config, api_run.replay
    played = config.selfplay.boards * config.selfplay.plies * 2
    assert (replay.held, replay.written, replay.capacity) == (played, played, 64)
    assert 0 < replay.finished <= replay.held
    newest, *older = api_run.newest_games(3)
    assert newest.is_over
    assert newest.rules == config.rules
    assert all(game.is_over for game in older)
    assert api_run.to_dataframe()["iteration"].tolist() == [1, 2]
    assert_equal(api_run.weights, load_network(str(api_run.directory)).variables)
    assert api_run._repr_png_().startswith(b"\x89PNG")
    assert api_run.player(simulations=2).name == "tiny/2@2"
    assert api_run.player(simulations=0).name == "net:tiny/2"


def test_weights_that_were_taken_stay_when_the_run_goes_on(tmp_path):
    with train.start(tiny.PATH, runs=tmp_path) as run:
        next(run)
        weights, player = run.weights, run.player(simulations=0)
        before = jax.tree.map(np.array, (weights, player.registered.variables))
        next(run)
        assert_equal(before, (weights, player.registered.variables))
        assert any(
            (a != b).any()
            for a, b in zip(jax.tree.leaves(weights), jax.tree.leaves(run.weights), strict=True)
        )


def test_named_opponents_have_the_heuristics_of_the_config(api_run, monkeypatch):
    weights = HeuristicsConfig(wjx=HeuristicConfig(formula="wjx", boundary=3))
    monkeypatch.setattr(api_run, "config", dataclasses.replace(api_run.config, heuristics=weights))
    match = Mock(side_effect=lambda player, opponent, **how: opponent)
    monkeypatch.setattr(runs, "match", match)
    usual = train.make_player("wjx", tiny.RULES)
    own, same = api_run.evaluate(["wjx", usual], games=4, simulations=0, seed=3)
    how = {"games": 4, "opening_plies": 0, "players_place": False, "seed": 3}
    assert [(each.args[0].name, each.kwargs) for each in match.call_args_list] == 2 * [
        ("net:tiny/2", how)
    ]
    assert own.registered.act is make_player("wjx", tiny.RULES, heuristics=weights).act
    assert own.registered.act is not usual.registered.act
    assert own.identity != usual.identity
    assert same is usual


def test_ctrl_c_saves_and_the_run_goes_on_to_an_end_without_matches(tmp_path, monkeypatch):
    """Where neither a checkpoint nor a match is due."""
    evaluation = {"every": 0, "opponents": [], "anchors": []}
    run = train.start(train.make_config(tiny.PATH, evaluation=evaluation), runs=tmp_path)
    check = iterations.check_finite

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        check(*arguments)

    next(run), next(run)
    monkeypatch.setattr(iterations, "check_finite", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(run)
    monkeypatch.setattr(iterations, "check_finite", check)
    assert run.iterations == 3
    assert {path.name for path in (tmp_path / "tiny" / "checkpoints").iterdir()} == {"2", "3"}
    assert next(run)["iteration"] == 4
    assert (run.finish(), run.iterations) == ([], 6)
    assert (tmp_path / "tiny" / "game.jsonl").exists()
    assert not (tmp_path / "tiny" / "evaluation.json").exists()


def test_a_directory_has_one_run(api_run, tmp_path):
    closed = train.start(train.make_config(tiny.PATH, name="closed"), runs=tmp_path)
    closed.close()
    closed.close()
    for call, word in (
        (lambda: train.start(api_run.config, runs=api_run.directory.parent), "in use"),
        (lambda: train.resume(api_run.directory), "in use"),
        (lambda: train.resume(tmp_path / "nothing"), "directory"),
        (lambda: train.start(closed.config, runs=tmp_path), "exists"),
        (lambda: next(closed), "closed"),
        (lambda: train.resume(tmp_path / "closed", {"learner.batch": 16}), r"learner\.batch"),
        (lambda: train.resume(tmp_path / "closed", name="other"), "name"),
    ):
        with pytest.raises(train.UsageError, match=word):
            call()
