"""Played games on disk: a JSON-lines file that later measurements reuse.

    {"first": IDENTITY, "second": IDENTITY, "settings": {...}, "batch": 0, "pairs": [5 counts],
     "wins": 0, "draws": 0, "losses": 0, "territory": [own, other]}
    {"players": [IDENTITY, ...], "settings": {...}, "batch": 0, "wins": [P numbers],
     "openings": 0, "spread": [[P numbers], ...]}

A line is a batch of games of two players, or of P at a table. Its key is the players' identities
(learned weights by checksum, not by path), the settings (rules, opening plies, seed, version of the
game) and the number of the batch. Lines of other players or other settings are left alone.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import Field

from train.arena.counts import Counts, PairResult, TableResult
from train.runtime.files import append_line, parse_lines, read_json_lines


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
        hint = "; remove the line, or choose another file with --cache"
        for batch in parse_lines(path, read_json_lines(path), _LINES.validate_json, hint=hint):
            if batch.settings == self._settings:
                self._batches.setdefault(batch.counts.players, {})[batch.batch] = batch.counts

    def of(self, players: tuple[str, ...]) -> list[Counts]:
        """Return the batches of players, who must be named in the order of the file."""
        return list(self._batches.get(players, {}).values())

    def next_number(self, players: tuple[str, ...]) -> int:
        """The number of the players' next batch: above those of all that are kept."""
        return max(self._batches.get(players, {}), default=-1) + 1

    def add(self, counts: Counts) -> None:
        """Append a batch to the file, as that of `next_number`.

        Raises:
          UsageError: it cannot be written.
        """
        number = self.next_number(counts.players)
        self._batches.setdefault(counts.players, {})[number] = counts
        line = record_of(counts) | {"settings": self._settings, "batch": number}
        append_line(self._path, json.dumps(line))


def record_of(counts: Counts) -> dict[str, Any]:
    """A batch as JSON-ready figures."""
    fields = counts._asdict()
    if isinstance(counts, PairResult):
        first, second = fields.pop("players")
        fields |= {"first": first, "second": second}
    return json.loads(json.dumps(fields))


_Count = Annotated[int, Field(ge=0)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Points = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Batch(pydantic.BaseModel):
    """The keys of every line."""

    model_config = pydantic.ConfigDict(strict=True)
    settings: Any
    batch: _Count


class _PairsLine(_Batch):
    """A batch of two players."""

    first: str
    second: str
    pairs: tuple[_Count, _Count, _Count, _Count, _Count]
    wins: _Count
    draws: _Count
    losses: _Count
    territory: tuple[_Count, _Count]

    @property
    def counts(self) -> PairResult:
        """The games."""
        figures = self.pairs, self.wins, self.draws, self.losses, self.territory
        return PairResult((self.first, self.second), *figures)

    @pydantic.model_validator(mode="after")
    def _fits(self) -> "_PairsLine":
        counts = self.counts
        scored = sum(half * count for half, count in enumerate(counts.pairs))
        if counts.games != sum(counts[2:5]) or scored != 2 * counts.wins + counts.draws:
            raise ValueError("pairs do not fit wins, draws and losses")
        return self


class _TableLine(_Batch):
    """A batch of more players."""

    players: Annotated[tuple[str, ...], Field(min_length=3)]
    wins: tuple[_Points, ...]
    openings: _Count
    spread: tuple[tuple[_Number, ...], ...]

    @property
    def counts(self) -> TableResult:
        """The games."""
        return TableResult(self.players, self.wins, self.openings, self.spread)

    @pydantic.model_validator(mode="after")
    def _fits(self) -> "_TableLine":
        sizes = [len(self.wins), len(self.spread), *map(len, self.spread)]
        if set(sizes) != {len(self.players)}:
            raise ValueError("wins and spread do not fit the players")
        return self


_LINES: pydantic.TypeAdapter[_PairsLine | _TableLine] = pydantic.TypeAdapter(
    Annotated[
        Annotated[_PairsLine, pydantic.Tag("pairs")] | Annotated[_TableLine, pydantic.Tag("table")],
        pydantic.Discriminator(
            lambda line: "table" if isinstance(line, dict) and "players" in line else "pairs"
        ),
    ]
)
