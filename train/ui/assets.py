"""The files of the page, and what a server and a widget make of them."""

import base64
import functools
import re
from pathlib import Path

from wallgo_jax.drawing.theme import DARK, LIGHT, rule

PAGE = Path(__file__).parent / "page"
"""The folder of the page's files."""
_IMPORT = re.compile(r'(?<=from ")\./([\w-]+\.js)(?=";)')


def module(name: str) -> str:
    """A script of the page as an ES module that needs no server: it imports the others of the page
    by addresses that hold them."""
    return _IMPORT.sub(lambda match: _address(match[1]), (PAGE / name).read_text(encoding="utf-8"))


@functools.cache
def _address(name: str) -> str:
    # One text gives one address, so that modules which share another get the same instance.
    body = base64.b64encode(module(name).encode()).decode()
    return f"data:text/javascript;base64,{body}"


def widget_style() -> str:
    """The style sheet of the widget: the page's board in the notebook's light or dark theme."""
    dark = ':is([data-jp-theme-light="false"], .vscode-dark) .wallgo'
    colours_of = f".wallgo {rule(LIGHT)}\n{dark} {rule(DARK)}"
    # Nested, the rules of the board reach nothing else in the notebook.
    board, widget = ((PAGE / f"{x}.css").read_text(encoding="utf-8") for x in ("board", "widget"))
    return "\n".join([colours_of, widget, f".wallgo {{\n{board}}}"])
