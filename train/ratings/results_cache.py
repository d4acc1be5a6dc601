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
from typing import Any

import numpy as np

from train.arena.elo import PAIR_SCORES, Counts, PairResult, TableResult
from train.runtime.errors import UsageError
from train.runtime.files import append_json_line, read_json_lines


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
        for number, line in enumerate(read_json_lines(path), start=1):
            try:
                batch, counts, settings = _read_batch(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                reason = f"no {error}" if isinstance(error, KeyError) else str(error)
                raise UsageError(
                    f"{path}: line {number}: not a batch of games: "
                    f"{' '.join(reason.split())[:200]}; remove the line, or choose another file "
                    "with --cache"
                ) from None
            if settings == self._settings:
                self._batches.setdefault(counts.players, {})[batch] = counts

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
        append_json_line(self._path, line)


def record_of(counts: Counts) -> dict[str, Any]:
    """A batch as JSON-ready figures."""
    fields = counts._asdict()
    if isinstance(counts, PairResult):
        first, second = fields.pop("players")
        fields |= {"first": first, "second": second}
    return json.loads(json.dumps(fields))


def _read_batch(fields: Any) -> tuple[int, Counts, Any]:
    """The number, the counts and the settings of a line."""
    counts = _read_table(fields) if "players" in fields else _read_pairs(fields)
    number = fields["batch"]
    if type(number) is not int or number < 0:
        raise ValueError("the number of the batch is not a whole number from 0 on")
    if not all(isinstance(name, str) for name in counts.players):
        raise ValueError("a player is not a string")
    return number, counts, fields["settings"]


def _read_pairs(fields: Any) -> PairResult:
    counts = PairResult(
        players=(fields["first"], fields["second"]),
        pairs=tuple(fields["pairs"]),
        wins=fields["wins"],
        draws=fields["draws"],
        losses=fields["losses"],
        territory=tuple(fields["territory"]),
    )
    numbers = [*counts.pairs, *counts[2:5], *counts.territory]
    if not all(type(count) is int and count >= 0 for count in numbers):
        raise ValueError("a count is not a whole number from 0 on")
    if len(counts.pairs) != len(PAIR_SCORES) or len(counts.territory) != 2:
        raise ValueError("pairs are 5 counts, territory is 2")
    scored = sum(half * count for half, count in enumerate(counts.pairs))
    if counts.games != sum(counts[2:5]) or scored != 2 * counts.wins + counts.draws:
        raise ValueError("pairs do not fit wins, draws and losses")
    return counts


def _read_table(fields: Any) -> TableResult:
    players, openings = fields["players"], fields["openings"]
    if not isinstance(players, list) or type(openings) is not int or openings < 0:
        raise ValueError("players are not a list, or openings not a whole number from 0 on")
    wins, spread = (np.array(fields[key], float) for key in ("wins", "spread"))
    count = len(players)
    if wins.shape != (count,) or spread.shape != (count, count) or count < 3:
        raise ValueError("wins and spread do not fit the players")
    if not (np.isfinite(wins).all() and np.isfinite(spread).all() and wins.min() >= 0):
        raise ValueError("wins or spread are not numbers that games can have")
    rows = tuple(map(tuple, spread.tolist()))
    return TableResult(tuple(players), tuple(wins.tolist()), openings, rows)
