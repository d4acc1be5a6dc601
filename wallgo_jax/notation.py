"""Human notation: public action ids to text such as `C3` or `R B6->B5:up`, and back.

Columns are letters from the left, rows numbers from the top. A play is written `from->to:side`; the
side is that of the cell where the stone ends, as a word, an arrow or WallZero's `W` and a digit:

        W0 up ↑
                            C3             place a stone on C3
    W3    c    W1           B6->B5:up      from B6 to B5, wall above B5
    left ←     right →      B6->B5:↑       the same
                            B6->B5:W0      the same, the canonical form
        W2 down ↓           B6->B6:right   stay on B6, wall to its right

Text for people has the words, which every terminal can show; all forms are read. A colour's letter
may lead (`R B6->B5:up`); it is checked where the game is played, not here.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wallgo_jax.board.geometry import MOVE_OFFSETS, NUM_SIDES, PLAYS_PER_STONE
from wallgo_jax.game.sizes import first_placement, num_actions

COLOURS = ("Red", "Blue", "Green", "Yellow")
"""Players 0 to 3."""
LETTERS = "RBGY"
SIDE_NAMES = ("upper", "right", "lower", "left")
"""Sides 0 to 3, in front of a noun."""
SIDE_WORDS = ("up", "right", "down", "left")
"""Sides 0 to 3 behind a play."""
SIDE_ARROWS = "↑→↓←"
CANONICAL_SIDES = ("W0", "W1", "W2", "W3")
COLUMNS = "ABCDEFGHI"

_PLAY = re.compile(r"([A-Z]\w*)(?:->|→)(\w*):(.*)", re.IGNORECASE)


class Play(NamedTuple):
    """The parts of a public action that is a play: stone's cell, move, side of the wall."""

    cell: int
    move: int
    side: int


class NotatedMove(NamedTuple):
    """An action as written down, with the colour in front of it or None."""

    action: int
    player: int | None


def cell_name(cell: int, *, grid: int) -> str:
    """Return the name of a flat cell index, `A1` at the top left."""
    row, column = divmod(cell, grid)
    return f"{COLUMNS[column]}{row + 1}"


def parse_cell(text: str, *, grid: int) -> int:
    """Return the flat cell index of a name.

    Raises:
      ValueError: if it names no cell of the grid.
    """
    column, row = COLUMNS.find(text[:1].upper()), text[1:]
    is_number = row.isascii() and row.isdigit()
    if not text or not 0 <= column < grid or not is_number or not 1 <= int(row) <= grid:
        raise ValueError(f"{text!r} is not a cell; cells are A1 to {COLUMNS[grid - 1]}{grid}")
    return (int(row) - 1) * grid + column


def placement_of(action: int, *, grid: int) -> int | None:
    """Return the cell that a public action places a stone on; None for a play.

    Raises:
      ValueError: if the id is out of range.
    """
    first, count = first_placement(grid), num_actions(grid)
    if not 0 <= action < count:
        raise ValueError(f"action {action} is not between 0 and {count - 1}")
    return action - first if action >= first else None


def decode_play(action: int) -> Play:
    """Return the cell, move and side of a public action that is a play."""
    cell, play = divmod(action, PLAYS_PER_STONE)
    return Play(cell, *divmod(play, NUM_SIDES))


def target_of(play: Play, *, grid: int) -> int | None:
    """Return the cell where a play's stone ends; None off the grid."""
    row, column = divmod(play.cell, grid)
    row, column = row + MOVE_OFFSETS[play.move][0], column + MOVE_OFFSETS[play.move][1]
    return row * grid + column if 0 <= row < grid and 0 <= column < grid else None


def format_action(
    action: int, *, grid: int, player: int | None = None, sides: Sequence[str] = SIDE_WORDS
) -> str:
    """Write a public action as text.

    Args:
      player: whose letter to write in front; None for no letter.
      sides: the names of sides 0 to 3: SIDE_WORDS, SIDE_ARROWS or CANONICAL_SIDES.

    Raises:
      ValueError: if the id is out of range or its move leaves the grid.
    """
    led = "" if player is None else f"{LETTERS[player]} "
    placed = placement_of(action, grid=grid)
    if placed is not None:
        return led + cell_name(placed, grid=grid)
    play = decode_play(action)
    target = target_of(play, grid=grid)
    origin = cell_name(play.cell, grid=grid)
    if target is None:
        raise ValueError(f"action {action} moves off the grid from {origin}")
    return f"{led}{origin}->{cell_name(target, grid=grid)}:{sides[play.side]}"


def parse_action(text: str, *, grid: int) -> NotatedMove:
    """Read the public action that a text names.

    Raises:
      ValueError: what in the text is wrong, and what is allowed.
    """
    player, words = None, text.split()
    if len(words) == 2:
        player, words = _parse_letter(words[0]), words[1:]
    if len(words) != 1:
        raise ValueError(f"{text!r} is not a move; write C3, B6->B5:up or R B6->B5:up")
    (word,) = words
    if "->" in word or "→" in word or ":" in word:
        return NotatedMove(_parse_play(word, grid=grid), player)
    return NotatedMove(first_placement(grid) + parse_cell(word, grid=grid), player)


def _parse_letter(text: str) -> int:
    player = LETTERS.find(text.upper()) if len(text) == 1 else -1
    if player < 0:
        raise ValueError(f"{text!r} is not a colour; colours are {', '.join(LETTERS)}")
    return player


def _parse_play(text: str, *, grid: int) -> int:
    match = _PLAY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a play; write it like B6->B5:up")
    origin, target = (parse_cell(name, grid=grid) for name in match.group(1, 2))
    side = _parse_side(match.group(3))
    rows, columns = target // grid - origin // grid, target % grid - origin % grid
    if (rows, columns) not in MOVE_OFFSETS:
        raise ValueError(f"{match.group(1)}->{match.group(2)} is more than two steps")
    move = MOVE_OFFSETS.index((rows, columns))
    return origin * PLAYS_PER_STONE + move * NUM_SIDES + side


def _parse_side(text: str) -> int:
    for names in (SIDE_WORDS, SIDE_ARROWS, CANONICAL_SIDES):
        for side, name in enumerate(names):
            if text.upper() == name.upper():
                return side
    raise ValueError(
        f"wall side {text!r} is not one of {', '.join(SIDE_WORDS)}, {' '.join(SIDE_ARROWS)}, "
        f"{CANONICAL_SIDES[0]} to {CANONICAL_SIDES[-1]}"
    )


def parse_moves(text: str, *, grid: int) -> list[NotatedMove]:
    """Read the moves of a game written down, parted by blanks, commas or line ends.

    Colour letters and move numbers (`12.`) may stand before a move; `#` opens a comment.

    Raises:
      ValueError: `ply N: reason`, plies counted from 1.
    """
    lines = (line.split("#", 1)[0] for line in text.splitlines())
    moves: list[NotatedMove] = []
    letter = ""
    for word in " ".join(lines).replace(",", " ").split():
        if re.fullmatch(r"\d+\.", word):
            continue
        if len(word) == 1 and word.isalpha() and not letter:
            letter = word
            continue
        try:
            moves.append(parse_action(f"{letter} {word}", grid=grid))
        except ValueError as error:
            raise ValueError(f"ply {len(moves) + 1}: {error}") from None
        letter = ""
    if letter:
        raise ValueError(f"ply {len(moves) + 1}: the move after {letter!r} is missing")
    return moves


def join_words(words: Iterable[str]) -> str:
    """Write `a, b and c`, for messages."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
