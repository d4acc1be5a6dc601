"""The replay code of the Hong Kong Olympiad in Informatics' Wall Go contest, both ways.

AI Competition 2025, slide "Visualisation", prints one; its layout was worked out from that example.
Eight placements of four digits, `_`, then three base-32 digits (0-9a-v) a move, the least
significant first:

    placement   row column player piece      rows and columns from 0 at the top left;
                                             player 1 Red, 2 Blue; piece 0 to 3
    move        v = d0 + 32 d1 + 1024 d2
                v: player << 12 | piece << 9 | first step << 6 | second step << 3 | wall
                                             player 0 Red, 1 Blue; steps and walls 1 up, 2 down,
                                             3 left, 4 right; step 0 none

A piece is a stone's index. A move of one step has it in the first step. A diagonal is written round
the first open corner, the vertical step first.
"""

from collections.abc import Sequence

from wallgo_jax.board.geometry import (
    DOWN,
    LEFT,
    MOVE_OFFSETS,
    NUM_SIDES,
    PLAYS_PER_STONE,
    RIGHT,
    SIDE_OFFSETS,
    UP,
)
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.notation import COLOURS, SIDE_NAMES, NotatedMove, cell_name, decode_play
from wallgo_jax.view.game_replay import Game, replay_moves
from wallgo_jax.view.snapshot import take_snapshot
from wallgo_jax.view.walks import can_walk, open_paths

_SIZE, _PLACEMENTS, _PIECES = 7, 8, 4
_SIDES = (UP, DOWN, LEFT, RIGHT)
"""Sides as the code counts them, from 1."""
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_MOVE_DIGITS = 3


