"""The tree of a game and its variations."""

import pytest

from train.ui.game_tree import GameTree, path_to
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.notation import parse_action

RULES = PRESETS["wallzero-4stone"]


def play(tree, *moves):
    return [tree.play(parse_action(move, grid=7).action) for move in moves]


def test_variations_hang_where_they_branch_off():
    tree = GameTree(RULES)
    first, second = play(tree, "C3", "D3")
    tree.current = first
    (other,) = play(tree, "E3")
    assert first.children == [second, other]
    assert [node.text for node in path_to(other)] == ["", "C3", "E3"]
    tree.promote(other)
    assert first.children == [other, second]
    assert len(other.position.actions) == 2


def test_a_ply_that_was_tried_is_found_again():
    tree = GameTree(RULES)
    (first,) = play(tree, "C3")
    tree.current = tree.root
    assert play(tree, "C3") == [first]
    assert len(tree) == 2


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
