"""Finds puzzles in games: positions that look level until one move turns out to win.

The recipe of Mamano, "Training an AlphaZero-Style AI for a New Board Game", section "What's Next":
at first the engine says level, after a longer search it says that the player to move wins clearly,
and the move was not obvious. Step by step, each on what the step before has left:

1. In the later part of a game, the network alone says level, and so does a shallow search.
2. A deep search says that its best move wins clearly. Shorter ones drop what does not come near.
3. The network's policy would have played another move; where people or other programs played the
   games, a move that they missed will do.
4. A deep search that must not play that move says that no other wins.
5. Searches of CHECK times the simulations say the same two things.
6. On a solved board, exact play agrees.

Of a game at most one puzzle is kept, and of positions that are the same but for a turn one.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.data.record_dataset import RecordedGames
from train.players.basic import Player
from train.review.own_games import states_of
from train.review.puzzle_check import (
    CHECK,
    OnSearch,
    PuzzleOptions,
    Search,
    chance_of,
    exact_judge,
    make_search,
    state_of,
)
from train.review.puzzle_file import Puzzle, WinChances
from train.runtime.host import fetch
from train.search.report import SearchReport
from wallgo_jax.board import bitboard
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.formats.records import Record
from wallgo_jax.game import symmetry as symmetry_lib
from wallgo_jax.game.state import State

_PROBES = ((8, 0.0), (2, 0.5))
"""Searches that save deep ones: each has the deep simulations divided by the first number, and must
find a chance of the second number's share of the way from `others` to `wins`."""
_SHARES = (0.05, 0.01)
"""Shares of the policy that part the hard puzzles."""


class _Position(NamedTuple):
    """A position on its way to a puzzle."""

    state: State
    game: int
    ply: int  # plies before it
    shallow: SearchReport
    deep: SearchReport
    next_best: float = 0.0

    @property
    def best(self) -> int:
        """The public action that the deep search chooses."""
        return int(self.deep.action)


def find_puzzles(
    player: Player,
    rounds: Iterable[RecordedGames],
    options: PuzzleOptions,
    *,
    most: int,
    counts_played: bool = False,
    on_progress: OnSearch = lambda step, done, total: None,
) -> Iterator[tuple[list[Puzzle], int]]:
    """Find puzzles in finished games, until there are enough.

    Args:
      player: searches; made for the games' rules.
      rounds: games, searched a round at a time.
      options: criteria of a puzzle.
      most: puzzles to keep, spread over difficulties.
      counts_played: a move that the game's player missed is a puzzle though the policy saw it.
      on_progress: see `OnSearch`.

    Yields:
      After each round the puzzles to keep, the easiest first, and the games searched so far.
    """
    search, games = make_search(player, on_progress), 0
    known: dict[bytes, Puzzle] = {}
    for recorded in rounds:
        for puzzle in _find_in(player, search, recorded, options, counts_played=counts_played):
            known.setdefault(sameness_key(state_of(puzzle)), puzzle)
        games += len(recorded.records)
        yield spread(list(known.values()), most), games
        if len(known) >= most:
            return


