"""Matches of a run: its anchors, its best predecessor, an early end."""

import contextlib
import dataclasses

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.checkpoints.store import Store
from train.config import config_to_dict, read_config
from train.loop import evaluation
from train.network.build import network_for
from train.runtime.display import Display
from train.runtime.errors import UsageError

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
    store = Store(path, keep=9)
    for iteration, rate in {2: 0.4, 4: 0.8, 6: 0.8, 8: 0.7, 10: None, 12: 0.9}.items():
        run = {"nothing": np.zeros(1)}
        saved = config_to_dict(CONFIG)
        store.save(iteration, weights(iteration), run, saved, win_rate=rate)
    store.close()
    return path


@pytest.mark.slow
def test_each_anchor_has_its_win_rate(directory, monkeypatch):
    opponents = []
    play = evaluation.play_match

    def watched(first, second, *rest, **options):
        opponents.append(second)
        return play(first, second, *rest, **options)

    monkeypatch.setattr(evaluation, "play_match", watched)
    row = matches(directory, 11)
    assert list(row["matches"]) == ["best", "random"]
    assert (row["opponent"], row["win_rate"]) == ("random", row["matches"]["random"])
    assert [player.name for player in opponents] == ["iteration 6", "random"]
    for found, made in zip(
        jax.tree.leaves(opponents[0].variables), jax.tree.leaves(weights(6)), strict=True
    ):
        np.testing.assert_allclose(found, made, rtol=1e-6)


def test_without_a_predecessor_there_is_no_match_against_it(directory):
    assert list(matches(directory, 2)["matches"]) == ["random"]


@pytest.mark.slow
def test_the_same_iteration_plays_the_same_games(directory):
    assert matches(directory, 7) == matches(directory, 7)


def test_a_match_ends_when_it_is_decided(directory, monkeypatch):
    told = Told()
    display = Display(is_quiet=True)
    monkeypatch.setattr(display, "match", lambda title, games: contextlib.nullcontext(told))
    options = dataclasses.replace(CONFIG.evaluation, anchors=("random",), sprt="-600,-500")
    config = dataclasses.replace(CONFIG, evaluation=options)
    evaluation.short_matches(config, weights(9), 7, directory, display)
    # Nothing is told before all is compiled.
    assert told.games[0] == 0
    assert 0 < told.games[-1] < options.games


class Told:
    """A bar that remembers."""

    seconds = 0.0

    def __init__(self) -> None:
        self.games: list[int] = []

    def __call__(self, games: int) -> None:
        self.games.append(games)


def test_opponents_are_looked_at_before_the_run():
    evaluation.check_opponents(CONFIG)
    options = dataclasses.replace(CONFIG.evaluation, anchors=("nobody",))
    with pytest.raises(UsageError, match="player 'nobody': unknown"):
        evaluation.check_opponents(dataclasses.replace(CONFIG, evaluation=options))


def test_a_wrong_test_is_refused():
    with pytest.raises(UsageError) as caught:
        read_config(None, ["--evaluation.sprt", "20,0"])
    assert "evaluation.sprt: elo0 (20) must be below elo1 (0)" in str(caught.value)


@pytest.mark.parametrize(
    ("done", "games"),
    [(0, 2 * 2 * 40 + 2 * 400), (3, 2 * 40 + 2 * 400), (6, 2 * 400), (9, 2 * 400)],
)
def test_games_of_a_run_that_are_still_to_come(done, games):
    opponents = ("random", "greedy")
    options = dataclasses.replace(CONFIG.evaluation, every=3, final_games=400, opponents=opponents)
    config = dataclasses.replace(CONFIG, iterations=9, evaluation=options)
    # Short matches follow iterations 3 and 6 alone, each against both anchors.
    assert evaluation.games_after(config, done) == games
