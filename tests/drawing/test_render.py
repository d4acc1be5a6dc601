"""Text and pictures agree with the referee."""

import io
import re
import sys
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from PIL import Image

import wallgo_jax
from tests.drawing.conftest import MOVES, SMALL, SVG, elements
from wallgo_jax import render
from wallgo_jax.drawing import board, contact_sheet, overlay, raster
from wallgo_jax.drawing.layout import PITCH, Layout
from wallgo_jax.drawing.scale import Scale
from wallgo_jax.drawing.theme import DARK, LIGHT
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import NOT_PLACED
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_actions, replay_moves
from wallgo_jax.view.snapshot import take_snapshot

POSITION = """\
     A   B   C
   +---+---+---+
 1 | R   . r . |
   +=r=+   +=b=+
 2 | .   .   B |
   +   +   +   +
 3 | .   .   . |
   +---+---+---+
Ply 5: Blue to move.
Territory: Red 0, Blue 0.
Last: R B1->A1:down"""


def test_the_env_shows_the_same(small):
    env = wallgo_jax.make(SMALL, planes="B")
    state = jax.jit(env.init)()
    step = jax.jit(env.step)
    for action in small.actions:
        state = step(state, np.int32(action))
    assert render.text(state) == POSITION
    assert render.svg(state) == render.svg(small.states[-1])
    assert state._repr_html_() == render.svg(state)
    assert "Ply 0" in env._repr_html_()
    assert repr(wallgo_jax.make("hkoi", grid=9)) == "WallGo('hkoi', grid=9, planes='BTRH')"


def test_colours_are_not_alone_in_text(four):
    """Without its colour codes a board still tells builders by strokes and owners by letters."""
    game, record = four
    text = re.sub(r"\x1b\[[\d;]+m", "", render.text(game.states[-1], color=True))
    rows = text.splitlines()[1:16]
    snapshot = take_snapshot(game.states[-1])
    for player, (level, upright) in enumerate(("━┃", "═║", "╍╏", "─│")):
        drawn = sum(row.count(level * 3) + row.count(upright) for row in rows)
        assert drawn == sum(wall.builder == player for wall in snapshot.walls)
    for player, letter in enumerate("rbgy"):
        marked = sum(row.count(f".{letter}") for row in rows)
        own = [cell for cell in snapshot.stone_at if snapshot.owner[cell] == player]
        assert marked == record["territory"][player] - len(own)


def test_a_game_as_text(small):
    moves, board = render.game_text(SMALL, small.actions).split("\n\n")
    assert moves.split() == (
        "1. R A1 2. B C3 3. R A1->B1:right 4. B C3->C2:up 5. R B1->A1:down".split()
    )
    assert board == POSITION


def test_ends_are_told_apart(conformance):
    end = render.game_text("hkoi", conformance["hkoi"][0]["actions"]).splitlines()
    assert "Ply 43: over, Red won." in end
    assert "Territory: Red 33, Blue 15." in end
    env = wallgo_jax.make(SMALL, planes="B")
    illegal = jax.jit(lambda: env.step(env.init(), np.int32(0)))()
    assert "Ply 0: over by an illegal action of Red." in render.text(illegal)
    level = replay_moves(SMALL, parse_moves(MOVES + " C2->B2:W3 A1->A1:W1", grid=3))
    assert "Ply 7: over, Blue won." in render.text(level.states[-1])


def test_a_draw_is_a_draw(conformance):
    record = next(game for game in conformance["3x3-1stone"] if not any(game["rewards"]))
    assert "over, a draw." in render.game_text(Rules.from_dict(record["rules"]), record["actions"])


@pytest.mark.parametrize("variant", ["wallzero-4stone", "playwallgo-3p", "3x3-1stone"])
def test_scenes_say_what_an_independent_referee_says(conformance, variant):
    record = conformance[variant][1]
    game = replay_actions(Rules.from_dict(record["rules"]), record["actions"])
    for ply in range(0, len(game.actions), 6):
        snapshot = take_snapshot(game.states[ply])
        assert list(snapshot.territory) == record["territory_by_ply"][ply]
        assert [sorted(cells) for cells in snapshot.reach] == record["reach_by_ply"][ply]
        assert sorted(snapshot.legal) == record["legal"][ply]
        assert (snapshot.player, snapshot.ply) == (record["turns"][ply], ply)
        assert snapshot.has_turn and not snapshot.is_over
    last = take_snapshot(game.states[-1])
    assert list(last.territory) == record["territory"]
    assert last.payoff == pytest.approx(record["rewards"], abs=1e-5)


