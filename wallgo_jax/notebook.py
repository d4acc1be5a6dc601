"""The hook through which states draw themselves in a notebook.

The env imports nothing that draws. `wallgo_jax/__init__` puts the renderer here instead.
"""

from collections.abc import Callable
from html import escape
from typing import Any

_renderers: list[Callable[[Any], str]] = []


def set_html_renderer(render: Callable[[Any], str]) -> None:
    """Register the function that turns a state into HTML; the newest one counts."""
    _renderers[:] = [render]


def to_html(state: Any) -> str:
    """Return the state as HTML, or its `repr` where no renderer is registered."""
    return _renderers[0](state) if _renderers else f"<pre>{escape(repr(state))}</pre>"
