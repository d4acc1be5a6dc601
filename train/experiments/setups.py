"""How should the stones be placed? Minimax over the placements, by the values of several networks.

A turn is all placements of one player between two of the other. The boards after the last turn are
the setups; Red moves next. A setup's value is Red's expected score, a draw as half: by the networks
alone (raw), or after the best move of a search. Values are means over the networks.

A minimum over hundreds of maxima over dozens of noisy values is biased both ways. So the setups
that decide are searched again, until none without a search decides, and games are played from the
lines of best placements. In these games the players draw their moves from their search's policy.
Intervals of win rates are Student's over pairs of games with the colours changed.

M positions, D placements, N networks, K setups.
"""

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.openings import Positions
from train.experiments.lib import placements, stats
from train.experiments.lib.pages import Picture, Report, Table, paragraphs
from train.experiments.lib.stats import Estimate
from train.experiments.lib.work import Work, check_two_players, check_without_budget, play_games
from train.metrics.intervals import Interval, intervals_figure
from train.players.registry import common_rules, make_player
from train.ratings.pool import identity
from train.runtime.batches import in_batches
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.search.reporting import make_reporting_search
from wallgo_jax.drawing import contact_sheet, theme
from wallgo_jax.drawing.contact_sheet import Panel
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules, name_of, named
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.notation import COLOURS
from wallgo_jax.view.snapshot import take_snapshot

BOOK = "book.jsonl"
RAW = 0
"""Simulations of a value without a search."""
_BATCH, _SEARCH_BATCH = 256, 64
_PIECE = 1 << 16  # positions that are cached together
_CANDIDATES = 4  # setups that are searched for each of the book
_PLACED = "#f3e3a9"  # tiles of the placed stones


