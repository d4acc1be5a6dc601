"""Proves that a side of a contest reaches at least some result, by proof-number search.

A claim is true or false, so the bounds of alpha-beta are one bit here, and what remains to choose
is where to look next. The search goes where the fewest open contests are left to decide (df-pn:
Nagai, "Df-pn algorithm for searching AND/OR trees and its applications"). Three things help:

- **Fortress.** A side that leaves its stones where they stand can wall off, one turn each, every
  opening through which the other side could come. So a side surely gets all cells that the other
  side's stones cannot walk to without passing its stones, and the other side gets no more than the
  rest. This needs no turn order: whoever stays always has the next such wall to build.
- **The table** keeps the numbers of every contest: how many contests must at least come true, or
  fail, to decide it.
- **Territory** gives a new contest its first numbers: cells owned or nearer to a side.

The claimant waits only in turns that cost it nothing, the other side may wait more often than the
rules let it. So a claim that is proven holds in the game; one that is refuted may still hold.
"""

from train.solver.contest import Contest, bits, ends, flood, settle, sides, step
from train.solver.values import DRAW, LOSS, WIN
from wallgo_jax.game.rules import MOVER_LOSES, REGION, Rules

_NEVER = 1 << 40
"""Contests that must be decided where nothing can decide."""
_PROVEN, _REFUTED = (0, _NEVER), (_NEVER, 0)


class OutOfNodesError(Exception):
    """The search exceeds its limit of nodes."""


