"""Draws heat maps over boards, several in a picture, as SVG documents."""

from typing import NamedTuple

import numpy as np

from wallgo_jax.drawing import contact_sheet
from wallgo_jax.drawing import theme as theme_lib
from wallgo_jax.drawing.contact_sheet import Legend, Panel
from wallgo_jax.drawing.theme import Theme, mix
from wallgo_jax.env import State as EnvState
from wallgo_jax.game.state import State
from wallgo_jax.notation import COLOURS, cell_name
from wallgo_jax.view import captions
from wallgo_jax.view.snapshot import Snapshot, take_snapshot

_STEPS = 24
"""Colours of a scale from the bare tile to its end."""
_FULL = 0.65
"""Strength of a player's colour on a cell that the player owns with probability 1."""
_FLAT = 1e-6
"""A map whose values differ by less than this share of the largest counts as constant, up to
rounding."""


class Picture(NamedTuple):
    """Boards in rows, with a title and a colour scale."""

    title: str
    panels: tuple[Panel, ...]
    columns: int
    legend: Legend
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
) -> Picture:
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
        maps[f"block {place} mean of heads"] = heads.mean(axis=0)
        panels += [
            _attention_panel(caption, values, snapshot, cell, colours)
            for caption, values in maps.items()
        ]
    return Picture(
        title=f"{name}: attention of {cell_name(cell, grid=snapshot.grid)} · {_status(snapshot)}",
        panels=tuple(panels),
        columns=raw.shape[1] + 1,
        legend=Legend("least of its board", tuple(_ramp(colours.shade, colours)), "most"),
        theme=colours,
    )


def _attention_panel(
    caption: str, values: np.ndarray, snapshot: Snapshot, cell: int, theme: Theme
) -> Panel:
    shares = normalised(values).reshape(-1)
    colours = tuple(mix(theme.shade, theme.tile, float(share)) for share in shares)
    notes = tuple(f"{100 * value:.2f} %" for value in values.reshape(-1))
    return Panel(snapshot, caption, colours, notes, cell)


def ownership_picture(
    predicted: np.ndarray,
    true: np.ndarray,
    state: EnvState | State,
    final: EnvState | State,
    *,
    error: float,
    name: str,
    theme: str = "light",
) -> Picture:
    """Two boards: a position with its predicted ownership, and the end with the true one.

    A cell has the colour of its likeliest owner, as strong as that player's lead in probability
    over the next. For two players this shows the board evaluation from Blue to Red.

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
    return Picture(
        title=f"{name}: final ownership · {_status(now)}",
        panels=(
            _ownership_panel(left, predicted, now, colours),
            _ownership_panel(right, true, end, colours),
        ),
        columns=2,
        legend=_ownership_legend(now.players, colours),
        theme=colours,
    )


def _ownership_panel(caption: str, shares: np.ndarray, snapshot: Snapshot, theme: Theme) -> Panel:
    flat = shares.reshape(len(shares), -1)
    second, first = np.sort(flat[:-1], axis=0)[-2:]
    colours = tuple(
        mix(theme.players[owner], theme.tile, _FULL * float(lead))
        for owner, lead in zip(flat[:-1].argmax(axis=0), first - second, strict=True)
    )
    names = (*COLOURS[: snapshot.players], "nobody")
    notes = tuple(
        ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(names, cell, strict=True))
        for cell in flat.T
    )
    return Panel(snapshot, caption, colours, notes, None)


def _ownership_legend(players: int, theme: Theme) -> Legend:
    ramps = [_ramp(theme.players[player], theme, _FULL) for player in range(players)]
    if players == 2:
        return Legend(COLOURS[1], (*reversed(ramps[1]), *ramps[0]), COLOURS[0])
    return Legend("even", tuple(colour for ramp in ramps for colour in ramp), "certain")


def _status(snapshot: Snapshot) -> str:
    return f"ply {snapshot.ply} · {captions.status(snapshot)}"


def _ramp(colour: str, theme: Theme, most: float = 1.0) -> list[str]:
    return [mix(colour, theme.tile, most * step / (_STEPS - 1)) for step in range(_STEPS)]


def svg(picture: Picture) -> str:
    """The picture as an SVG document."""
    return contact_sheet.draw_panels(
        picture.panels,
        picture.theme,
        columns=picture.columns,
        title=picture.title,
        legend=picture.legend,
    )
