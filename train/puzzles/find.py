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
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from train.data.record_dataset import RecordedGames
from train.puzzles.check import (
    CHECK,
    Progress,
    PuzzleOptions,
    PuzzleSearch,
    exact_judge,
    state_of,
)
from train.puzzles.puzzle_file import Puzzle
from train.puzzles.sameness import sameness_key
from train.review.analyst import Analyst
from train.review.own_games import states_of
from train.review.positions import SearchedPosition
from wallgo_jax.formats.records import Record
from wallgo_jax.game.state import State

_PROBES = ((8, 0.0), (2, 0.5))
"""Searches that save deep ones: each has the deep simulations divided by the first number, and must
find a chance of the second number's share of the way from `others` to `wins`."""
_SHARES = (0.05, 0.01)
"""Shares of the policy that part the hard puzzles."""


class StoppedError(Exception):
    """Raised in a progress callback to end a search for puzzles with what it has found."""


class _Candidate(NamedTuple):
    """A position on its way to a puzzle."""

    state: State
    game: int
    ply: int  # plies before it
    shallow: SearchedPosition
    deep: SearchedPosition
    next_best: float = 0.0


def find_puzzles(
    analyst: Analyst,
    rounds: Iterable[RecordedGames],
    options: PuzzleOptions,
    *,
    most: int,
    counts_played: bool = False,
    on_progress: Progress = lambda step, done, total: None,
    on_found: Callable[[list[Puzzle], int], None] = lambda puzzles, games: None,
) -> list[Puzzle]:
    """Find puzzles in finished games, until there are enough; the easiest come first.

    Args:
      analyst: made for the games' rules.
      rounds: games, searched a round at a time.
      options: what counts as a puzzle.
      most: puzzles to keep, spread over difficulties.
      counts_played: a move that the game's player missed is a puzzle though the policy saw it.
      on_progress: see `Progress`; `StoppedError` ends the search.
      on_found: called after each round with the puzzles to keep and the games searched so far.
    """
    search = PuzzleSearch(analyst, on_progress)
    found: dict[bytes, Puzzle] = {}
    kept: list[Puzzle] = []
    games = 0
    try:
        for recorded in rounds:
            for puzzle in _find_in(search, recorded, options, counts_played=counts_played):
                found.setdefault(sameness_key(state_of(puzzle)), puzzle)
            games += len(recorded.records)
            kept = spread(list(found.values()), most)
            on_found(kept, games)
            if len(found) >= most:
                break
    except StoppedError:
        pass
    return kept


def _find_in(
    search: PuzzleSearch, recorded: RecordedGames, options: PuzzleOptions, *, counts_played: bool
) -> Iterator[Puzzle]:
    """The puzzles of some games, at most one of each: the hardest."""
    kept = _level(search, recorded, options)
    for simulations, least in _probes(options):
        kept = _winning(search, kept, simulations, least)
    kept = _winning(search, kept, options.deep, options.wins)
    kept = [each for each in kept if _is_missed(recorded, each, counts_played=counts_played)]
    kept = _lonely(search, kept, options, options.deep)
    kept = _winning(search, kept, CHECK * options.deep, options.wins, is_same=True)
    kept = _lonely(search, kept, options, CHECK * options.deep)
    is_only_win = exact_judge(search.analyst.rules)
    if is_only_win is not None:
        kept = [each for each in kept if is_only_win(each.state, each.deep.best.action)]
    hardest = {each.game: each for each in sorted(kept, key=_difficulty)}
    for each in hardest.values():
        yield _puzzle(search, recorded.records[each.game], each)


