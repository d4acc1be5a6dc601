"""Late positions of recorded games with their proven values, as a file.

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

import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pydantic

from train.runtime import files
from train.runtime.errors import UsageError
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record


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
    return _from_lines(path, files.read_text(path).splitlines())


def read_growing(path: Path) -> list[LateGame]:
    """Read an uncompressed file that games are being added to; none where it is missing.

    A half-written last line is left out, as the next game takes its place.

    Raises:
      UsageError: it cannot be read, or which line is wrong and why.
    """
    return _from_lines(path, files.read_json_lines(path))


def _from_lines(path: Path, lines: Iterable[str]) -> list[LateGame]:
    games = []
    for number, line in enumerate(lines, start=1):
        try:
            games.append(_from_line(line))
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
    return games


class _Fields(pydantic.BaseModel):
    """The keys of a line that are no keys of a record."""

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
    try:
        fields = _Fields.model_validate_json(line)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        keys = ".".join(map(str, first["loc"]))
        raise ValueError(f"key {keys!r}: {first['msg']}") from None
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
    """The games with at most so many proven positions in all, as even over plies left as possible.

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
