"""Tables whose cells are made from counts, with 95 % intervals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from train.arena.figures import wilson_interval
from train.runtime import display

EARNEST_SEEDS = 6
"""Fewer paired seeds are called screening, and decide nothing."""


class Estimate(NamedTuple):
    """A mean with its 95 % interval; NaN where nothing is known."""

    mean: float
    low: float
    high: float
    number: int  # of seeds or games that the interval is over


class Table(NamedTuple):
    """A table of which each cell is made from what was counted, see `cell`."""

    title: str
    columns: Sequence[Sequence[str]]  # head, field, and the view if it has one
    rows: Sequence[Mapping[str, Any]]

    def cells(self) -> Iterator[list[str]]:
        """The rows as they are printed."""
        for row in self.rows:
            yield [cell(row.get(column[1], ""), *column[2:]) for column in self.columns]

    def shown(self) -> display.Table:
        """The table for a console."""
        return display.Table(self.title, [column[0] for column in self.columns], [*self.cells()])

    def markdown(self) -> str:
        """The table for a page, without its title."""
        heads = [column[0] for column in self.columns]
        lines = [heads, ["---"] * len(heads), *self.cells()]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: Any, view: str = "") -> str:
    """A cell of a table.

    Args:
      value: a text, a number, an `Estimate` of plain numbers, or a dict that `estimate_of` takes.
      view: of counts, `counts` for `won, drawn, lost` and `elo` for points of Elo, else they are
        shares in per cent; `plain` for numbers as they are, `points` for signed per cent.
    """
    if not isinstance(value, Mapping):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if view == "counts":
        return ", ".join(str(int(np.sum(value[key]))) for key in ("won", "drawn", "lost"))
    found = estimate_of(value)
    digits = value.get("digits", 1)
    if math.isnan(found.mean):
        return ""
    if view == "elo":
        return _range([_number(elo(x), 0) for x in found[:3]])
    if view == "plain":
        return _range([_number(x, digits) for x in found[:3]])
    bounds = (-1.0, 1.0) if view == "points" else (0.0, 1.0)
    ends = [100 * min(max(x, bounds[0]), bounds[1]) for x in found[1:3]]
    return _range([_number(x, digits) for x in (100 * found.mean, *ends)])


def estimate_of(value: Mapping[str, Any]) -> Estimate:
    """The mean and the interval of what was counted.

    Args:
      value: `won`, `drawn` and `lost`, numbers or lists by seed, and `draw`, what a draw counts,
        a half by default; or `kept`, a number or a list by seed, and `of`; or `rates` by seed and
        `games` of each; or `gaps` by seed; or `mean`, `low` and `high`. `printed`, the ends of an
        interval, stands where the counts of a seed are not kept.
    """
    if "mean" in value:
        ends = {key: math.nan if value[key] is None else value[key] for key in ("low", "high")}
        mean = math.nan if value["mean"] is None else value["mean"]
        return Estimate(mean, **ends, number=value.get("number", 0))
    if "gaps" in value:
        mean = float(np.mean(value["gaps"]))
        return over_games(np.array(value["gaps"], float))._replace(mean=mean)
    if "rates" in value:
        return over_seeds(value["rates"], value["games"])
    if "kept" in value:
        kept = np.atleast_1d(value["kept"])
        return over_seeds((kept / value["of"]).tolist(), value["of"])
    won, drawn, lost = (np.atleast_1d(value[key]) for key in ("won", "drawn", "lost"))
    games = won + drawn + lost
    rates = (won + value.get("draw", 0.5) * drawn) / games
    found = over_seeds(rates.tolist(), int(games[0]))
    if printed := value.get("printed"):
        return found._replace(low=printed[0] / 100, high=printed[1] / 100)
    return found


def verdict(found: Estimate) -> str:
    """The side of one half that the interval lies on, where there are enough seeds to say."""
    if found.number < EARNEST_SEEDS:
        return "screening"
    return "better" if found.low > 0.5 else "worse" if found.high < 0.5 else "undecided"


def over_seeds(rates: Sequence[float], games: int) -> Estimate:
    """The mean of a win rate for each seed with Student's interval; of one seed, Wilson's over its
    games.

    The interval over seeds holds the chance of training and of the games; the one over games says
    nothing of how far another seed would differ.
    """
    if len(rates) == 1:
        return Estimate(rates[0], *wilson_interval(rates[0], games), 1)
    mean, low, high, number = over_games(np.array(rates))
    return Estimate(mean, max(0.0, low), min(1.0, high), number)


def over_games(values: np.ndarray) -> Estimate:
    """The mean of one value a game with Student's interval; NaN entries are left out."""
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return Estimate(math.nan, math.nan, math.nan, len(values))
    error = values.std(ddof=1) / math.sqrt(len(values))
    mean = float(values.mean())
    half = float(student.ppf(0.975, len(values) - 1) * error)
    return Estimate(mean, mean - half, mean + half, len(values))


def rate(counts: Mapping[str, Any]) -> float:
    """The win rate of a match's counts, draws as half."""
    games = counts["won"] + counts["drawn"] + counts["lost"]
    return (counts["won"] + counts["drawn"] / 2) / games


def rates_of(meetings: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """A player's win rate against all others for each seed, draws as half; a meeting is a match's
    counts with `first`, `second` and `seed`."""
    rates = []
    for seed in sorted({each["seed"] for each in meetings}):
        own = [each for each in meetings if each["seed"] == seed]
        own = [each for each in own if name in (each["first"], each["second"])]
        points = [rate(each) if each["first"] == name else 1 - rate(each) for each in own]
        rates.append(float(np.mean(points)))
    return rates


def gaps_of(meetings: Sequence[Mapping[str, Any]], name: str, other: str) -> list[float]:
    """One player's win rate less another's, for each seed."""
    pairs = zip(rates_of(meetings, name), rates_of(meetings, other), strict=True)
    return [own - its for own, its in pairs]


def elo(rate: float) -> float:
    """The difference in Elo points that a win rate stands for; infinite at 0 and 1."""
    if not 0 < rate < 1:
        return math.copysign(math.inf, rate - 0.5)
    return 400 * math.log10(rate / (1 - rate))


def _number(value: float, digits: int) -> str:
    """A number with this many digits, half of the last one away from 0; 100 has none."""
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "∞" if value > 0 else "−∞"
    # What was counted may be a half to the last bit, and else is far from one.
    scaled = math.floor(abs(value) * 10**digits + 0.5 + 1e-9) / 10**digits
    text = "100" if scaled == 100 else f"{scaled:.{digits}f}"
    return f"−{text}" if value < 0 and scaled else text


def _range(texts: Sequence[str]) -> str:
    mean, low, high = texts
    if "nan" in (low, high):
        return mean
    return f"{mean} ({low}{' to ' if '−' in low + high else '–'}{high})"