def _level(
    search: PuzzleSearch, recorded: RecordedGames, options: PuzzleOptions
) -> list[_Candidate]:
    """Positions with a choice that look level to the network alone and to a shallow search."""
    even = 1 / search.analyst.rules.players
    examples, states = states_of(recorded)
    games, plies = np.asarray(examples.game), np.asarray(examples.position.ply)
    begins = options.skipped * np.array([len(record.actions) for record in recorded.records])
    late = np.flatnonzero(plies >= begins[games])

    def is_level(chance: float) -> bool:
        return abs(chance - even) <= options.level

    # One simulation is the least that a search does.
    raw = search("network alone", [states[i] for i in late], 1)
    left = [i for i, found in zip(late, raw, strict=True) if is_level(search.network_chance(found))]
    shallow = search("shallow search", [states[i] for i in left], options.shallow)
    return [
        _Candidate(states[i], int(games[i]), int(plies[i]), found, found)
        for i, found in zip(left, shallow, strict=True)
        if len(found.candidates) > 1 and is_level(search.chance(found))
    ]


def _probes(options: PuzzleOptions) -> list[tuple[int, float]]:
    """The simulations of each search before the deep one, and the chance that it must find."""
    return [
        (options.deep // part, options.others + share * (options.wins - options.others))
        for part, share in _PROBES
        if options.deep // part > options.shallow
    ]


def _winning(
    search: PuzzleSearch,
    kept: Sequence[_Candidate],
    simulations: int,
    least: float,
    *,
    is_same: bool = False,
) -> list[_Candidate]:
    """Those whose best move has at least a chance; `is_same` asks for the best move of before."""
    states = [each.state for each in kept]
    found = search(f"{simulations} simulations", states, simulations)
    return [
        each._replace(deep=one)
        for each, one in zip(kept, found, strict=True)
        if search.chance(one) >= least and (not is_same or one.best.action == each.deep.best.action)
    ]


def _lonely(
    search: PuzzleSearch, kept: Sequence[_Candidate], options: PuzzleOptions, simulations: int
) -> list[_Candidate]:
    """Those without another move that wins."""
    barred = [each.deep.best.action for each in kept]
    step = f"{simulations} simulations, other moves"
    found = search(step, [each.state for each in kept], simulations, barred)
    chances = [search.chance(one) for one in found]
    return [
        each._replace(next_best=chance)
        for each, chance in zip(kept, chances, strict=True)
        if chance <= options.others
    ]


def _is_missed(recorded: RecordedGames, each: _Candidate, *, counts_played: bool) -> bool:
    """Whether the policy's likeliest move is another, or the one played where that counts."""
    played = recorded.records[each.game].actions[each.ply]
    best = each.deep.best.action
    return each.shallow.likeliest != best or (counts_played and played != best)


def _difficulty(each: _Candidate) -> int:
    """From 1 to 5, by how far the move is from what is seen at a glance.

    1: the policy's likeliest move; 2: the shallow search finds it; then by the policy's share for
    it, 3 from 5 % on, 4 from 1 % on, 5 below.
    """
    best, likeliest = each.deep.best, each.shallow.likeliest
    if best.action == likeliest:
        return 1
    if best.action == each.shallow.best.action:
        return 2
    return 3 + sum(best.prior < share for share in _SHARES)


def _puzzle(search: PuzzleSearch, record: Record, each: _Candidate) -> Puzzle:
    return Puzzle(
        record=Record(
            rules=record.rules,
            actions=record.actions[: each.ply],
            grid=record.grid,
            players=record.players,
        ),
        solution=each.deep.best.action,
        line=each.deep.best.line,
        difficulty=_difficulty(each),
        shallow=search.chance(each.shallow),
        chance=search.chance(each.deep),
        next_best=each.next_best,
        played=record.actions[each.ply],
        found_by=search.analyst.name,
    )


def spread(puzzles: Sequence[Puzzle], most: int) -> list[Puzzle]:
    """The first of each difficulty, as many as are asked for, as even as possible; the easiest
    come first."""
    groups: dict[int, list[Puzzle]] = {}
    for puzzle in puzzles:
        groups.setdefault(puzzle.difficulty, []).append(puzzle)
    rows = itertools.zip_longest(*groups.values())
    chosen = [puzzle for row in rows for puzzle in row if puzzle is not None][:most]
    return sorted(chosen, key=lambda puzzle: (puzzle.difficulty, puzzle.record.actions))
