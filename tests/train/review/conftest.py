"""The network that reviews, and the game that it reviews."""

from pathlib import Path

import pytest

from tests.support.learner import tiny
from train.checkpoints import exported
from train.network.build import network_for
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import Game, replay_moves

MOVES = "A1 C3 A1->A1:W1 C3->C3:W0 A1->A1:W2"


@pytest.fixture(scope="session")
def moves() -> str:
    return MOVES


@pytest.fixture(scope="session")
def game() -> Game:
    """A finished game of the tiny rules."""
    return replay_moves(tiny.RULES, parse_moves(MOVES, grid=3))


@pytest.fixture
def folder(tmp_path) -> Path:
    """An exported folder of the smallest network, whose programs all tests share."""
    path, config = tmp_path / "model", tiny.config()
    weights = tiny.new_weights(network_for(config.network, 2), 3)
    exported.write_model(path, weights, config, {"run": "tiny"})
    return path
