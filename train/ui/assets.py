"""The files of the page, as the server hands them out and as a widget holds them."""

from __future__ import annotations

import base64
import functools
import re
from importlib import resources

from wallgo_jax.drawing.theme import DARK, LIGHT, Theme, variables

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_IMPORT = re.compile(r'(?<=from ")\./([\w-]+\.js)(?=";)')


def read_assets() -> dict[str, tuple[bytes, str]]:
    """All files that are served, with their types, by their path on the server."""
    assets = {"/colours.css": (_colours().encode(), "text/css")}
    for entry in resources.files("train.ui").joinpath("page").iterdir():
        suffix = "." + entry.name.rpartition(".")[2]
        if entry.is_file() and suffix in _TYPES:
            assets[f"/{entry.name}"] = entry.read_bytes(), _TYPES[suffix]
    assets["/"] = assets["/index.html"]
    return assets


def _colours() -> str:
    """The style sheet of the package's palette, which readers of all colours can tell apart."""
    dark = (
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {_rule(DARK)} }}'
    )
    return f':root {_rule(LIGHT)}\n{dark}\n:root[data-theme="dark"] {_rule(DARK)}\n'


def _rule(theme: Theme) -> str:
    values = "; ".join(f"{name}: {colour}" for name, colour in variables(theme).items())
    return f"{{ color-scheme: {theme.name}; {values} }}"


def read_text(name: str) -> str:
    """A file of the page as text."""
    return resources.files("train.ui").joinpath("page", name).read_text(encoding="utf-8")


def module(name: str) -> str:
    """A script of the page as an ES module that needs no server: it imports the others of the page
    by addresses that hold them."""
    return _IMPORT.sub(lambda match: _address(match[1]), read_text(name))


@functools.cache
def _address(name: str) -> str:
    # One text gives one address, so that modules which share another get the same instance.
    body = base64.b64encode(module(name).encode()).decode()
    return f"data:text/javascript;base64,{body}"


def widget_style() -> str:
    """The style sheet of the widget: the page's board in the notebook's light or dark theme."""
    dark = ':is([data-jp-theme-light="false"], .vscode-dark) .wallgo'
    colours_of = f".wallgo {_rule(LIGHT)}\n{dark} {_rule(DARK)}"
    # Nested, the rules of the board reach nothing else in the notebook.
    board = f".wallgo {{\n{read_text('board.css')}}}"
    return "\n".join([colours_of, read_text("widget.css"), board])
