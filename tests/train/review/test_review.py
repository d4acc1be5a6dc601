"""A review searches as the engine does, grades what was played, and writes page and figures."""

import dataclasses
import json
import re

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command
from tests.support.learner.searching import random_evaluator
from train.players.basic import Player, act_by, make_random_search
from train.review.game_review import grade_move, review_game, side_accuracy
from train.review.page import compare_siblings, draw_review
from train.review.player import default_player, make_analysis_player, search_positions
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from train.search.search import make_search
from wallgo_jax import render
from wallgo_jax.formats import records
from wallgo_jax.game import actions
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_moves
from wallgo_jax.view.snapshot import take_snapshot
from wallgo_jax.view.win_chances import win_chances

RULES = tiny.RULES


@pytest.fixture
def player(folder):
    return make_analysis_player(f"{folder}@12", RULES)


@pytest.fixture
def review(game, player):
    done: list[int] = []
    found = review_game(player, game, players=("one", "<two>"), on_progress=done.append)
    assert done == sorted(done) and done[-1] == 12 * 5
    return found


def test_positions_are_searched_as_the_engine_searches(game, player):
    states = game.states[:-1]
    found = search_positions(player, states)
    options = dataclasses.replace(player.search, simulations=12)
    search = jax.jit(make_search(player.evaluate, options, explores=False))
    stacked = jax.tree.map(lambda *x: np.stack(x), *states)
    wanted = search(player.variables, stacked, jax.random.key(0))
    public = jax.vmap(actions.action_of_slot)(stacked, wanted.slot)
    assert [int(each.action) for each in found] == public.tolist()
    chosen = wanted.policy[np.arange(len(states)), wanted.slot]
    assert [each.candidates[0].policy for each in found] == pytest.approx(chosen.tolist(), abs=1e-6)
    assert all(sum(each.visits for each in one.candidates) <= 12 for one in found)


def test_an_excluded_move_is_not_searched(game, player):
    best = search_positions(player, game.states[:1])[0].candidates[0].action
    (other,) = search_positions(player, game.states[:1], excluded=[best])
    assert best not in [candidate.action for candidate in other.candidates]


def test_a_review_holds_what_happened(review, game):
    assert [move.action for move in review.moves] == list(game.actions)
    assert review.chances.shape == (6, 2)
    assert review.chances.sum(axis=1) == pytest.approx(1)
    assert review.chances[-1].tolist() == [(1 + reward) / 2 for reward in game.rewards]
    for move in review.moves:
        assert move.after == review.chances[move.ply, move.mover]
        if move.grade.name == "best":
            assert move.action == move.report.action
    assert [each.shape for each in review.owners] == [(3, 3, 3)] * 6
    assert np.array(review.owners).sum(axis=-1) == pytest.approx(1, abs=1e-5)


def test_figures_are_those_of_the_review(review, player):
    figures = json.loads(json.dumps(review.to_dict()))
    assert figures["player"] == player.name and figures["simulations"] == 12
    assert len(figures["positions"]) == 6 and len(figures["moves"]) == 5
    assert figures["moves"][2]["move"] == "A1->A1:W1"
    first = figures["positions"][2]
    assert (1 + first["evaluation"]) / 2 == pytest.approx(first["win_chance"][0], abs=1e-3)
    assert figures["moves"][1]["win_chance_before"] == figures["positions"][1]["win_chance"][1]


def test_the_record_carries_values_that_the_replay_page_draws(review, game):
    record = records.from_json(records.to_json(review.record))
    assert record.values is not None
    chances = win_chances(game, record.values)
    assert np.array(chances) == pytest.approx(review.chances, abs=1e-4)
    page = render.page(game, values=record.values)
    assert 'class="chart"' in page and "const CHANCES = [[" in page
    assert 'class="chart"' not in render.page(game)


def test_the_page_needs_nothing_else(review, player, game):
    step = compare_siblings(player, game, 3)
    page = draw_review(review, siblings=step)
    links = set(re.findall(r"https?://[^\"' )]+", page)) - {"http://www.w3.org/2000/svg"}
    assert not links and "src=" not in page and "$" not in page
    assert "&lt;two&gt;" in page and "<two>" not in page
    assert page.count("</script>") == 1 and page.count("<figure>") == len(step.each)


