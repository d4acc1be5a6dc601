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
import itertools
import json
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import jax
import numpy as np
import pydantic

from train.data.record_dataset import RecordedGames, check_rules, make_examples
from train.runtime import files
from train.runtime.errors import UsageError
from train.runtime.fields import Count, Seed, Whole
from train.runtime.host import fetch, in_batches
from train.solver.boards import LOSS
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

_BATCH = 4096


def _slots(mask: str) -> list[int]:
    bits = max(int(str(mask), 16), 0)
    return [slot for slot in range(bits.bit_length()) if bits >> slot & 1]


class LatePosition(NamedTuple):
    """One proven position of a game."""

    ply: Count  # plies before it
    value: Annotated[Whole, pydantic.Field(ge=-1, le=1)]  # for the player to move
    best: Annotated[  # the plays that keep it
        tuple[int, ...], pydantic.Field(min_length=1), pydantic.BeforeValidator(_slots)
    ]
    margin: Whole | None = None  # cells that best play leads by at the end, if it was proven
    margins: tuple[Whole, ...] | None = None  # after each legal play, if all were proven


class TakeOptions(NamedTuple):
    """Options of taking positions from games."""

    per_game: Count  # positions tried in each game
    max_plies_left: Count  # most plies before the end of a game that a position is taken from
    seed: Seed  # decides which positions are tried


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
    late = []
    for each in game.proven:
        fields = each._asdict() | {"best": f"{sum(1 << slot for slot in each.best):x}"}
        late.append({key: value for key, value in fields.items() if value is not None})
    fields = json.loads(records.to_json(game.record)) | {"late": late}
    fields |= {key: getattr(game, key) for key in ("refused", "unclear", "node_limit")}
    if game.options is not None:
        fields["options"] = game.options._asdict()
    return json.dumps(fields, separators=(",", ":"))


def read_late(path: Path, *, is_growing: bool = False) -> list[LateGame]:
    """Read a file of late positions; one that ends in .gz is compressed.

    Of an uncompressed file that games are being added to, which may be missing, a half-written last
    line is left out, as the next game takes its place.

    Raises:
      UsageError: it cannot be read, or which line is wrong and why.
    """
    lines = files.read_json_lines(path) if is_growing else files.read_text(path).splitlines()
    return files.parse_lines(path, lines, _from_line)


class _Fields(pydantic.BaseModel):
    """The keys of a line that a record does not have."""

    late: tuple[LatePosition, ...]
    refused: tuple[Count, ...] = ()
    unclear: tuple[Count, ...] = ()
    node_limit: Count = 0
    options: TakeOptions | None = None


def _from_line(line: str) -> LateGame:
    record, fields = records.from_json(line), _Fields.model_validate_json(line)
    plies = range(len(record.rules.order), len(record.actions))
    for ply, _, _, margin, margins in fields.late:
        is_most = margins is None or max(margins, default=None) == margin
        if record.result is None or ply not in plies or not is_most:
            raise ValueError(
                f"key 'late': ply {ply} must be after the placements of a finished game, its "
                "'margin' the most of 'margins'"
            )
    others = fields.refused, fields.unclear, fields.node_limit, fields.options
    return LateGame(record, fields.late, *others)


def write_late(path: Path, games: Iterable[LateGame]) -> None:
    """Write a file of late positions, whole; the same games give the same bytes.

    Raises:
      UsageError: the file cannot be written.
    """
    files.write_lines(path, map(to_line, games))


def plies_left(game: LateGame, ply: int) -> int:
    """Plies that the recorded game went on for."""
    return len(game.record.actions) - ply


def pairs_of_plies(left: Iterable[int]) -> dict[str, tuple[int, int]]:
    """The groups of two that plies left fall into, one of each player, by name in rising order."""
    firsts = sorted({int(each - 1) // 2 * 2 + 1 for each in left})
    return {f"{first} to {first + 1}": (first, first + 1) for first in firsts}


def spread(
    games: Sequence[LateGame],
    most: int,
    *,
    seed: Seed = 0,
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
    chosen: dict[int, list[LatePosition]] = {}
    for left, group in by_left.items():
        mixed = [group[place] for place in rng.permutation(len(group))]
        # The last one is taken first.
        by_left[left] = sorted(mixed, key=lambda pair: (pair[0], pair[1].ply) in preferred)
    turns = itertools.cycle(sorted(by_left, reverse=True))
    for _ in range(min(most, sum(map(len, by_left.values())))):
        index, each = by_left[next(left for left in turns if by_left[left])].pop()
        chosen.setdefault(index, []).append(each)
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
      can_err: bool[N], whether some legal play loses value.
      value: int8[N], for the player to move.
      left: int16[N], plies that the recorded game went on for.
      margins: float32[N, A], lead at the end after each legal play; NaN elsewhere, and in the rows
        of positions without proven margins.
    """

    rules: Rules
    states: State
    best: np.ndarray
    can_err: np.ndarray
    value: np.ndarray
    left: np.ndarray
    margins: np.ndarray


def load_late(path: Path) -> LatePositions:
    """Read a file of late positions and replay its games.

    Raises:
      UsageError: what is wrong with the file.
    """
    games = read_late(path)
    if not any(game.proven for game in games):
        raise UsageError(f"{path}: no proven position")
    return states_of(games, f"{path}, ")


def states_of(games: Sequence[LateGame], where: str = "") -> LatePositions:
    """The proven positions of games, one at least, which are replayed; messages begin with `where`.

    Raises:
      UsageError: games have several rules, or the best plays of a position are not among its legal
        ones.
    """
    numbered = [(n, game) for n, game in enumerate(games, start=1) if game.proven]
    places = tuple(f"{where}game {number}" for number, _ in numbered)
    games = [game for _, game in numbered]
    rules = games[0].record.rules
    for game, place in zip(games, places, strict=True):
        check_rules(game.record, rules, place)
    examples = fetch(make_examples(RecordedGames(tuple(game.record for game in games), places)))
    pairs = [(number, each) for number, game in enumerate(games) for each in game.proven]
    of_game = np.array([number for number, _ in pairs])
    at = np.searchsorted(examples.game, of_game) + [each.ply for _, each in pairs]
    states = State(
        jax.tree.map(lambda x: x[of_game], examples.variant),
        jax.tree.map(lambda x: x[at], examples.position),
    )
    (legal,) = in_batches(lambda some: (legal_slots(some),), states, _BATCH)
    best, margins = np.zeros_like(legal), np.full(legal.shape, np.nan, np.float32)
    for row, ((number, each), slots) in enumerate(zip(pairs, legal, strict=True)):
        place, count = f"{places[number]}, ply {each.ply}", slots.sum()
        plays = set(np.flatnonzero(slots).tolist())
        is_sound = plays == {*each.best} if each.value == LOSS else plays >= {*each.best}
        if not is_sound or (each.margins is not None and len(each.margins) != count):
            raise UsageError(f"{place}: 'best' or 'margins' do not fit the {count} legal plays")
        best[row, list(each.best)] = True
        if each.margins is not None:
            margins[row, slots] = each.margins
    return LatePositions(
        rules=rules,
        states=states,
        best=best,
        can_err=np.asarray((legal & ~best).any(axis=1)),
        value=np.array([each.value for _, each in pairs], np.int8),
        left=np.array([plies_left(games[number], each.ply) for number, each in pairs], np.int16),
        margins=margins,
    )


@jax.jit
def legal_slots(states: State) -> jax.Array:
    """bool[N, A]: the legal slots of states [N]."""
    return jax.vmap(actions.legal_slots)(states)
