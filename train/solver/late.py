"""Proves the score of every play in late positions of large boards, on the host.

Each play of the position to solve is a claim of its player that it reaches some target, and the
opposite claim of the other side. The one that seems nearer to its proof is searched, in rounds of
more and more nodes, until every play is decided; see `train.solver.claims`. The first targets tell
wins, draws and losses apart, the others close in on the scores.
"""

from enum import Enum
from typing import NamedTuple

from train.solver.boards import DRAW, LOSS, WIN, Board, LegalPlay, plays
from train.solver.claims import FAR, Claim
from train.solver.contest import Contest, Geometry, flood, geometry_of, settle
from wallgo_jax.game.rules import Rules

NODE_LIMIT = 50_000
_LOOKED_AT = 4
"""Least number of positions that are looked at for one that a table keeps, on average."""
_MOST_PLAYS = 256
_Pair = tuple[Contest, Contest]
_FIRST_NODES, _ROUNDS = 200, 30


class Proof(NamedTuple):
    """A position's proven value, plays and margins, for the player to move.

    A margin is the player's cells minus the other side's at the end, if both play for the result
    first and for cells where it is level.
    """

    value: int  # WIN, DRAW or LOSS
    best: tuple[int, ...]  # slots of all plays that keep it, in rising order
    slots: tuple[int, ...]  # of all legal plays
    margin: int | None  # of best play; None where it was not proven
    margins: tuple[int, ...] | None  # after each legal play; None unless all are proven
    nodes: int  # positions looked at


class Refusal(Enum):
    """Why no proof was found."""

    NODES = "the search needs more nodes"
    WAITS = "the result hangs on waiting turns in settled regions that are bounded too coarsely"


def prove(
    board: Board,
    rules: Rules,
    *,
    node_limit: int = NODE_LIMIT,
    is_compiled: bool | None = None,
) -> Proof | Refusal:
    """The value of a position, all plays that keep it, and margins where the limit allows.

    The game must not be over.

    Args:
      board: after setup.
      rules: see `check_provable`.
      node_limit: most positions that all claims together may look at.
      is_compiled: whether compiled code searches; None for where numba and the size allow it. The
        result is the same.
    """
    legal = plays(board, rules.size)
    claimed = _Plays(board, legal, rules, node_limit, is_compiled)
    value = best = None
    for target in (WIN, DRAW):
        refusal = claimed.decide(target)
        if refusal is not None:
            return refusal
        best = claimed.reaching(target)
        if best:
            value = target
            break
    claimed.close()
    return Proof(
        LOSS if value is None else value,
        tuple(sorted(best or (play.slot for play in legal))),
        tuple(play.slot for play in legal),
        claimed.margin(),
        claimed.margins(legal),
        claimed.used,
    )


def lead_of(score: int) -> int:
    """The margin of a score."""
    return score - (1 if score > 0 else -1) if abs(score) > 1 else 0


