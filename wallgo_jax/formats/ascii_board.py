"""The board as lines of characters, and back: cells four columns apart, walls between them.

    A   B   C
  +---+---+---+
1 | R   .   . |      R, B, G, Y   a stone of that colour
  +   +=b=+   +      =b=          a horizontal wall, built by Blue
2 | . r .   B |      r            a vertical wall, built by Red
  +   +   +   +
3 |.r   .   . |      R0           Red's stone of index 0
  +---+---+---+      .r           a cell of Red's territory
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from wallgo_jax.board.geometry import HORIZONTAL, MAX_GRID, MIN_GRID, VERTICAL
from wallgo_jax.notation import COLUMNS, LETTERS
from wallgo_jax.view.snapshot import NOBODY, Snapshot

_PITCH = 4
"""Characters from one cell to the next."""

Paint = Callable[[str, int], str]
"""(text, player) -> the text in the player's colour."""


def plain(text: str, player: int) -> str:
    """Return the text without colour."""
    del player
    return text


def lines(snapshot: Snapshot, *, numbered: bool = False) -> Iterator[str]:
    """Draw the board without colours.

    Diagrams are `numbered`: each stone's index stands behind its letter, and territory, which
    follows from stones and walls, is left out.
    """
    return _lines(snapshot, _letter_wall, plain, numbered=numbered)


def coloured_lines(snapshot: Snapshot, paint: Paint) -> Iterator[str]:
    """Draw the board with walls as strokes in their builder's colour and tinted territory.

    Each player has strokes of its own, so that colour alone never tells the builder.
    """
    return _lines(snapshot, _stroke_wall, paint, numbered=False)


def _letter_wall(orientation: int, builder: int) -> str:
    letter = LETTERS[builder].lower()
    return f"={letter}=" if orientation == HORIZONTAL else letter


_STROKES = (("━━━", "┃"), ("═══", "║"), ("╍╍╍", "╏"), ("───", "│"))
"""The horizontal and the vertical stroke of each player's walls."""


def _stroke_wall(orientation: int, builder: int) -> str:
    return _STROKES[builder][0 if orientation == HORIZONTAL else 1]


def _lines(
    snapshot: Snapshot, wall_text: Callable[[int, int], str], paint: Paint, *, numbered: bool
) -> Iterator[str]:
    size, grid, walls, stones = snapshot.size, snapshot.grid, snapshot.builder_at, snapshot.stone_at

    def wall(orientation: int, cell: int, blank: str) -> str:
        builder = walls.get((orientation, cell))
        return blank if builder is None else paint(wall_text(orientation, builder), builder)

    def content(cell: int) -> str:
        if cell not in stones:
            owner = snapshot.owner[cell]
            if owner == NOBODY or numbered:
                return " . "
            return paint(f".{LETTERS[owner].lower()} ", owner)
        player, index = stones[cell]
        return paint(f" {LETTERS[player]}{index if numbered else ' '}", player)

    border = "   " + "+---" * size + "+"
    yield "   " + "".join(f"  {COLUMNS[column]} " for column in range(size)).rstrip()
    yield border
    for row in range(size):
        cells = range(row * grid, row * grid + size)
        inner = [content(cell) + wall(VERTICAL, cell, " ") for cell in cells[:-1]]
        yield f"{row + 1:2} |" + "".join(inner) + content(cells[-1]) + "|"
        if row < size - 1:
            yield "   +" + "".join(wall(HORIZONTAL, cell, "   ") + "+" for cell in cells)
    yield border


class Stone(NamedTuple):
    """A stone as drawn; `number` is its index, None where its letter stands alone."""

    row: int
    column: int
    player: int
    number: int | None


class DrawnWall(NamedTuple):
    """A wall as drawn: below its cell if horizontal, right of it if vertical."""

    orientation: int
    row: int
    column: int
    builder: int


class Drawing(NamedTuple):
    """The content of the lines."""

    size: int
    stones: tuple[Stone, ...]
    walls: tuple[DrawnWall, ...]


def parse(board: Sequence[tuple[int, str]]) -> Drawing:
    """Read a board without colours, wherever it begins on its lines.

    Args:
      board: its lines, each with the number that errors shall call it by.

    Raises:
      ValueError: `line N: what is wrong, and what is allowed`.
    """
    size, left = _measure(board)
    stones: list[Stone] = []
    walls: list[DrawnWall] = []
    for row in range(size):
        number, line = _framed(board[2 + 2 * row], left, size, "|")
        for column in range(size):
            at, name = left + 1 + _PITCH * column, f"line {number}: {COLUMNS[column]}{row + 1}"
            stones += _parse_cell(line[at : at + 3].strip(), row, column, name)
            if column < size - 1:
                drawn = line[at + 3].strip(), f"{name}, right side"
                walls += [DrawnWall(VERTICAL, row, column, b) for b in _parse_wall(*drawn)]
        number, line = _framed(board[3 + 2 * row], left, size, "+")
        for column in range(size if row < size - 1 else 0):
            at, name = left + 1 + _PITCH * column, f"line {number}: {COLUMNS[column]}{row + 1}"
            text = line[at : at + 3].strip()
            drawn = text.strip("=") or text, f"{name}, lower side"
            walls += [DrawnWall(HORIZONTAL, row, column, b) for b in _parse_wall(*drawn)]
    return Drawing(size, tuple(stones), tuple(sorted(walls)))


def _measure(board: Sequence[tuple[int, str]]) -> tuple[int, int]:
    """Return the board's size, from its heading of column letters, and its left border's place."""
    if len(board) < 2:
        raise ValueError("the board is missing; it begins with the letters of its columns")
    (number, heading), (_, border) = board[:2]
    size = len(heading.split())
    if not MIN_GRID <= size <= MAX_GRID or heading.split() != list(COLUMNS[:size]):
        raise ValueError(
            f"line {number}: {heading.strip()!r} is not a heading; a board of {MIN_GRID} to "
            f"{MAX_GRID} columns begins with their letters, A B C"
        )
    if len(board) != 2 * size + 2:
        raise ValueError(
            f"line {number}: a board of {size} columns has {2 * size + 2} lines, not {len(board)}"
        )
    left = border.find("+")
    _framed(board[1], left, size, "+")
    return size, left


def _framed(line: tuple[int, str], left: int, size: int, mark: str) -> tuple[int, str]:
    """Return the line, once it has the border's mark at both ends."""
    number, text = line
    right = left + _PITCH * size
    if left < 0 or len(text) <= right or text[left] != mark or text[right] != mark:
        raise ValueError(
            f"line {number}: the border {mark!r} must stand at characters {max(left, 0) + 1} and "
            f"{right + 1}, as the columns do"
        )
    return number, text


_EMPTY = ("", ".", *(f".{letter}" for letter in LETTERS.lower()))


def _parse_cell(text: str, row: int, column: int, name: str) -> list[Stone]:
    if text in _EMPTY:
        return []
    player = LETTERS.find(text[0])
    if player < 0 or len(text) > 2 or (len(text) == 2 and not text[1].isdecimal()):
        raise ValueError(f"{name} is {text!r}, not '.' or a stone such as R or R0")
    return [Stone(row, column, player, int(text[1]) if len(text) == 2 else None)]


def _parse_wall(text: str, name: str) -> list[int]:
    if text == "":
        return []
    builder = LETTERS.lower().find(text)
    if builder < 0 or len(text) != 1:
        raise ValueError(f"{name} is {text!r}, not blank or a wall: r, b, g or y")
    return [builder]
