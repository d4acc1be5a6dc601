"""Matches of a run: its anchors, its best predecessor, an early end."""

import contextlib
import dataclasses
import json
from unittest import mock

import chex
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.refusals import refusal
from train.arena import match_programs
from train.checkpoints.store import best_iteration, save_checkpoint
from train.config import config_to_dict
from train.loop import evaluation
from train.network.build import network_for
from train.players.basic import make_random_player
from train.runtime.display import Display, Table

CONFIG = tiny.config("--evaluation.anchors", '["best", "random"]', "--evaluation.games", "40")


def weights(seed: int):
    network = network_for(CONFIG.network, 2)
    return tiny.new_weights(network, seed)


def matches(directory, done: int, config=CONFIG) -> dict:
    return evaluation.short_matches(config, weights(9), done, directory, Display(is_quiet=True))


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A run with checkpoints {iteration: win rate}."""
    path = tmp_path_factory.mktemp("run")
    saved = config_to_dict(CONFIG) | {"checkpoint": {"keep": 9}}
    for iteration, rate in {2: 0.4, 4: 0.8, 6: 0.8, 8: 0.7, 10: None, 12: 0.9}.items():
        run = {"nothing": np.zeros(1)}
        save_checkpoint(path, iteration, weights(iteration), run, saved, win_rate=rate)
    return path


def test_each_anchor_has_its_win_rate(directory, monkeypatch):
    """The random player takes the seat of the predecessor, so that one program plays all."""
    opponents = []
    play, anyone = evaluation.play_match, make_random_player()

    def watched(players, *rest, **options):
        opponents.append(players[1])
        return play((players[0], anyone), *rest, **options)

    monkeypatch.setattr(evaluation, "play_match", watched)
    row = matches(directory, 11)
    assert list(row["matches"]) == ["best", "random"]
    assert (row["opponent"], row["win_rate"]) == ("random", row["matches"]["random"])
    assert [player.name for player in opponents] == ["iteration 6", "random"]
    chex.assert_trees_all_close(opponents[0].variables, weights(6), rtol=1e-6)


def test_matches_that_are_compiled_ahead_are_not_compiled_again(directory, monkeypatch):
    config = tiny.config("--evaluation.games", "40")  # against `random` alone
    opponents = [job.args[1:] for job in evaluation.match_compilers(CONFIG)]
    assert opponents == [("best", 40), ("random", 40), ("random", 40)]
    for job in evaluation.match_compilers(config):
        job()
    compiled = mock.Mock(side_effect=AssertionError("compiled again"))
    monkeypatch.setattr(match_programs, "program_bytes", compiled)
    matches(directory, 11, config)
    off = tiny.config("--evaluation.opponents", "[]")
    assert [*evaluation.match_compilers(off)] == []


def test_without_a_predecessor_there_is_no_match_against_it(directory):
    """The same iteration plays the same games."""
    row = matches(directory, 2)
    assert list(row["matches"]) == ["random"]
    assert matches(directory, 2) == row


@pytest.mark.parametrize(
    ("options", "best"),
    [
        ({}, 6),
        ({"games": 60, "anchors": ("random", "greedy")}, 6),
        ({"anchors": ("best", "greedy", "random")}, None),
        ({"simulations": 3}, None),
        ({"opening_plies": 1}, None),
    ],
)
def test_the_best_is_sought_among_those_of_the_same_matches(directory, options, best):
    changed = dataclasses.replace(CONFIG.evaluation, **options)
    config = config_to_dict(dataclasses.replace(CONFIG, evaluation=changed))
    assert best_iteration(directory, config, before=11) == best


def test_means_over_rule_sets_have_narrower_intervals():
    rates = {"small": {"random": 0.5, "wjx": 1.0}, "large": {"random": 0.9, "wjx": 0.9}}
    intervals = {
        "small": {"random": [0.44, 0.56], "wjx": [0.7, 1.0]},
        "large": {"random": [0.82, 0.98], "wjx": [0.7, 1.0]},
    }
    means, wide = evaluation.mean_over_rules(rates, intervals)
    assert means == pytest.approx({"random": 0.7, "wjx": 0.95})
    # Half widths of 0.06 and 0.08 make one of 0.1 of their sum.
    assert wide["random"] == pytest.approx([0.65, 0.75])
    assert wide["wjx"] == pytest.approx([0.95 - 0.15 / 2**0.5, 1.0])


@pytest.fixture
def final(tmp_path, monkeypatch):
    """Plays final matches, whose results are names, up to a stop; gives the matches on disk."""
    monkeypatch.setattr(evaluation, "match_record", lambda result: {"second": result})
    monkeypatch.setattr(evaluation, "_final_table", lambda config, results: Table("", (), ()))

    def play(*opponents: str, stops: bool = False, config=CONFIG) -> list[dict]:
        def one(config, variables, opponent, games, key, display):
            if opponent == opponents[-1] and stops:
                raise KeyboardInterrupt
            return opponent

        monkeypatch.setattr(evaluation, "_named", lambda config, name: name)
        monkeypatch.setattr(evaluation, "_play", one)
        options = dataclasses.replace(CONFIG.evaluation, opponents=opponents)
        config = dataclasses.replace(config, evaluation=options)
        with contextlib.suppress(KeyboardInterrupt):
            evaluation.final_matches(config, None, tmp_path, Display(is_quiet=True))
        found = json.loads((tmp_path / "evaluation.json").read_text())
        assert found["seed"] == config.seed
        return found["matches"]

    return play


def test_a_stop_loses_no_final_match_that_is_over(final):
    def names(*opponents, **how):
        return [match["second"] for match in final(*opponents, **how)]

    assert names("random", "greedy", "wjx", stops=True) == ["random", "greedy"]
    assert names("random", "greedy", "wjx") == ["random", "greedy", "wjx"]
    # Played again, they are the same ones, so those to come stay.
    assert names("random", "greedy", stops=True) == ["random", "greedy"]
    assert names("random", "wjx", stops=True) == ["random", "greedy"]
    assert names("random", "wjx") == ["random", "wjx"]
    assert names("greedy", "wjx", stops=True) == ["greedy"]
    other = dataclasses.replace(CONFIG, seed=1)
    assert names("greedy", "wjx", "random", stops=True, config=other) == ["greedy", "wjx"]


def test_final_matches_of_several_rule_sets_say_which(final):
    words = ["--rules", "hkoi,wallzero-empty", "--network.planes", "BTRV"]
    found = final("random", "wjx", config=tiny.config(*words))
    expected = [(name, rules) for rules in ("hkoi", "wallzero-empty") for name in ("random", "wjx")]
    assert [(match["second"], match["rule_set"]) for match in found] == expected


def test_a_match_ends_when_it_is_decided(directory, monkeypatch):
    told = mock.Mock(seconds=0.0)
    display = Display(is_quiet=True)
    monkeypatch.setattr(display, "task", lambda *_: contextlib.nullcontext(told))
    options = dataclasses.replace(CONFIG.evaluation, anchors=("random",), sprt="-600,-500")
    config = dataclasses.replace(CONFIG, evaluation=options)
    evaluation.short_matches(config, weights(9), 7, directory, display)
    games = [call.args[0] for call in told.call_args_list]
    # Nothing is told before all is compiled.
    assert games[0] == 0
    assert 0 < games[-1] < options.games


@pytest.mark.parametrize(
    ("key", "name"), [("anchors", "nobody"), ("opponents", "nobody"), ("opponents", "best")]
)
def test_opponents_are_looked_at_before_the_run(key, name):
    evaluation.check_opponents(CONFIG)
    options = dataclasses.replace(CONFIG.evaluation, **{key: (name,)})
    config = dataclasses.replace(CONFIG, evaluation=options)
    assert f"player '{name}': unknown" in refusal(evaluation.check_opponents, config)
