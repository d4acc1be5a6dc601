"""WallGo as pure array functions: one board at a time, to be vmapped and jitted.

Floors, each importing only from those above it in this list:

    board        geometry: cells, sides, bitboards, floods; knows no rules
    game         the referee: rules as data, state, actions, territory, symmetry
    observation  state -> feature planes
    env          the pgx-shaped face: init / step / observe

and on the host, one game at a time:

    notation     public actions <-> human text
    scene        a position as plain data
    objection    why an action is not allowed, in words
    playback     a written-down game played again
    records      games <-> JSON lines
    hkoi_code    games <-> the HKOI contest's replay code
    lattice      a board <-> lines of characters
    diagram      positions <-> text that holds all the rules read
    captions     what is said under a board
    drawing      positions and games as SVG, and pixels and pages made of it
    render       the one door to text and pictures
    sources      what a command names, read
    commands     show, replay, convert
    adapters     faces that other libraries know

`RULES.md` beside this file holds every rule and every table.
"""

from typing import Any

from wallgo_jax import notebook
from wallgo_jax._version import __version__
from wallgo_jax.env import State, WallGo, make
from wallgo_jax.game.rules import PRESETS, Rules

__all__ = ["PRESETS", "Rules", "State", "WallGo", "__version__", "make"]


def _render_html(state: Any) -> str:
    from wallgo_jax import render

    return render.html(state)


notebook.set_html_renderer(_render_html)
