"""The colours of pictures, light and dark.

The players' colours differ in lightness as well as in hue, so that they stay apart in grey and for
protan, deutan and tritan readers; `tests/drawing/test_colours.py` computes the differences.
"""

from typing import NamedTuple

PATTERN = 0.8
"""Opacity of the pattern on a player's territory, as in the page's `shapes.js`."""
AUTO = "auto"
"""The theme of pages that follow the system's setting."""


class Theme(NamedTuple):
    """Colours as CSS writes them, those of players in the players' order."""

    name: str
    page: str
    tile: str
    rim: str
    frame: str
    ink: str
    quiet: str
    accent: str
    heat: str
    """The far end of a scale from the bare tile; a hue that no player has."""
    chill: str
    """The far end of a scale's negative half."""
    mark: str
    """The frame of the cell that a picture is about."""
    players: tuple[str, ...]
    edges: tuple[str, ...]
    """The rim of each player's stones and walls, and the pattern of its territory."""
    letters: tuple[str, ...]
    """The letter on each player's stones, and the line on its walls."""
    tints: tuple[str, ...]
    """The tiles of each player's territory."""


def mix(colour: str, ground: str, share: float) -> str:
    """Mix a share of a colour with the ground under it, both `#rrggbb`."""
    parts = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in parts)


def _tinted(theme: Theme) -> Theme:
    return theme._replace(tints=tuple(mix(colour, theme.tile, 0.34) for colour in theme.players))


LIGHT = _tinted(
    Theme(
        name="light",
        page="#efe9dd",
        tile="#fdfbf7",
        rim="#e4dccb",
        frame="#a59a86",
        ink="#2b2822",
        quiet="#6f6656",
        accent="#1d1b18",
        heat="#4a1486",
        chill="#8c4a00",
        mark="#1d1b18",
        players=("#d5382a", "#1c4796", "#35b48a", "#f6c842"),
        edges=("#8f1d14", "#0f2a5e", "#14674c", "#8a6200"),
        letters=("#ffffff", "#ffffff", "#10231c", "#2b2206"),
        tints=(),
    )
)
DARK = _tinted(
    Theme(
        name="dark",
        page="#1d2127",
        tile="#2a3038",
        rim="#242931",
        frame="#697382",
        ink="#eceff4",
        quiet="#a3acba",
        accent="#ffffff",
        heat="#dcbcff",
        chill="#ffb566",
        mark="#ffffff",
        players=("#ff6a52", "#4a70c4", "#6fcfae", "#ffe45c"),
        edges=("#ffb3a6", "#a9c4ff", "#c4f3e1", "#fff6c2"),
        letters=("#1d0b08", "#ffffff", "#10231c", "#2b2206"),
        tints=(),
    )
)
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


def named(name: str) -> Theme:
    """Return the theme of a name.

    Raises:
      ValueError: for an unknown name.
    """
    if name not in THEMES:
        raise ValueError(f"theme: {name!r} is not one of {', '.join(THEMES)}")
    return THEMES[name]


def variables(theme: Theme) -> dict[str, str]:
    """Return the theme's colours under the names of CSS variables, as `of_variables` uses them."""
    colours: dict[str, str] = {}
    for field, value in _colours(theme):
        if isinstance(value, str):
            colours[f"--{field}"] = value
        else:
            colours |= {f"--{field}-{player}": each for player, each in enumerate(value)}
    return colours


def style(name: str = AUTO) -> str:
    """CSS of a page's colours; those of AUTO follow the system, unless the page's root has
    `data-theme`, the name of a theme.

    Raises:
      ValueError: for an unknown name.
    """
    if name != AUTO:
        return f":root {rule(named(name))}"
    system = f':root:not([data-theme="light"]) {rule(DARK)}'
    return (
        f":root {rule(LIGHT)}\n@media (prefers-color-scheme: dark) {{ {system} }}\n"
        f':root[data-theme="dark"] {rule(DARK)}'
    )


def rule(theme: Theme) -> str:
    """The declarations of a theme's variables in CSS, in braces."""
    values = "; ".join(f"{name}: {colour}" for name, colour in variables(theme).items())
    return f"{{ color-scheme: {theme.name}; {values} }}"


def of_variables() -> Theme:
    """Return a theme whose colours are CSS variables: the page decides what they are."""
    named_by = {
        field: f"var(--{field})"
        if isinstance(value, str)
        else tuple(f"var(--{field}-{player})" for player in range(len(value)))
        for field, value in _colours(LIGHT)
    }
    return LIGHT._replace(name="variables", **named_by)


def _colours(theme: Theme) -> list[tuple[str, str | tuple[str, ...]]]:
    return [(field, value) for field, value in theme._asdict().items() if field != "name"]
