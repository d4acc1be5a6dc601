"""Games to files and back."""

import json

import pytest

from tests.support.play import PlainMachine
from train.ui import saving, wire
from train.ui.game_session import ANALYSE, PLAY, GameSession
from train.ui.game_tree import GameTree
from wallgo_jax.formats import diagram, records
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_action, parse_moves
from wallgo_jax.view.game_replay import replay_moves

RULES = PRESETS["wallzero-4stone"]
MOVES = ("C3", "D3", "E3", "F3", "C3->C4:up")
PEOPLE = ("person", "club")


def a_session():
    tree = GameTree(RULES)
    for move in MOVES:
        tree.play(parse_action(move, grid=7).action)
    end = tree.current
    tree.current = tree.node(1)
    tree.play(parse_action("G7", grid=7).action)
    tree.current = end
    return GameSession(tree, PEOPLE, PlainMachine())


def moves_of(session):
    return [node.text for node in session.tree if node.parent is not None]


def test_records_hold_the_game_and_its_variations():
    ending, text = saving.write_game(a_session())
    assert ending == "jsonl"
    record = records.from_json(text)
    assert record.players == ("person", "machine (club)")
    assert len(records.replay(record).actions) == len(MOVES)
    again = saving.read_game(text, PlainMachine())
    assert again.mode == ANALYSE
    assert sorted(moves_of(again)) == sorted([*MOVES, "G7"])
    assert again.tree.current.text == MOVES[-1]


async def test_a_loaded_game_keeps_the_names_of_its_players_until_it_is_played_on():
    fields = json.loads(saving.write_game(a_session())[1]) | {"players": ["Ada <b>", "x" * 300]}
    session = saving.read_game(json.dumps(fields), PlainMachine())
    names = ("Ada <b>", "x" * 200)
    assert wire.game_view(session, "a")["names"] == names == saving.names_of(session)
    again = saving.read_copy(json.loads(json.dumps(saving.write_copy(session))), PlainMachine())
    assert records.from_json(saving.write_game(again)[1]).players == names
    again.set_mode(PLAY)
    assert records.from_json(saving.write_game(again)[1]).players == ("person", "person")


def test_games_from_a_position_are_saved_as_such():
    session = a_session()
    tree = GameTree(RULES, diagram.parse(diagram.draw(session.tip.state)))
    tree.play(min(tree.current.snapshot.legal))
    ending, text = saving.write_game(GameSession(tree, PEOPLE, PlainMachine()))
    assert ending == "json"
    again = saving.read_game(text, PlainMachine())
    assert again.tree.root.snapshot.stones == session.tip.snapshot.stones
    assert len(again.tree) == 2


def test_a_game_in_a_larger_grid_is_read():
    rules = Rules(size=3, stones=1, order=(0, 1))
    moves = parse_moves("A1 C3 A1->B1:W1", grid=7)
    text = records.to_json(records.of_game(replay_moves(rules, moves, grid=7)))
    assert json.loads(text)["grid"] == 7
    assert moves_of(saving.read_game(text, PlainMachine())) == ["A1", "C3", "A1->B1:right"]


def test_moves_and_diagrams_are_read():
    read = saving.read_game("# wallzero-4stone\n1. R C3 2. B D3", PlainMachine())
    assert moves_of(read) == ["C3", "D3"]
    session = saving.read_game(diagram.draw(a_session().tip.state), PlainMachine())
    assert session.tree.root.snapshot.walls == a_session().tip.snapshot.walls
    assert not session.tree.has_start


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{}", "variant"),
        ('{"position": "x"}', "rules"),
        ("# hkoi\nC3 C3", "C3"),
        ("nonsense", "rules"),
    ],
)
def test_texts_that_are_no_games(text, word):
    with pytest.raises(ValueError, match=word):
        saving.read_game(text, PlainMachine())


async def test_a_copy_sets_the_session_up_again():
    session = a_session()
    session.forfeit = (1, "resigned")
    copy = json.loads(json.dumps(saving.write_copy(session)))
    again = saving.read_copy(copy, PlainMachine())
    assert saving.write_copy(again) == saving.write_copy(session)


@pytest.mark.parametrize(
    "change", [{"plies": [[5, 1]]}, {"tip": -1}, {"seats": []}, {"plies": [[0, 9**9]]}]
)
def test_copies_that_are_broken(change):
    copy = saving.write_copy(a_session()) | change
    with pytest.raises(ValueError, match=r"\w"):
        saving.read_copy(copy, PlainMachine())
