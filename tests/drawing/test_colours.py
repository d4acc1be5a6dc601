"""Players can be told apart in grey and by colour-blind readers; scales are even and no player's.

Dichromats are simulated after Machado, Oliveira, Fernandes, "A Physiologically-based Model for
Simulation of Color Vision Deficiency" (2009): its matrices of severity 1, on linear RGB.
"""

import itertools

import numpy as np
import pytest

from wallgo_jax.drawing import scale
from wallgo_jax.drawing.theme import DARK, LIGHT, PATTERN, mix

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
VISIONS = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Side by side, patches are noticed to differ from about 2.3 units of CIELAB on (Mahy, Van Eycken,
# Oosterlinck, "Evaluation of Uniform Color Spaces Developed after the Adoption of CIELAB and
# CIELUV", 1994). Bars as thin as a wall need several times as much (Stone, Szafir, Setlur, "An
# Engineering Model for Color Difference as a Function of Size", 2014), and readers compare walls
# that lie apart: five noticeable differences in grey, ten in colour.
LEAST_GREY, LEAST_COLOUR = 12.0, 25.0
# Territory is broad and has a pattern besides.
LEAST_TINT = 5.0


def linear(colour):
    """float[3]: linear RGB of `#rrggbb`."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """float[3]: CIELAB of linear RGB, white point D65."""
    matrix = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = (
        ratio ** (1 / 3) if ratio > 0.008856 else 7.787 * ratio + 16 / 116
        for ratio in matrix @ rgb / matrix.sum(axis=1)
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def seen(colour, vision):
    return lab(np.clip(np.asarray(VISIONS[vision]) @ linear(colour), 0, 1))


def contrast(one, other, vision="normal"):
    """The contrast ratio of the Web Content Accessibility Guidelines, as a reader sees it."""
    seen = (np.clip(np.asarray(VISIONS[vision]) @ linear(c), 0, 1) for c in (one, other))
    low, high = sorted(0.05 + rgb @ [0.2126, 0.7152, 0.0722] for rgb in seen)
    return high / low


def test_the_measure_knows_its_ends():
    np.testing.assert_allclose(seen("#ffffff", "normal"), [100, 0, 0], atol=0.01)
    np.testing.assert_allclose(seen("#ff0000", "normal"), [53.24, 80.09, 67.20], atol=0.05)
    red, green = (seen(colour, "deutan") for colour in ("#b09b1c", "#c99b1c"))
    assert np.linalg.norm(red - green) < np.linalg.norm(
        lab(linear("#b09b1c")) - lab(linear("#c99b1c"))
    )
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@THEMES
@pytest.mark.parametrize("vision", VISIONS)
def test_players_differ_for_every_reader(theme, vision):
    for one, other in itertools.combinations(theme.players, 2):
        assert np.linalg.norm(seen(one, vision) - seen(other, vision)) > LEAST_COLOUR
    for one, other in itertools.combinations((*theme.tints, theme.tile), 2):
        assert np.linalg.norm(seen(one, vision) - seen(other, vision)) > LEAST_TINT


@THEMES
def test_players_differ_in_grey(theme):
    for one, other in itertools.combinations(theme.players, 2):
        assert abs(seen(one, "normal")[0] - seen(other, "normal")[0]) > LEAST_GREY


@THEMES
def test_letters_rims_and_words_stand_out(theme):
    """At least 4.5 for text and 3 for shapes, as the guidelines ask."""
    for player, letter, edge in zip(theme.players, theme.letters, theme.edges, strict=True):
        assert contrast(letter, player) > 4.5
        assert contrast(edge, theme.tile) > 3 and contrast(edge, theme.page) > 3
    assert contrast(theme.ink, theme.page) > 4.5 and contrast(theme.quiet, theme.page) > 4.5


@THEMES
@pytest.mark.parametrize("vision", VISIONS)
def test_patterns_rims_and_letters_stand_out_for_every_reader(theme, vision):
    """Shapes that tell players apart, as each reader sees them; letters on stones are large."""
    own = zip(theme.players, theme.tints, theme.edges, theme.letters, strict=True)
    for player, tint, edge, letter in own:
        pattern = mix(edge, tint, PATTERN)
        assert contrast(pattern, tint, vision) > 3
        assert contrast(edge, tint, vision) > 3 and contrast(edge, theme.tile, vision) > 3
        assert contrast(letter, player, vision) > 3


def test_red_is_red_and_blue_is_blue():
    for theme in (LIGHT, DARK):
        (red, green, blue), (_, _, other_blue) = linear(theme.players[0]), linear(theme.players[1])
        assert red > 2 * max(green, blue)
        assert other_blue == max(linear(theme.players[1])) and other_blue > 2 * blue


@THEMES
def test_scales_are_even_and_no_players_hue(theme):
    for end in (theme.heat, theme.chill):
        ramp = [seen(colour, "normal") for colour in scale.ramp(theme.tile, end)]
        steps = np.linalg.norm(np.diff(ramp, axis=0), axis=1)
        assert steps.max() < 1.5 * steps.min()
        lightness = np.diff([colour[0] for colour in ramp])
        assert (lightness < 0).all() or (lightness > 0).all()
        assert min(hue_distance(end, player) for player in theme.players) > 10
    assert scale.shade("#123456", "#abcdef", 0.0) == "#123456"
    assert scale.shade("#123456", "#abcdef", 1.0) == "#abcdef"


def hue_distance(one, other):
    """Degrees between the hues of two colours in CIELAB."""
    angles = [np.degrees(np.arctan2(*seen(colour, "normal")[:0:-1])) for colour in (one, other)]
    return abs((angles[0] - angles[1] + 180) % 360 - 180)
