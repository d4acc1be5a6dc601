"""A whole game searched and graded: what stood before each move, and what the move lost.

T plies, P players, N cells.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from train.checkpoints.calibration import Calibration, to_dict
from train.review.analyst import Analyst
from train.review.grades import LIMITS, Grade, grade_move, side_accuracy
from train.review.positions import SearchedPosition, search_positions
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import name_of
from wallgo_jax.game.state import State
from wallgo_jax.notation import CANONICAL_SIDES, format_action
from wallgo_jax.view.game_replay import Game
from wallgo_jax.view.snapshot import Snapshot, take_snapshot


class ReviewedMove(NamedTuple):
    """One move of a game, from the side of the player who made it."""

    ply: int  # from 1
    mover: int
    action: int
    before: float  # win chance with the best move
    after: float  # win chance after this move
    grade: Grade
    searched: SearchedPosition  # the position before it


class GameReview(NamedTuple):
    """A game with what the analyst says of it.

    Attributes:
      game: as it was played.
      players: names in the order of play, or None.
      analyst: name of the player that searched.
      simulations: of each search.
      calibration: that turned values into win chances.
      moves: T of them.
      values: float[T + 1, P], expected reward of each player in each position.
      chances: float[T + 1, P], win chances.
      owners: for each position, float32[N, P + 1], chances of the final owners, nobody last; None
        without a head for them.
      snapshots: T + 1 positions.
    """

    game: Game
    players: tuple[str, ...] | None
    analyst: str
    simulations: int
    calibration: Calibration
    moves: tuple[ReviewedMove, ...]
    values: np.ndarray
    chances: np.ndarray
    owners: tuple[np.ndarray, ...] | None
    snapshots: tuple[Snapshot, ...]

    @property
    def accuracy(self) -> tuple[float | None, ...]:
        """The accuracy of each player in per cent."""
        movers = range(self.game.rules.players)
        return tuple(side_accuracy(m.grade for m in self.moves if m.mover == p) for p in movers)

    def count_of(self, player: int, name: str) -> int:
        """The moves of a player that have a name of `train.review.grades`."""
        return sum(move.mover == player and move.grade.name == name for move in self.moves)


def review_game(
    analyst: Analyst,
    game: Game,
    *,
    players: Sequence[str] | None = None,
    on_progress: Callable[[int], None] = lambda simulations: None,
) -> GameReview:
    """Search every position of a game in one batch, and grade its moves.

    Args:
      analyst: made for the game's rules.
      game: a finished game, or one that goes on.
      players: their names.
      on_progress: as in `search_positions`.
    """
    live = [state for state in game.states if not state.position.terminated]
    searched = search_positions(analyst, live, on_progress=on_progress)
    seats = game.rules.players
    values = np.array([position.value for position in searched])
    chances = analyst.chance(values)
    if game.is_over:
        values = np.vstack([values.reshape(-1, seats), game.rewards])
        chances = np.vstack([chances.reshape(-1, seats), analyst.chance(game.rewards)])
    snapshots = tuple(take_snapshot(state) for state in game.states)
    owners = None
    if analyst.look is not None:
        predicted = [each.owner for each in searched if each.owner is not None]
        owners = (*predicted, *(_owners_now(each) for each in snapshots if each.is_over))
    afters = _afters(analyst, game, live, chances)
    moves = []
    for ply, (action, mover) in enumerate(zip(game.actions, game.movers, strict=True)):
        before, after = float(chances[ply, mover]), afters[ply]
        grade = grade_move(
            before,
            after,
            is_best=action == searched[ply].best.action,
            is_forced=len(snapshots[ply].legal) == 1,
        )
        moves.append(ReviewedMove(ply + 1, mover, action, before, after, grade, searched[ply]))
    return GameReview(
        game=game,
        players=None if players is None else tuple(players),
        analyst=analyst.name,
        simulations=analyst.search.simulations,
        calibration=analyst.calibration,
        moves=tuple(moves),
        values=values,
        chances=chances,
        owners=owners,
        snapshots=snapshots,
    )


def _afters(
    analyst: Analyst, game: Game, live: Sequence[State], chances: np.ndarray
) -> list[float]:
    """The mover's win chance after each of T plies.

    With more than two players a search tells the chance of the one to move alone, so the move is
    searched by itself from the position before it.
    """
    if game.rules.players == 2:
        return [float(chances[ply + 1, mover]) for ply, mover in enumerate(game.movers)]
    found = search_positions(
        analyst, live[: len(game.actions)], excluded=game.actions, is_only=True
    )
    afters = [float(analyst.chance(each.best.value)) for each in found]
    if game.is_over:
        afters[-1] = float(chances[-1, game.movers[-1]])
    return afters


def _owners_now(snapshot: Snapshot) -> np.ndarray:
    """float32[N, P + 1]: the owners of a finished game, nobody last."""
    kinds = np.array([*range(snapshot.players), -1])
    return (np.array(snapshot.owner)[:, None] == kinds).astype(np.float32)


def record_of(review: GameReview) -> Record:
    """The game's record with the value of each ply, which the replay page draws: the expected
    reward of its mover that its win chance means."""
    seats = review.game.rules.players
    values = [
        round((seats * float(review.chances[ply, mover]) - 1) / (seats - 1), 4)
        for ply, mover in enumerate(review.game.movers)
    ]
    return records.of_game(review.game, players=review.players, values=values)


def review_record(review: GameReview) -> dict[str, Any]:
    """The review as JSON-ready figures; `docs/players.md` says what they are."""
    game = review.game
    players = range(game.rules.players)
    return {
        "player": review.analyst,
        "simulations": review.simulations,
        "calibration": to_dict(review.calibration),
        "losses": LIMITS,
        "variant": name_of(game.rules),
        "rules": game.rules.to_dict(),
        "grid": game.grid,
        "players": review.players,
        "result": list(game.rewards) if game.is_over else None,
        "accuracy": [_rounded(accuracy, 1) for accuracy in review.accuracy],
        "counts": [{name: review.count_of(player, name) for name in LIMITS} for player in players],
        "positions": [
            {
                "ply": ply,
                "evaluation": evaluation_of(review.values[ply]),
                "win_chance": [round(float(chance), 4) for chance in review.chances[ply]],
                "territory": territory(review, ply),
                "expected_territory": _expected(review, ply),
                "owner": None
                if review.owners is None
                else np.round(review.owners[ply].astype(float), 3).tolist(),
            }
            for ply in range(len(game.states))
        ],
        "moves": [_move_record(review, move) for move in review.moves],
    }


def evaluation_of(values: np.ndarray) -> float | list[float]:
    """A position's evaluation from the first player's side; more than two players: one number
    each."""
    rounded = [round(float(value), 4) for value in values]
    return rounded[0] if len(rounded) == 2 else rounded


def territory(review: GameReview, ply: int) -> list[int] | None:
    """The cells that each player owns; None while stones are placed, when walls part nothing."""
    snapshot = review.snapshots[ply]
    return None if snapshot.in_setup else list(snapshot.territory)


def expected_territory(review: GameReview, ply: int) -> np.ndarray | None:
    """float[P]: the cells that each player is expected to own at the end."""
    return None if review.owners is None else review.owners[ply].sum(axis=0)[:-1]


def _expected(review: GameReview, ply: int) -> list[float] | None:
    expected = expected_territory(review, ply)
    return None if expected is None else [round(float(cells), 2) for cells in expected]


def chance_of(review: GameReview, value: float) -> float:
    """The win chance of a searched value, for the player whose value it is."""
    return float(review.calibration.chance(value, players=review.game.rules.players))


def _move_record(review: GameReview, move: ReviewedMove) -> dict[str, Any]:
    grid = review.game.grid
    return {
        "ply": move.ply,
        "mover": move.mover,
        "move": move_text(move.action, grid),
        "win_chance_before": round(move.before, 4),
        "win_chance_after": round(move.after, 4),
        "loss": round(move.grade.loss, 4),
        "grade": move.grade.name,
        "accuracy": round(move.grade.accuracy, 1),
        "best": move_text(move.searched.best.action, grid),
        "candidates": [
            {
                "move": move_text(each.action, grid),
                "prior": round(each.prior, 4),
                "policy": round(each.policy, 4),
                "visits": each.visits,
                "value": round(each.value, 4),
                "win_chance": round(chance_of(review, each.value), 4),
                "line": [move_text(action, grid) for action in each.line],
            }
            for each in move.searched.candidates
        ],
    }


def move_text(action: int, grid: int) -> str:
    """A move in the canonical notation."""
    return format_action(action, grid=grid, sides=CANONICAL_SIDES)


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)
