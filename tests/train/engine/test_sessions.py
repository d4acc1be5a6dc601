"""Sessions in this process: ways back, trees that make room, networks with all heads."""

from unittest.mock import Mock

import numpy as np
import pytest
from scipy.special import softmax

from tests.support.learner.engines import LEAD, OWNERS, three_players, two_players
from train.engine import searcher
from train.runtime.errors import UsageError
from wallgo_jax.game.actions import NO_ACTION


@pytest.fixture
def sessions():
    sessions = two_players()
    yield sessions
    for name in list(sessions._sessions):
        sessions.close(name)


def test_the_way_back_leads_to_a_position_and_begins_a_new_tree(sessions):
    name = sessions.open(moves=["A1"])
    start, first = sessions.position(name), sessions.ask(name).result()
    sessions.apply(name, first.action)
    sessions.ask(name).result()
    sessions.move_to(name, start)
    again = sessions.ask(name).result()
    assert (again.action, again.root_visits) == (first.action, 25)
    assert start.before.ply == 0 and start.before.before is None


def test_a_game_that_is_over_has_a_result(sessions):
    name = sessions.open()
    game = sessions.position(name)
    while game.result is None:
        game = sessions.apply(name, int(sessions.ask(name, simulations=2).result().action))
    over = sessions.ask(name).result()
    assert (over.action, over.values.tolist()) == (NO_ACTION, list(game.result))
    assert over.owners.shape == (3, 3, 3) and np.allclose(over.owners.sum(axis=-1), 1)
    with pytest.raises(UsageError, match="game is over"):
        sessions.apply(name, 0)


def test_the_tree_that_was_not_searched_for_the_longest_time_makes_room(sessions):
    names = [sessions.open() for _ in range(33)]
    for answer in [sessions.ask(name, simulations=4) for name in names[:32]]:
        answer.result()
    for name in (names[0], names[32]):
        sessions.ask(name, simulations=4).result()
    visits = [sessions.ask(names[n], simulations=0).result().root_visits for n in (0, 2, 32)]
    assert visits == [9, 5, 5], "those that were searched last are kept"
    assert sessions.ask(names[1], simulations=0).result().root_visits == 1


def test_a_tree_without_room_begins_anew(sessions):
    name = sessions.open()
    visits = [sessions.ask(name).result().root_visits for _ in range(3)]
    assert visits == [25, 49, 25], "of 64 nodes, 49 leave no room for 24"


def test_a_budget_of_time_grows_when_simulations_turn_out_to_be_fast(sessions, monkeypatch):
    name = sessions.open()
    monkeypatch.setattr(sessions._searcher, "_seconds", {1: 1.0, 32: 32.0})
    assert sessions.ask(name, seconds=9).result().simulations == 32, "not 8: half of 64 nodes"
    monkeypatch.setattr(sessions._searcher, "_seconds", {1: 1.0, 32: 32.0})
    assert sessions.ask(name, simulations=8).result().simulations == 8


def test_sessions_that_wait_for_one_another_share_the_time(monkeypatch):
    """Of this engine, which searches one at a time."""
    sessions = three_players()
    names = [sessions.open() for _ in range(4)]
    monkeypatch.setattr(searcher, "_GATHERING", 0.1)
    found = []
    for together in (names[:1], names):
        monkeypatch.setattr(sessions._searcher, "_seconds", {1: 1.0})
        asked = [sessions.ask(name, seconds=9) for name in together]
        found.append([one.result().simulations for one in asked])
    for name in names:
        sessions.close(name)
    assert found[0] == [32], "grown from 8 to half of the 64 nodes"
    assert found[1][0] <= 8, "at most grown from 2"


def test_an_answer_that_is_cancelled_is_not_searched(sessions):
    name = sessions.open()
    asked = [sessions.ask(name, simulations=60) for _ in range(3)]
    assert asked[2].cancel()
    assert [one.result().root_visits for one in asked[:2]] == [61, 61]


def test_moves_are_drawn_by_temperature(sessions):
    name = sessions.open()
    drawn = {
        int(sessions.ask(name, simulations=0, temperature=2.0).result().action) for _ in range(9)
    }
    assert len(drawn) > 2
    kept = {int(sessions.ask(name, simulations=0).result().action) for _ in range(3)}
    assert len(kept) == 1


def test_owners_and_margin_are_told_from_the_first_players_side(sessions):
    """Ply 1 is the second player's: chances and margin are the network's, turned round."""
    name = sessions.open(moves=["B2"])
    told = sessions.ask(name, simulations=8).result()
    own, other, nobody = np.moveaxis(softmax(OWNERS, axis=-1), -1, 0)
    expected = np.stack([other, own, nobody], axis=-1)
    assert told.owners == pytest.approx(expected, abs=1e-5)
    assert told.margin == pytest.approx(-9 * LEAD)
    assert told.mover == 1


def test_an_error_of_a_search_is_told_and_the_sessions_live_on(sessions, monkeypatch):
    name = sessions.open()
    with monkeypatch.context() as patch:
        patch.setattr(sessions.programs, "report", Mock(side_effect=ZeroDivisionError("broken")))
        with pytest.raises(ZeroDivisionError, match="broken"):
            sessions.ask(name).result(timeout=20)
    assert sessions.ask(name).result(timeout=20).root_visits == 25
