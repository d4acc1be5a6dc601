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

import gzip
import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from train.runtime import files
from train.runtime.errors import UsageError
from train.solver.values import DRAW, LOSS, WIN
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
    """How positions were taken from a game, as in `train.analysis.late_proofs.ProofOptions`."""

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
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except records.UNREADABLE as error:
        reason = getattr(error, "strerror", None) or "not a text or gzip file"
        raise UsageError(f"{path}: cannot be read: {reason}") from None
    return _from_lines(path, text.splitlines())


def read_growing(path: Path) -> list[LateGame]:
    """Read an uncompressed file that games are being added to; none where it is missing.

    A half-written last line is left out, as the next game takes its place.

    Raises:
      UsageError: it cannot be read, or which line is wrong and why.
    """
    return _from_lines(path, files.read_json_lines(path))


def _from_lines(path: Path, lines: Iterable[str]) -> list[LateGame]:
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(_from_line(line))
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
    return found


def _from_line(line: str) -> LateGame:
    record = records.from_json(line)
    fields = json.loads(line)
    if "late" not in fields:
        raise ValueError("key 'late' is missing: no file of late positions")
    if record.result is None:
        raise ValueError("key 'result': the game has none; late positions are of finished games")
    if record.grid not in (None, record.rules.size):
        raise ValueError(f"key 'grid': is {record.grid}, not the board's own {record.rules.size}")
    try:
        proven = tuple(_position(each, record) for each in fields["late"])
        refused = tuple(map(int, fields.get("refused", ())))
        unclear = tuple(map(int, fields.get("unclear", ())))
        node_limit = int(fields.get("node_limit", 0))
    except (KeyError, TypeError, OverflowError):
        raise ValueError("key 'late': positions need 'ply', 'value' and 'best'") from None
    return LateGame(record, proven, refused, unclear, node_limit, _options(fields.get("options")))


def _options(fields: Any) -> TakeOptions | None:
    if fields is None:
        return None
    try:
        return TakeOptions(**{key: int(fields[key]) for key in TakeOptions._fields})
    except (KeyError, TypeError, OverflowError):
        names = ", ".join(TakeOptions._fields)
        raise ValueError(f"key 'options': must be a table of {names}") from None


def _position(fields: Any, record: Record) -> LatePosition:
    mask = int(fields["best"], 16)
    ply, value = int(fields["ply"]), int(fields["value"])
    plies, placements = len(record.actions), len(record.rules.order)
    if not 0 <= ply < plies or value not in (WIN, DRAW, LOSS) or mask < 1:
        raise ValueError(f"key 'late': {fields} is no position of a game of {plies} plies")
    if ply < placements:
        raise ValueError(
            f"key 'late': ply {ply} places a stone; positions begin at ply {placements}"
        )
    best = tuple(slot for slot in range(mask.bit_length()) if mask >> slot & 1)
    margin, margins = fields.get("margin"), fields.get("margins")
    if margins is not None:
        margins = tuple(map(int, margins))
        if margin is None or max(margins, default=None) != margin:
            raise ValueError(f"key 'late': before ply {ply} 'margin' must be the most of 'margins'")
    return LatePosition(ply, value, best, None if margin is None else int(margin), margins)


def write_late(path: Path, games: Iterable[LateGame]) -> None:
    """Write a file of late positions, whole; the same games give the same bytes.

    Raises:
      UsageError: the file cannot be written.
    """
    data = "".join(to_line(game) + "\n" for game in games).encode()
    files.replace_bytes(path, gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)


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
