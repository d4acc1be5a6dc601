"""How should the stones be placed? Minimax over the placements, by the values of several networks.

A turn is all placements that one player makes in a row. The boards after the last turn are
the setups; Red moves next. A setup's value is Red's expected score, where a draw counts half: by
the networks alone (raw), or after the best move of a search. Values are means over the networks.

A minimum over hundreds of maxima over dozens of noisy values is biased in both directions. So the
setups that decide the minimax are searched, until every deciding setup has been searched, and games
are played from the lines of best placements. In these games the players draw their moves from their
search's policy. Intervals of win rates are Student's over pairs of games with the colours changed.

M positions, D placements, N networks, K setups.
"""

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.match import MatchOptions, play_meeting
from train.arena.match_openings import OpeningOptions, Positions
from train.experiments import lab, openings
from train.experiments.tables import Table, over_games
from train.metrics.intervals import Interval, intervals_figure
from train.players.networks import common_rules
from train.players.registry import make_player
from train.ratings.pool import identity
from train.runtime.errors import UsageError
from train.runtime.files import replace_text
from train.runtime.host import fetch, in_batches
from train.search.report import make_reporting_search
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
_BATCH = 256
_SEARCH_BATCH = 64
_MATCH = 200
_PIECE = 1 << 16  # positions that are cached together
_CANDIDATES = 4  # setups that are searched for each of the book
_PLACED = "#f3e3a9"  # tiles of the placed stones


