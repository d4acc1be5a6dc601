"""The colours of pictures, light and dark."""

from typing import NamedTuple


class Theme(NamedTuple):
    """Colours as `#rrggbb`, those of players in the players' order."""

    name: str
    page: str
    tile: str
    rim: str
    frame: str
    ink: str
    quiet: str
    accent: str
    heat: str
    shade: str
    """The far end of a scale from the bare tile."""
    mark: str
    """The frame of the cell that a picture is about."""
    players: tuple[str, ...]
    edges: tuple[str, ...]
    """A darker rim of each player's stones and walls."""

    def tint(self, player: int) -> str:
        """Return the colour of a tile of a player's territory."""
        return mix(self.players[player], self.tile, 0.36)


LIGHT = Theme(
    name="light",
    page="#efe9dd",
    tile="#fdfbf7",
    rim="#e4dccb",
    frame="#a59a86",
    ink="#2b2822",
    quiet="#877d6c",
    accent="#1d1b18",
    heat="#7a3fc4",
    shade="#d81e12",
    mark="#0c9a4b",
    players=("#dd4b41", "#3b78d8", "#2f9e5f", "#e3a81f"),
    edges=("#a52a22", "#234f96", "#1c6e3f", "#a47509"),
)
DARK = Theme(
    name="dark",
    page="#1d2127",
    tile="#2e343d",
    rim="#262b33",
    frame="#697382",
    ink="#eceff4",
    quiet="#98a2b1",
    accent="#ffffff",
    heat="#b98cff",
    shade="#ff3b2e",
    mark="#35e07f",
    players=("#f2685d", "#5d9cf5", "#4fbf80", "#f0c14b"),
    edges=("#ffa79f", "#a9cbff", "#9fe3bd", "#ffe29a"),
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


def mix(colour: str, ground: str, share: float) -> str:
    """Mix a share of a colour with the ground under it."""
    parts = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in parts)
