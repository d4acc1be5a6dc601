"""Positions as text that a person can write and the referee can play on from.

    rules: wallzero-4stone
    turn: R
    <the board, as `wallgo_jax.formats.ascii_board` draws it, stones with their indices>

`rules` names a preset or holds custom rules as a JSON object. More lines where they matter:
`grid: 9` for a board in a larger grid, `walls left: 18 20` where walls are limited, `over: yes`
after the end; `#` opens a comment. A line may be left out where the board tells: walls left from
the walls built, the turn during setup, stone indices in reading order. Plies played are the stones
placed and the walls built. Neither history nor room for more stones than the rules give is held:
the state that comes back has an empty trail.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board import bitboard
from wallgo_jax.env import State as EnvState
from wallgo_jax.formats import ascii_board
from wallgo_jax.formats.ascii_board import Drawing
from wallgo_jax.game import actions, referee
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import MOVER_LOSES, PRESETS, REGION, Rules
from wallgo_jax.game.state import (
    NO_LIMIT,
    NOT_PLACED,
    TIE_MOVER_LOSES,
    TIE_REGION,
    Position,
    State,
    Variant,
    empty_trail,
    initial_position,
    make_variant,
)
from wallgo_jax.notation import COLOURS, LETTERS
from wallgo_jax.view.snapshot import one_board, take_snapshot

KEYS = ("rules", "grid", "turn", "walls left", "over")


def draw(state: EnvState | State) -> str:
    """Draw one board as a diagram.

    Raises:
      ValueError: if the state is a batch.
    """
    snapshot = take_snapshot(state)
    rules = rules_of(one_board(state))
    name = rules_lib.name_of(rules)
    lines = [f"rules: {name if name in PRESETS else json.dumps(rules.to_dict())}"]
    if snapshot.grid > snapshot.size:
        lines.append(f"grid: {snapshot.grid}")
    lines.append(f"turn: {LETTERS[snapshot.player]}")
    if snapshot.walls_left is not None:
        lines.append(f"walls left: {' '.join(str(walls) for walls in snapshot.walls_left)}")
    if snapshot.is_over:
        lines.append("over: yes")
    return "\n".join([*lines, *ascii_board.lines(snapshot, numbered=True), ""])


def rules_of(state: State) -> Rules:
    """Read the rules off a state's variant; they equal a preset where they are one's."""
    variant = jax.device_get(state.variant)
    grid = state.grid
    order = tuple(int(player) for player in variant.order[: int(variant.num_placements)])
    codes = {TIE_REGION: REGION, TIE_MOVER_LOSES: MOVER_LOSES}
    return Rules(
        size=int(variant.size),
        players=len(variant.start),
        # The arrays may have room for more stones than the rules give each player.
        stones=int((variant.start[0] != NOT_PLACED).sum()) + order.count(0),
        start=tuple(
            (*divmod(int(cell), grid), player)
            for player, cells in enumerate(variant.start)
            for cell in cells
            if cell != NOT_PLACED
        ),
        order=order,
        walls=None if variant.walls == NO_LIMIT else int(variant.walls),
        stay_needs_room=bool(variant.stay_needs_room),
        tie=tuple(codes[int(code)] for code in variant.tie if int(code) in codes),
    )


def parse(text: str) -> State:
    """Read the state that a diagram shows.

    Raises:
      ValueError: the line, what is wrong there, and what is allowed.
    """
    header, board = _split(text)
    rules = _parse_rules(header)
    grid = _parse_grid(header, rules)
    drawing = ascii_board.parse(board)
    if drawing.size != rules.size:
        raise ValueError(
            f"line {board[0][0]}: the board has {drawing.size} columns, its rules {rules.size}"
        )
    stones = _place_stones(drawing, rules, grid=grid)
    placed = int((stones != NOT_PLACED).sum())
    placements = placed - len(rules.start)
    walls, built = _build_walls(drawing, rules, grid=grid)
    variant: Variant = jax.tree.map(jnp.asarray, make_variant(rules, grid=grid))
    scheduled = _scheduled_player(variant, placements)
    position = Position(
        stones=jnp.asarray(stones),
        walls=jnp.asarray(walls),
        walls_left=jnp.asarray(_parse_walls_left(header, rules, built)),
        trail=empty_trail(),
        player=jnp.int8(_parse_turn(header, rules, placements, scheduled)),
        ply=jnp.int16(placements + int(built.sum())),
        terminated=jnp.bool_(_parse_over(header)),
    )
    state = State(variant, position)
    _check_stone_counts(stones, placements, rules)
    if scheduled is not None and built.any():
        raise ValueError("the board has walls although not every stone is placed")
    if scheduled is None:
        _check_turn(state)
    return state


def _scheduled_player(variant: Variant, placements: int) -> int | None:
    """Return the player who places the next stone, by the referee; None once all are placed."""
    position = initial_position(variant)._replace(ply=jnp.int16(placements))
    if placements < 0 or not actions.in_setup(variant, position):
        return None
    return int(referee.scheduled_player(variant, position))


class _Line(NamedTuple):
    number: int
    value: str


def _split(text: str) -> tuple[dict[str, _Line], list[tuple[int, str]]]:
    """Split off the header's lines by key, and the board's lines with their numbers."""
    header: dict[str, _Line] = {}
    board: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, value = line.partition(":")
        if not colon:
            board.append((number, line.rstrip()))
        elif key.strip() not in KEYS or key.strip() in header:
            fault = "twice" if key.strip() in header else "unknown"
            raise ValueError(
                f"line {number}: {key.strip()!r} is {fault}; keys are {', '.join(KEYS)}"
            )
        else:
            header[key.strip()] = _Line(number, value.strip())
    return header, board


def _parse_rules(header: Mapping[str, _Line]) -> Rules:
    if "rules" not in header:
        raise ValueError(f"the line 'rules: ...' is missing; presets: {', '.join(PRESETS)}")
    number, value = header["rules"]
    try:
        if value.startswith("{"):
            return Rules.from_dict(json.loads(value))
        return rules_lib.named(value)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"line {number}: rules are not JSON: {error}") from None
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None


def _parse_grid(header: Mapping[str, _Line], rules: Rules) -> int:
    if "grid" not in header:
        return rules.size
    number, value = header["grid"]
    if value not in [str(grid) for grid in range(rules.size, 10)]:
        raise ValueError(f"line {number}: grid {value!r} is not a number from {rules.size} to 9")
    return int(value)


def _parse_turn(
    header: Mapping[str, _Line], rules: Rules, placements: int, scheduled: int | None
) -> int:
    if "turn" not in header:
        if scheduled is not None:
            return scheduled
        raise ValueError("the line 'turn: R' is missing: the player to move")
    number, value = header["turn"]
    player = LETTERS.find(value) if len(value) == 1 else -1
    if not 0 <= player < rules.players:
        letters = ", ".join(LETTERS[: rules.players])
        raise ValueError(f"line {number}: turn {value!r} is not one of {letters}")
    if scheduled is not None and player != scheduled:
        raise ValueError(
            f"line {number}: placement {placements + 1} is {COLOURS[scheduled]}'s, "
            f"not {COLOURS[player]}'s"
        )
    return player


def _parse_walls_left(header: Mapping[str, _Line], rules: Rules, built: np.ndarray) -> np.ndarray:
    """int16[P]: the numbers in the header, else those that the walls built leave over."""
    limit = NO_LIMIT if rules.walls is None else rules.walls
    if "walls left" not in header:
        left = limit - built
        if (left < 0).any():
            raise ValueError(f"the board shows more than the {limit} walls that a player may build")
        return left.astype(np.int16)
    number, value = header["walls left"]
    if rules.walls is None:
        raise ValueError(f"line {number}: these rules set no limit to walls")
    counts = value.replace(",", " ").split()
    allowed = [str(count) for count in range(limit + 1)]
    if len(counts) != rules.players or not all(count in allowed for count in counts):
        raise ValueError(
            f"line {number}: walls left {value!r} is not {rules.players} numbers from 0 to {limit}"
        )
    return np.array([int(count) for count in counts], np.int16)


def _parse_over(header: Mapping[str, _Line]) -> bool:
    if "over" not in header:
        return False
    number, value = header["over"]
    if value not in ("yes", "no"):
        raise ValueError(f"line {number}: over {value!r} is not yes or no")
    return value == "yes"


def _place_stones(drawing: Drawing, rules: Rules, *, grid: int) -> np.ndarray:
    """int8[P, S]: the cells of the stones by index."""
    cells = np.full((rules.players, rules.stones), NOT_PLACED, np.int8)
    for player in range(rules.players):
        own = [stone for stone in drawing.stones if stone.player == player]
        indices = [
            order if stone.number is None else stone.number for order, stone in enumerate(own)
        ]
        if sorted(indices) != list(range(len(own))) or len(own) > rules.stones:
            raise ValueError(
                f"{COLOURS[player]} has the stones {sorted(indices)}; these rules give each player "
                f"{rules.stones}, with indices from 0"
            )
        for stone, index in zip(own, indices, strict=True):
            cells[player, index] = stone.row * grid + stone.column
    strangers = {stone.player for stone in drawing.stones} - set(range(rules.players))
    if strangers:
        raise ValueError(
            f"{COLOURS[min(strangers)]} has stones in a game of {rules.players} players"
        )
    return cells


def _build_walls(drawing: Drawing, rules: Rules, *, grid: int) -> tuple[np.ndarray, np.ndarray]:
    """uint32[P, 2, W] walls of the position, and int[P] walls that each player built."""
    walls = np.zeros((rules.players, 2, bitboard.num_words(grid)), np.uint32)
    built = np.zeros(rules.players, np.int64)
    for orientation, row, column, builder in drawing.walls:
        if builder >= rules.players:
            raise ValueError(f"{COLOURS[builder]} has a wall in a game of {rules.players} players")
        walls[builder, orientation] |= bitboard.constant([row * grid + column], grid)
        built[builder] += 1
    return walls, built


def _check_stone_counts(stones: np.ndarray, placements: int, rules: Rules) -> None:
    for player, cells in enumerate(stones):
        count = int((cells != NOT_PLACED).sum())
        expected = sum(owner == player for *_, owner in rules.start)
        expected += rules.order[: max(placements, 0)].count(player)
        if count != expected:
            raise ValueError(
                f"{COLOURS[player]} has {count} stones where the placement order gives {expected}"
            )


def _check_turn(state: State) -> None:
    """Refuse a running game from which the referee could not go on."""
    snapshot = take_snapshot(state)
    if snapshot.is_over:
        return
    if not snapshot.has_turn:
        raise ValueError(f"turn: {COLOURS[snapshot.player]} has no legal turn")
    # Somebody has a turn, so that only the regions can have ended the game.
    if snapshot.ends_by_rules:
        raise ValueError(
            'no region holds stones of two players, so the game is over; write "over: yes"'
        )
