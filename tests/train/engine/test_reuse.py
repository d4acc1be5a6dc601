"""Sessions that keep their trees find what a slow independent search finds over the same moves."""

import re

import jax
import numpy as np
import pytest

from tests.support import compiling
from tests.support.learner.engines import opposed_evaluator, sessions_of
from tests.support.learner.searching import (
    DUEL,
    FOUR_STONES,
    TRIO,
    legal_slots,
    play,
)
from tests.support.reference.slow_search import SlowSearch
from train.engine.trees.options import EngineOptions
from train.runtime.host import fetch
from train.search.config import SearchConfig
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import initial_state
from wallgo_jax.notation import CANONICAL_SIDES, format_action

QUARTET = Rules(size=3, players=4, stones=1, start=(), order=(0, 1, 2, 3))
OPTIONS = EngineOptions(batch_sizes=(1, 4), chunk=8, nodes=128, trees=4)


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


def slow_search(rules: Rules, kind: str, *, rescale_values: bool = True) -> SlowSearch:
    config = SearchConfig(kind=kind, rescale_values=rescale_values)
    return SlowSearch(fetch(initial_state(rules)), config, look, step)


def move_of(state, slot: int) -> str:
    action = int(actions.action_of_slot(state, np.int32(slot)))
    return format_action(action, grid=state.grid, sides=CANONICAL_SIDES)


def visits_of(answer) -> dict[str, int]:
    return {candidate.move: candidate.visits for candidate in answer.candidates}


@pytest.mark.parametrize(
    ("rules", "kind", "rescale_values"),
    [
        (DUEL, "gumbel", True),
        pytest.param(FOUR_STONES, "puct", False, marks=pytest.mark.slow),
        pytest.param(FOUR_STONES, "gumbel", True, marks=pytest.mark.slow),
        pytest.param(DUEL, "puct", True, marks=pytest.mark.slow),
    ],
)
def test_a_game_with_a_kept_tree_is_searched_as_by_hand(rules, kind, rescale_values):
    """Both search each position with the tree of the moves before; every visit is the same."""
    sessions = sessions_of(rules, kind, OPTIONS, rescale_values=rescale_values)
    slow = slow_search(rules, kind, rescale_values=rescale_values)
    name, kept = sessions.open(), []
    for ply in range(7):
        answer = sessions.ask(name, simulations=20 + ply, details=True).result()
        before = slow.root.visits
        kept.append(before - 1)
        slot, _ = slow.search(20 + ply)
        own = sessions._of(name).game
        children = {move_of(own.state, slot): slot for slot in slow.root.children}
        expected = {name: slow.root.children[slot].visits for name, slot in children.items()}
        assert answer.visits == slow.root.visits == before + 20 + ply
        assert visits_of(answer) == expected
        for candidate in answer.candidates:
            own_value = slow.root.q(children[candidate.move])
            assert candidate.win_chance == pytest.approx((1 + own_value) / 2, abs=1e-4)
        mover = int(own.state.position.player)
        value = answer.evaluation if mover == 0 else -answer.evaluation
        assert value == pytest.approx(slow.root.value, abs=1e-4)
        sessions.apply(name, answer.action)
        assert own.plies[-1].slot == slot
        slow.move_on(slot)
        if own.is_over:
            break
    assert max(kept) > 3, "no tree was kept"
    sessions.close(name)


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "kind"), [(TRIO, "gumbel"), (TRIO, "puct"), (QUARTET, "puct")])
def test_a_tree_of_more_players_is_kept_by_its_own_player(rules, kind):
    """Asked at each of one player's turns, or at any other's, both find the same."""
    sessions, slow = sessions_of(rules, kind, OPTIONS), slow_search(rules, kind)
    name, kept = sessions.open(), {True: [], False: []}
    own = sessions._of(name).game
    for ply in range(12):
        mover = int(own.state.position.player)
        if mover == 0 or ply == 7:
            is_own = mover == slow.player
            if not is_own:
                slow.begin_anew()
            before = slow.root.visits
            answer = sessions.ask(name, simulations=40, details=True).result()
            slot, _ = slow.search(40)
            slots = slots_of(own, slow)
            visits = {move: slow.root.children[s].visits for move, s in slots.items()}
            assert visits_of(answer) == visits
            assert answer.visits == slow.root.visits == before + 40
            assert move_of(own.state, slot) == answer.best_move
            values = {move: slow.root.q(s) for move, s in slots.items()}
            told = {candidate.move: candidate.value for candidate in answer.candidates}
            assert told == pytest.approx(values, abs=1e-4)
            assert answer.evaluation[mover] == pytest.approx(slow.root.value, abs=1e-4)
            kept[is_own].append(before - 1)
        else:  # The others play what keeps most of the tree.
            seen = slow.root.children
            slot = max(seen, key=lambda s: seen[s].visits) if seen else slow.root_slots()[0]
        sessions.apply(name, move_of(own.state, slot))
        slow.move_on(slot)
        if own.is_over:
            break
    assert max(kept[True]) > 0, "no tree was kept"
    assert max(kept[False]) == 0, "a tree was kept for another player"
    sessions.close(name)


def slots_of(game, slow: SlowSearch) -> dict[str, int]:
    return {move_of(game.state, slot): slot for slot in slow.root.children}


@pytest.mark.slow
def test_no_program_copies_the_arrays_of_all_trees():
    """A search of one tree must not take longer because others are kept."""
    options = EngineOptions(batch_sizes=(1, 4), chunk=8, nodes=60, trees=30)
    programs = sessions_of(DUEL, "gumbel", options)._searcher._programs._programs
    for name, size in (("resume", 1), ("resume", 4), ("grow", 1), ("grow", 4)):
        text = programs[name, size].result().as_text()
        assert re.search(r"\[31,60\b", text), "no array has all trees"
        assert not re.search(r"= \w+\[31,60\b\S* copy\(", text), name


def test_no_request_compiles():
    sessions = sessions_of(DUEL, "gumbel", OPTIONS)
    with compiling.count_compilations() as compiled:
        names = [sessions.open(), sessions.open(moves=["A1"])]
        for name in names:
            answer = sessions.ask(name, details=True, simulations=17).result()
            sessions.apply(name, answer.best_move)
            sessions.ask(name, temperature=1.0).result()
        sessions.takeback(names[0], 0)
        for name in names:
            sessions.close(name)
        assert compiled() == 0
