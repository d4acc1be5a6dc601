"""WallGo as pure array functions: one board at a time, to be vmapped and jitted.

`make` gives the game as an environment (`wallgo_jax.env`), `Rules` and `PRESETS` say which game.
`wallgo_jax.render` is the module that draws positions and games as text, SVG, pixels and pages;
`wallgo_jax.formats` holds the files, `wallgo_jax.adapters` the interfaces of other libraries.
`RULES.md` beside this file holds every rule and every table.

Names are imported when they are first used: the package alone loads neither JAX nor NumPy.
"""

import importlib
from typing import TYPE_CHECKING, Any

from wallgo_jax import display
from wallgo_jax._version import __version__

if TYPE_CHECKING:
    from wallgo_jax import render
    from wallgo_jax.env import State, WallGo, make
    from wallgo_jax.game.rules import PRESETS, Rules

__all__ = ["PRESETS", "Rules", "State", "WallGo", "__version__", "make", "render"]

_MODULES = {
    "PRESETS": "wallgo_jax.game.rules",
    "Rules": "wallgo_jax.game.rules",
    "State": "wallgo_jax.env",
    "WallGo": "wallgo_jax.env",
    "make": "wallgo_jax.env",
}


def __getattr__(name: str) -> Any:
    if name == "render":
        return importlib.import_module("wallgo_jax.render")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _render_text(state: Any) -> str:
    from wallgo_jax import render

    return render.summary(state)


def _render_html(state: Any) -> str:
    from wallgo_jax import render

    return render.html(state)


def _render_game(game: Any) -> str:
    from wallgo_jax import render

    return render.framed(game)


display.set_renderers(text=_render_text, html=_render_html, game=_render_game)
