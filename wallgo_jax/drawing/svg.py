"""Writes SVG elements as strings."""

from html import escape
from typing import Any


def number(value: float) -> str:
    """Write a number with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def element(tag: str, *children: str, text: str = "", **attributes: Any) -> str:
    """Write `<tag ...>children text</tag>`. A `_` in an attribute's name becomes `-`; values are
    strings or numbers, and None leaves an attribute out."""
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(children) + escape(text, quote=False)
    return f"<{tag}{named}>{inner}</{tag}>" if inner else f"<{tag}{named}/>"


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)


def document(width: float, height: float, *children: str, label: str) -> str:
    """Write a whole SVG document, which narrow pages scale down; `label` is its title."""
    return element(
        "svg",
        element("title", text=label),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        font_family="Helvetica, Arial, 'DejaVu Sans', sans-serif",
        style="max-width:100%",
    )
