"""Late positions of recorded games with their proven values, as a file and as states.

Each line is a game's record (see `wallgo_jax.formats.records`) with these keys more:

| key | value |
|---|---|
| `late` | positions that were proven: `ply`, `value`, `best` |
| `refused` | plies before which no proof was found within the limit |
| `unclear` | plies before which the result hangs on turns that the proof bounds too coarsely |
| `node_limit` | positions that one proof could look at |
| `options` | how positions were taken: `per_game`, `max_plies_left`, `seed`; may be missing |

`ply` counts the plies before a position, `value` (1, 0, -1) is the player's to move, and `best`
holds the slots of all plays that keep it, as the bits of a hexadecimal number. Where they were
proven, `margin` is the lead in cells that best play reaches, and `margins` the lead after each
legal play, in the order of slots.
"""

import dataclasses
import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
import numpy as np
import pydantic

from train.data.record_dataset import RecordedGames, make_examples
from train.runtime import files
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.solver.boards import LOSS
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State


class LatePosition(NamedTuple):
    """One proven position of a game."""

    ply: int  # plies before it
    value: int  # for the player to move
    best: tuple[int, ...]  # slots of the plays that keep it
    margin: int | None  # cells that best play leads by at the end, if it was proven
    margins: tuple[int, ...] | None  # after each legal play, if all were proven


class TakeOptions(NamedTuple):
    """Options of taking positions, as in `train.experiments.late_proofs.ProofOptions`."""

    per_game: int
    max_plies_left: int
    seed: int


class LateGame(NamedTuple):
    """A game, and what was proven of it."""

    record: Record
    proven: tuple[LatePosition, ...]
    refused: tuple[int, ...]  # plies before positions that need more nodes
    unclear: tuple[int, ...]  # plies before positions with bounds that are too coarse
    node_limit: int  # 0 if unknown
    options: TakeOptions | None  # None if unknown


def to_line(game: LateGame) -> str:
    """The line of a game, without its line end."""
    fields = json.loads(records.to_json(game.record))
    fields["late"] = [_fields(each) for each in game.proven]
    fields["refused"] = list(game.refused)
    fields["unclear"] = list(game.unclear)
    fields["node_limit"] = game.node_limit
    if game.options is not None:
        fields["options"] = game.options._asdict()
    return json.dumps(fields, separators=(",", ":"))


def _fields(position: LatePosition) -> dict[str, Any]:
    best = f"{sum(1 << slot for slot in position.best):x}"
    fields: dict[str, Any] = {"ply": position.ply, "value": position.value, "best": best}
    if position.margin is not None:
        fields["margin"] = position.margin
    if position.margins is not None:
        fields["margins"] = list(position.margins)
    return fields


def read_late(path: Path) -> list[LateGame]:
    """Read a file of late positions; one that ends in .gz is compressed.

    Raises:
      UsageError: it cannot be read, or which line is wrong and why.
    """
    return files.parse_lines(path, files.read_text(path).splitlines(), _from_line)


def read_growing(path: Path) -> list[LateGame]:
    """Read an uncompressed file that games are being added to; none where it is missing.

    A half-written last line is left out, as the next game takes its place.

    Raises:
      UsageError: it cannot be read, or which line is wrong and why.
    """
    return files.parse_lines(path, files.read_json_lines(path), _from_line)


class _Fields(pydantic.BaseModel):
    """The keys of a line that a record does not have."""

    late: list["_Proven"]
    refused: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()
    node_limit: int = 0
    options: TakeOptions | None = None


class _Proven(pydantic.BaseModel):
    """A proven position as a line holds it."""

    ply: int
    value: Literal[1, 0, -1]  # WIN, DRAW, LOSS
    best: Annotated[str, pydantic.Field(pattern="^[0-9a-f]*[1-9a-f][0-9a-f]*$")]
    margin: int | None = None
    margins: tuple[int, ...] | None = None


def _from_line(line: str) -> LateGame:
    record = records.from_json(line)
    if record.result is None:
        raise ValueError("key 'result': the game has none; late positions are of finished games")
    if record.grid not in (None, record.rules.size):
        raise ValueError(f"key 'grid': is {record.grid}, not the board's own {record.rules.size}")
    fields = _Fields.model_validate_json(line)
    proven = tuple(_position(each, record) for each in fields.late)
    others = fields.refused, fields.unclear, fields.node_limit, fields.options
    return LateGame(record, proven, *others)


def _position(fields: _Proven, record: Record) -> LatePosition:
    plies, placements, mask = len(record.actions), len(record.rules.order), int(fields.best, 16)
    if not placements <= fields.ply < plies:
        allowed = f"is not from {placements}, after the placements, to below {plies}"
        raise ValueError(f"key 'late': ply {fields.ply} {allowed}")
    if fields.margins is not None and max(fields.margins, default=None) != fields.margin:
        raise ValueError(f"key 'late': ply {fields.ply}: 'margin' must be the most of 'margins'")
    best = tuple(slot for slot in range(mask.bit_length()) if mask >> slot & 1)
    return LatePosition(fields.ply, fields.value, best, fields.margin, fields.margins)


