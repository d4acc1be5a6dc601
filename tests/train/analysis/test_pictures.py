"""Pictures of attention and ownership hold every board, in the colours of what they show."""

from xml.etree import ElementTree

import numpy as np
import pytest

from train.analysis import attention, pictures
from wallgo_jax.drawing.theme import LIGHT
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import Game, replay_moves
from wallgo_jax.view.snapshot import NOBODY

SVG = "{http://www.w3.org/2000/svg}"
RULES = Rules(size=3, stones=1, start=((0, 0, 0), (2, 2, 1)), order=())
MOVES = "A1->A1:W1 C3->C2:W2 A1->A2:W1 C2->C2:W3 A2->A3:W1"
"""Red walls off column A, with a wall of Blue's in column C."""


@pytest.fixture(scope="module")
def game() -> Game:
    return replay_moves(RULES, parse_moves(MOVES, grid=3))


def test_constant_maps_become_zeros():
    even = np.full((3, 3), 1 / 9, np.float32)
    rounded = even * (1 + 1e-7 * np.arange(9).reshape(3, 3)).astype(np.float32)
    slope = np.arange(9, dtype=np.float32).reshape(3, 3)
    zeros, also_zeros, stretched = pictures.normalised(np.stack([even, rounded, 2 + 3 * slope]))
    assert not zeros.any() and not also_zeros.any()
    np.testing.assert_allclose(stretched, slope / 8, rtol=1e-6)


@pytest.fixture(scope="module")
def raw() -> np.ndarray:
    """[2, 2, 3, 3]: weights of two T blocks' two heads, drawn at random."""
    weights = np.random.default_rng(0).random((2, 2, 9)).astype(np.float32)
    return (weights / weights.sum(-1, keepdims=True)).reshape(2, 2, 3, 3)


def attention_picture(raw, state: State, theme: str = "light"):
    return pictures.attention_picture(raw, (1, 3), state, 3, name="seer", theme=theme)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_attention_as_svg(game, raw, theme):
    picture = attention_picture(raw, game.states[2], theme)
    root = ElementTree.fromstring(pictures.svg(picture))
    assert len(list(root.iter(SVG + "svg"))) == 1 + 2 * (2 + 1)  # T blocks, heads and their mean
    texts = [e.text for e in root.iter(SVG + "text")]
    for caption in ("block 1 head 1: ", "block 3 head 2: ", "block 3 mean of heads: "):
        assert sum(text.startswith(caption) for text in texts) == 1
    assert {"0", "0.5", "1"} <= set(texts)  # the figures of the scale
    assert "seer: attention of A2 · ply 2 · Red to move" in texts
    frames = [e for e in root.iter(SVG + "rect") if e.get("stroke-width") == "5"]
    assert len(frames) == 6


def test_colours_follow_the_maps(game, raw):
    maps = raw.reshape(4, 9)
    picture = attention_picture(raw, game.states[2])
    heads = [panel for panel in picture.panels if "mean" not in panel.caption]
    for panel, values in zip(heads, maps, strict=True):
        assert panel.colours[values.argmax()] == picture.theme.heat
        assert panel.colours[values.argmin()] == picture.theme.tile
    mean = raw[0].mean(0).reshape(9)
    assert picture.panels[2].colours[mean.argmax()] == picture.theme.heat
    assert picture.panels[2].notes == tuple(f"{100 * share:.2f} %" for share in mean)


def ownership_picture(predicted, game: Game):
    true = attention.true_ownership(game.states[-1])
    return pictures.ownership_picture(
        predicted, true, game.states[1], game.states[-1], error=0.25, name="seer"
    )


def test_ownership_as_svg(game):
    shares = np.random.default_rng(0).random((3, 3, 3)).astype(np.float32)
    picture = ownership_picture(shares / shares.sum(0), game)
    root = ElementTree.fromstring(pictures.svg(picture))
    assert len(list(root.iter(SVG + "svg"))) == 3
    texts = [e.text for e in root.iter(SVG + "text")]
    assert "predicted at ply 1 · mean squared error 0.250" in texts
    assert "true at ply 5 · over, Blue won" in texts
    assert {"Red's", "Blue's", "nobody's"} <= set(texts)
    end, (red, blue, _) = picture.panels[1], picture.scales
    assert len(set(end.colours[::3])) == len(set(end.colours[1::3])) == 1
    assert end.colours[0] == red.colours[-1]  # column A: Red for sure
    assert end.colours[1] == blue.colours[-1]
    assert end.owners == ((0, 1.0), (1, 1.0), (1, 1.0)) * 3


def test_even_ownership_is_left_bare(game):
    even = np.full((3, 3, 3), 1 / 3, np.float32)
    picture = ownership_picture(even, game)
    assert set(picture.panels[0].colours) == {picture.theme.tile}
    assert {strength for _, strength in picture.panels[0].owners or ()} == {0.0}


def test_nobodys_cells_are_hatched_and_undecided_ones_are_empty(game):
    shares = np.zeros((3, 3, 3), np.float32)
    shares[[0, 2], 0] = [[0.25], [0.75]]  # the first row is nobody's by 0.5
    shares[:2, 1:] = 0.5  # Red's or Blue's, undecided
    panel = ownership_picture(shares, game).panels[0]
    assert panel.owners is not None
    assert panel.owners[:3] == ((NOBODY, 0.5),) * 3
    assert {strength for _, strength in panel.owners[3:]} == {0.0}
    assert set(panel.colours[3:]) == {LIGHT.tile} and LIGHT.tile not in panel.colours[:3]
