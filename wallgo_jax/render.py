"""The one door to text and pictures of positions and games.

| | one position | many positions | a whole game |
|---|---|---|---|
| text | `text` | `summary` | `game_text`, `game_file` |
| SVG | `svg` | `contact_sheet` | `animation` |
| pixels | `png`, `still_gif` of any SVG | | `gif` |
| HTML | `position_page`; `html`, for notebooks | `html` | `page`, stepped with the arrow keys |

States are those of the env or of the rules. Pixels need the extra `wallgo-jax[png]`.
"""

from collections.abc import Mapping, Sequence
from html import escape

import jax
import numpy as np

from wallgo_jax.drawing import animation as animation_lib
from wallgo_jax.drawing import board, overlay, raster
from wallgo_jax.drawing import contact_sheet as contact_sheet_lib
from wallgo_jax.drawing import page as page_lib
from wallgo_jax.drawing import theme as theme_lib
from wallgo_jax.env import State as EnvState
from wallgo_jax.formats import ascii_board, diagram, move_text
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game import state as state_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import NOT_PLACED, State, Variant, sizes_of_state
from wallgo_jax.notation import SIDE_WORDS, format_action
from wallgo_jax.view import captions
from wallgo_jax.view.game_replay import Game, replay_actions
from wallgo_jax.view.snapshot import Snapshot, game_of, one_board, take_snapshot
from wallgo_jax.view.win_chances import win_chances

MAX_BOARDS = 16
"""Boards of a batch that `contact_sheet` and `html` show."""
MIN_SECONDS, MAX_SECONDS = 0.02, 600
"""Bounds of a ply's time: a GIF counts hundredths of a second in 16 bits, and viewers keep two."""
_ANSI = (91, 94, 92, 93)
"""Foreground colour codes of the players."""


def text(state: EnvState | State, *, color: bool = False) -> str:
    """Draw one board as lines of text: the board, then who moves or who won.

    Without colours a wall shows its builder's letter; with them (ANSI codes) walls are strokes in
    their builder's colour, and a territory's cells are tinted.

    Raises:
      ValueError: if the state is a batch.
    """
    snapshot = take_snapshot(state)
    lines = ascii_board.coloured_lines(snapshot, _paint) if color else ascii_board.lines(snapshot)
    return "\n".join([*lines, *captions.status_lines(snapshot)])


def summary(state: EnvState | State) -> str:
    """Write what `print(state)` shows: size and players, then the board and its status.

    A batch gives its shape, how many games are over, and its first board.

    Raises:
      ValueError: the arrays are not those of boards.
    """
    game = game_of(state)
    batch = _check_boards(game)
    if batch == ():
        return "\n".join([_heading(game), "", text(state), *_last_result(state)])
    variant, position = jax.device_get(game)
    if position.ply.size == 0:
        return f"{_heading(game)}\nBatch of shape {batch}: no boards"
    plies = f"plies {position.ply.min()} to {position.ply.max()}"
    over = f"{position.terminated.sum()} of {position.ply.size} over"
    first = (0,) * len(batch)
    board = jax.tree.map(lambda leaf: leaf[first], State(variant, position))
    name = f"Board {', '.join(map(str, first))}:"
    head = f"Batch of shape {batch}: {over}, {plies}"
    return "\n".join([_heading(game), head, "", name, text(board)])


def _check_boards(game: State) -> tuple[int, ...]:
    """Return the shape of a batch, () for one board, once every array has it.

    Raises:
      ValueError: an array is not one of boards.
    """
    batch, check = np.shape(game.position.ply), state_lib.assert_board
    for _ in batch:
        check = jax.vmap(check)
    try:
        jax.eval_shape(check, game)
    except (AssertionError, ValueError):
        raise ValueError("state: its arrays are not those of boards") from None
    return batch


def _heading(game: State) -> str:
    players = sizes_of_state(game).players
    sizes = np.unique(np.asarray(game.variant.size))
    if sizes.size == 0:
        return f"WallGo boards, {players} players"
    boards = " and ".join(f"{size}x{size}" for size in sizes)
    stones = np.unique(_stones_each(game.variant))
    counts = " and ".join(map(str, stones))
    each = f"{counts} stone{'s' if stones.max() > 1 else ''} each"
    return f"WallGo {boards}, {players} players, {each}"