def test_a_batch_is_no_board(small):
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *small.states[:3])
    for show in (render.text, render.svg):
        with pytest.raises(ValueError, match=r"state: a batch of shape \(3,\), not one board"):
            show(states)


def test_a_picture_tells_stones_walls_and_territory_with_and_without_colour(four):
    """Each stone has its letter; lines on walls differ: none, whole, dashed, dotted; and so do
    patterns of territory."""
    game, record = four
    for state in (*game.states[::9], game.states[-1]):
        snapshot, svg = take_snapshot(state), render.svg(state, caption=False)
        letters = [e.text for e in elements(svg, "text") if e.get("font-weight") == "bold"]
        on_board = [sum(cell != NOT_PLACED for cell in cells) for cells in snapshot.stones]
        assert [letters.count(letter) for letter in "RBGY"] == on_board
        stones = [e for e in elements(svg, "circle") if e.get("r") == "15"]
        assert len(stones) == sum(on_board)
        built = [sum(wall.builder == player for wall in snapshot.walls) for player in range(4)]
        bars = [e.get("fill") for e in elements(svg, "rect") if e.get("stroke-width") == "1"]
        assert [bars.count(colour) for colour in LIGHT.players] == built
        dashes = [e.get("stroke-dasharray") for e in elements(svg, "path")]
        assert [dashes.count(kind) for kind in ("none", "7 5", "0.1 5")] == built[1:]
        fills = [e.get("fill") for e in elements(svg, "rect")]
        assert [fills.count(tint) for tint in LIGHT.tints] == list(snapshot.territory)
        strokes = [e.get("stroke") for e in elements(svg, "path") if e.get("opacity")]
        assert [strokes.count(edge) for edge in LIGHT.edges] == list(snapshot.territory)
    assert list(snapshot.territory) == record["territory"]
    patterns = [board.pattern(owner, 0, 0, LIGHT) for owner in (-1, 0, 1, 2, 3)]
    assert len({re.search(' d="([^"]*)"', pattern)[1] for pattern in patterns}) == 5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_pixels_show_the_board(small, theme):
    """Guards against a document that a converter reads as empty."""
    png = render.png(render.svg(small.states[-1], theme=theme.name), scale=1)
    image = Image.open(io.BytesIO(png)).convert("RGB")
    layout = Layout(3, 3)

    def colour(x, y):
        return "#{:02x}{:02x}{:02x}".format(*image.getpixel((round(x), round(y))))

    red, blue = layout.centre(0), layout.centre(5)
    assert colour(red[0] - 11, red[1]) == theme.players[0]
    assert colour(blue[0] - 11, blue[1]) == theme.players[1]
    assert colour(*layout.centre(4)) == theme.tile
    assert colour(red[0], red[1] + PITCH / 2) in (theme.players[0], theme.accent)
    assert image.size == (192, 240)


def test_a_small_board_in_a_larger_grid():
    game = replay_moves(SMALL, parse_moves("A1 C3", grid=7), grid=7)
    fills = [e.get("fill") for e in elements(render.svg(game.states[-1]), "rect")]
    assert (fills.count(LIGHT.tile), fills.count(LIGHT.rim)) == (9, 40)
    assert render.text(game.states[-1]).splitlines()[2:8:2] == [
        " 1 | R   .   . |",
        " 2 | .   .   . |",
        " 3 | .   .   B |",
    ]
    assert "The board lies in a grid of 7." in render.text(game.states[-1])


def test_reach_is_marked(small):
    plain = elements(render.svg(small.states[-1]), "circle")
    marked = elements(render.svg(small.states[-1], reach=1), "circle")
    # From C2 with a wall above it: B2, C3, and in two steps A2, B1, B3; and C2 itself.
    assert len(marked) - len(plain) == 6
    with pytest.raises(ValueError, match="reach: 2 is not a player from 0 to 1"):
        render.svg(small.states[-1], reach=2)


def test_negative_heat_has_a_minus_beside_positive_heat(small):
    """Without hues both ends of the scale look alike; the bar has a minus over its half, too."""
    plain = len(elements(render.svg(small.states[-1]), "path"))

    def minuses(values):
        svg = render.svg(small.states[-1], heat=values)
        return (len(elements(svg, "path")) - plain) / 2  # a halo and the sign

    assert minuses([-1.0, -2.0, 0.0, 3.0, 0.0, 0.0, 1.0, 1.0, -0.5]) == 3 + 1
    assert minuses(np.arange(9)) == minuses(-np.arange(9)) == minuses(np.zeros(9)) == 0