def test_siblings_are_the_walls_that_could_be_built(player, game):
    found = compare_siblings(player, game, 3)
    legal = take_snapshot(game.states[2]).legal
    stays = [action for action in legal if action // 4 == game.actions[2] // 4]
    assert {each.action for each in found.each[1:]} == set(stays)
    assert [each.is_played for each in found.each].count(True) == 1
    figures = found.to_dict()
    assert figures["step"] == "A1 to A1" and len(figures["walls"]) == len(stays)
    for ply, reason in ((1, "with a wall"), (9, "plies 1 to 5")):
        with pytest.raises(UsageError, match=reason):
            compare_siblings(player, game, ply)


def test_a_move_among_three_is_measured_by_a_search_from_before_it():
    """The search of the one who moves next would say something else."""
    rules = Rules(size=3, players=3, stones=1, order=(0, 1, 2))
    played = replay_moves(rules, parse_moves("A1 C1 C3 A1->A2:W1", grid=3))
    act, options = act_by(make_random_search()), SearchConfig(simulations=4)
    player = Player("any@4", (), act, evaluate=random_evaluator, search=options, rules=rules)
    done: list[int] = []
    found = compare_siblings(player, played, 4)
    review = review_game(player, played, on_progress=done.append)
    # Five positions, and the four moves by themselves; all count half.
    assert done == sorted(done) and done[-1] == (4 * 5 + 4 * 4) // 2
    before, chances = played.states[3:4], []
    for action in [None, *(each.action for each in found.each[1:])]:
        (alone,) = search_positions(player, before, excluded=[action], is_only=True)
        chances.append(alone.candidates[0].win_chance)
    assert len(chances) == 4 and [each.chance for each in found.each] == pytest.approx(chances)
    after = search_positions(player, [each.state for each in found.each[1:]])
    others = [float(each.chance(each.best_values[found.mover])) for each in after]
    assert others != pytest.approx(chances[1:], abs=1e-3)
    for ply, move in enumerate(review.moves):
        state = played.states[ply]
        (alone,) = search_positions(player, [state], excluded=[move.action], is_only=True)
        assert [each.action for each in alone.candidates] == [move.action]
        assert alone.candidates[0].visits == 4
        assert move.after == pytest.approx(alone.candidates[0].win_chance, abs=1e-5)
    assert review.owners is None  # There is no head for them.


def test_the_command_writes_page_figures_and_record(moves, player, tmp_path):
    rules = json.dumps(RULES.to_dict())
    named = ("--player", player.name)
    out, record = tmp_path / "a" / "review.html", tmp_path / "one.jsonl"
    said = command("review", moves, "--rules", rules, *named, "--out", out, "--records", record)
    assert said.code == 0, said.err
    assert "Accuracy" in said.out and f"written: {out}" in said.out
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert json.loads(out.with_suffix(".json").read_text())["player"] == player.name
    again = command("review", record, *named, "--out", out)
    assert again.code == 0, again.err


def test_the_default_player_fits_the_rules():
    assert default_player(PRESETS["hkoi"]) == "heuristic-search:wjx"
    assert default_player(PRESETS["wallzero-4stone"]) == "pretrained:wallzero-4stone"


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (0.60, 0.60, "good"),
        (0.60, 0.75, "good"),
        (0.60, 0.5501, "good"),
        (0.60, 0.54, "inaccuracy"),
        (0.60, 0.4999, "mistake"),
        (0.60, 0.4001, "mistake"),
        (0.60, 0.39, "blunder"),
        (1.00, 0.00, "blunder"),
    ],
)
def test_names_by_loss(before, after, name):
    grade = grade_move(before, after, is_best=False, is_forced=False)
    assert grade.name == name
    assert grade.loss == pytest.approx(max(before - after, 0))


def test_the_best_move_and_the_only_move_lose_nothing():
    best = grade_move(0.9, 0.2, is_best=True, is_forced=False)
    only = grade_move(0.9, 0.2, is_best=True, is_forced=True)
    assert (best.name, best.loss, best.accuracy) == ("best", 0.0, pytest.approx(100, abs=1e-3))
    assert only.name == "forced"
    assert side_accuracy([only]) is None


def test_accuracy_is_that_of_the_published_curve():
    # Lichess: 103.1668 exp(-0.04354 d) - 3.1669, d in percentage points.
    lost = grade_move(0.5, 0.4, is_best=False, is_forced=False)
    assert lost.accuracy == pytest.approx(63.58, abs=0.01)
    best = grade_move(0.5, 0.5, is_best=True, is_forced=False)
    assert side_accuracy([lost, best]) == pytest.approx((63.58 + 100) / 2, abs=0.01)
    assert grade_move(1.0, 0.0, is_best=False, is_forced=False).accuracy == 0