def _find_in(
    player: Player,
    search: Search,
    recorded: RecordedGames,
    options: PuzzleOptions,
    *,
    counts_played: bool,
) -> Iterator[Puzzle]:
    """The puzzles of some games, at most one of each: the hardest."""
    positions, deep, games = _level(search, recorded, options), options.deep, recorded.records
    for part, share in _PROBES:
        least = options.others + share * (options.wins - options.others)
        if deep // part > options.shallow:
            positions = _winning(search, positions, deep // part, least)
    positions = _winning(search, positions, deep, options.wins)
    positions = [
        each
        for each in positions
        if each.shallow.likeliest != each.best
        or (counts_played and games[each.game].actions[each.ply] != each.best)
    ]
    positions = _lonely(search, positions, deep, options.others)
    positions = _winning(search, positions, CHECK * deep, options.wins, is_same=True)
    positions = _lonely(search, positions, CHECK * deep, options.others)
    is_only_win = exact_judge(player.rules)
    if is_only_win is not None:
        positions = [each for each in positions if is_only_win(each.state, each.best)]
    hardest = {each.game: each for each in sorted(positions, key=_difficulty)}
    for each in hardest.values():
        game, chances = games[each.game], (chance_of(each.shallow), chance_of(each.deep))
        yield Puzzle(
            record=Record(game.rules, game.actions[: each.ply], game.grid, game.players),
            solution=each.best,
            line=each.deep.candidates[0].line,
            difficulty=_difficulty(each),
            win_chance=WinChances(*chances, each.next_best),
            played=game.actions[each.ply],
            found_by=player.name,
        )


def _level(search: Search, recorded: RecordedGames, options: PuzzleOptions) -> list[_Position]:
    """Positions with a choice that look level to the network alone and to a shallow search."""
    even = 1 / recorded.records[0].rules.players
    examples, states = states_of(recorded)
    games, plies = np.asarray(examples.game), np.asarray(examples.position.ply)
    begins = options.skipped * np.array([len(record.actions) for record in recorded.records])
    late = np.flatnonzero(plies >= begins[games])

    def is_level(chance: float) -> bool:
        return abs(chance - even) <= options.level

    # One simulation is the least that a search does.
    raw = search("network alone", [states[i] for i in late], 1)
    before = [report.chance(report.network_value, is_searched=False) for report in raw]
    left = [i for i, chance in zip(late, before, strict=True) if is_level(float(chance))]
    shallow = search("shallow search", [states[i] for i in left], options.shallow)
    return [
        _Position(states[i], int(games[i]), int(plies[i]), report, report)
        for i, report in zip(left, shallow, strict=True)
        if len(report.candidates) > 1 and is_level(chance_of(report))
    ]


def _winning(
    search: Search,
    positions: Sequence[_Position],
    simulations: int,
    least: float,
    *,
    is_same: bool = False,
) -> list[_Position]:
    """Those whose best move has at least a chance; `is_same` asks for the best move of before."""
    states = [each.state for each in positions]
    reports = search(f"{simulations} simulations", states, simulations)
    return [
        each._replace(deep=report)
        for each, report in zip(positions, reports, strict=True)
        if chance_of(report) >= least and (not is_same or report.action == each.best)
    ]


def _lonely(
    search: Search, positions: Sequence[_Position], simulations: int, most: float
) -> list[_Position]:
    """Those where no other move has a higher chance."""
    states, barred = [each.state for each in positions], [each.best for each in positions]
    reports = search(f"{simulations} simulations, other moves", states, simulations, barred)
    chances = [chance_of(report) for report in reports]
    return [
        each._replace(next_best=chance)
        for each, chance in zip(positions, chances, strict=True)
        if chance <= most
    ]


def _difficulty(each: _Position) -> int:
    """From 1 to 5, by how far the move is from what is seen at a glance.

    1: the policy's likeliest move; 2: the shallow search finds it; then by the policy's share for
    it, 3 from 5 % on, 4 from 1 % on, 5 below.
    """
    if each.best == each.shallow.likeliest:
        return 1
    if each.best == each.shallow.action:
        return 2
    return 3 + sum(each.deep.candidates[0].prior < share for share in _SHARES)


def spread(puzzles: Sequence[Puzzle], most: int) -> list[Puzzle]:
    """The first of each difficulty, as many as are asked for, as even as possible; the easiest
    come first."""
    groups: dict[int, list[Puzzle]] = {}
    for puzzle in puzzles:
        groups.setdefault(puzzle.difficulty, []).append(puzzle)
    rows = itertools.zip_longest(*groups.values())
    chosen = [puzzle for row in rows for puzzle in row if puzzle is not None][:most]
    return sorted(chosen, key=lambda puzzle: (puzzle.difficulty, puzzle.record.actions))


def sameness_key(state: State) -> bytes:
    """Equal for two positions of the same rules where one is the other, seen from another side of
    the board or with the colours passed on, whoever built its walls."""
    stones, walls = fetch(_turn_by_all(state))
    # Stones without their order, the player to move first.
    stones = np.roll(np.sort(stones, axis=2), -int(state.position.player), axis=1)
    return min(x.tobytes() + np.packbits(y).tobytes() for x, y in zip(stones, walls, strict=True))


@jax.jit
def _turn_by_all(state: State) -> tuple[jax.Array, jax.Array]:
    """Stones [8, P, K] turned by each symmetry, and walls as masks [8, ...] of one builder."""

    def turn(symmetry: jax.Array) -> tuple[jax.Array, jax.Array]:
        turned = symmetry_lib.turn_position(state.position, symmetry, state.variant)
        return turned.stones, bitboard.to_mask(turned.walls, state.grid).any(axis=0)

    return jax.vmap(turn)(jnp.arange(NUM_SYMMETRIES))