def decode(code: str, rules: Rules = PRESETS["hkoi"]) -> Game:
    """Play the game of a code by the referee; blanks and line ends do not count.

    Raises:
      ValueError: `placement N` or `move N`, counted from 1, with the reason.
    """
    _check_rules(rules)
    placements, bar, moves = "".join(code.split()).lower().partition("_")
    if not bar or len(placements) != 4 * _PLACEMENTS:
        raise ValueError(
            f"code: {len(placements)} digits stand before '_', not {4 * _PLACEMENTS}: "
            "eight placements of four"
        )
    if len(moves) % _MOVE_DIGITS:
        raise ValueError(f"code: the last move has {len(moves) % _MOVE_DIGITS} digits, not 3")
    cells: dict[tuple[int, int], int] = {}
    notated = [
        _decode_placement(placements[4 * i : 4 * i + 4], f"placement {i + 1}", cells)
        for i in range(_PLACEMENTS)
    ]
    paths = []
    for number in range(len(moves) // _MOVE_DIGITS):
        digits = moves[_MOVE_DIGITS * number :][:_MOVE_DIGITS]
        move, path = _decode_move(digits, f"move {number + 1}", cells)
        notated.append(move)
        paths.append(path)
    return _play_along(rules, notated, paths)


def _check_rules(rules: Rules) -> None:
    shape = (rules.size, rules.players, rules.stones, len(rules.order))
    if shape != (_SIZE, 2, _PIECES, _PLACEMENTS):
        raise ValueError(
            "code: it can hold only games of 2 players with 4 stones each, begun on an empty 7x7 "
            "board"
        )


def _decode_placement(digits: str, where: str, cells: dict[tuple[int, int], int]) -> NotatedMove:
    row, column, player, piece = (_DIGITS.find(digit) for digit in digits)
    _check_digit(row, 0, _SIZE - 1, f"{where}: row {digits[0]!r}")
    _check_digit(column, 0, _SIZE - 1, f"{where}: column {digits[1]!r}")
    _check_digit(player, 1, 2, f"{where}: player {digits[2]!r}")
    _check_digit(piece, 0, _PIECES - 1, f"{where}: piece {digits[3]!r}")
    if (player - 1, piece) in cells:
        raise ValueError(f"{where}: {COLOURS[player - 1]}'s piece {piece} is placed twice")
    cells[player - 1, piece] = row * _SIZE + column
    return NotatedMove(first_placement(_SIZE) + row * _SIZE + column, player - 1)


def _check_digit(value: int, low: int, high: int, what: str) -> None:
    if not low <= value <= high:
        raise ValueError(f"{what} is not a digit from {low} to {high}")


def _decode_move(
    digits: str, where: str, cells: dict[tuple[int, int], int]
) -> tuple[NotatedMove, tuple[int, ...]]:
    """Return the action and the sides it steps over, and move the piece in `cells`."""
    values = [_DIGITS.find(digit) for digit in digits]
    if min(values) < 0:
        raise ValueError(f"{where}: {digits!r} has a digit that is not 0-9 or a-v")
    code = values[0] + 32 * values[1] + 1024 * values[2]
    wall, second, first = code & 7, code >> 3 & 7, code >> 6 & 7
    piece, player = code >> 9 & 7, code >> 12
    _check_digit(player, 0, 1, f"{where}: player {player}")
    _check_digit(piece, 0, _PIECES - 1, f"{where}: piece {piece}")
    _check_digit(first, 0, 4, f"{where}: first step {first}")
    _check_digit(second, 0, 4, f"{where}: second step {second}")
    if second and not first:
        raise ValueError(f"{where}: a second step without a first")
    if not 1 <= wall <= NUM_SIDES:
        raise ValueError(f"{where}: wall digit {wall} is not a side; 1 up, 2 down, 3 left, 4 right")
    path = tuple(_SIDES[step - 1] for step in (first, second) if step)
    offset = tuple(sum(SIDE_OFFSETS[side][axis] for side in path) for axis in range(2))
    cell = cells[player, piece]
    row, column = cell // _SIZE + offset[0], cell % _SIZE + offset[1]
    if not (0 <= row < _SIZE and 0 <= column < _SIZE):
        raise ValueError(f"{where}: {cell_name(cell, grid=_SIZE)} steps off the board")
    cells[player, piece] = row * _SIZE + column
    move = MOVE_OFFSETS.index((offset[0], offset[1]))
    action = cell * PLAYS_PER_STONE + move * NUM_SIDES + _SIDES[wall - 1]
    return NotatedMove(action, player), path


def _play_along(
    rules: Rules, notated: Sequence[NotatedMove], paths: Sequence[tuple[int, ...]]
) -> Game:
    """Play the game; refuse a step through a wall or a stone even where a detour is open."""
    try:
        game = replay_moves(rules, notated)
    except ValueError as error:
        raise ValueError(_name_move(str(error))) from None
    for number, path in enumerate(paths, start=1):
        action = game.actions[_PLACEMENTS + number - 1]
        snapshot = take_snapshot(game.states[_PLACEMENTS + number - 1])
        for steps in range(1, len(path) + 1):
            if not can_walk(snapshot, decode_play(action).cell, path[:steps]):
                way = SIDE_NAMES[path[steps - 1]]
                raise ValueError(f"move {number}: step {steps}, over the {way} side, is blocked")
    return game


def _name_move(message: str) -> str:
    """Turn `ply 26: reason` into `move 18: reason`."""
    ply, reason = message.removeprefix("ply ").split(":", 1)
    number = int(ply) - _PLACEMENTS
    kind = f"move {number}" if number > 0 else f"placement {int(ply)}"
    return f"{kind}:{reason}"


def encode(game: Game) -> str:
    """Write the code of a game, finished or not, in which all stones are placed.

    Raises:
      ValueError: if the game is of another kind, or still in setup.
    """
    _check_rules(game.rules)
    if game.grid != _SIZE:
        raise ValueError("code: the board lies in a larger grid, which a code cannot hold")
    if len(game.actions) < _PLACEMENTS:
        raise ValueError(
            f"code: the game has {len(game.actions)} plies; a code needs all 8 placements"
        )
    placements = [_encode_placement(game, ply) for ply in range(_PLACEMENTS)]
    moves = [_encode_move(game, ply) for ply in range(_PLACEMENTS, len(game.actions))]
    return "".join(placements) + "_" + "".join(moves)


def _encode_placement(game: Game, ply: int) -> str:
    row, column = divmod(game.actions[ply] - first_placement(_SIZE), _SIZE)
    player = game.movers[ply]
    return f"{row}{column}{player + 1}{game.movers[:ply].count(player)}"


def _encode_move(game: Game, ply: int) -> str:
    snapshot = take_snapshot(game.states[ply])
    play = decode_play(game.actions[ply])
    path = min(open_paths(snapshot, play), key=lambda path: path[:1] not in ((UP,), (DOWN,)))
    first, second = ([_SIDES.index(side) + 1 for side in path] + [0, 0])[:2]
    piece = snapshot.stones[snapshot.player].index(play.cell)
    wall = _SIDES.index(play.side) + 1
    code = snapshot.player << 12 | piece << 9 | first << 6 | second << 3 | wall
    return "".join(_DIGITS[code >> shift & 31] for shift in (0, 5, 10))
