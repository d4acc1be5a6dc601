"""Checks puzzles: by exact play on solved boards, by a much longer search elsewhere."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from train.data.record_dataset import check_rules
from train.players.basic import Player
from train.review.player import search_positions
from train.review.puzzle_file import Puzzle
from train.runtime.errors import UsageError
from train.runtime.fields import Real, Whole
from train.runtime.host import fetch
from train.search.report import SearchReport
from train.solver.alphabeta import AlphaBeta
from train.solver.boards import BY_SEARCH, BY_TABLES, WIN, board_of, check_solvable
from train.solver.exact_player import tables_of
from train.solver.tablebase import SIZE, optimal_slots, value_of
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.view.game_replay import replay_actions

CHECK = 16
"""Simulations of a check, as a multiple of those of the deep search."""
_NODE_LIMIT = 200_000
"""Positions that one proof on a 4x4 board may look at; a puzzle without a proof is dropped."""
OnSearch = Callable[[str, int, int], None]
"""Called with the step, the simulations done of it, and its total."""


@dataclass(frozen=True)
class PuzzleOptions:
    """Criteria of a puzzle; win chances are of the player to move.

    Attributes:
      shallow: simulations of the shallow search.
      deep: simulations of the deep search.
      level: how far from an even chance a level position may be.
      wins: least chance of a move that wins clearly.
      others: most chance of the best other move.
      skipped: share of each game that is left out at its beginning, where one move seldom decides.
    """

    shallow: Annotated[Whole, Field(ge=1)] = 16
    deep: Whole = 512
    level: Annotated[Real, Field(gt=0, lt=0.5)] = 0.2
    wins: Annotated[Real, Field(lt=1)] = 0.8
    others: Annotated[Real, Field(gt=0)] = 0.6
    skipped: Annotated[Real, Field(ge=0, lt=1)] = 0.5

    def __post_init__(self) -> None:
        if not (self.shallow < self.deep and self.others < self.wins):
            raise ValueError("shallow must be below deep, and others below wins")


Search = Callable[..., list[SearchReport]]


def make_search(player: Player, on_progress: OnSearch) -> Search:
    """A function (step, states, simulations, excluded) that searches positions and shows progress;
    see `search_positions`."""

    def search(
        step: str,
        states: Sequence[State],
        simulations: int,
        excluded: Sequence[int | None] | None = None,
    ) -> list[SearchReport]:
        total = len(states) * simulations
        on_progress(step, 0, total)
        return search_positions(
            player,
            states,
            simulations=simulations,
            excluded=excluded,
            on_progress=lambda done: on_progress(step, done, total),
        )

    return search


def chance_of(report: SearchReport) -> float:
    """The win chance of the player to move after a search."""
    return float(report.chance(report.best_values[report.mover]))


class CheckedPuzzle(NamedTuple):
    """A puzzle with the verdict of a longer search, or of exact play."""

    puzzle: Puzzle
    is_confirmed: bool
    chance: float | None  # of the solution; None by exact play
    next_best: float | None
    best: int | None  # public action that the search chooses


def check_puzzles(
    player: Player,
    puzzles: Sequence[Puzzle],
    options: PuzzleOptions,
    *,
    on_progress: OnSearch = lambda step, done, total: None,
) -> list[CheckedPuzzle]:
    """Search each puzzle with CHECK times the simulations of the deep search.

    A puzzle is confirmed where the search chooses its solution and gives it a higher chance than
    `options.wins`, and a search that must not choose it finds no more than `options.others`. On a
    solved board exact play decides.

    Args:
      player: searches.
      puzzles: as `check_puzzle` allows them.
      options: of the search that found them.
      on_progress: see `OnSearch`.

    Raises:
      UsageError: the puzzles are of other rules than the player, or on a larger grid.
    """
    rules = player.rules
    for number, puzzle in enumerate(puzzles, start=1):
        check_rules(puzzle.record, rules, f"puzzle {number}")
    states = [state_of(puzzle) for puzzle in puzzles]
    is_only_win = exact_judge(rules)
    if is_only_win is not None:
        return [
            CheckedPuzzle(each, is_only_win(state, each.solution), None, None, None)
            for each, state in zip(puzzles, states, strict=True)
        ]
    search, count = make_search(player, on_progress), CHECK * options.deep
    reports = search("checking solutions", states, count)
    barred = [each.solution for each in puzzles]
    others = search("checking other moves", states, count, barred)
    checked = []
    for puzzle, report, other in zip(puzzles, reports, others, strict=True):
        chance, rest, best = chance_of(report), chance_of(other), int(report.action)
        is_won = chance >= options.wins and rest <= options.others
        is_confirmed = best == puzzle.solution and is_won
        checked.append(CheckedPuzzle(puzzle, is_confirmed, chance, rest, best))
    return checked


def state_of(puzzle: Puzzle) -> State:
    """The position of a puzzle."""
    record = puzzle.record
    return replay_actions(record.rules, record.actions, grid=puzzle.grid).states[-1]


def exact_judge(rules: Rules) -> Callable[[State, int], bool] | None:
    """Whether a public action is the only one that wins, by exact play; None where the board is
    not solved."""
    try:
        check_solvable(rules, BY_SEARCH | BY_TABLES)
    except UsageError:
        return None
    solver = None if rules.size == SIZE else AlphaBeta(rules, node_limit=_NODE_LIMIT)

    def is_only_win(state: State, action: int) -> bool:
        if solver is None:
            value, best = fetch(_solve_by_tables(tables_of(rules), state))
            slots = np.flatnonzero(best).tolist()
        elif state.position.ply < len(rules.order):
            return False  # Far beyond the limit.
        else:
            board = board_of(jax.tree.map(np.asarray, state.position), rules.size)
            try:
                value, slots = solver.solve(board)
            except UsageError:  # Beyond the limit nothing is known.
                return False
        return value == WIN and slots == [int(fetch(_slot_of(state, jnp.int32(action))))]

    return is_only_win


@jax.jit
def _solve_by_tables(tables: Any, state: State) -> tuple[jax.Array, jax.Array]:
    return value_of(tables, state), optimal_slots(tables, state)


_slot_of = jax.jit(actions.slot_of_action)
