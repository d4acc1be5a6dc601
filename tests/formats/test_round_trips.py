"""Games and positions of any rules come back from every text that holds them."""

import random

import jax
import numpy as np
import pytest

from tests.support.game.texts import check_diagram
from tests.support.reference.games import random_game
from tests.support.reference.referee import random_rules
from wallgo_jax import notation
from wallgo_jax.formats import hkoi_code, records
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.view.game_replay import Game, replay_actions, replay_moves

# Players, stones, sizes of boards and their grids, None for the board's own; a program serves all
# tests of a shape.
SHAPES = {
    "small": (2, 1, (3,), (None,)),
    "a larger grid": (2, 1, (3, 5), (9,)),
    "two players": (2, 4, (4, 7), (7,)),
    "three players": (3, 2, (3, 5, 7), (7,)),
}


@pytest.fixture(scope="module", params=[*SHAPES, *PRESETS])
def games(request, conformance) -> list[Game]:
    """Some whole games on any rules of a shape, or one of a preset."""
    if request.param in PRESETS:
        return [replay_actions(PRESETS[request.param], conformance[request.param][5]["actions"])]
    players, stones, sizes, grids = SHAPES[request.param]
    rng, found = random.Random(5), []
    for _ in range(5):
        rules = random_rules(rng, sizes=sizes, players=players, stones=stones)
        record = random_game(rng, rules, grid=rng.choice(grids) or rules["size"])
        found.append(replay_actions(Rules.from_dict(rules), record.actions, grid=record.grid))
        assert found[-1].rewards == pytest.approx(record.rewards[-1])
    return found


def test_diagrams_hold_every_position(games):
    for state in [state for game in games for state in (*game.states[::9], game.states[-1])]:
        ended = state.position._replace(terminated=np.bool_(True))  # as an illegal action would
        for each in (state, state._replace(position=ended)):
            check_diagram(each)


def test_records_hold_every_game_and_its_beginnings(games, tmp_path):
    """A file holds the records, and playing them gives the games."""
    for game in games:
        beginnings = [
            replay_actions(game.rules, game.actions[:plies], grid=game.grid)
            for plies in (0, 1, len(game.actions) - 1)
        ]
        played = [game, *beginnings]
        written = [records.of_game(each) for each in played]
        assert [record.result for record in written] == [game.rewards, None, None, None]
        records.write(tmp_path / "games.jsonl", written)
        read = list(records.read(tmp_path / "games.jsonl"))
        assert read == written
        for record, each in zip(read, played, strict=True):
            assert_same_game(records.replay(record), each)


def assert_same_game(game: Game, other: Game) -> None:
    """Both passed through the same states, to the same end."""
    assert game._replace(states=()) == other._replace(states=())
    jax.tree.map(np.testing.assert_array_equal, game.states, other.states)


def test_notation_holds_every_game(games):
    """With and without colours."""
    for game in games:
        for movers in (game.movers, [None] * len(game.actions)):
            words = [
                notation.format_action(action, grid=game.grid, player=mover)
                for action, mover in zip(game.actions, movers, strict=True)
            ]
            notated = notation.parse_moves(" ".join(words), grid=game.grid)
            assert [move.player for move in notated] == list(movers)
            assert_same_game(replay_moves(game.rules, notated, grid=game.grid), game)


def test_the_contests_code_holds_every_game_from_an_empty_board():
    rng = random.Random(6)
    for _ in range(5):
        rules = random_rules(rng, sizes=(7,), players=2, stones=4)
        rules |= {"start": [], "order": rng.sample([0, 1] * 4, 8)}
        record = random_game(rng, rules, grid=7)
        game = replay_actions(Rules.from_dict(rules), record.actions)
        assert_same_game(hkoi_code.decode(hkoi_code.encode(game), game.rules), game)
