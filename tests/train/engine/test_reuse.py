"""Sessions that keep their trees find what a slow independent search finds over the same moves."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from tests.support import compiling
from tests.support.learner.engines import opposed_evaluator, three_players, two_players
from tests.support.learner.searching import legal_slots, play
from tests.support.reference.slow_search import SlowSearch
from train.engine.sessions import Sessions
from train.runtime.host import fetch
from train.search.report import canonical_move
from wallgo_jax.game import actions
from wallgo_jax.game.state import initial_state


@jax.jit
def _evaluate(state):
    one = jax.tree.map(lambda x: x[None], state)
    found = opposed_evaluator((), one)
    return found.logits[0], found.value[0]


def look(state):
    logits, values, legal = fetch((*_evaluate(state), legal_slots(state)))
    return logits.astype(float), values, legal


def step(state, slot):
    after, rewards = fetch(play(state, np.int32(slot)))
    return after, rewards, bool(after.position.terminated)


def slow_search(sessions: Sessions) -> SlowSearch:
    # The searches of this file have 17 to 32 simulations.
    options = dataclasses.replace(sessions.player.search, max_considered_actions=8)
    return SlowSearch(fetch(initial_state(sessions.rules)), options, look, step)


_action_of = jax.jit(actions.action_of_slot)


def move_of(state, slot: int) -> str:
    action = int(_action_of(state, np.int32(slot)))
    return canonical_move(action, grid=state.grid)


@pytest.mark.parametrize(
    ("make", "first", "growth", "turns"),
    [
        (two_players, 18, 1, [range(99)] * 2),
        # At the turns of one player, and one of the others'.
        pytest.param(three_players, 30, 0, [range(99), [7], [7]], marks=pytest.mark.slow),
    ],
)
def test_a_game_with_a_kept_tree_is_searched_as_by_hand(make, first, growth, turns):
    """Both search a position with the tree of the moves before; every visit is the same. With more
    than two players a tree is kept for its own player alone."""
    sessions = make()
    slow, name, kept = slow_search(sessions), sessions.open(), {True: [], False: []}
    own = sessions.position(name)
    for ply in range(12):
        if ply in turns[own.player]:
            simulations, before = first + growth * ply, slow.root.visits
            is_own = sessions.rules.players == 2 or own.player == slow.player
            if not is_own:
                slow.begin_anew()
                before = slow.root.visits
            answer = sessions.ask(name, simulations=simulations).result()
            slot, _ = slow.search(simulations)
            seen = {move_of(own.state, s): each for s, each in slow.root.children.items()}
            told = {each.move: each for each in answer.candidates if each.visits}
            assert {move: each.visits for move, each in told.items()} == {
                move: each.visits for move, each in seen.items()
            }
            assert answer.root_visits == slow.root.visits == before + simulations
            assert move_of(own.state, slot) == answer.candidates[0].move
            values = {move_of(own.state, s): slow.root.q(s) for s in slow.root.children}
            assert {move: each.value for move, each in told.items()} == pytest.approx(
                values, abs=1e-4
            )
            assert answer.value == pytest.approx(slow.root.value, abs=1e-4)
            assert answer.values[own.player] == pytest.approx(slow.root.value, abs=1e-4)
            kept[is_own].append(before - 1)
        else:  # The others play what keeps most of the tree.
            seen = slow.root.children
            slot = max(seen, key=lambda s: seen[s].visits) if seen else slow.root_slots()[0]
        own = sessions.apply(name, move_of(own.state, slot))
        assert own.slots[-1] == slot
        slow.move_on(slot)
        if own.result:
            break
    assert max(kept[True]) > 3 * growth, "no tree was kept"
    assert max(kept[False], default=0) == 0, "a tree was kept for another player"
    sessions.close(name)


def test_no_program_copies_the_arrays_of_all_trees():
    """A search of one tree must not take longer because others are kept."""
    programs = two_players()._searcher._programs._programs
    for name, size in (("resume", 1), ("grow", 1), ("grow", 32)):
        text = programs[name, size].result().as_text()
        assert re.search(r"\[33,64\b", text), "no array has all trees"
        assert not re.search(r"= \w+\[33,64\b\S* copy\(", text), name


def test_no_request_compiles():
    sessions = two_players()
    # Parts of the rules' own functions, which other tests may not have called before.
    warm = sessions.open(moves=["A1"])
    sessions.apply(warm, int(sessions.ask(warm, simulations=17).result().action))
    sessions.move_to(warm, sessions.position(warm).before)
    sessions.close(warm)
    with compiling.count_compilations() as compiled:
        names = [sessions.open(), sessions.open(moves=["A1"])]
        for name in names:
            answer = sessions.ask(name, simulations=17).result()
            sessions.apply(name, int(answer.action))
            sessions.ask(name, temperature=1.0).result()
        sessions.move_to(names[0], sessions.position(names[0]).before)
        for name in names:
            sessions.close(name)
        assert compiled() == 0
