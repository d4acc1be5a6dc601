"""Animations show each position at its time."""

import io
import re

import cairosvg
import numpy as np
import pytest
from PIL import Image

from tests.drawing.conftest import SVG, elements
from wallgo_jax import render
from wallgo_jax.drawing import animation as animation_lib
from wallgo_jax.drawing.layout import Layout
from wallgo_jax.drawing.theme import LIGHT
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import NOT_PLACED
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_moves
from wallgo_jax.view.snapshot import take_snapshot


def value_at(animation, time, total):
    """An animation's value at a time: that of the step it is in, or one between two steps."""
    share = time / total
    times = [float(part) for part in animation.get("keyTimes").split(";")]
    values = animation.get("values").split(";")
    assert len(times) == len(values) and times[0] == 0 and times == sorted(times)
    here = max(i for i, start in enumerate(times) if start <= share)
    if animation.get("calcMode") == "discrete" or here == len(times) - 1:
        return values[here]
    assert times[-1] == 1
    part = (share - times[here]) / (times[here + 1] - times[here])
    a, b = (np.array([float(x) for x in values[i].split()]) for i in (here, here + 1))
    return tuple(a + part * (b - a))


def shown_at(element, attribute, time, total):
    """An element's attribute at a time; its own where nothing animates it."""
    for animation in element:
        if animation.get("attributeName") == attribute:
            return value_at(animation, time, total)
    return element.get(attribute)


def test_a_film_shows_each_position_at_its_time(four):
    game, _ = four
    svg = render.animation(game, seconds=2.0)
    layout, total = Layout(7, 7), 2.0 * len(game.states) + 4
    durations = {
        a.get("dur") for tag in ("animate", "animateTransform") for a in elements(svg, tag)
    }
    assert durations == {f"{total:g}s"}
    assert "indefinite" in svg
    assert "indefinite" not in render.animation(game, seconds=2.0, loop=False)
    groups = [e for e in elements(svg, "g") if (e.get("transform") or "").startswith("translate")]
    groups_of = {kind: [] for kind in ("1", "5")}
    for group in elements(svg, "g"):
        for rect in group.findall(SVG + "rect"):
            if rect.get("fill") in LIGHT.tints:
                groups_of["5"].append(group)
            elif rect.get("stroke-width") == "1":
                groups_of["1"].append(group)
    bars, owned = groups_of["1"], groups_of["5"]
    for frame, state in enumerate(game.states):
        time = 2.0 * (frame + animation_lib.SETTLED)
        stones = set()
        for group in groups:
            if float(shown_at(group, "opacity", time, total) or 1) == 0:
                continue
            place = shown_at(group, "transform", time, total)
            numbers = re.findall(r"[\d.]+", place) if isinstance(place, str) else place
            stones.add(tuple(float(x) for x in numbers))
        on_board = [cell for cell in np.ravel(state.position.stones) if cell != NOT_PLACED]
        assert stones == {layout.centre(int(cell)) for cell in on_board}
        standing = sum(float(shown_at(bar, "opacity", time, total) or 1) for bar in bars)
        assert standing == sum(int(word).bit_count() for word in np.ravel(state.position.walls))
        tinted = [0] * 4
        for group in owned:
            player = LIGHT.tints.index(next(iter(group.iter(SVG + "rect"))).get("fill"))
            tinted[player] += int(shown_at(group, "opacity", time, total) or 1)
        assert tinted == list(take_snapshot(state).territory)


def test_a_film_without_a_player_shows_the_end(four):
    """A viewer that plays no animations sees every stone and wall of the last position."""
    game, _ = four
    still = Image.open(io.BytesIO(cairosvg.svg2png(render.animation(game).encode())))
    last = Image.open(io.BytesIO(render.png(render.svg(game.states[-1]), scale=1)))
    difference = np.asarray(still).astype(int) - np.asarray(last)
    assert np.abs(difference).max() < 10  # edges drawn twice are a shade darker


def test_stones_go_round_corners():
    rules = Rules(size=3, stones=1, order=(0, 1))
    game = replay_moves(rules, parse_moves("A1 C3 A1->A1:W1 C3->C3:W0 A1->B2:W1", grid=3))
    svg = render.animation(game, seconds=1.0)
    (red, _) = [e for e in elements(svg, "g") if (e.get("transform") or "").startswith("trans")]
    half = shown_at(red, "transform", 5 + animation_lib.GLIDE / 2, 6 + 4)
    assert half == pytest.approx(Layout(3, 3).centre(3))


def test_a_gif_has_a_frame_a_position(small):
    image = Image.open(io.BytesIO(render.gif(small, seconds=0.5)))
    assert image.n_frames == len(small.states) == 6
    assert image.size == (192, 240) and image.info["duration"] == 500
    image.seek(5)
    assert image.info["duration"] == 3500
    assert min(image.convert("RGB").getpixel((0, 0))) > 250


@pytest.mark.parametrize("seconds", [0, 0.019, 601, float("nan")])
def test_a_ply_takes_time(small, seconds):
    for make in (render.animation, render.page, render.gif):
        with pytest.raises(ValueError, match="ply"):
            make(small, seconds=seconds)


def test_the_time_of_a_film_is_not_rounded(small):
    found = set(re.findall('dur="(.*?)s"', render.animation(small, seconds=0.0234)))
    assert [float(duration) for duration in found] == [pytest.approx(6 * 0.0234 + 4, abs=1e-6)]