def write_late(path: Path, games: Iterable[LateGame]) -> None:
    """Write a file of late positions, whole; the same games give the same bytes.

    Raises:
      UsageError: the file cannot be written.
    """
    files.write_lines(path, map(to_line, games))


def plies_left(game: LateGame, ply: int) -> int:
    """Plies that the recorded game went on for."""
    return len(game.record.actions) - ply


def spread(
    games: Sequence[LateGame],
    most: int,
    *,
    seed: int = 0,
    preferred: Container[tuple[int, int]] = (),
) -> list[LateGame]:
    """The games with at most `most` proven positions in all, spread evenly over plies left.

    Games without a chosen position are left out.

    Args:
      games: with proven positions.
      most: number of positions.
      seed: decides which positions are chosen.
      preferred: the positions to choose first among those with as many plies left, each as the
        number of its game from 0 and its ply.
    """
    rng = np.random.default_rng(seed)
    by_left: dict[int, list[tuple[int, LatePosition]]] = {}
    for index, game in enumerate(games):
        for each in game.proven:
            by_left.setdefault(plies_left(game, each.ply), []).append((index, each))
    by_left = {
        left: [group[place] for place in rng.permutation(len(group))]
        for left, group in by_left.items()
    }
    for group in by_left.values():
        # The last one is taken first.
        group.sort(key=lambda pair: (pair[0], pair[1].ply) in preferred)
    chosen: dict[int, list[LatePosition]] = {}
    left = most
    while left and any(by_left.values()):
        for key in sorted(by_left, reverse=True):
            if by_left[key] and left:
                index, each = by_left[key].pop()
                chosen.setdefault(index, []).append(each)
                left -= 1
    return [
        games[index]._replace(
            proven=tuple(sorted(chosen[index], key=lambda each: each.ply)), refused=(), unclear=()
        )
        for index in sorted(chosen)
    ]


@dataclasses.dataclass(frozen=True)
class LatePositions:
    """Proven positions as states.

    Attributes:
      rules: of all of them.
      states: [N], on the host.
      best: bool[N, A], the plays that keep the value.
      value: int8[N], for the player to move.
      left: int16[N], plies that the recorded game went on for.
      margins: float32[N, A], lead at the end after each legal play; NaN elsewhere, and in the rows
        of positions without proven margins.
    """

    rules: Rules
    states: State
    best: np.ndarray
    value: np.ndarray
    left: np.ndarray
    margins: np.ndarray


def load_late(path: Path) -> LatePositions:
    """Read a file of late positions and replay its games.

    Raises:
      UsageError: what is wrong with the file.
    """
    numbered = [(n, game) for n, game in enumerate(read_late(path), start=1) if game.proven]
    if not numbered:
        raise UsageError(f"{path}: no proven position")
    places = tuple(f"{path}, game {number}" for number, _ in numbered)
    games = [game for _, game in numbered]
    rules = games[0].record.rules
    for game, place in zip(games, places, strict=True):
        if game.record.rules != rules:
            raise UsageError(f"{place}: its rules differ from those of the first game")
    examples = fetch(make_examples(RecordedGames(tuple(game.record for game in games), places)))
    pairs = [(number, each) for number, game in enumerate(games) for each in game.proven]
    of_game = np.array([number for number, _ in pairs])
    proven = [each for _, each in pairs]
    at = np.searchsorted(examples.game, of_game) + [each.ply for each in proven]
    states = State(
        jax.tree.map(lambda x: x[of_game], examples.variant),
        jax.tree.map(lambda x: x[at], examples.position),
    )
    labels = [f"{places[number]}, ply {each.ply}" for number, each in pairs]
    best, margins = _best_and_margins(proven, fetch(legal_slots(states)), labels)
    return LatePositions(
        rules=rules,
        states=states,
        best=best,
        value=np.array([each.value for each in proven], np.int8),
        left=np.array([plies_left(games[number], each.ply) for number, each in pairs], np.int16),
        margins=margins,
    )


def _best_and_margins(
    positions: Sequence[LatePosition], legal: np.ndarray, places: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """bool[N, A] and float32[N, A], see `LatePositions`; refuses what no legal plays can be."""
    best, margins = np.zeros_like(legal), np.full(legal.shape, np.nan, np.float32)
    for row, (position, slots, place) in enumerate(zip(positions, legal, places, strict=True)):
        wrong = set(position.best) - set(np.flatnonzero(slots).tolist())
        if wrong:
            raise UsageError(f"{place}: 'best' has slot {min(wrong)}, which is not legal")
        best[row, list(position.best)] = True
        if position.value == LOSS and (best[row] != slots).any():
            raise UsageError(f"{place}: is lost, so 'best' must have all {slots.sum()} legal plays")
        if position.margins is not None:
            count = len(position.margins)
            if count != slots.sum():
                raise UsageError(f"{place}: {count} margins, but {slots.sum()} legal plays")
            margins[row, slots] = position.margins
    return best, margins


@jax.jit
def legal_slots(states: State) -> jax.Array:
    """bool[N, A]: the legal slots of states [N]."""
    return jax.vmap(actions.legal_slots)(states)
