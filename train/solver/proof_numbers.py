"""Proves on a small board that a side reaches a score, placements included.

The search is df-pn over contests, as in `train.solver.claims`, but a table of fixed size has the
numbers of positions, up to the eight symmetries. Where it is full, it forgets what took the fewest
nodes (Nagai 2002). Many orders of plies lead to one position, so a sum over children would count
the same work again and again: the hardest child counts, and one for each other that is open (weak
proof numbers: Ueda, Hashimoto, Hashimoto and Iida 2008).
"""

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from train.solver import compiled
from train.solver.boards import check_solvable, openings_of
from train.solver.claims import children, claimed_bounds, claimed_score, first_numbers
from train.solver.contest import Contest, Geometry, geometry_of, popcount
from train.solver.late import check_provable
from train.solver.symmetry import Turns, canonical, make_turns
from wallgo_jax.game.rules import Rules

NEVER = (1 << 28) - 1
"""The proof number of what cannot be proven; others are smaller."""
BY_PROOF_NUMBERS = {3: 2, 4: 2, 5: 1}
"""Most stones a player on the boards that are solved so, by their side."""
_BUCKET, _FIELDS = 4, 3  # entries of one place, integers of one entry
_WORK, _STONES = 6, 11  # bits of an entry's work, of a set of stones in a key
_PLAYER = 1 << 24  # the bit of the player to move in a key's upper part
_UNSETTLED = 64 << 25 | 32 << 6  # a key's upper part where no region is settled, without the player


class _Claim(NamedTuple):
    """What the search reads and writes: plain values, or what numba has of them."""

    geometry: Geometry
    claimant: int
    target: int  # score that the claimant claims to reach
    order: Any  # int[stones + 1], who places the next stone or, after them all, moves first
    down: int  # openings without walls
    right: int
    turns: Turns
    table: Any  # int[entries * _FIELDS], two integers of a key, then numbers and work
    counts: Any  # int[2], nodes searched, and the number of nodes at which the search stops


class Claim:
    """A claim that a player reaches a score; what is known of it serves later calls.

    Args:
      rules: of `check_solvable` and `check_provable`.
      player: the claimant.
      target: the score, see `train.solver.contest.score_of`: 0 is a draw, 1 a win.
      entries: of the table, at 24 bytes each.
      is_compiled: whether compiled code searches; None for where numba is installed. The result is
        the same.

    Raises:
      UsageError: the rules are not allowed.
    """

    def __init__(
        self,
        rules: Rules,
        player: int,
        target: int,
        *,
        entries: int = 1 << 20,
        is_compiled: bool | None = None,
    ) -> None:
        check_provable(rules)
        check_solvable(rules, BY_PROOF_NUMBERS)
        if is_compiled is None:
            is_compiled = compiled.is_available(rules.size)
        self.rules, self._search = rules, _compiled_search() if is_compiled else _search
        size = entries // _BUCKET * _BUCKET * _FIELDS
        array = np.array if is_compiled else list
        turns = make_turns(rules.size, is_compiled=is_compiled)
        order = [player for _, _, player in rules.start] + [*rules.order, 0]
        table = np.zeros(size, np.int64) if is_compiled else [0] * size
        openings = openings_of(rules.size)
        self._claim = _Claim(
            geometry_of(rules), player, target, array(order), *openings, turns, table, array([0, 0])
        )

    @property
    def nodes(self) -> int:
        """Positions that all calls searched."""
        return int(self._claim.counts[0])

    def decide(self, contest: Contest, nodes: int) -> bool | None:
        """Whether the claim holds, or None if that takes more nodes than these.

        A claim that is refuted may still hold where players have several stones, see
        `train.solver.claims`; a proof of the other side's claim tells.
        """
        low, high = _bounds(self._claim, contest)
        if not low < self._claim.target <= high:
            return low >= self._claim.target
        self._claim.counts[1] = self._claim.counts[0] + nodes
        first, second = _key(self._claim, contest)
        key = int(first), int(second)
        proof, disproof = _first_numbers(self._claim, contest, key)
        if proof and disproof:
            proof, disproof = self._search(self._claim, contest, key, NEVER, NEVER)
        return None if proof and disproof else not proof

    def decided(self) -> dict[int, int]:
        """Positions in the table that are decided and of which no region is settled, by walls."""
        table = np.reshape(np.asarray(self._claim.table), (-1, _FIELDS))
        numbers = table[:, 2] >> _WORK
        is_whole = table[:, 1] >> 2 * _STONES & ~_PLAYER == _UNSETTLED
        is_decided = (table[:, 2] > 0) & ((numbers >> 28 == 0) | (numbers & NEVER == 0))
        openings = np.bitwise_count(table[is_whole & is_decided, 0])
        every = self._claim.down.bit_count() + self._claim.right.bit_count()
        return dict(sorted(Counter((every - openings).tolist()).items()))

    def save(self, path: Path) -> None:
        """Write what is known to an array file."""
        np.save(path, np.concatenate([self._claim.table, self._claim.counts]))

    def load(self, path: Path) -> None:
        """Go on from what `save` wrote for the same claim and number of entries."""
        saved = np.load(path)
        self._claim.table[:] = saved[:-2]
        self._claim.counts[:] = saved[-2:]

    def start(self, placed: tuple[int, ...] = ()) -> Contest:
        """The position after some placements, by their cells."""
        sets, order = [0, 0], self._claim.order
        fixed = [row * self.rules.size + column for row, column, _ in self.rules.start]
        for player, cell in zip(order, (*fixed, *placed), strict=False):
            sets[player] |= 1 << cell
        mover = int(order[len(fixed) + len(placed)])
        first, second = sets
        return Contest(self._claim.down, self._claim.right, first, second, 0, 0, 0, 0, 0, mover)


