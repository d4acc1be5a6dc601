"""Games to draw, and what a picture holds."""

from xml.etree import ElementTree

import pytest

from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_actions, replay_moves

SMALL = Rules(size=3, stones=1, order=(0, 1), tie=())
MOVES = "A1 C3 A1->B1:W1 C3->C2:W0 B1->A1:W2"
SVG = "{http://www.w3.org/2000/svg}"


def elements(svg, tag):
    return list(ElementTree.fromstring(svg).iter(SVG + tag))


@pytest.fixture(scope="module")
def small():
    return replay_moves(SMALL, parse_moves(MOVES, grid=3))


@pytest.fixture(scope="module")
def four(conformance):
    """A whole game of four players, and its record."""
    record = conformance["playwallgo-4p"][0]
    return replay_actions(Rules.from_dict(record["rules"]), record["actions"]), record