def _stones_each(variant: Variant) -> np.ndarray:
    """int[...]: a player's stones by the rules; the arrays may have room for more."""
    at_start = np.asarray(variant.start)[..., 0, :] != NOT_PLACED
    return at_start.sum(axis=-1) + (np.asarray(variant.order) == 0).sum(axis=-1)


def _last_result(state: EnvState | State) -> list[str]:
    """Say what the last step paid where it ended a game that an auto-reset has replaced."""
    if isinstance(state, EnvState) and state.terminated and not state.game.position.terminated:
        return [f"The game before: {captions.result_text(np.asarray(state.rewards).tolist())}."]
    return []


def _paint(text: str, player: int) -> str:
    return f"\x1b[1;{_ANSI[player]}m{text}\x1b[0m"


def game_text(
    rules: Rules | str, actions: Sequence[int], *, grid: int | None = None, color: bool = False
) -> str:
    """Write a game from its public actions: moves, the last position, territory and result.

    Raises:
      ValueError: at the first action that is not allowed, naming the ply and the reason.
    """
    return played_text(replay_actions(rules_lib.named(rules), actions, grid=grid), color=color)


def played_text(game: Game, *, color: bool = False) -> str:
    """Write `game_text` of a game already played."""
    return "\n".join([*move_lines(game), "", text(game.states[-1], color=color)])


def game_file(game: Game, *, players: Sequence[str] | None = None) -> str:
    """Write a game as a text file that names its rules, and so can be read again by itself."""
    return f"{move_text.header(game.rules, players)}\n{played_text(game)}\n"


def move_lines(game: Game, *, sides: Sequence[str] = SIDE_WORDS) -> list[str]:
    """Write the moves of a game, numbered, four a line; `sides` as in `notation.format_action`."""
    moves = zip(game.actions, game.movers, strict=True)
    numbered = [
        f"{f'{ply}.':>4} {format_action(action, grid=game.grid, player=mover, sides=sides)}"
        for ply, (action, mover) in enumerate(moves, start=1)
    ]
    rows = [numbered[i : i + 4] for i in range(0, len(numbered), 4)]
    return ["".join(f"{move:20}" for move in row).rstrip() for row in rows]


def svg(
    state: EnvState | State,
    *,
    theme: str = "light",
    reach: int | None = None,
    heat: Sequence[float] | np.ndarray | None = None,
    heat_label: str = "value",
    arrows: Mapping[int, float] | None = None,
    caption: bool = True,
) -> str:
    """Draw one board as an SVG document, its last ply ringed.

    Args:
      theme: `light` or `dark`.
      reach: a player whose reachable cells to mark.
      heat: a number for each cell of the grid, shown as colour over its territory, with a scale.
      heat_label: what the scale calls the numbers.
      arrows: visits or probabilities of legal public actions, to be shown as moves.
      caption: whether to say below who moves and what each player holds.

    Raises:
      ValueError: if the state is a batch, or an argument does not fit it.
    """
    snapshot, colours = take_snapshot(state), theme_lib.named(theme)
    under, scale = [], None
    if heat is not None:
        under, scale = overlay.heat(snapshot, colours, heat, label=heat_label)
    under += [] if reach is None else overlay.reach(snapshot, colours, reach)
    over = [] if arrows is None else overlay.arrows(snapshot, colours, arrows)
    return board.draw(snapshot, colours, under=under, over=over, caption=caption, scale=scale)


def contact_sheet(
    states: EnvState | State | Sequence[EnvState | State],
    *,
    theme: str = "light",
    columns: int | None = None,
    limit: int = MAX_BOARDS,
) -> str:
    """Draw the first `limit` boards of a batch or a list as one SVG document.

    Raises:
      ValueError: if there is no board, or less than one column.
    """
    snapshots, _ = _snapshots(states, limit)
    return contact_sheet_lib.draw(snapshots, theme_lib.named(theme), columns=columns)


def _snapshots(
    states: EnvState | State | Sequence[EnvState | State], limit: int
) -> tuple[list[Snapshot], int]:
    """Return the first boards and the number of all boards."""
    if not isinstance(states, EnvState | State):
        return [take_snapshot(state) for state in states[:limit]], len(states)
    game: State = jax.device_get(game_of(states))
    batch = np.shape(game.position.ply)
    total = int(np.prod(batch))
    flat = jax.tree.map(lambda leaf: leaf.reshape(total, *leaf.shape[len(batch) :]), game)
    return [take_snapshot(_pick(flat, index)) for index in range(min(total, limit))], total


def _pick(batch: State, index: int) -> State:
    return jax.tree.map(lambda leaf: leaf[index], batch)


