"""Played games on disk: a JSON-lines file that later measurements reuse.

    {"players": [IDENTITY, ...], "settings": {...}, "batch": 0, "wins": [P numbers],
     "openings": 0, "spread": [[P numbers], ...]}

A line is a batch of games of P players. Its key is the players' identities (learned weights by
checksum, not by path), the settings (rules, opening plies, seed, version of the game) and the
number of the batch. Lines of other players or other settings are left alone. Earlier versions wrote
lines of two players as {"first": IDENTITY, "second": IDENTITY, "settings": {...}, "batch": 0,
"pairs": [5 counts]}: pairs of games by the points of the first player, which are read too.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pydantic
from pydantic import Field

from train.arena.figures import Counts
from train.runtime.fields import Count
from train.runtime.files import append_line, parse_lines, read_json_lines
from train.runtime.showing import sparing
from wallgo_jax.formats.option_names import argument


class ResultsCache:
    """Batches of games in a file, of those played in given settings; more can be added.

    Args:
      path: the file; it, and the directory that it is in, may not be there yet.
      settings: JSON-ready; all that decides a batch besides its players and its number.

    Raises:
      UsageError: a line has another format (file and number are named), or the file cannot be
        read.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._path = path
        self._settings = json.loads(json.dumps(settings))
        self._batches: dict[tuple[str, ...], dict[int, Counts]] = {}
        hint = f"; remove the line, or choose another file with {argument('cache')}"
        for batch in parse_lines(path, read_json_lines(path), _read, hint=hint):
            if batch.settings == self._settings:
                self._batches.setdefault(batch.counts.players, {})[batch.batch] = batch.counts

    def of(self, players: tuple[str, ...]) -> list[Counts]:
        """Return the batches of players, who must be named in the order of the file."""
        return list(self._batches.get(players, {}).values())

    def next_number(self, players: tuple[str, ...]) -> int:
        """The number of the players' next batch: above those of all that are kept."""
        return max(self._batches.get(players, {}), default=-1) + 1

    def add(self, counts: Counts) -> None:
        """Append a batch to the file, as that of `next_number`; where it cannot be written, it
        counts all the same, and the next measurement plays it again."""
        number = self.next_number(counts.players)
        self._batches.setdefault(counts.players, {})[number] = counts
        line = counts._asdict() | {"settings": self._settings, "batch": number}
        with sparing(self._path, "its games count, but are not kept"):
            append_line(self._path, json.dumps(line))


_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Batch(pydantic.BaseModel):
    """The keys of every line."""

    model_config = pydantic.ConfigDict(strict=True)
    settings: Any
    batch: Count


class _Line(_Batch):
    """A batch of games."""

    players: Annotated[tuple[str, ...], Field(min_length=2)]
    wins: tuple[Annotated[_Number, Field(ge=0)], ...]
    openings: Count
    spread: tuple[tuple[_Number, ...], ...]

    @property
    def counts(self) -> Counts:
        """The games."""
        return Counts(self.players, self.wins, self.openings, self.spread)

    @pydantic.model_validator(mode="after")
    def _fits(self) -> "_Line":
        if {len(self.wins), len(self.spread), *map(len, self.spread)} != {len(self.players)}:
            raise ValueError("wins and spread do not fit the players")
        return self


class _PairsLine(_Batch):
    """A batch of two players, as earlier versions wrote it."""

    first: str
    second: str
    pairs: Annotated[tuple[Count, ...], Field(min_length=5, max_length=5)]

    @property
    def counts(self) -> Counts:
        """The games."""
        points, pairs = np.arange(5) / 2, np.array(self.pairs)
        won, openings = float(pairs @ points), sum(self.pairs)
        apart = float(pairs @ (points - won / max(openings, 1)) ** 2)
        spread = (apart, -apart), (-apart, apart)
        return Counts((self.first, self.second), (won, 2 * openings - won), openings, spread)


def _read(line: str) -> _Line | _PairsLine:
    return (_PairsLine if '"pairs"' in line else _Line).model_validate_json(line)
