"""Reviews of games that a page asks for: what is answered, told meanwhile, and kept."""

import asyncio
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.learner.reports import report_of
from tests.support.play import PlainMachine
from train.engine.searcher import begin_game, play_moves
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.ui import connection, reviewing
from train.ui.connection import Connection
from train.ui.reviewing import MAX_REVIEWS, Reviewer, ReviewRequest, game_of
from wallgo_jax.formats import diagram
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.game.state import initial_state
from wallgo_jax.notation import parse_action
from wallgo_jax.view.game_replay import replay_moves

RULES = PRESETS["wallzero-empty"]
REQUEST = {"type": "review_game", "bgsId": "g", "rules": "wallzero-empty", "moves": ["A1"]}


def test_a_line_of_positions_is_a_game():
    moves = ("A1", "B2", "C3")
    game = game_of(RULES, play_moves(begin_game(RULES), moves))
    wanted = replay_moves(RULES, [parse_action(move, grid=7) for move in moves])
    assert (game.actions, game.movers) == (wanted.actions, wanted.movers)
    assert game.movers == (0, 1, 1)
    assert np.array_equal(game.states[-1].position.stones, wanted.states[-1].position.stones)


def found(*grades):
    """A review of moves with these grades."""
    report = report_of(fetch(initial_state(RULES)), 0, 0.2, simulations=256)
    return SimpleNamespace(
        moves=[SimpleNamespace(grade=SimpleNamespace(name=name)) for name in grades],
        reports=(report,) * (1 + len(grades)),
        accuracy=(87.6, None),
        to_dict=lambda: {"moves": 1},
    )


def stub(monkeypatch, review):
    monkeypatch.setattr(Reviewer, "_review", lambda self, request, on_share: review(on_share))
    monkeypatch.setattr(reviewing, "draw_review", lambda found: "<p>")
    return Reviewer(PlainMachine())


async def test_a_finished_review_is_kept_and_the_oldest_is_dropped(monkeypatch):
    reviewer = stub(monkeypatch, lambda on_share: found("blunder"))
    request = ReviewRequest(**REQUEST)
    answers = [await reviewer.answer(request, print) for _ in range(MAX_REVIEWS + 1)]
    assert not reviewer.is_reviewing
    assert (answers[0]["type"], answers[0]["accuracy"], answers[0]["marks"]) == (
        "game_reviewed",
        [88, None],
        ["??"],
    )
    chances = [each["chances"] for each in answers[0]["evaluations"]]
    assert np.allclose(chances, [[0.6, 0.4]] * 2)
    first, last = (each["review"].removeprefix("reviews/") for each in (answers[0], answers[-1]))
    assert reviewer.find(first) is None
    assert reviewer.find(last) == ("<p>", '{"moves": 1}\n')


async def test_a_page_hears_how_far_its_review_is(monkeypatch):
    def search(on_share):
        for share in (0.0, 0.005, 0.25, 1.0):
            on_share(share)
        time.sleep(0.05)
        return found("good")

    told = []
    page = Connection(PlainMachine(), stub(monkeypatch, search), told.append)
    page.receive(json.dumps(REQUEST))
    while len(told) < 4:
        await asyncio.sleep(0.01)
    progress = {"type": "progress", "bgsId": "g", "stage": "reviewing", "total": 1}
    assert told[:3] == [progress | {"done": share} for share in (0.0, 0.25, 1.0)]
    assert told[3]["success"]


@pytest.mark.parametrize(
    ("error", "word"),
    [(UsageError("no player for these rules"), "no player"), (KeyError("x"), "console")],
)
async def test_what_fails_is_said(monkeypatch, error, word):
    def fail(on_share):
        raise error

    told = []
    monkeypatch.setattr(connection._LOG, "exception", lambda text: None)
    reviewer = stub(monkeypatch, fail)
    page = Connection(PlainMachine(), reviewer, told.append)
    page.receive(json.dumps(REQUEST))
    while not told:
        await asyncio.sleep(0.01)
    assert (told[0]["type"], told[0]["success"], reviewer.is_reviewing) == ("error", False, False)
    assert word in told[0]["error"]


async def test_a_game_may_begin_from_a_position(monkeypatch):
    start = play_moves(begin_game(RULES), ["A1", "B2"])
    request = REQUEST | {"rules": None, "position": diagram.draw(start.state), "moves": ["C3"]}
    games, reviewer = [], Reviewer(PlainMachine())
    monkeypatch.setattr(reviewing, "make_analysis_player", lambda *args, **kwargs: None)
    monkeypatch.setattr(
        reviewing,
        "review_game",
        lambda analyst, game, **kwargs: games.append(game) or found("good"),
    )
    monkeypatch.setattr(reviewing, "draw_review", lambda found: "<p>")
    answer = await reviewer.answer(ReviewRequest(**request), print)
    assert answer["success"] and games[0].movers == (1,) and len(games[0].states) == 2