def test_heat_has_a_scale_and_no_players_hue(small):
    values = np.array([[0, 1, 0], [0, 0.5, 0], [0, 0, -1]])
    svg = render.svg(small.states[-1], heat=values, heat_label="gain")
    fills = {}
    for tile in elements(svg, "rect"):
        for title in tile.iter(SVG + "title"):
            fills[title.text] = tile.get("fill")
    assert fills["B1: 1"] == LIGHT.heat and fills["C3: -1"] == LIGHT.chill
    assert fills["A1: 0"] == LIGHT.tile and fills["B2: 0.5"] not in (LIGHT.tile, LIGHT.heat)
    said = [e.text for e in elements(svg, "text")]
    assert said[-6:] == ["gain", "-1", "-0.5", "0", "0.5", "1"]
    one_sign = [e.text for e in elements(render.svg(small.states[-1], heat=-np.arange(9)), "text")]
    assert one_sign[-4:] == ["value", "0", "-4", "-8"]
    flat = [e.text for e in elements(render.svg(small.states[-1], heat=np.zeros(9)), "text")]
    assert flat[-3:] == ["0", "0.5", "1"]
    with pytest.raises(ValueError, match="heat: 8 values, not 9, one for each cell of the grid"):
        render.svg(small.states[-1], heat=np.zeros(8))
    with pytest.raises(ValueError, match="heat: a value is not finite"):
        render.svg(small.states[-1], heat=np.full(9, np.nan))


def test_painted_cells_keep_stones_in_sight(small):
    snapshot = take_snapshot(small.states[-1])
    colours = [f"#0000{cell:02x}" for cell in range(9)]
    notes = [f"note {cell}" for cell in range(9)]
    drawn = "".join(overlay.paint(snapshot, LIGHT, colours, notes))
    assert re.findall(r'fill="(#0000..)"', drawn) == colours
    assert "<title>C2: note 5</title>" in drawn
    assert len(re.findall("<circle", drawn)) == 2  # bare tile under each stone
    assert "<title>C2</title>" in "".join(overlay.paint(snapshot, LIGHT, colours))
    for what, arguments in (("colours", (colours[1:],)), ("notes", (colours, notes[1:]))):
        said = f"paint: 8 {what}, not 9, one for each cell of the grid"
        with pytest.raises(ValueError, match=said):
            overlay.paint(snapshot, LIGHT, *arguments)


def test_painted_boards_share_a_sheet(small):
    bare = (LIGHT.tile,) * 9
    panels = [
        contact_sheet.Panel(take_snapshot(state), f"board {index} <&>", bare, None, None, index)
        for index, state in enumerate(small.states[:3])
    ]
    scale = Scale("how much", (LIGHT.tile, LIGHT.heat), ((0.0, "low"), (1.0, "high")))
    svg = contact_sheet.draw_panels(
        panels, LIGHT, columns=2, title="three", key="the colours", scales=[scale]
    )
    root = ElementTree.fromstring(svg)
    assert len(elements(svg, "svg")) == 1 + 3
    said = [e.text for e in root.findall(f"./{SVG}text") + root.findall(f"./{SVG}g/{SVG}text")]
    assert said[:5] == ["three", "the colours", "board 0 <&>", "board 1 <&>", "board 2 <&>"]
    assert said[5:] == ["how much", "low", "high"]
    frames = [e for e in elements(svg, "rect") if e.get("stroke") == LIGHT.mark]
    corners = {(float(e.get("x")), float(e.get("y"))) for e in frames}
    assert corners == {(Layout(3, 3).corner(cell)[0] + 1, 31.0) for cell in range(3)}
    places = [e.get("transform") for e in root.findall(f"./{SVG}g") if e.get("transform")]
    assert len(set(places)) == 3  # none over another


def test_a_search_is_drawn(small):
    c2 = 5 * 52
    visits = {c2 + 3 * 4 + 0: 30, c2 + 3 * 4 + 2: 10, c2 + 0 * 4 + 2: 60}
    svg = render.svg(small.states[-1], arrows=visits)
    labels = [e.text for e in elements(svg, "text")]
    assert labels.count("40%") == labels.count("60%") == 2  # a halo and the figure
    assert len(elements(svg, "polygon")) == 1
    with pytest.raises(ValueError, match="arrows: C2->C2:up: the upper side of C2 is a wall"):
        render.svg(small.states[-1], arrows={c2: 1})
    with pytest.raises(ValueError, match="arrows: a weight is negative or not finite"):
        render.svg(small.states[-1], arrows={c2 + 2: -1})
    placing = render.svg(small.states[0], arrows={9 * 52 + 4: 1.0, 9 * 52 + 5: 0.0})
    assert [e.text for e in elements(placing, "text")].count("100%") == 2