def _make_search(compile_function: Callable[[Any], Any]) -> Callable[..., tuple[int, int]]:
    """The search, as it stands or compiled; it calls itself by the name that it has here."""

    @compile_function
    def search(
        claim: _Claim, contest: Contest, key: tuple[int, int], most_proof: int, most_disproof: int
    ) -> tuple[int, int]:
        """The proof and disproof number of an open position, searched until one of them reaches
        its limit or the nodes are used up."""
        claim.counts[0] += 1
        before, is_own = claim.counts[0], contest.player == claim.claimant
        after, keys, efforts, others = _expand(claim, contest)
        if not is_own:
            most_proof, most_disproof = most_disproof, most_proof
        while True:
            effort, second, other, num_open, chosen = _choose(efforts, others)
            if effort >= most_proof or other >= most_disproof or claim.counts[0] >= claim.counts[1]:
                break
            most_effort, most_other = (
                min(most_proof, second + second // 4 + 1),
                min(most_disproof - num_open + 1, NEVER),
            )
            if is_own:
                numbers = search(claim, after[chosen], keys[chosen], most_effort, most_other)
                efforts[chosen], others[chosen] = numbers
            else:
                numbers = search(claim, after[chosen], keys[chosen], most_other, most_effort)
                others[chosen], efforts[chosen] = numbers
        proof, disproof = (effort, other) if is_own else (other, effort)
        _store(claim.table, key, proof, disproof, claim.counts[0] - before + 1)
        return proof, disproof

    return search


_search = _make_search(lambda function: function)


@functools.cache
def _compiled_search() -> Callable[..., tuple[int, int]]:
    """The search compiled by numba; takes some seconds."""
    helpers = (_place, _look_up, _store, _first_numbers, _key, _has_walls, _bounds)
    helpers += (_plies, _expand, _choose)
    return compiled.compile_recursive(_make_search, helpers)


def _choose(efforts: list[int], others: list[int]) -> tuple[int, int, int, int, int]:
    """The least effort of a child, the second least, the number of the node's other side, how many
    children are open, and the child of the least effort."""
    effort = second = NEVER
    hardest, num_open, chosen = 0, 0, 0
    for child in range(len(efforts)):
        if efforts[child] < effort:
            effort, second, chosen = efforts[child], effort, child
        elif efforts[child] < second:
            second = efforts[child]
        if others[child]:
            num_open += 1
            hardest = max(hardest, others[child])
    other = min(hardest + num_open - 1, NEVER - 1) if num_open else 0
    return effort, second, other if effort else NEVER, num_open, chosen


def _expand(
    claim: _Claim, contest: Contest
) -> tuple[list[Contest], list[tuple[int, int]], list[int], list[int]]:
    """The distinct open positions after each ply, their keys, and their numbers: for the player to
    move first. One that decides for that player stands alone, with the number 0."""
    is_own, plies = contest.player == claim.claimant, _plies(claim, contest)
    after, keys = plies[:0], [(0, 0) for _ in plies[:0]]
    efforts, others = [0 for _ in plies[:0]], [0 for _ in plies[:0]]
    for ply in plies:
        low, high = _bounds(claim, ply)
        if low >= claim.target if is_own else high < claim.target:
            return [ply], [(0, 0)], [0], [NEVER]
        if low < claim.target <= high:
            after.append(ply)
    plies, after = after, after[:0]
    for ply in plies:
        key = _key(claim, ply)
        if key not in keys:
            proof, disproof = _first_numbers(claim, ply, key)
            after.append(ply)
            keys.append(key)
            efforts.append(proof if is_own else disproof)
            others.append(disproof if is_own else proof)
    return after, keys, efforts, others


def _has_walls(claim: _Claim, contest: Contest) -> bool:
    return contest.down != claim.down or contest.right != claim.right


def _bounds(claim: _Claim, contest: Contest) -> tuple[int, int]:
    """The `claimed_bounds` of a position; without walls any score is possible."""
    if _has_walls(claim, contest):
        return claimed_bounds(contest, claim.claimant, claim.geometry)
    return -NEVER, NEVER


def _plies(claim: _Claim, contest: Contest) -> list[Contest]:
    """The positions after each ply: a placement while no wall stands and stones are left."""
    stones, first, second = contest.first | contest.second, contest.first, contest.second
    if _has_walls(claim, contest) or popcount(stones) + 1 >= len(claim.order):
        return children(contest, claim.claimant, claim.geometry)
    plies, mover = [contest], claim.order[popcount(stones) + 1]
    for cell in range(claim.turns.cells):
        stone = 1 << cell
        if not stones & stone:
            one, two = (first, second | stone) if contest.player else (first | stone, second)
            plies.append(Contest(claim.down, claim.right, one, two, 0, 0, 0, 0, 0, mover))
    return plies[1:]


def _first_numbers(claim: _Claim, contest: Contest, key: tuple[int, int]) -> tuple[int, int]:
    """A position's proof and disproof number in the table, else a guess by its lag."""
    place = _look_up(claim.table, key)
    if place >= 0:
        numbers = claim.table[place + 2] >> _WORK
        return numbers >> 28, numbers & NEVER
    if not contest.first or not contest.second:
        return 1, 1
    expected = claimed_score(contest, claim.claimant, claim.geometry)
    return first_numbers(expected, claim.target)


def _key(claim: _Claim, contest: Contest) -> tuple[int, int]:
    """Two integers for a position and its symmetries."""
    openings, first, second = canonical(
        claim.turns, contest.down, contest.right, contest.first, contest.second
    )
    rest = (contest.lead + 64) << 1 | contest.player
    for number in (contest.largest0, contest.largest1, contest.waits + 32, contest.pays):
        rest = rest << 6 | number
    return openings, (rest << _STONES | first) << _STONES | second


def _place(table: Any, key: tuple[int, int]) -> int:
    """Where the entries of a key begin."""
    mixed = (key[0] * 0x1E3779B97F4A7C15 + key[1] * 0x3F58476D1CE4E5B9) & ((1 << 62) - 1)
    mixed = ((mixed ^ (mixed >> 29)) * 0x14D049BB133111EB >> 17) & ((1 << 40) - 1)
    bucket = _BUCKET * _FIELDS
    return mixed % (len(table) // bucket) * bucket


def _look_up(table: Any, key: tuple[int, int]) -> int:
    """The place of a key's entry, or -1."""
    first = _place(table, key)
    for place in range(first, first + _BUCKET * _FIELDS, _FIELDS):
        if table[place] == key[0] and table[place + 1] == key[1]:
            return place
    return -1


def _store(table: Any, key: tuple[int, int], proof: int, disproof: int, nodes: int) -> None:
    """Keep a position's numbers in place of the entry of its bucket that took the least work."""
    place, first, work = _look_up(table, key), _place(table, key), 0
    if place < 0:
        place = first
        for entry in range(first, first + _BUCKET * _FIELDS, _FIELDS):
            if table[entry + 2] & 63 < table[place + 2] & 63:
                place = entry
    while nodes:
        nodes, work = nodes >> 1, work + 1
    table[place], table[place + 1] = key
    table[place + 2] = (proof << 28 | disproof) << _WORK | work
