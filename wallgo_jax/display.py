"""The hook through which states draw themselves, for `print` and in a notebook.

States import nothing that draws. `wallgo_jax/__init__` puts the renderers here instead.
"""

from collections.abc import Callable
from html import escape
from typing import Any

_renderers: dict[str, Callable[[Any], str]] = {}


def set_renderers(
    *,
    text: Callable[[Any], str],
    html: Callable[[Any], str],
    game: Callable[[Any], str] | None = None,
) -> None:
    """Register the functions that turn a state into text and into HTML, and a whole game into HTML;
    the newest ones count."""
    _renderers.update(text=text, html=html)
    if game is not None:
        _renderers["game"] = game


def to_text(state: Any) -> str:
    """Return the state as text for `print`.

    A state that holds no boards, such as one that JAX traces or a tree of means, gives one line
    that names its type; so does every state where no renderer is registered.
    """
    return _name(state) if (drawn := _draw("text", state)) is None else drawn


def to_html(state: Any) -> str:
    """Return the state as HTML, or the line of `to_text` where it holds no boards."""
    drawn = _draw("html", state)
    return f"<pre>{escape(_name(state))}</pre>" if drawn is None else drawn


def game_to_html(game: Any) -> str:
    """Return a game as HTML with a slider, or its `repr` where no renderer is registered."""
    draw = _renderers.get("game")
    return f"<pre>{escape(repr(game))}</pre>" if draw is None else draw(game)


def _draw(kind: str, state: Any) -> str | None:
    """Call a renderer; None where there is none, or the state holds no boards."""
    import jax

    board = getattr(state, "game", state)
    leaves = jax.tree.leaves(board, is_leaf=lambda leaf: leaf is None)
    if not _renderers or not all(_has_values(leaf) for leaf in leaves):
        return None
    try:
        return _renderers[kind](state)
    except ValueError:
        return None


def _has_values(leaf: Any) -> bool:
    """Whether the host can read a leaf: an array that is neither traced nor deleted."""
    import jax
    import numpy as np
    from jax.core import Tracer

    if isinstance(leaf, jax.Array):
        is_traced = isinstance(leaf, Tracer)
        return not is_traced and not leaf.is_deleted() and leaf.is_fully_addressable
    return isinstance(leaf, np.ndarray | np.generic)


def _name(state: Any) -> str:
    import jax
    from jax.core import Tracer

    kind = f"{type(state).__module__}.{type(state).__qualname__}"
    is_traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(state))
    return f"<{kind}, {'traced by JAX' if is_traced else 'not boards'}>"
