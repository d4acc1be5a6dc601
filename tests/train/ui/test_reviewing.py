"""Which line of a table is reviewed, what is refused, and how a finished review is told."""

import asyncio

import numpy as np
import pytest

from tests.support.play import PlainThinker
from train.runtime.errors import UsageError
from train.ui import reviewing
from train.ui.games.game_tree import GameTree
from train.ui.games.seats import Seat
from train.ui.games.table import ANALYSE, Table
from train.ui.reviewing import MAX_REVIEWS, Reviewer, game_of, reviewed_line
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.notation import parse_action
from wallgo_jax.view.game_replay import replay_moves

RULES = PRESETS["wallzero-empty"]


def table_of(*moves):
    table = Table(GameTree(RULES), [Seat("person")] * 2, PlainThinker())
    for move in moves:
        table.play(move)
    return table


def test_the_game_that_is_played_is_reviewed_whole():
    table = table_of("A1", "B2", "C3")
    table.go(table.tree.root.number)
    assert [node.text for node in reviewed_line(table)] == ["", "A1", "B2", "C3"]
    game = game_of(RULES, reviewed_line(table))
    wanted = replay_moves(RULES, [parse_action(move, grid=7) for move in ("A1", "B2", "C3")])
    assert (game.actions, game.movers) == (wanted.actions, wanted.movers)
    assert game.movers == (0, 1, 1)
    assert np.array_equal(game.states[-1].position.stones, wanted.states[-1].position.stones)


def test_in_analysis_the_line_that_is_looked_at_is_reviewed():
    table = table_of("A1", "B2")
    table.set_mode(ANALYSE)
    table.go(table.tree.root.number)
    table.play("D4")
    table.play("E5")
    table.take_back()
    assert [node.text for node in reviewed_line(table)] == ["", "D4"]
    table.go(table.tree.root.number)
    assert [node.text for node in reviewed_line(table)] == ["", "A1", "B2"]


def reviewed(monkeypatch, table, review, times=1, **options):
    """The names of reviews of a table by a stub, and what the table says in the end."""
    monkeypatch.setattr(Reviewer, "_review", lambda self, table, line, on_share: review(on_share))
    monkeypatch.setattr(reviewing, "draw_review", lambda found, theme: f"<p>{theme}")

    async def body():
        reviewer, names = Reviewer(), []
        for _ in range(times):
            reviewer.start(table, **options)
            assert reviewer.is_reviewing
            while table.review.is_running:
                await asyncio.sleep(0.001)
            names.append(table.review.name)
        await asyncio.sleep(0)
        assert not reviewer.is_reviewing
        return reviewer, names

    return asyncio.run(body())


class Found:
    moves = ()
    accuracy = (87.6, None)

    def to_dict(self):
        return {"moves": 1}


def test_a_finished_review_is_kept_and_the_oldest_is_dropped(monkeypatch):
    table = table_of("A1")
    found = Found()
    found.moves = [type("Move", (), {"grade": type("Grade", (), {"name": "blunder"})})]
    reviewer, names = reviewed(monkeypatch, table, lambda on: found, MAX_REVIEWS + 1, theme="dark")
    assert table.review.to_dict()["accuracy"] == [88, None]
    assert table.tip.mark == "??"
    assert reviewer.find(names[0]) is None
    assert reviewer.find(names[-1]) == ("<p>dark", '{"moves": 1}\n')


def test_what_fails_is_said_at_the_table(monkeypatch):
    def refuse(on_share):
        raise UsageError("no player for these rules")

    table = table_of("A1")
    reviewed(monkeypatch, table, refuse)
    assert (table.review.error, table.review.name) == ("no player for these rules", "")

    def fail(on_share):
        raise KeyError("x")

    reviewed(monkeypatch, table, fail)
    assert table.review.error == "no review; the server's console says why"


def test_reviews_are_refused_in_one_line():
    async def body():
        reviewer = Reviewer()
        with pytest.raises(ValueError, match="there is no move to review"):
            reviewer.start(table_of())
        with pytest.raises(ValueError, match="theme: 'pink' is not one of auto, light, dark"):
            reviewer.start(table_of("A1"), theme="pink")

    asyncio.run(body())