class Budget:
    """Counts the positions that searches look at, and ends them with an OutOfNodesError."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0

    def spend(self, nodes: int) -> None:
        """Count some more positions."""
        self.used += nodes
        if self.used > self.limit:
            raise OutOfNodesError


class Claim:
    """The claim that a side reaches at least a result, with all that was found out about it.

    Args:
      rules: two players, no limit of walls.
      claimant: the player.
      target: WIN or DRAW.
      budget: of nodes; other claims may share it.
    """

    def __init__(self, rules: Rules, claimant: int, target: int, budget: Budget) -> None:
        self.size, self.tie = rules.size, rules.tie
        self.claimant, self.target, self.budget = claimant, target, budget
        self._everywhere = (1 << rules.size**2) - 1
        self._known: dict[Contest, tuple[int, int]] = {}
        self._children: dict[Contest, list[Contest]] = {}

    def search(self, contest: Contest, nodes: int) -> bool | None:
        """Whether the claim holds, None where about that many more nodes do not tell.

        Raises:
          OutOfNodesError: the budget is spent.
        """
        proof, disproof = self._numbers(contest)
        stop = self.budget.used + nodes
        while proof and disproof and self.budget.used < stop:
            proof, disproof = self._deepen(contest, _NEVER, _NEVER, stop)
        return None if proof and disproof else not proof

    def effort(self, contest: Contest) -> int:
        """The proof number: at least so many open contests must come true to prove the claim."""
        return self._numbers(contest)[0]

    def is_refuted(self, contest: Contest) -> bool:
        """Whether the claim is known not to hold."""
        return self._numbers(contest) == _REFUTED

    def _numbers(self, contest: Contest) -> tuple[int, int]:
        found = self._known.get(contest)
        if found is None:
            verdict = self.verdict(contest)
            found = self._guess(contest) if verdict is None else _PROVEN if verdict else _REFUTED
            self._known[contest] = found
        return found

    def _guess(self, contest: Contest) -> tuple[int, int]:
        """First numbers of an open contest: the further the claimant lags, the harder the proof."""
        lead = self._lead(contest) if self.claimant == 0 else -self._lead(contest)
        return 1 + max(0, -lead), 1 + max(0, lead)

    def _deepen(
        self, contest: Contest, most_proof: int, most_disproof: int, stop: int
    ) -> tuple[int, int]:
        """Search below a contest while its numbers stay below two limits; returns them."""
        children = self._children.get(contest)
        if children is None:
            children = self._children[contest] = self._plies(contest)
            self.budget.spend(len(children))
        is_own = contest.player == self.claimant
        at = 0 if is_own else 1
        while True:
            best, second, total, child = _NEVER, _NEVER, 0, children[0]
            for each in children:
                numbers = self._numbers(each)
                number = numbers[at]
                total += numbers[1 - at]
                if number < best:
                    best, second, child = number, best, each
                elif number < second:
                    second = number
            total = min(total, _NEVER)
            found = (best, total) if is_own else (total, best)
            self._known[contest] = found
            if not best or not total or self.budget.used >= stop:
                return found
            if found[0] >= most_proof or found[1] >= most_disproof:
                return found
            own = self._known[child]
            most = (most_proof, most_disproof)
            limit = min(most[at], second + second // 4 + 1)
            rest = min(most[1 - at] - total + own[1 - at], _NEVER)
            if is_own:
                self._deepen(child, limit, rest, stop)
            else:
                self._deepen(child, rest, limit, stop)

    def verdict(self, contest: Contest) -> bool | None:
        """What the claim has come to where the game is over or a fortress decides it."""
        if not contest.first:
            return self._result(contest) >= self.target
        size, down, right = self.size, contest.down, contest.right
        everywhere = self._everywhere
        contested = flood(down, right, contest.first, everywhere, size)
        second = flood(down, right, contest.second, everywhere & ~contest.first, size)
        first = flood(down, right, contest.first, everywhere & ~contest.second, size)
        # Each side's cells in the worst case, where the other stays and walls itself in.
        low = self._sure(contest, contested & ~second, second, 0)
        if self.claimant == 0 and low >= self.target:
            return True
        if self.claimant == 1 and -low < self.target:
            return False
        low = self._sure(contest, contested & ~first, first, 1)
        if self.claimant == 1 and low >= self.target:
            return True
        if self.claimant == 0 and -low < self.target:
            return False
        return None

    def _sure(self, contest: Contest, safe: int, rest: int, player: int) -> int:
        """The result that a player's fortress secures; LOSS where it tells nothing."""
        lead = contest.lead if player == 0 else -contest.lead
        lead += safe.bit_count() - rest.bit_count()
        if lead > 0:
            return WIN
        if lead < 0 or not self.tie or self.tie[0] != REGION:
            return LOSS if lead < 0 or MOVER_LOSES in self.tie else DRAW
        own = max(contest.largest[player], self._largest(contest, safe))
        other = max(contest.largest[1 - player], self._largest(contest, rest))
        if own != other:
            return WIN if own > other else LOSS
        return LOSS if MOVER_LOSES in self.tie else DRAW

    def _largest(self, contest: Contest, cells: int) -> int:
        """The size of the largest connected part of some cells."""
        most = 0
        while cells:
            part = flood(contest.down, contest.right, cells & -cells, cells, self.size)
            most = max(most, part.bit_count())
            cells &= ~part
        return most

    def _result(self, contest: Contest) -> int:
        """The claimant's result of a game that is over."""
        sign = 1 if self.claimant == 0 else -1
        ahead = _sign(contest.lead)
        for rule in self.tie:
            if ahead:
                break
            if rule == REGION:
                ahead = _sign(contest.largest[0] - contest.largest[1])
            elif rule == MOVER_LOSES:
                ahead = 1 if contest.player == 0 else -1
        return sign * ahead

    def _plies(self, contest: Contest) -> list[Contest]:
        """The distinct contests after each ply of the player to move; a wait is the last."""
        size, player = self.size, contest.player
        own = contest.second if player else contest.first
        stones = contest.first | contest.second
        parts: dict[tuple[int, int], int] = {}
        found: dict[Contest, None] = {}
        for stone in bits(own):
            for end in bits(ends(contest.down, contest.right, stone, stones, size)):
                moved = own & ~stone | end
                for wall in sides(contest.down, contest.right, end, size):
                    part = parts.get(wall)
                    if part is None:
                        part = parts[wall] = self._part(contest, wall)
                    found[self._after(contest, moved, wall, part)] = None
        waits = contest.waits
        if waits[player]:
            left = (waits[0] - 1, waits[1]) if player == 0 else (waits[0], waits[1] - 1)
            found[contest._replace(waits=left, player=1 - player)] = None
        elif player != self.claimant and contest.largest[player] > 1:
            paid = contest.lead + (1 if player else -1)
            found[contest._replace(lead=paid, player=1 - player)] = None
        return list(found)

    def _part(self, contest: Contest, wall: tuple[int, int]) -> int:
        """The cells on one side of a wall if it parts a region, else 0."""
        below, beside = wall
        down, right = contest.down & ~below, contest.right & ~beside
        start = below | beside
        other = below << self.size if below else beside << 1
        reached = start
        while True:
            grown = step(down, right, reached, self.size)
            if grown & other:
                return 0
            if grown == reached:
                return reached
            reached = grown

    def _after(self, contest: Contest, moved: int, wall: tuple[int, int], part: int) -> Contest:
        player = contest.player
        after = Contest(
            contest.down & ~wall[0],
            contest.right & ~wall[1],
            contest.first if player else moved,
            moved if player else contest.second,
            contest.lead,
            contest.largest,
            contest.waits,
            1 - player,
        )
        if not part:
            return after
        other = wall[0] << self.size if wall[0] else wall[1] << 1
        rest = flood(after.down, after.right, other, self._everywhere, self.size)
        after = settle(after, part, self.claimant, self.size)
        return settle(after, rest, self.claimant, self.size)

    def _lead(self, contest: Contest) -> int:
        """Cells that player 0 owns or is nearer to, minus player 1's."""
        down, right, size = contest.down, contest.right, self.size
        own, other = contest.first, contest.second
        mine, theirs, seen = own, other, own | other
        while own or other:
            own = step(down, right, own, size) & ~seen
            other = step(down, right, other, size) & ~seen
            mine |= own & ~other
            theirs |= other & ~own
            seen |= own | other
        return contest.lead + mine.bit_count() - theirs.bit_count()


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
