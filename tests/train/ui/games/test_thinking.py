"""What an engine's answer becomes for the page: chances of all players, ideas, the policy."""

import dataclasses

from train.engine.answers import Candidate, Evaluation
from train.ui.games.thinking import _to_thought
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.notation import parse_action

TWO, THREE = PRESETS["wallzero-4stone"], PRESETS["playwallgo-3p"]
BEST = Candidate("C3", prior=0.2, visits=9, value=0.2, win_chance=0.6, line=("C3", "D4"))
OTHER = Candidate("E5", prior=0.6, visits=12, value=-0.4, win_chance=0.3, line=("E5",))


def answer(**changes):
    found = Evaluation(
        session="1",
        ply=3,
        player=1,
        best_move="C3",
        action=parse_action("C3", grid=7).action,
        evaluation=0.1,
        win_chance=0.45,
        simulations=21,
        visits=21,
        candidates=(BEST, OTHER),
        policy=(("E5", 0.7), ("C3", 0.3)),
    )
    return dataclasses.replace(found, **changes)


def test_chances_are_those_of_the_best_move():
    thought = _to_thought(answer(), TWO, 21)
    assert thought.chances == (0.4, 0.6)
    assert [idea.win_chance for idea in thought.ideas] == [0.6, 0.3]
    assert [idea.share for idea in thought.ideas] == [0.3, 0.7]
    assert thought.ideas[0].action == thought.action == parse_action("C3", grid=7).action
    assert len(thought.ideas[0].line) == 2


def test_without_visits_the_policy_is_all_that_is_known():
    thought = _to_thought(answer(candidates=(), player=0), TWO, 0)
    assert thought.chances == (0.45, 0.55)
    assert sorted(idea.share for idea in thought.ideas) == [0.3, 0.7]


def test_of_three_players_a_loss_is_minus_a_half():
    thought = _to_thought(answer(evaluation=(1.0, -0.5, -0.5)), THREE, 21)
    assert thought.chances == (1.0, 0.0, 0.0)