def html(state: EnvState | State, *, theme: str = "light") -> str:
    """Draw one board, or the first boards of a batch, as HTML for a notebook.

    Raises:
      ValueError: the arrays are not those of boards.
    """
    _check_boards(game_of(state))
    snapshots, total = _snapshots(state, MAX_BOARDS)
    if np.ndim(game_of(state).position.ply) == 0:
        return board.draw(snapshots[0], theme_lib.named(theme))
    more = f"<p>{len(snapshots)} of {total} boards</p>" if total > len(snapshots) else ""
    drawn = (
        contact_sheet_lib.draw(snapshots, theme_lib.named(theme))
        if snapshots
        else "<p>no boards</p>"
    )
    return f"<div>{drawn}{more}</div>"


def animation(game: Game, *, theme: str = "light", seconds: float = 0.9, loop: bool = True) -> str:
    """Draw a game as an animated SVG document, `seconds` a ply.

    Raises:
      ValueError: if a ply takes less than MIN_SECONDS or more than MAX_SECONDS.
    """
    check_seconds(seconds)
    return animation_lib.draw(game, theme_lib.named(theme), seconds=seconds, loop=loop)


def page(
    game: Game,
    *,
    theme: str = "auto",
    seconds: float = 0.9,
    players: Sequence[str] | None = None,
    values: Sequence[float | None] | None = None,
) -> str:
    """Draw a game as one HTML page that needs no other file, stepped with the arrow keys.

    Its theme may also be `auto`: light or dark, as the reader's system is set.

    Args:
      values: of each ply for its mover, as a record holds them; they are drawn as a curve of win
        chances.

    Raises:
      ValueError: as `animation`, or for an unknown theme.
    """
    check_seconds(seconds)
    chances = None if values is None else win_chances(game, values)
    return page_lib.draw(game, theme=theme, seconds=seconds, players=players, chances=chances)


def framed(game: Game, *, theme: str = "light") -> str:
    """Draw the page of a game as HTML that stands inside another page, as in a notebook."""
    return in_frame(page(game, theme=theme))


def in_frame(document: str, *, height: int = 720) -> str:
    """Put a whole page into a frame of so many pixels, as an element of another page."""
    return (
        f'<iframe srcdoc="{escape(document)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>'
    )


def position_page(state: EnvState | State, *, theme: str = "auto", reach: int | None = None) -> str:
    """Draw one board as an HTML page that needs no other file; `theme` as in `page`.

    Raises:
      ValueError: if the state is a batch, or an argument does not fit it.
    """
    snapshot, colours = take_snapshot(state), theme_lib.of_variables()
    under = [] if reach is None else overlay.reach(snapshot, colours, reach)
    rules = diagram.rules_of(one_board(state))
    return page_lib.draw_position(snapshot, rules, theme=theme, under=under)


def check_seconds(seconds: float) -> None:
    """Refuse a time for one ply that no animation can have, with a ValueError."""
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise ValueError(f"seconds: {seconds} for a ply is not from {MIN_SECONDS} to {MAX_SECONDS}")


def png(svg: str, *, scale: float = 2.0) -> bytes:
    """Draw an SVG document as a PNG file, `scale` pixels a unit.

    Raises:
      ImportError: without the extra `wallgo-jax[png]`, naming it.
    """
    return raster.png(svg, scale=scale)


def still_gif(svg: str, *, scale: float = 2.0) -> bytes:
    """Draw an SVG document as a GIF file of one frame, `scale` pixels a unit.

    Raises:
      ImportError: as `gif`.
    """
    return raster.gif([svg], seconds=1, last_seconds=1, scale=scale)


def rgb_array(svg: str, *, scale: float = 1.0) -> np.ndarray:
    """Draw an SVG document as uint8[height, width, 3] colours, `scale` pixels a unit.

    Raises:
      ImportError: without the extra `wallgo-jax[png]`, naming it.
    """
    return raster.rgb_array(svg, scale=scale)


def gif(game: Game, *, theme: str = "light", seconds: float = 0.9, scale: float = 1.0) -> bytes:
    """Draw a game as an animated GIF file, `seconds` a ply.

    Raises:
      ImportError: without the extra `wallgo-jax[png]`, naming it.
      ValueError: as `animation`.
    """
    check_seconds(seconds)
    frames = [svg(state, theme=theme) for state in game.states]
    return raster.gif(frames, seconds=seconds, last_seconds=seconds + 3, scale=scale)
