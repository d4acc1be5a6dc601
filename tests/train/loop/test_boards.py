"""Boards are shared among the rule sets by weight, and counted by rule set."""

import json

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.loop.selfplay import (
    BoardSums,
    figures_by_rules,
    rule_set_of_boards,
    rules_of_board,
    variants_of,
)
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.state import make_variant

MIX = ("--rules", "hkoi=2,wallzero-empty,wallzero-4stone=5")


@pytest.mark.parametrize(
    ("boards", "shares"), [(8, [2, 1, 5]), (16, [4, 2, 10]), (3, [1, 1, 1]), (4, [1, 1, 2])]
)
def test_boards_are_shared_by_weight_and_each_set_has_one(boards, shares):
    config = tiny.config(*MIX, "--selfplay.boards", str(boards))
    assert np.bincount(rule_set_of_boards(config)).tolist() == shares


def test_neighbours_have_nearly_the_shares_of_all():
    config = tiny.config(*MIX, "--selfplay.boards", "64")
    parts = np.split(rule_set_of_boards(config), 4)
    for part in parts:
        assert (np.abs(np.bincount(part, minlength=3) - [4, 2, 10]) <= 1).all()


def test_each_board_has_its_rules_in_a_common_grid():
    small = {"size": 4, "stones": 1, "order": [0, 1]}
    rules = f'["hkoi", {{"rules": {str(small).replace(chr(39), chr(34))}}}]'
    config = tiny.config(
        *("--rules", rules, "--network.playable", "true", "--network.planes", "BTRV")
    )
    variants = variants_of(config)
    four = Rules.from_dict(small)
    for board in range(config.selfplay.boards):
        own = rules_of_board(config, board)
        assert own in (PRESETS["hkoi"], four)
        wanted = make_variant(own, grid=7, stones=4)
        for found, expected in zip(
            jax.tree.leaves(jax.tree.map(lambda x, b=board: x[b], variants)),
            jax.tree.leaves(wanted),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("rules", "red"),
    [
        (("hkoi", "wallzero-empty"), 0.25 + 0.5 / 2),
        (("playwallgo-3p", "three"), 0.25 + 0.5 / 3),
    ],
)
def test_figures_are_sums_of_the_boards_of_a_rule_set(rules, red):
    """Red wins a quarter of the games, half of them are drawn."""
    three = {"players": 3, "stones": 2, "order": [0, 1, 2, 0, 1, 2]}
    listed = [{"rules": three, "name": name} if name == "three" else name for name in rules]
    config = tiny.config("--rules", json.dumps(listed), "--selfplay.boards", "4")
    owner = rule_set_of_boards(config)
    games = np.array([1.0, 2.0, 0.0, 4.0], np.float32)
    sums = BoardSums(games, 10 * games, games / 4, games / 2)
    found = figures_by_rules(config, sums)
    for number, name in enumerate(rules):
        own = games[owner == number].sum()
        assert found[name]["games"] == own
        assert found[name]["mean_length"] == (10 if own else None)
        assert found[name]["red_win_rate"] == (pytest.approx(red) if own else None)
        assert found[name]["draw_rate"] == (0.5 if own else None)


def test_shares_of_plies_follow_the_weights_and_not_the_lengths_of_games():
    config = tiny.config("--rules", "hkoi=3,wallzero-empty", "--selfplay.boards", "4")
    owner, plies = rule_set_of_boards(config), config.selfplay.plies
    games = np.where(owner == 0, 1, 7).astype(np.float32)
    nothing = np.zeros(4, np.float32)
    found = figures_by_rules(config, BoardSums(games, plies / games, nothing, nothing))
    assert [found[name]["positions"] for name in ("hkoi", "wallzero-empty")] == [3 * plies, plies]
