"""WallGo as pure array functions: one board at a time, to be vmapped and jitted.

Floors, each importing only from those above it in this list:

    board        geometry: cells, sides, bitboards, floods; knows no rules
    game         the referee: rules as data, state, actions, territory, symmetry
    observation  state -> feature planes
    env          the pgx-shaped face: init / step / observe
    render       state -> text

`RULES.md` beside this file holds every rule and every table.
"""

from wallgo_jax._version import __version__
from wallgo_jax.env import State, WallGo, make
from wallgo_jax.game.rules import PRESETS, Rules

__all__ = ["PRESETS", "Rules", "State", "WallGo", "__version__", "make"]
