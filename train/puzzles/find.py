"""Finds puzzles in games: positions that look level until one move turns out to win.

The recipe of Mamano, "Training an AlphaZero-Style AI for a New Board Game", section "What's Next":
at first the engine says level, after a longer search it says that the player to move wins clearly,
and the move was not obvious. Step by step, each on what the step before has left:

1. The network alone and a shallow search both say level.
2. A deep search says that its best move wins clearly.
3. The network's policy, or the player of the game, would have played another move.
4. A deep search that must not play that move says that no other wins.
5. Searches of CONFIRM times the simulations say the same two things.
6. On a solved board, exact play agrees.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from train.data.record_dataset import RecordedGames
from train.puzzles.check import Progress, PuzzleOptions, PuzzleSearch, exact_judge
from train.puzzles.puzzle_file import Puzzle
from train.review.analyst import Analyst
from train.review.own_games import states_of
from train.review.positions import SearchedPosition
from wallgo_jax.formats.records import Record
from wallgo_jax.game.state import State

CONFIRM = 4
_SHARES = (0.05, 0.01)
"""Shares of the policy that part the hard puzzles."""


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
    recorded: RecordedGames,
    options: PuzzleOptions,
    *,
    most: int,
    seed: int,
    on_progress: Progress = lambda step, done, total: None,
) -> list[Puzzle]:
    """Find puzzles in finished games, the easiest first.

    Args:
      analyst: made for the games' rules.
      recorded: games.
      options: what counts as a puzzle.
      most: puzzles to keep, spread over difficulties.
      seed: decides which of too many are kept.
      on_progress: see `Progress`.
    """
    examples, states = states_of(recorded)
    games, plies = np.asarray(examples.game), np.asarray(examples.position.ply)
    search = PuzzleSearch(analyst, on_progress)
    shallow = search("shallow search", states, options.shallow)
    kept = [
        _Candidate(states[i], int(games[i]), int(plies[i]), found, found)
        for i, found in enumerate(shallow)
        if len(found.candidates) > 1 and _is_level(search, found, options)
    ]
    kept = _winning(search, kept, options, options.deep)
    kept = [each for each in kept if _is_missed(recorded, each)]
    kept = _lonely(search, kept, options, options.deep)
    bests = [each.deep.best.action for each in kept]
    kept = _winning(search, kept, options, CONFIRM * options.deep, bests)
    kept = _lonely(search, kept, options, CONFIRM * options.deep)
    is_only_win = exact_judge(analyst.rules)
    if is_only_win is not None:
        kept = [each for each in kept if is_only_win(each.state, each.deep.best.action)]
    puzzles = [_puzzle(search, recorded.records[each.game], each) for each in kept]
    return _spread(puzzles, most, seed)


def _is_level(search: PuzzleSearch, found: SearchedPosition, options: PuzzleOptions) -> bool:
    even = 1 / search.analyst.rules.players
    said = search.network_chance(found), search.chance(found)
    return all(abs(chance - even) <= options.level for chance in said)


def _winning(
    search: PuzzleSearch,
    kept: Sequence[_Candidate],
    options: PuzzleOptions,
    simulations: int,
    bests: Sequence[int] | None = None,
) -> list[_Candidate]:
    """Those whose best move wins clearly, and is still that of `bests`."""
    found = search(f"{simulations} simulations", [each.state for each in kept], simulations)
    wanted = [one.best.action for one in found] if bests is None else bests
    return [
        each._replace(deep=one)
        for each, one, best in zip(kept, found, wanted, strict=True)
        if search.chance(one) >= options.wins and one.best.action == best
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


def _is_missed(recorded: RecordedGames, each: _Candidate) -> bool:
    """Whether the policy's likeliest move, or the one played, is another."""
    played = recorded.records[each.game].actions[each.ply]
    return not each.shallow.likeliest == played == each.deep.best.action


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


def _spread(puzzles: Sequence[Puzzle], most: int, seed: int) -> list[Puzzle]:
    """At most so many different ones, as even over difficulties as possible."""
    rng = np.random.default_rng(seed)
    by_difficulty: dict[int, list[Puzzle]] = {}
    different = list({puzzle.record.actions: puzzle for puzzle in puzzles}.values())
    for place in rng.permutation(len(different)):
        puzzle = different[place]
        by_difficulty.setdefault(puzzle.difficulty, []).append(puzzle)
    chosen: list[Puzzle] = []
    while len(chosen) < most and any(by_difficulty.values()):
        for group in by_difficulty.values():
            if group and len(chosen) < most:
                chosen.append(group.pop())
    return sorted(chosen, key=lambda puzzle: (puzzle.difficulty, puzzle.record.actions))
