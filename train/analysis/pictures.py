"""Draws heat maps over boards, several in a picture, as SVG documents."""

import functools
from typing import NamedTuple

import numpy as np

from wallgo_jax.drawing import board, contact_sheet
from wallgo_jax.drawing import theme as theme_lib
from wallgo_jax.drawing.contact_sheet import Panel
from wallgo_jax.drawing.layout import TILE
from wallgo_jax.drawing.scale import Scale, ramp, shade
from wallgo_jax.drawing.svg import element
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.env import State as EnvState
from wallgo_jax.game.state import State
from wallgo_jax.notation import COLOURS, cell_name
from wallgo_jax.view import captions
from wallgo_jax.view.snapshot import NOBODY, Snapshot, take_snapshot

_FULL = 0.65
"""Strength of an owner's colour on a cell that is the owner's with probability 1."""
_TICKS = ((0.0, "0"), (0.5, "0.5"), (1.0, "1"))
_FLAT = 1e-6
"""A map whose values differ by less than this share of the largest counts as constant, up to
rounding."""


class BoardPicture(NamedTuple):
    """Boards in rows, with a title, and colour scales below a line that explains them."""

    title: str
    panels: tuple[Panel, ...]
    columns: int
    key: str
    scales: tuple[Scale, ...]
    theme: Theme


def normalised(maps: np.ndarray) -> np.ndarray:
    """Maps [..., H, W] rescaled so that the least value is 0 and the largest 1; constant maps
    become zeros."""
    least, largest = (f(maps, axis=(-2, -1), keepdims=True) for f in (np.min, np.max))
    span = np.broadcast_to(largest - least, maps.shape)
    varies = span > _FLAT * np.abs(largest)
    return np.divide(maps - least, span, out=np.zeros_like(maps), where=varies)


def attention_picture(
    raw: np.ndarray,
    blocks: tuple[int, ...],
    state: EnvState | State,
    cell: int,
    *,
    name: str,
    theme: str = "light",
) -> BoardPicture:
    """A row for each T block: a board for each head, then one for the mean of the heads.

    The stronger a cell's colour, the larger its weight in the attention of the marked cell; each
    board is normalised by itself.

    Args:
      raw: float32[T, heads, H, W] attention of the cell.
      blocks: places of the T blocks in the trunk.
      state: the position that the network evaluated.
      cell: the attending cell.
      name: of the network.
      theme: `light` or `dark`.
    """
    snapshot, colours = take_snapshot(state), theme_lib.named(theme)
    panels = []
    for place, heads in zip(blocks, raw, strict=True):
        maps = {f"block {place} head {head}": values for head, values in enumerate(heads, start=1)}
        for caption, values in (
            maps | {f"block {place} mean of heads": heads.mean(axis=0)}
        ).items():
            shares, weights = normalised(values).reshape(-1), values.reshape(-1)
            tiles = tuple(shade(colours.tile, colours.heat, float(share)) for share in shares)
            notes = tuple(f"{100 * weight:.2f} %" for weight in weights)
            span = f"{caption}: {_percent(weights.min())} to {_percent(weights.max())} %"
            panels.append(Panel(snapshot, span, tiles, notes, None, cell))
    label = "weight, from the least to the most of its board"
    return BoardPicture(
        title=f"{name}: attention of {cell_name(cell, grid=snapshot.grid)} · {_status(snapshot)}",
        panels=tuple(panels),
        columns=raw.shape[1] + 1,
        key="A cell is as strong in colour as its weight in the attention of the framed cell.",
        scales=(Scale(label, ramp(colours.tile, colours.heat), _TICKS),),
        theme=colours,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share >= 1e-4 else "0"


def ownership_picture(
    predicted: np.ndarray,
    true: np.ndarray,
    state: EnvState | State,
    final: EnvState | State,
    *,
    error: float,
    name: str,
    theme: str = "light",
) -> BoardPicture:
    """Two boards: a position with its predicted ownership, and the end with the true one.

    A cell has the colour and the pattern of its likeliest owner, nobody included, as strong as the
    owner's lead in probability over the next. An undecided cell is empty.

    Args:
      predicted: float32[P + 1, H, W] probabilities, nobody last.
      true: the same at the end of the game, 0 or 1.
      state: the position that the network evaluated.
      final: the end of its game.
      error: mean squared error of the prediction, for the caption.
      name: of the network.
      theme: `light` or `dark`.
    """
    now, end, colours = take_snapshot(state), take_snapshot(final), theme_lib.named(theme)
    left = f"predicted at ply {now.ply} · mean squared error {error:.3f}"
    right = f"true at ply {end.ply} · {captions.status(end)}"
    return BoardPicture(
        title=f"{name}: final ownership · {_status(now)}",
        panels=(
            _ownership_panel(left, predicted, now, colours),
            _ownership_panel(right, true, end, colours),
        ),
        columns=2,
        key="Colour and pattern tell the likeliest owner, their strength its lead in probability "
        "over the next; an empty cell is undecided.",
        scales=_ownership_scales(now.players, colours),
        theme=colours,
    )


def _ownership_panel(caption: str, shares: np.ndarray, snapshot: Snapshot, theme: Theme) -> Panel:
    flat = shares.reshape(len(shares), -1)
    second, first = np.sort(flat, axis=0)[-2:]
    owners = _owners(snapshot.players)
    owned = tuple(
        (owners[kind], float(lead))
        for kind, lead in zip(flat.argmax(axis=0), first - second, strict=True)
    )
    colours = tuple(shade(theme.tile, _full_colour(owner, theme), lead) for owner, lead in owned)
    names = (*COLOURS[: snapshot.players], "nobody")
    notes = tuple(
        ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(names, cell, strict=True))
        for cell in flat.T
    )
    return Panel(snapshot, caption, colours, notes, owned, None)


def _owners(players: int) -> tuple[int, ...]:
    return (*range(players), NOBODY)


def _full_colour(owner: int, theme: Theme) -> str:
    """The colour of a cell that is an owner's for certain; nobody's is a grey."""
    colour = theme.quiet if owner == NOBODY else theme.players[owner]
    return shade(theme.tile, colour, 0.5 * _FULL if owner == NOBODY else _FULL)


def _ownership_scales(players: int, theme: Theme) -> tuple[Scale, ...]:
    """A scale for each owner: its lead in probability, from an undecided cell on."""
    return tuple(
        Scale(
            f"{COLOURS[owner]}'s" if owner != NOBODY else "nobody's",
            ramp(theme.tile, _full_colour(owner, theme)),
            _TICKS,
            functools.partial(_pattern_over_bar, owner, theme),
        )
        for owner in _owners(players)
    )


def _pattern_over_bar(
    owner: int, theme: Theme, x: float, y: float, width: float, height: float
) -> str:
    """Tiles with the owner's pattern along a bar, stronger from left to right."""
    scale, tiles = height / TILE, round(width / height)
    drawn = [
        element(
            "g",
            board.pattern(owner, 0, 0, theme, strength=tile / (tiles - 1)),
            transform=f"translate({x + tile * width / tiles:g} {y:g}) scale({scale:g})",
        )
        for tile in range(tiles)
    ]
    return "".join(drawn)


def _status(snapshot: Snapshot) -> str:
    return f"ply {snapshot.ply} · {captions.status(snapshot)}"


def svg(picture: BoardPicture) -> str:
    """The picture as an SVG document."""
    return contact_sheet.draw_panels(
        picture.panels,
        picture.theme,
        columns=picture.columns,
        title=picture.title,
        key=picture.key,
        scales=picture.scales,
    )
