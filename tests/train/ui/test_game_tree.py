"""The tree of a game and its variations, and its clocks."""

import pytest

from train.ui.game_tree import Clocks, ClockSettings, GameTree, path_to
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.notation import parse_action

RULES = PRESETS["wallzero-4stone"]


def play(tree, *moves):
    return [tree.play(parse_action(move, grid=7).action) for move in moves]


def test_variations_hang_where_they_branch_off_once():
    tree = GameTree(RULES)
    first, second = play(tree, "C3", "D3")
    tree.current = first
    (other,) = play(tree, "E3")
    assert first.children == [second, other]
    assert [node.text for node in path_to(other)] == ["", "C3", "E3"]
    tree.promote(other)
    assert first.children == [other, second]
    assert len(other.position.actions) == 2
    tree.current = tree.root
    assert play(tree, "C3", "D3") == [first, second], "plies that were tried are found again"
    assert len(tree) == 4


def test_removal_takes_what_follows_and_steps_back():
    tree = GameTree(RULES)
    first, *_ = play(tree, "C3", "D3", "E3")
    tree.remove(first)
    assert tree.current is tree.root
    assert len(tree) == 1
    with pytest.raises(ValueError, match="the start of a game cannot be taken back"):
        tree.remove(tree.root)
    with pytest.raises(ValueError, match="node: 1 is not a position"):
        tree.node(1)


def test_only_the_clock_of_the_player_to_move_runs():
    now = [100.0]
    clocks = Clocks(ClockSettings(1.0, 5.0), [60.0] * 2, now=lambda: now[0])
    now[0] += 30
    assert [clocks.left(player) for player in (0, 1)] == [60, 60]
    clocks.start(0)
    now[0] += 20
    clocks.start(1)
    now[0] += 7
    assert [clocks.left(player) for player in (0, 1)] == [40, 53]
    clocks.stop()
    now[0] += 500
    assert clocks.left(1) == 53
    clocks.start(1)
    now[0] += 60
    assert clocks.left(1) == 0
