"""Games and positions of any rules come back from every text that holds them."""

import functools
import random
import tempfile
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.formats.test_diagram import assert_same
from tests.support.game.strategies import games
from tests.support.reference.games import Record, random_game
from wallgo_jax import notation
from wallgo_jax.formats import diagram, hkoi_code, records
from wallgo_jax.game.rules import PRESETS, TIE_RULES, Rules
from wallgo_jax.view.game_replay import Game, replay_actions, replay_moves

# Players, stones, sizes of boards and their grids; a program serves all tests of a shape.
SHAPES = {
    "small": (2, 1, (3,), (None,)),
    "a larger grid": (2, 1, (3, 5), (9,)),
    "two players": (2, 4, (4, 7), (7,)),
    "three players": (3, 2, (3, 5, 7), (7,)),
}


@functools.cache
def drawn_games(shape: str) -> list[tuple[Record, Game]]:
    """Whole games of a shape: the slow referee's records, and the same games played."""
    players, stones, sizes, grids = SHAPES[shape]
    found = []

    @hypothesis.settings(max_examples=5)
    @hypothesis.given(games(sizes=sizes, players=players, stones=stones, grids=grids))
    def draw(record):
        rules = Rules.from_dict(record.rules)
        found.append((record, replay_actions(rules, record.actions, grid=record.grid)))

    draw()
    return found


@pytest.fixture(params=SHAPES)
def drawn(request) -> list[tuple[Record, Game]]:
    return drawn_games(request.param)


@pytest.fixture(scope="module", params=PRESETS)
def preset_game(request, conformance) -> Game:
    """A whole game of each preset."""
    return replay_actions(PRESETS[request.param], conformance[request.param][5]["actions"])


# Diagrams.


def test_diagrams_hold_every_position(drawn):
    for _, game in drawn:
        for state in (*game.states[::9], game.states[-1]):
            assert_diagram_comes_back(state)
            ended = state.position._replace(terminated=np.bool_(True))  # as an illegal action would
            assert_diagram_comes_back(state._replace(position=ended))


def test_diagrams_hold_positions_of_every_preset(preset_game):
    for state in (*preset_game.states[::7], preset_game.states[-1]):
        assert_diagram_comes_back(state)


def assert_diagram_comes_back(state) -> None:
    """Nothing but the history is lost, and the text that is drawn again is the same."""
    text = diagram.draw(state)
    back = diagram.parse(text)
    assert_same(state, back)
    assert diagram.draw(back) == text


# Records.


def test_records_hold_every_game_and_its_beginnings(drawn):
    for record, game in drawn:
        assert game.is_over
        assert game.rewards == pytest.approx(record.rewards[-1])
        beginnings = [
            replay_actions(game.rules, record.actions[:plies], grid=record.grid)
            for plies in (0, 1, len(record.actions) - 1)
        ]
        played = [game, *beginnings]
        written = [records.of_game(each) for each in played]
        assert [record.result for record in written[1:]] == [None] * 3
        assert_records_come_back(written, played)


def test_records_hold_games_of_every_preset(preset_game):
    assert_records_come_back([records.of_game(preset_game)], [preset_game])


def assert_records_come_back(written, played) -> None:
    """A file holds the records, and playing them gives the games."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "games.jsonl"
        records.write(path, written)
        read = list(records.read(path))
    assert read == written
    for record, game in zip(read, played, strict=True):
        assert_same_game(records.replay(record), game)


def assert_same_game(game: Game, other: Game) -> None:
    """Both passed through the same states, to the same end."""
    assert game._replace(states=()) == other._replace(states=())
    jax.tree.map(np.testing.assert_array_equal, game.states, other.states)


# Human notation and the contest's code.


def test_notation_holds_every_game(drawn):
    for _, game in drawn:
        assert_notation_comes_back(game)


def test_notation_holds_games_of_every_preset(preset_game):
    assert_notation_comes_back(preset_game)


def assert_notation_comes_back(game: Game) -> None:
    """With and without colours; and the record of what came back is the game's."""
    for movers in (game.movers, [None] * len(game.actions)):
        words = [
            notation.format_action(action, grid=game.grid, player=mover)
            for action, mover in zip(game.actions, movers, strict=True)
        ]
        notated = notation.parse_moves(" ".join(words), grid=game.grid)
        assert [move.player for move in notated] == list(movers)
        back = replay_moves(game.rules, notated, grid=game.grid)
        assert_same_game(back, game)
        assert records.of_game(back) == records.of_game(game)


@hypothesis.settings(max_examples=5)
@hypothesis.given(
    st.permutations([0, 1] * 4),
    st.none() | st.integers(1, 20),
    st.booleans(),
    st.lists(st.sampled_from(TIE_RULES), unique=True),
    st.integers(0, 2**32 - 1),
)
def test_the_contests_code_holds_every_game_from_an_empty_board(
    order, walls, needs_room, tie, seed
):
    rules = Rules(order=order, walls=walls, stay_needs_room=needs_room, tie=tie)
    record = random_game(random.Random(seed), rules.to_dict(), grid=7)
    game = replay_actions(rules, record.actions)
    assert_same_game(hkoi_code.decode(hkoi_code.encode(game), rules), game)
