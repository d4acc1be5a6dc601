"""Turns the arrays of a search into an `Evaluation`: notation, points of view, the move to play.

A slots, N cells, P players.
"""

from typing import Any, NamedTuple

import numpy as np

from train.checkpoints.calibration import Calibration
from train.engine.answers import Candidate, Evaluation, Score
from train.engine.trees.details import Details
from train.search.report import RootReport, draw_place, owners_by_player
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import State
from wallgo_jax.notation import CANONICAL_SIDES, format_action
from wallgo_jax.view.snapshot import NOBODY, take_snapshot


class Question(NamedTuple):
    """A question about one position of a session."""

    session: str
    state: State  # one board, NumPy arrays
    ply: int
    rewards: tuple[float, ...] | None  # of a finished game
    temperature: float
    details: bool
    calibration: Calibration

    @property
    def players(self) -> int:
        """P."""
        return len(self.state.position.stones)

    @property
    def mover(self) -> int:
        """The player to move."""
        return int(self.state.position.player)

    def chance(self, value: float, *, is_searched: bool = True) -> float:
        """The win chance of a player who expects this reward."""
        told = self.calibration.chance(value, players=self.players, is_searched=is_searched)
        return float(told)


def tell_search(
    asked: Question,
    found: RootReport,
    details: Details | None,
    *,
    simulations: int,
    draw: np.random.Generator,
) -> Evaluation:
    """The evaluation of a position that was searched.

    Args:
      asked: the question.
      found: of one tree, NumPy arrays without the axis of trees.
      details: likewise; None where they are not asked for.
      simulations: of this search.
      draw: draws the move where the question has a temperature.
    """
    grid, mover = asked.state.grid, asked.mover
    slot = int(found.slot)
    if asked.temperature > 0:
        slot = draw_place(found.policy, asked.temperature, draw.random())
    action, value = int(found.actions[slot]), float(found.value)
    evaluation = Evaluation(
        session=asked.session,
        ply=asked.ply,
        player=mover,
        best_move=_name(action, grid),
        action=action,
        evaluation=_score(found.scores, value, mover),
        win_chance=asked.chance(value, is_searched=simulations > 0),
        simulations=simulations,
        visits=int(found.visits),
    )
    if details is None:
        return evaluation
    owners = None if details.owners is None else _owners(details.owners, mover)
    return _with_details(
        evaluation,
        candidates=_candidates(asked, found, details),
        policy=_policy(found, grid),
        owners=owners,
        margin=_margin(details, owners, asked),
    )


def tell_finished_game(asked: Question) -> Evaluation:
    """The evaluation of a finished game: its result, and its territory where details are asked."""
    assert asked.rewards is not None
    rewards = asked.rewards
    evaluation = Evaluation(
        session=asked.session,
        ply=asked.ply,
        player=asked.mover,
        best_move=None,
        action=None,
        evaluation=rewards[0] if asked.players == 2 else rewards,
        win_chance=asked.chance(rewards[asked.mover]),
        simulations=0,
        visits=0,
    )
    if not asked.details:
        return evaluation
    snapshot = take_snapshot(asked.state)
    owner = np.array([asked.players if who == NOBODY else who for who in snapshot.owner])
    owners = np.eye(asked.players + 1)[owner]
    margin = float(snapshot.territory[0] - max(snapshot.territory[1:]))
    return _with_details(evaluation, candidates=(), policy=(), owners=owners, margin=margin)


def _with_details(
    evaluation: Evaluation,
    *,
    candidates: tuple[Candidate, ...],
    policy: tuple[tuple[str, float], ...],
    owners: np.ndarray | None,
    margin: float | None,
) -> Evaluation:
    fields: dict[str, Any] = vars(evaluation) | {
        "candidates": candidates,
        "policy": policy,
        "owners": None if owners is None else tuple(tuple(map(float, cell)) for cell in owners),
        "margin": margin,
    }
    return Evaluation(**fields)


def _name(action: int, grid: int) -> str:
    return format_action(action, grid=grid, sides=CANONICAL_SIDES)


def _score(scores: Any, value: float, mover: int) -> Score:
    """The root's value as each player sees it.

    A search values the position for the mover alone. Of more players, the others share what it took
    from the mover or gave it, beside the raw values that the evaluator has for them.

    Args:
      scores: float[P], as evaluated, the mover first.
      value: of the mover, after search.
      mover: who is to move.
    """
    players = len(scores)
    if players == 2:
        return value if mover == 0 else -value
    shares = scores + (scores[0] - value) / (players - 1)
    shares[0] = value
    return tuple(float(share) for share in np.clip(np.roll(shares, mover), -1.0, 1.0))


def _owners(owners: Any, mover: int) -> np.ndarray:
    """float[N, P + 1]: chances of each cell's owners, players by number and nobody last."""
    (turned,) = owners_by_player(owners[None], np.array([mover]))
    return turned.reshape(-1, turned.shape[-1])


def _margin(details: Details, owners: np.ndarray | None, asked: Question) -> float | None:
    """Cells that the first player is expected to lead the best other by; None if nothing tells."""
    if details.margin is not None and asked.players == 2:
        lead = float(details.margin) * int(asked.state.variant.size) ** 2
        return lead if asked.mover == 0 else -lead
    if owners is None:
        return None
    cells = owners[:, : asked.players].sum(axis=0)
    return float(cells[0] - cells[1:].max())


def _candidates(asked: Question, found: RootReport, details: Details) -> tuple[Candidate, ...]:
    grid, players = asked.state.grid, asked.players
    lines = {int(slot): line for slot, line in zip(details.slots, details.lines, strict=True)}
    seen = [slot for slot in lines if found.slot_visits[slot]]
    told = []
    for slot in sorted(seen, key=lambda slot: _rank(found, slot), reverse=True):
        visits, line = int(found.slot_visits[slot]), lines[slot]
        value = float(found.slot_qvalues[slot])
        own = value if players > 2 or asked.mover == 0 else -value
        moves = tuple(_name(int(action), grid) for action in line if action != NO_ACTION)
        prior, chance = float(found.prior[slot]), asked.chance(value)
        told.append(Candidate(moves[0], prior, visits, own, chance, moves))
    return tuple(told)


def _rank(found: RootReport, slot: int) -> tuple[bool, int, float]:
    return slot == int(found.slot), int(found.slot_visits[slot]), float(found.slot_qvalues[slot])


def _policy(found: RootReport, grid: int) -> tuple[tuple[str, float], ...]:
    """(move, chance) of the legal slots, the likeliest first."""
    legal = np.flatnonzero((found.policy > 0) | (found.prior > 0))
    order = legal[np.argsort(-found.policy[legal], kind="stable")]
    return tuple((_name(int(found.actions[s]), grid), float(found.policy[s])) for s in order)