def test_batches_are_shown_in_part():
    env = wallgo_jax.make(SMALL, planes="B")
    one = jax.device_get(jax.jit(env.init)())
    states = jax.tree.map(lambda x: np.broadcast_to(x, (5, 4, *np.shape(x))), one)
    html = states._repr_html_()
    assert "16 of 20 boards" in html
    assert html.count("<svg") == 1 + 16
    few = jax.tree.map(lambda leaf: leaf[0, :3], states)
    assert "boards</p>" not in few._repr_html_()
    assert len(elements(render.contact_sheet(few, columns=2), "svg")) == 1 + 3
    with pytest.raises(ValueError, match="columns: 0 is less than one"):
        render.contact_sheet(few, columns=0)
    with pytest.raises(ValueError, match="boards: there is none to draw"):
        render.contact_sheet([])


def test_boards_of_different_grids_do_not_overlap():
    states = [replay_actions(SMALL, [], grid=grid).states[0] for grid in (3, 7, 3)]
    root = ElementTree.fromstring(render.contact_sheet(states, columns=2))
    ends = []
    for group in root.findall(f"./{SVG}g"):
        x, y, scale = map(float, re.findall(r"[\d.]+", group.get("transform")))
        board = group.find(SVG + "svg")
        ends.append((x, y, *(scale * float(board.get(key)) for key in ("width", "height"))))
    (_, _, width, _), (second, _, wide, tall), (_, third, _, height) = ends
    assert width <= second and second + wide <= float(root.get("width"))
    assert tall <= third and third + height <= float(root.get("height"))


@pytest.mark.parametrize("walls", [4, 20, 200])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_walls_left_are_in_the_clear(players, walls):
    """Each figure ends before the next player's disc; a digit of DejaVu Sans is 0.636 em wide."""
    size = 3  # the narrowest board
    rules = Rules(size=size, players=players, stones=1, order=range(players), walls=walls)
    svg = render.svg(replay_actions(rules, []).states[0])
    figures = [e for e in elements(svg, "text") if e.text == str(walls) and e.get("x")]
    figures = [e for e in figures if float(e.get("y")) > Layout(size, size).side]
    discs = [float(e.get("cx")) - float(e.get("r")) for e in elements(svg, "circle")]
    ends = [float(e.get("x")) + 0.636 * len(e.text) * float(e.get("font-size")) for e in figures]
    assert len(ends) == len(discs) == players
    limits = [*discs[1:], Layout(size, size).side]
    assert all(end < limit for end, limit in zip(ends, limits, strict=True))


def test_lines_of_text_end_inside_their_picture():
    """Nothing but the page is drawn along the right edge, whatever font there is."""
    rules = Rules(size=3, players=3, stones=1, order=(0, 1, 2))
    moves = parse_moves("A1 C1 C2 A1->A1:W1 C1->C1:W3 C2->C2:W2", grid=3)
    state = replay_moves(rules, moves).states[-1]
    line = "Ply 6: G C2->C2:down · Red to move"
    panel = contact_sheet.Panel(take_snapshot(state), line * 2, (LIGHT.tile,) * 9, None, None, None)
    scale = Scale(line * 3, (LIGHT.tile, LIGHT.heat), ((0.5, "half"),))
    sheet = contact_sheet.draw_panels(
        [panel], LIGHT, columns=1, title=line * 3, key=line * 3, scales=[scale]
    )
    caption = render.svg(state)
    assert line in [e.text for e in elements(caption, "text")]
    for svg in (caption, sheet):
        image = Image.open(io.BytesIO(render.png(svg, scale=2))).convert("RGB")
        strip = image.crop((image.width - 8, 30, image.width, image.height - 24))
        assert strip.getcolors() == [(strip.width * strip.height, (0xEF, 0xE9, 0xDD))]


def test_pixels_name_the_extra_that_they_need(monkeypatch, small):
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ImportError, match=r"PNG needs CairoSVG: pip install 'wallgo-jax\[png\]'"):
        render.png(render.svg(small.states[0]))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="GIF needs Pillow"):
        raster.gif([], seconds=1, last_seconds=1, scale=1)
