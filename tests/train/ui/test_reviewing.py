"""The line of a game that is reviewed, refusals, and finished reviews."""

import asyncio
import time
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from tests.support.learner.reports import report_of
from tests.support.play import PlainMachine
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.ui import reviewing, wire
from train.ui.game_session import ANALYSE, GameSession
from train.ui.game_tree import GameTree
from train.ui.reviewing import MAX_REVIEWS, Reviewer, game_of, reviewed_line
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.game.state import initial_state
from wallgo_jax.notation import parse_action
from wallgo_jax.view.game_replay import replay_moves

RULES = PRESETS["wallzero-empty"]


def session_of(*moves):
    session = GameSession(GameTree(RULES), ["person"] * 2, PlainMachine())
    for move in moves:
        session.play(move)
    return session


def test_the_game_that_is_played_is_reviewed_whole():
    session = session_of("A1", "B2", "C3")
    session.go(session.tree.root.number)
    assert [node.text for node in reviewed_line(session)] == ["", "A1", "B2", "C3"]
    game = game_of(RULES, reviewed_line(session))
    wanted = replay_moves(RULES, [parse_action(move, grid=7) for move in ("A1", "B2", "C3")])
    assert (game.actions, game.movers) == (wanted.actions, wanted.movers)
    assert game.movers == (0, 1, 1)
    assert np.array_equal(game.states[-1].position.stones, wanted.states[-1].position.stones)


def test_in_analysis_the_line_that_is_looked_at_is_reviewed():
    session = session_of("A1", "B2")
    session.set_mode(ANALYSE)
    session.go(session.tree.root.number)
    session.play("D4")
    session.play("E5")
    session.take_back()
    assert [node.text for node in reviewed_line(session)] == ["", "D4"]
    session.go(session.tree.root.number)
    assert [node.text for node in reviewed_line(session)] == ["", "A1", "B2"]


async def reviewed(monkeypatch, session, review, times=1):
    """The names of reviews of a session by a stub, and who made them."""
    monkeypatch.setattr(Reviewer, "_review", lambda self, session, line, on_share: review(on_share))
    monkeypatch.setattr(reviewing, "draw_review", lambda found: "<p>")
    reviewer, names = Reviewer(PlainMachine()), []
    for _ in range(times):
        reviewer.start(session)
        assert reviewer.is_reviewing
        while session.review.is_running:
            await asyncio.sleep(0.001)
        names.append(session.review.name)
    await asyncio.sleep(0)
    assert not reviewer.is_reviewing
    return reviewer, names


def found(*grades):
    """A review of moves with these grades."""
    report = report_of(fetch(initial_state(RULES)), 0, 0.2, simulations=256)
    return SimpleNamespace(
        moves=[SimpleNamespace(grade=SimpleNamespace(name=name)) for name in grades],
        reports=(report,) * (1 + len(grades)),
        accuracy=(87.6, None),
        to_dict=lambda: {"moves": 1},
    )


async def test_a_finished_review_is_kept_and_the_oldest_is_dropped(monkeypatch):
    session, review = session_of("A1"), found("blunder")
    reviewer, names = await reviewed(monkeypatch, session, lambda on: review, MAX_REVIEWS + 1)
    assert session.review.accuracy == (88, None)
    assert session.tip.mark == "??"
    view = wire.game_view(session, "game")
    assert [node[4::2] for node in view["nodes"]] == [[0.6, 256]] * 2, "as the review says"
    assert view["evaluation"]["chances"] == [0.6, 0.4]
    assert reviewer.find(names[0]) is None
    assert reviewer.find(names[-1]) == ("<p>", '{"moves": 1}\n')


async def test_a_review_says_what_it_does_and_how_far_it_is(monkeypatch):
    told, session = [], session_of("A1", "B2")
    session.listen(lambda: told.append(wire.game_view(session, "game")["review"]))

    def search(on_share):
        for share in (0.25, 1.0):
            on_share(share)
            time.sleep(0.05)
        return found("good", "good")

    await reviewed(monkeypatch, session, search)
    assert [each["text"].removeprefix("Reviewing 3 positions: ") for each in told[:3]] == [
        "compiling the search",
        "25 % searched",
        "drawing the page",
    ]
    assert [each["share"] for each in told[:3]] == [0.0, 0.25, 1.0]
    assert all(0 <= each["seconds"] < 60 for each in told)


async def test_what_fails_is_said_at_the_session(monkeypatch):
    with pytest.raises(ValueError, match="there is no move to review"):
        Reviewer(PlainMachine()).start(session_of())
    session, told = session_of("A1"), "no player for these rules"
    await reviewed(monkeypatch, session, Mock(side_effect=UsageError(told)))
    assert (session.review.error, session.review.name) == (told, "")
    await reviewed(monkeypatch, session, Mock(side_effect=KeyError("x")))
    assert session.review.error == "no review; the server's console says why"