class _Plays:
    """The plays of a position, each as what it leaves to claim for its player and for the other.

    Plays that leave the same contests are one pair.
    """

    def __init__(
        self,
        board: Board,
        legal: list[LegalPlay],
        rules: Rules,
        node_limit: int,
        is_compiled: bool | None,
    ) -> None:
        players = (board.player, 1 - board.player)
        geometry = geometry_of(rules)
        entries = node_limit // _LOOKED_AT + _MOST_PLAYS
        options = {"entries": entries, "is_compiled": is_compiled}
        self._claims = [Claim(rules, player, WIN, **options) for player in players]
        self._limit = node_limit
        self._slots: dict[_Pair, list[int]] = {}
        for play in legal:
            own, other = (reduce(play.board, player, geometry) for player in players)
            self._slots.setdefault((own, other), []).append(play.slot)
        # The table of a claim may forget what is known of these.
        self._bounds = {pair: [(-FAR, FAR)] * 2 for pair in self._slots}
        for pair in self._slots:
            for side in range(2):
                self._ask(pair, side, WIN)

    @property
    def used(self) -> int:
        """Positions looked at."""
        return sum(claim.nodes for claim in self._claims)

    def decide(self, target: int) -> Refusal | None:
        """Search until every play is known to reach a target or to miss it."""
        # To miss a target is to leave the other side at least one more than its negative.
        goals = target, 1 - target
        left = list(self._slots)
        for nodes in (_FIRST_NODES << turn for turn in range(_ROUNDS)):
            left = [pair for pair in left if self._is_open(pair, target)]
            # A claim that is refuted may hold in the game, see `train.solver.claims`.
            if any(self._are_refuted(pair, goals) for pair in left):
                return Refusal.WAITS
            if not left:
                return None
            for pair in left:
                efforts = [self._ask(pair, side, goals[side]) for side in range(2)]
                for side in range(2):
                    if efforts[side] <= efforts[1 - side]:
                        self._ask(pair, side, goals[side], min(nodes, self._left()))
            if self.used >= self._limit:
                break
        return Refusal.NODES if any(self._is_open(pair, target) for pair in left) else None

    def reaching(self, target: int) -> list[int]:
        """Slots of the plays that surely reach a target."""
        return [
            slot
            for pair, slots in self._slots.items()
            if self._range(pair)[0] >= target
            for slot in slots
        ]

    def close(self) -> None:
        """Close in on the scores of all plays, the most promising first, as far as it goes."""
        for pair in sorted(self._slots, key=lambda pair: sum(self._range(pair)), reverse=True):
            low, high = self._range(pair)
            while lead_of(low) < lead_of(high) and self.used < self._limit:
                target = (low + high + 1) // 2
                for side, goal in enumerate((target, 1 - target)):
                    if self._is_open(pair, target):
                        self._ask(pair, side, goal, self._left())
                before, (low, high) = (low, high), self._range(pair)
                if (low, high) == before:
                    break

    def margin(self) -> int | None:
        """The margin of best play if it is known."""
        low, high = map(max, zip(*map(self._range, self._slots), strict=True))
        return lead_of(low) if lead_of(low) == lead_of(high) else None

    def margins(self, legal: list[LegalPlay]) -> tuple[int, ...] | None:
        """The margin of each play if all are known."""
        known = {}
        for pair, slots in self._slots.items():
            low, high = map(lead_of, self._range(pair))
            if low < high:
                return None
            known |= dict.fromkeys(slots, low)
        return tuple(known[play.slot] for play in legal)

    def _left(self) -> int:
        """Positions that may still be looked at."""
        return max(0, self._limit - self.used)

    def _ask(self, pair: _Pair, side: int, goal: int, nodes: int = 0) -> int:
        """Search for a side's claim of a score, and return the effort that is left: the least
        number of open positions that must come true."""
        known = self._claims[side].toward(goal).ask(pair[side], nodes)
        low, high = self._bounds[pair][side]
        self._bounds[pair][side] = max(low, known.low), min(high, known.high)
        return known.proof

    def _range(self, pair: _Pair) -> tuple[int, int]:
        """The least and the most that a play scores."""
        (low, _), (others, _) = self._bounds[pair]
        return low, -others

    def _are_refuted(self, pair: _Pair, goals: tuple[int, int]) -> bool:
        """Whether neither side's claim can be proven."""
        return all(high < goal for (_, high), goal in zip(self._bounds[pair], goals, strict=True))

    def _is_open(self, pair: _Pair, target: int) -> bool:
        low, high = self._range(pair)
        return low < target <= high


def reduce(board: Board, claimant: int, geometry: Geometry) -> Contest:
    """The contested part of a position, for a claim of one side."""
    masks = [sum(1 << cell for cell in cells) for cells in board.stones]
    contest = Contest(board.down, board.right, masks[0], masks[1], 0, 0, 0, 0, 0, board.player)
    left = geometry.everywhere
    while left:
        part = flood(board.down, board.right, left & -left, geometry.everywhere, geometry.size)
        left &= ~part
        contest = settle(contest, part, claimant, geometry.size)
    return contest