class Networks(NamedTuple):
    """The networks that value setups and play games from them."""

    work: Work
    rules: Rules
    names: Sequence[str]

    def values(self, cells: np.ndarray, simulations: int) -> np.ndarray:
        """float[N, M]: Red's expected score, from 0 to 1, after placements int32[M, D]."""
        return np.stack([self._values(name, cells, simulations) for name in self.names])

    def _values(self, name: str, cells: np.ndarray, simulations: int) -> np.ndarray:
        player = make_player(f"{name}@{max(simulations, 1)}", self.rules, transfer=True)
        batch = _SEARCH_BATCH if simulations else _BATCH

        @jax.jit
        def value(cells: jax.Array) -> tuple[jax.Array]:
            states = placements.place(self.rules, cells)
            if simulations:
                search = make_reporting_search(
                    player.evaluate, player.search, simulations=simulations
                )
                found = search(player.variables, states, jax.random.key(0))
                return (jnp.asarray(found.best_values)[:, 0],)
            own = player.evaluate(player.variables, states).value[:, 0]
            return (jnp.where(states.position.player == 0, own, -own),)

        settings = {"player": identity(player.name, player), "rules": self.rules.to_dict()}
        parts: list[Any] = [[]]
        with self.work.task(f"{name}@{simulations}", len(cells), "setups") as on_progress:
            for first in range(0, len(cells), _PIECE):
                some = np.ascontiguousarray(cells[first : first + _PIECE])
                digest = hashlib.sha256(some.tobytes()).hexdigest()
                how = settings | {"cells": digest, "simulations": simulations}

                def make(first: int = first, some: np.ndarray = some) -> list[float]:
                    found = in_batches(value, some, batch, lambda done: on_progress(first + done))
                    return [round(float(each), 4) for each in found[0]]

                parts.append(self.work.cache.cached("setup-values", how, make))
        return (1 + np.concatenate(parts)) / 2

    def games(self, cells: np.ndarray | None, *, games: int) -> tuple[np.ndarray, np.ndarray]:
        """Play games from setups.

        Args:
          cells: int32[K, D], of the setups; None where the players place the stones.
          games: at least this many from each setup, shared by all pairs of networks.

        Returns:
          float[K, R], Red's points, from 0 to 1, of R pairs of games, and int[K], distinct games.
        """
        scale, pairs = self.work.scale.setups, list(itertools.combinations(self.names, 2))
        pairs = pairs or [(self.names[0],) * 2]
        count = 1 if cells is None else len(cells)
        openings_each = -(-games // (2 * len(pairs)))
        options = {"transfer": True, "temperature": scale.temperature}

        def play(pair: Sequence[str]) -> Sequence[Sequence[Any]]:
            names = [f"{name}@{scale.game_simulations}" for name in pair]
            players = [make_player(name, self.rules, **options) for name in names]
            settings = {
                "players": [identity(*each) for each in zip(names, players, strict=True)],
                "rules": self.rules.to_dict(),
                "cells": None if cells is None else cells.tolist(),
                "temperature": scale.temperature,
                "openings": openings_each,
                "seed": self.work.seed,
            }

            def make() -> list[list[Any]]:
                start = None if cells is None else positions_of(self.rules, cells)
                total = 2 * openings_each * count
                result = play_games(self.work, players, self.rules, games=total, positions=start)
                points = np.bincount(result.opening, (1 + result.rewards[:, 0]) / 4)
                different = {*zip(result.opening % count, result.games, strict=True)}
                distinct = np.bincount([setup for setup, _ in different], minlength=count)
                return [points.reshape(openings_each, count).T.tolist(), distinct.tolist()]

            return self.work.cache.cached("setup-games", settings, make)

        played = [play(pair) for pair in pairs]
        points = [np.array(points) for points, _ in played]
        return np.concatenate(points, axis=1), np.sum([distinct for _, distinct in played], axis=0)


class Rate(NamedTuple):
    """Red's win rate in the games from a start."""

    estimate: Estimate  # over pairs of games
    distinct: int  # games


def report(work: Work) -> Report:
    """Value the setups, search those that decide, choose a book, play games."""
    scale = work.scale.setups
    for name in scale.players:
        check_without_budget(name)
        check_two_players(name)
    rules = named(scale.rules) if scale.rules else common_rules(scale.players)
    assert rules is not None  # Networks have learned some.
    networks, turns = Networks(work, rules, scale.players), len(placements.turns_of(rules))
    if not len(scale.beam) + 1 == len(scale.frontier) == turns:
        raise UsageError(
            f"experiment: the placements of {name_of(rules)} have {turns} turns: beam needs "
            f"{turns - 1} numbers, frontier {turns}"
        )
    tree = placements.place_by_turns(
        rules, scale.beam, lambda cells: networks.values(cells, RAW).mean(axis=0)
    )
    raw, setups = networks.values(tree[-1].cells, RAW), tree[-1].cells
    values, is_searched = search_frontier(networks, tree, raw)
    lines = placements.line_of_each_first(tree, values.mean(axis=0))
    order = np.argsort(-values.mean(axis=0)[lines], kind="stable")
    book, balance = choose_book(networks, tree, raw)
    rates = _rates(networks, setups[lines[order[: scale.lines]]], book)
    caption = f"{name_of(rules)}, @{scale.game_simulations}, temperature {scale.temperature:g}"
    return Report(
        f"Setups of {name_of(rules)}",
        [*paragraphs(__doc__)[:-1], *_summary(tree, raw, is_searched, rates)],
        [
            _line_table(rules, tree, raw, values, is_searched, order),
            _network_table(networks, tree, raw),
            _games_table(rates),
        ],
        [
            Picture("setups", "", _drawing(rules, setups[lines[order]], values[:, lines[order]])),
            Picture("games", caption, _games_figure(rates)),
        ],
        {
            "setups": len(setups),
            "searched": int(is_searched.sum()),
            "games": rates,
            "lines": [
                {
                    "cells": setups[i].tolist(),
                    "raw": raw[:, i].tolist(),
                    "red": values[:, i].tolist(),
                }
                for i in lines[order]
            ],
        },
        files={BOOK: _book_lines(rules, book, balance)},
    )


def _rates(networks: Networks, lines: np.ndarray, book: np.ndarray) -> dict[str, Rate]:
    """Red's win rate from setups of lines, from those of a book, and where the players place."""
    scale = networks.work.scale.setups

    def rate(points: np.ndarray, distinct: Any) -> Rate:
        return Rate(stats.over_games(points.ravel()), int(np.sum(distinct)))

    names = [placements.in_words(networks.rules, line) for line in lines]
    each = zip(*networks.games(lines, games=scale.games), strict=True)
    return {name: rate(*played) for name, played in zip(names, each, strict=True)} | {
        f"book of {len(book)}": rate(*networks.games(book, games=scale.book_games)),
        "placed by the players": rate(*networks.games(None, games=scale.games)),
    }


def positions_of(rules: Rules, cells: np.ndarray) -> Positions:
    """Setups int32[K, D] for a match to begin with."""
    position = fetch(jax.jit(placements.place, static_argnums=0)(rules, cells).position)
    return Positions(position, cells + first_placement(rules.size), has_games=True)


def search_frontier(
    networks: Networks, tree: Sequence[placements.Turn], raw: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values float[N, M] with searched ones in place of raw ones where they decide, and bool[M],
    which are searched."""
    scale, values = networks.work.scale.setups, raw.copy()
    is_searched = np.zeros(raw.shape[1], bool)
    for _ in range(scale.rounds):
        deciding = placements.best_lines(tree, values.mean(axis=0), scale.frontier)
        new = deciding[~is_searched[deciding]]
        if not len(new):
            break
        values[:, new] = networks.values(tree[-1].cells[new], scale.simulations)
        is_searched[new] = True
    return values, is_searched


def choose_book(
    networks: Networks, tree: Sequence[placements.Turn], raw: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Setups int32[K, D] that every network finds balanced, raw and searched, no two turned copies
    of one another, and their searched values float[K]; candidates are equally many for each first
    choice."""
    scale, cells = networks.work.scale.setups, tree[-1].cells
    first = np.arange(len(cells))
    for turn in tree[:0:-1]:
        first = turn.parent[first]
    share = -(-_CANDIDATES * scale.book // len(tree[0].cells))
    order = np.lexsort((np.abs(raw - 0.5).max(axis=0), first))
    rank = np.arange(len(order)) - np.searchsorted(first[order], first[order])
    candidates = placements.distinct(networks.rules, cells[order[rank < share]])
    values = networks.values(candidates, scale.simulations)
    best = np.argsort(np.abs(values - 0.5).max(axis=0), kind="stable")[: scale.book]
    return candidates[best], values.mean(axis=0)[best]


def _book_lines(rules: Rules, book: np.ndarray, values: np.ndarray) -> str:
    """The book as records of games that have just their placements."""
    rows = (book + first_placement(rules.size)).tolist(), values.tolist()
    return "".join(
        records.to_json(Record(rules, tuple(actions), extra={"red": round(value, 4)})) + "\n"
        for actions, value in zip(*rows, strict=True)
    )


def _range(values: np.ndarray) -> str:
    """A mean over networks with the least and the largest, as `49.8 (47.1 to 52.0)`."""
    mean, low, high = 100 * values.mean(), 100 * values.min(), 100 * values.max()
    return f"{mean:.1f}" if len(values) == 1 else f"{mean:.1f} ({low:.1f} to {high:.1f})"


def _summary(
    tree: Sequence[placements.Turn],
    raw: np.ndarray,
    is_searched: np.ndarray,
    rates: dict[str, Rate],
) -> list[str]:
    """How much was valued, how far networks agree, and which start is nearest to even."""
    name, rate = min(rates.items(), key=lambda item: abs(item[1].estimate.mean - 0.5))
    said = [f"{len(is_searched):,} setups are valued, {is_searched.sum():,} of them searched."]
    if len(raw) > 1:
        replies = np.stack([placements.back_up(tree, each)[-2] for each in raw])
        between = np.corrcoef(replies)[np.triu_indices(len(raw), 1)]
        said.append(
            "The values of all positions before the last turn correlate between two networks by "
            f"{between.min():.2f} to {between.max():.2f}."
        )
    return [" ".join([*said, f"Nearest to even in games: {name}, {rate.estimate.share()}."])]


def _line_table(
    rules: Rules,
    tree: Sequence[placements.Turn],
    raw: np.ndarray,
    values: np.ndarray,
    is_searched: np.ndarray,
    order: np.ndarray,
) -> Table:
    """The line after each first choice, as all networks see it, and how far they agree."""
    mean, own = raw.mean(axis=0), [placements.line_of_each_first(tree, each) for each in raw]
    lines, by_mean = (
        placements.line_of_each_first(tree, each) for each in (values.mean(axis=0), mean)
    )
    rows = []
    for first in order:
        line, before = lines[first], tree[-1].parent
        replies = [before[each[first]] == before[line] for each in own]
        rows.append(
            [
                *placements.in_words(rules, tree[-1].cells[line]).split(", "),
                _range(np.array([each[of[first]] for each, of in zip(raw, own, strict=True)])),
                f"{100 * mean[by_mean[first]]:.1f}",
                _range(values[:, line]) if is_searched[line] else "",
                f"{sum(replies)} of {len(own)}",
            ]
        )
    heads = [COLOURS[player] for player, _ in placements.turns_of(rules)]
    heads += [
        "minimax of each network, raw",
        "of their mean, raw",
        "line, searched",
        "same replies",
    ]
    title = "Lines of best placements: Red's expected score in %, with the range over networks"
    return Table(title, heads, rows)


def _network_table(networks: Networks, tree: Sequence[placements.Turn], raw: np.ndarray) -> Table:
    """What each network's own line is worth to it and to the others."""
    lines = np.concatenate([placements.best_lines(tree, each, (1,) * len(tree)) for each in raw])
    searched = networks.values(tree[-1].cells[lines], networks.work.scale.setups.simulations)
    rows = []
    for own, (name, line) in enumerate(zip(networks.names, lines, strict=True)):
        others = [other for other in range(len(raw)) if other != own]
        rows.append([f"`{name}`", placements.in_words(networks.rules, tree[-1].cells[line])])
        for values in (raw[:, line], searched[:, own]):
            rows[-1] += [f"{100 * values[own]:.1f}", _range(values[others]) if others else ""]
    heads = ("network", "its line by raw values", "raw", "raw, others", "searched")
    return Table("Each network's line, as the others see it", (*heads, "searched, others"), rows)


def _games_table(rates: dict[str, Rate]) -> Table:
    """Red's win rates from each start."""
    rows = [
        [name, f"{2 * rate.number:,}", f"{distinct:,}", *rate.cells()]
        for name, (rate, distinct) in rates.items()
    ]
    heads = ("start", "games", "distinct", "Red wins", "95 %")
    return Table("Games from the setups", heads, rows)


def _games_figure(rates: dict[str, Rate]) -> Any:
    rows = [
        Interval(name, *(100 * each for each in rate.estimate[:3])) for name, rate in rates.items()
    ]
    title = "Red's win rate by setup"
    return intervals_figure(rows, title=title, x_label="per cent, 95 % intervals", middle=50)


def _drawing(rules: Rules, cells: np.ndarray, values: np.ndarray) -> str:
    """Boards of setups [K] with Red's score, the cells of the placed stones painted, as SVG."""
    states, panels = fetch(placements.place(rules, cells)), []
    for number, (placed, red) in enumerate(zip(cells, values.T, strict=True)):
        tiles = [theme.LIGHT.tile] * rules.size**2
        for cell in placed:
            tiles[cell] = _PLACED
        snapshot = take_snapshot(jax.tree.map(lambda x, i=number: x[i], states))
        caption = f"{placements.in_words(rules, placed)}: Red {_range(red)} %"
        panels.append(Panel(snapshot, caption, tuple(tiles), None, None, None))
    return contact_sheet.draw_panels(
        panels,
        theme.LIGHT,
        columns=min(4, len(panels)),
        title="Setups after best placements, the best for Red first",
        key="painted: cells of placed stones; Red's expected score with its range over networks",
        scales=(),
    )
