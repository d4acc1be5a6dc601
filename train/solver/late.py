"""Proves the score of every play in late positions of large boards, on the host.

Each play of the position to solve is a claim of its player that it reaches some target, and the
opposite claim of the other side. The one that seems nearer to its proof is searched, in rounds of
more and more nodes, until every play is decided; see `train.solver.claims`. The first targets tell
wins, draws and losses apart, the others close in on the scores.
"""

from enum import Enum
from typing import NamedTuple

from train.runtime.errors import UsageError
from train.solver import claims, compiled
from train.solver.boards import DRAW, LOSS, WIN, Board, LegalPlay, has_wall_limit, plays
from train.solver.contest import Contest, Geometry, flood, geometry_of, settle
from wallgo_jax.game.rules import Rules

NODE_LIMIT = 50_000
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


def check_provable(rules: Rules) -> None:
    """Refuse rules whose late positions cannot be proven here with a UsageError."""
    if rules.players != 2 or rules.stay_needs_room or has_wall_limit(rules):
        raise UsageError(
            "late positions: they are proven for two players, where a stone may always stay and "
            "walls have no limit"
        )


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


class _Side:
    """One player's claims: its graph, and the functions that search it."""

    def __init__(self, rules: Rules, player: int, node_limit: int, is_compiled: bool) -> None:
        capacity = node_limit + 4 * claims.MAX_CHILDREN
        self._player, self._geometry = player, geometry_of(rules)
        if is_compiled:
            self._search, self._node_of = compiled.compile_search()
            self._graph, self._stack = compiled.make_graph(capacity), compiled.make_stack()
        else:
            self._search, self._node_of = claims.search, claims.node_of
            self._graph, self._stack = claims.make_graph(capacity), claims.make_stack()

    @property
    def used(self) -> int:
        """Positions looked at."""
        return int(self._graph.used[1])

    def root(self, board: Board) -> int:
        """The node of a board."""
        contest = reduce(board, self._player, self._geometry)
        return int(self._node_of(self._graph, contest, self._player, self._geometry))

    def low(self, node: int) -> int:
        """The score that the player surely reaches."""
        return int(self._graph.low[node])

    def high(self, node: int) -> int:
        """The score that the player's claims cannot exceed; the player may."""
        return int(self._graph.high[node])

    def effort(self, node: int, target: int) -> int:
        """The proof number: the least number of open contests that must come true."""
        claims.set_target(self._graph, node, target)
        return int(self._graph.proof[node])

    def search(self, node: int, target: int, nodes: int) -> None:
        """Search about this many more positions for the claim that the target is reached."""
        stop = self.used + nodes
        self._search(self._graph, node, self._player, target, stop, self._stack, self._geometry)


class _Plays:
    """The plays of a position, each as a pair of nodes: after it, in the graphs of both sides.

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
        if is_compiled is None:
            is_compiled = compiled.is_available(rules.size)
        self._own = _Side(rules, board.player, node_limit, is_compiled)
        self._other = _Side(rules, 1 - board.player, node_limit, is_compiled)
        self._limit = node_limit
        self._slots: dict[tuple[int, int], list[int]] = {}
        for play in legal:
            pair = self._own.root(play.board), self._other.root(play.board)
            self._slots.setdefault(pair, []).append(play.slot)

    @property
    def used(self) -> int:
        """Positions looked at."""
        return self._own.used + self._other.used

    def decide(self, target: int) -> Refusal | None:
        """Search until every play is known to reach a target or to miss it."""
        own, other = self._own, self._other
        # To miss a target is to leave the other side at least one more than its negative.
        miss = 1 - target
        left = list(self._slots)
        for nodes in (_FIRST_NODES << turn for turn in range(_ROUNDS)):
            left = [pair for pair in left if self._is_open(pair, target)]
            # A claim that is refuted may hold in the game, see `train.solver.claims`.
            if any(own.high(a) < target and other.high(b) < miss for a, b in left):
                return Refusal.WAITS
            if not left:
                return None
            for pair in left:
                reaching, missing = own.effort(pair[0], target), other.effort(pair[1], miss)
                if reaching <= missing:
                    own.search(pair[0], target, min(nodes, self._limit - self.used))
                if missing <= reaching:
                    other.search(pair[1], miss, min(nodes, self._limit - self.used))
            if self.used >= self._limit:
                break
        return Refusal.NODES if any(self._is_open(pair, target) for pair in left) else None

    def reaching(self, target: int) -> list[int]:
        """Slots of the plays that surely reach a target."""
        return [
            slot
            for pair, slots in self._slots.items()
            if self._own.low(pair[0]) >= target
            for slot in slots
        ]

    def close(self) -> None:
        """Close in on the scores of all plays, the most promising first, as far as it goes."""
        for pair in sorted(self._slots, key=lambda pair: sum(self._range(pair)), reverse=True):
            low, high = self._range(pair)
            while lead_of(low) < lead_of(high) and self.used < self._limit:
                target = (low + high + 1) // 2
                self._ask(pair, target)
                before, (low, high) = (low, high), self._range(pair)
                if (low, high) == before:
                    break

    def _ask(self, pair: tuple[int, int], target: int) -> None:
        for side, node, goal in (
            (self._own, pair[0], target),
            (self._other, pair[1], 1 - target),
        ):
            if self._is_open(pair, target):
                side.search(node, goal, self._limit - self.used)

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

    def _range(self, pair: tuple[int, int]) -> tuple[int, int]:
        """The least and the most that a play scores."""
        return self._own.low(pair[0]), -self._other.low(pair[1])

    def _is_open(self, pair: tuple[int, int], target: int) -> bool:
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