class Networks(NamedTuple):
    """The networks that value setups and play games from them."""

    work: lab.Lab
    rules: Rules
    names: Sequence[str]

    def values(self, cells: np.ndarray, simulations: int) -> np.ndarray:
        """float[N, M]: Red's expected score, from 0 to 1, after placements int32[M, D]."""
        return np.stack([self._values(name, cells, simulations) for name in self.names])

    def _values(self, name: str, cells: np.ndarray, simulations: int) -> np.ndarray:
        player = make_player(f"{name}@{max(simulations, 1)}", self.rules, transfer=True)

        @jax.jit
        def value(cells: jax.Array) -> tuple[jax.Array]:
            states = openings.place(self.rules, cells)
            if simulations:
                options = {"simulations": simulations}
                search = make_reporting_search(player.evaluate, player.search, **options)
                found = search(player.variables, states, jax.random.key(0))
                return (jnp.asarray(found.best_values)[:, 0],)
            own = player.evaluate(player.variables, states).value[:, 0]
            return (jnp.where(states.position.player == 0, own, -own),)

        settings = {"player": identity(player.name, player), "rules": self.rules.to_dict()}
        parts: list[Any] = [[]]

        def make(some: np.ndarray) -> list[float]:
            (red,) = in_batches(value, some, _SEARCH_BATCH if simulations else _BATCH)
            return [round(float(each), 4) for each in red]

        for first in range(0, len(cells), _PIECE):
            some = np.ascontiguousarray(cells[first : first + _PIECE])
            digest = hashlib.sha256(some.tobytes()).hexdigest()
            key = settings | {"cells": digest, "simulations": simulations}
            parts.append(self.work.keep("setup-values", key, functools.partial(make, some)))
        return (1 + np.concatenate(parts)) / 2

    def games(self, cells: np.ndarray | None, games: int) -> tuple[np.ndarray, np.ndarray]:
        """Play at least this many games from each setup, shared by all pairs of networks.

        Args:
          cells: int32[K, D], of the setups; None where the players place the stones.
          games: from each.

        Returns:
          float[K, R], Red's points, from 0 to 1, of R pairs of games, and int[K], distinct games.
        """
        scale = self.work.scale
        count = 1 if cells is None else len(cells)
        pairs = list(itertools.combinations(self.names, 2)) or [(self.names[0],) * 2]
        openings_each = -(-games // (2 * len(pairs)))

        played = []
        for pair in pairs:
            names = [f"{name}@{scale.game_simulations}" for name in pair]
            options = {"transfer": True, "temperature": scale.temperature}
            players = [make_player(name, self.rules, **options) for name in names]
            total = 2 * openings_each * count
            key = {
                "players": [identity(*each) for each in zip(names, players, strict=True)],
                "rules": self.rules.to_dict(),
                "cells": None if cells is None else cells.tolist(),
                "temperature": scale.temperature,
                "games": total,
                "seed": scale.seed,
            }
            make = functools.partial(self._play, players, cells, total)
            played.append(self.work.keep("setup-games", key, make))
        points = [np.array(each["points"]) for each in played]
        distinct = [each["distinct"] for each in played]
        return np.concatenate(points, axis=1), np.sum(distinct, axis=0)

    def _play(self, players: Sequence[Any], cells: np.ndarray | None, games: int) -> dict[str, Any]:
        """Red's points of each pair of games and the distinct games, by setup."""
        count = 1 if cells is None else len(cells)
        positions = None if cells is None else positions_of(self.rules, cells)
        options = MatchOptions(games, min(games, _MATCH), OpeningOptions(0, positions=positions))
        result = play_meeting(players, self.rules, options, seed=self.work.scale.seed)
        points = np.bincount(result.opening, (1 + result.rewards[:, 0]) / 4)
        different = {*zip(result.opening % count, result.games, strict=True)}
        distinct = np.bincount([setup for setup, _ in different], minlength=count)
        return {"points": points.reshape(-1, count).T.tolist(), "distinct": distinct.tolist()}


class Minimax(NamedTuple):
    """The setups, their values, and the line after each choice of the first turn."""

    rules: Rules
    tree: list[openings.Turn]
    raw: np.ndarray  # float[N, M], by the networks alone
    values: np.ndarray  # the same, searched where setups decide
    is_searched: np.ndarray  # bool[M]
    first: np.ndarray  # int[...], choices of the first turn, the best for Red first
    lines: np.ndarray  # int[...], the setups to which they lead

    @property
    def cells(self) -> np.ndarray:
        """int32[M, D]: the setups."""
        return self.tree[-1].cells


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page's first section; its second, of the empty board, names what differs.

    `beam` and `frontier` count choices of each turn of placements, 0 for all: those that are kept,
    in every turn but the last, and those whose setups are searched again.
    """

    players: tuple[str, ...] = tuple(f"pretrained:wallzero-4stone-{v}" for v in ("v4", "v3", "v1"))
    """Networks."""
    rules: str | None = None
    """A preset; by default what they have learned."""
    beam: tuple[int, ...] = (0, 0)
    frontier: tuple[int, ...] = (0, 12, 4)
    rounds: int = 16
    """Rounds of searches, at most."""
    simulations: int = 512
    """Simulations of a search."""
    lines: int = 3
    """First placements whose lines are played, the best for Red first."""
    games: int = 480
    """Games from each of these lines."""
    book: int = 64
    """Setups of the book."""
    book_games: int = 12
    """Games from each of them."""
    game_simulations: int = 64
    """Simulations of a move in games."""
    temperature: float = 0.5
    """Of a move in games."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Value the setups, search those that decide, choose a book, play games."""
    scale = work.scale
    for name in scale.players:
        lab.check_network(name)
    rules = named(scale.rules) if scale.rules else common_rules(scale.players)
    assert rules is not None  # Networks have learned some.
    networks = Networks(work, rules, scale.players)
    best = _minimax(networks)
    book, balance = choose_book(networks, best.tree, best.raw)
    played = best.cells[best.lines[: scale.lines]]
    starts = [
        (openings.in_words(rules, line), points, int(distinct))
        for line, points, distinct in zip(played, *networks.games(played, scale.games), strict=True)
    ]
    others = ("placed by the players", None, scale.games)
    for name, cells, count in ((f"book of {len(book)} setups", book, scale.book_games), others):
        points, distinct = networks.games(cells, count)
        starts.append((name, points.ravel(), int(distinct.sum())))
    rows = []
    shown = []
    for name, points, distinct in starts:
        found = over_games(points)
        kept = {"games": 2 * len(points), "distinct": distinct, "red": found._asdict()}
        rows.append({"start": name, "pairs": points.tolist()} | kept)
        shown.append(Interval(name, *(100 * each for each in found[:3])))
    figure = intervals_figure(
        shown, title="Red's win rate by setup", x_label="per cent, 95 % intervals", middle=50
    )
    work.save_figure("games", figure, caption=f"{name_of(rules)}, @{scale.game_simulations}")
    folder = work.scale.out / work.name
    replace_text(folder / "setups.svg", _drawing(best))
    lines = book_lines(rules, (book + first_placement(rules.size)).tolist(), balance.tolist())
    replace_text(folder / BOOK, lines)
    columns = [["start", "start"], ["games", "games"], ["distinct", "distinct"]]
    columns += [["Red wins, %", "red"]]
    tables = {"lines": _line_table(best), "games": Table("Games from the setups", columns, rows)}
    counts = {"setups": len(best.is_searched), "searched": int(best.is_searched.sum())}
    return work.finish(tables, counts=counts)


def positions_of(rules: Rules, cells: np.ndarray) -> Positions:
    """Setups int32[K, D] for a match to begin with."""
    position = fetch(jax.jit(openings.place, static_argnums=0)(rules, cells).position)
    return Positions(position, cells + first_placement(rules.size), has_games=True)


def _minimax(networks: Networks) -> Minimax:
    """Value all setups, and search those that decide, until none without a search does."""
    scale = networks.work.scale
    rules = networks.rules
    turns = len(openings.turns_of(rules))
    if not len(scale.beam) + 1 == len(scale.frontier) == turns:
        raise UsageError(
            f"experiment: the placements of {name_of(rules)} have {turns} turns: beam needs "
            f"{turns - 1} numbers, frontier {turns}"
        )
    tree = openings.place_by_turns(
        rules, scale.beam, lambda cells: networks.values(cells, RAW).mean(axis=0)
    )
    raw = networks.values(tree[-1].cells, RAW)
    values, is_searched = raw.copy(), np.zeros(raw.shape[1], bool)
    for _ in range(scale.rounds):
        deciding = openings.best_lines(tree, values.mean(axis=0), scale.frontier)
        new = deciding[~is_searched[deciding]]
        if not len(new):
            break
        values[:, new] = networks.values(tree[-1].cells[new], scale.simulations)
        is_searched[new] = True
    lines = openings.line_of_each_first(tree, values.mean(axis=0))
    first = np.argsort(-values.mean(axis=0)[lines], kind="stable")
    return Minimax(rules, tree, raw, values, is_searched, first, lines[first])


def choose_book(
    networks: Networks, tree: Sequence[openings.Turn], raw: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Setups int32[K, D] that every network finds balanced, raw and searched, no two turned copies
    of one another, and their searched values float[K]; candidates are equally many for each first
    choice."""
    scale = networks.work.scale
    cells = tree[-1].cells
    first = np.arange(len(cells))
    for turn in tree[:0:-1]:
        first = turn.parent[first]
    share = -(-_CANDIDATES * scale.book // len(tree[0].cells))
    order = np.lexsort((np.abs(raw - 0.5).max(axis=0), first))
    rank = np.arange(len(order)) - np.searchsorted(first[order], first[order])
    candidates = openings.distinct(networks.rules, cells[order[rank < share]])
    values = networks.values(candidates, scale.simulations)
    best = np.argsort(np.abs(values - 0.5).max(axis=0), kind="stable")[: scale.book]
    return candidates[best], values.mean(axis=0)[best]


def book_lines(rules: Rules, games: Sequence[Sequence[int]], values: Sequence[float]) -> str:
    """Setups and their values as records of games that have just their placements."""
    return "".join(
        records.to_json(Record(rules, tuple(actions), extra={"red": round(value, 4)})) + "\n"
        for actions, value in zip(games, values, strict=True)
    )


def _range(values: np.ndarray) -> str:
    """A mean over networks with the least and the largest, as `49.8 (47.1 to 52.0)`."""
    mean, low, high = 100 * values.mean(), 100 * values.min(), 100 * values.max()
    return f"{mean:.1f}" if len(values) == 1 else f"{mean:.1f} ({low:.1f} to {high:.1f})"


def _line_table(best: Minimax) -> Table:
    """The line after each first choice, as all networks see it, and how far they agree."""
    rules, tree, raw = best.rules, best.tree, best.raw
    mean, before = raw.mean(axis=0), tree[-1].parent
    own = [openings.line_of_each_first(tree, each) for each in raw]
    by_mean = openings.line_of_each_first(tree, mean)
    rows = []
    for first, line in zip(best.first, best.lines, strict=True):
        alone = np.array([each[of[first]] for each, of in zip(raw, own, strict=True)])
        replies = sum(before[each[first]] == before[line] for each in own)
        row = [*openings.in_words(rules, best.cells[line]).split(", "), _range(alone)]
        row += [f"{100 * mean[by_mean[first]]:.1f}"]
        row += [_range(best.values[:, line]) if best.is_searched[line] else ""]
        rows.append([*row, f"{replies} of {len(own)}"])
    turns = [COLOURS[player] for player, _ in openings.turns_of(rules)]
    heads = [*turns, "minimax of each network, raw", "of their mean, raw", "line, searched"]
    heads += ["same replies"]
    fields = [f"{place}" for place in range(len(heads))]
    title = "Lines of best placements: Red's expected score in %, with the range over networks"
    named_rows = [dict(zip(fields, row, strict=True)) for row in rows]
    return Table(title, [*map(list, zip(heads, fields, strict=True))], named_rows)


def _drawing(best: Minimax) -> str:
    """Boards of the lines with Red's score, the cells of the placed stones painted, as SVG."""
    cells = best.cells[best.lines]
    states, panels = fetch(openings.place(best.rules, cells)), []
    for number, (placed, line) in enumerate(zip(cells, best.lines, strict=True)):
        plain = theme.LIGHT.tile
        tiles = [_PLACED if i in placed else plain for i in range(best.rules.size**2)]
        snapshot = take_snapshot(jax.tree.map(lambda x, i=number: x[i], states))
        red = _range(best.values[:, line])
        caption = f"{openings.in_words(best.rules, placed)}: Red {red} %"
        panels.append(Panel(snapshot, caption, tuple(tiles), None, None, None))
    return contact_sheet.draw_panels(
        panels,
        theme.LIGHT,
        columns=min(4, len(panels)),
        title="Setups after best placements, the best for Red first",
        key="painted: cells of placed stones; Red's expected score with its range over networks",
        scales=(),
    )


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
