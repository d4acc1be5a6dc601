"""Played games on disk: a JSON-lines file that later measurements reuse.

    {"first": IDENTITY, "second": IDENTITY, "settings": {...}, "batch": 0, "pairs": [5 counts],
     "wins": 0, "draws": 0, "losses": 0, "territory": [own, other]}

A line is a batch of games of two players. Its key is both players' identities (learned weights by
checksum, not by path), the settings (rules, opening plies, seed, version of the game) and the
number of the batch. Lines of other players or other settings are left alone.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from train.arena.elo import PAIR_SCORES
from train.runtime.errors import UsageError
from train.runtime.files import append_json_line, read_json_lines


class Batch(NamedTuple):
    """Games of two players, from the first one's side."""

    first: str  # identity
    second: str
    number: int  # from 0, among the batches of these two in these settings
    pairs: tuple[int, ...]  # [5], see `train.arena.elo.Result`
    wins: int
    draws: int
    losses: int
    territory: tuple[int, int]

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.draws + self.losses


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
        self._batches: dict[tuple[str, str], dict[int, Batch]] = {}
        for batch, played_on in _read(path):
            if played_on == self._settings:
                self._keep(batch)

    def _keep(self, batch: Batch) -> None:
        self._batches.setdefault((batch.first, batch.second), {})[batch.number] = batch

    def between(self, first: str, second: str) -> list[Batch]:
        """Return the batches of two players, who must be named in the order of the file."""
        return list(self._batches.get((first, second), {}).values())

    def add(self, batch: Batch) -> None:
        """Append a batch to the file.

        Raises:
          UsageError: it cannot be written.
        """
        self._keep(batch)
        line = {
            "first": batch.first,
            "second": batch.second,
            "settings": self._settings,
            "batch": batch.number,
            "pairs": list(batch.pairs),
            "wins": batch.wins,
            "draws": batch.draws,
            "losses": batch.losses,
            "territory": list(batch.territory),
        }
        append_json_line(self._path, line)


def _read(path: Path) -> list[tuple[Batch, Any]]:
    """Read the batches, each with the settings that it was played in."""
    found = []
    lines = read_json_lines(path)
    for number, line in enumerate(lines, start=1):
        try:
            found.append(_batch_of(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise UsageError(
                f"{path}: line {number}: not a batch of games: {' '.join(reason.split())[:200]}; "
                "remove the line, or choose another file with --cache"
            ) from None
    return found


def _batch_of(line: str) -> tuple[Batch, Any]:
    fields = json.loads(line)
    batch = Batch(
        first=fields["first"],
        second=fields["second"],
        number=fields["batch"],
        pairs=tuple(fields["pairs"]),
        wins=fields["wins"],
        draws=fields["draws"],
        losses=fields["losses"],
        territory=tuple(fields["territory"]),
    )
    counts = [batch.number, batch.wins, batch.draws, batch.losses, *batch.pairs, *batch.territory]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("a count is not a whole number")
    if not all(isinstance(name, str) for name in (batch.first, batch.second)):
        raise ValueError("a player is not a string")
    if len(batch.pairs) != len(PAIR_SCORES) or len(batch.territory) != 2:
        raise ValueError("pairs are 5 counts, territory is 2")
    scored = sum(half * count for half, count in enumerate(batch.pairs))
    if 2 * sum(batch.pairs) != batch.games or scored != 2 * batch.wins + batch.draws:
        raise ValueError("pairs do not fit wins, draws and losses")
    return batch, fields["settings"]
