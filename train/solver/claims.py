"""Proves that a side reaches at least some score: in late positions, and on small boards from the
first placement on.

A claim is true or false, so what remains to choose is where to look next. The search goes where the
fewest open positions are left to decide (df-pn: Nagai, "Df-pn algorithm for searching AND/OR trees
and its applications"); territory gives a new position its first numbers: cells owned or nearer to a
side. A table of fixed size has the numbers of positions, up to the eight symmetries, and bounds of
their scores, which serve all targets. Where it is full, it forgets what took the least work (Nagai
2002). Many orders of plies lead to one position, so a sum over children would count the same work
again and again: the hardest child counts, and one for each other that is open (weak proof numbers:
Ueda, Hashimoto, Hashimoto and Iida 2008).

The claimant waits only in turns that cost it nothing, the other side may wait more often than the
rules let it. So a claim that is proven holds in the game; one that is refuted may still hold.

Like `train.solver.contest`, the functions here run in the interpreter and compiled. Only how the
table is stored differs: in a list here, in an array there.
"""

import copy
import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from train.runtime.errors import UsageError
from train.solver import compiled
from train.solver.boards import has_wall_limit, openings_of
from train.solver.contest import (
    Contest,
    Geometry,
    after_wait,
    after_wall,
    bounds,
    expected_score,
    geometry_of,
    popcount,
    turns,
)
from train.solver.placements import placed_sets
from train.solver.symmetry import Turns, canonical, make_turns
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.game.rules import Rules

NEVER = (1 << 28) - 1
"""The proof number of what cannot be proven; others are smaller."""
BY_PROOF_NUMBERS = {3: 2, 4: 2, 5: 1}
"""Most stones a player on the boards that may be solved so, by their side."""
FAR = 128
"""More than every score."""
_BUCKET = 4  # entries of one place
_KEY, _FIELDS = 4, 6  # integers of a key, and of an entry: its key, numbers and work, bounds
_WORK, _SCORE = 6, 9  # bits of an entry's work, of a score

Key = tuple[int, int, int, int]


class _Claim(NamedTuple):
    """What the search reads and writes: plain values, or what numba has of them."""

    geometry: Geometry
    claimant: int
    target: int  # score that the claimant claims to reach
    order: Any  # int[stones + 1], who places the next stone or, after them all, moves first
    down: int  # openings without walls
    right: int
    turns: Turns
    table: Any  # int[entries * _FIELDS]
    counts: Any  # int[2], positions looked at, and their number at which the search stops


class Known(NamedTuple):
    """What is known of a position, for the claimant."""

    low: int  # score that it surely reaches
    high: int  # score that its claims cannot exceed; it may
    proof: int  # least number of open positions that must come true for the claim
    disproof: int  # or fail


class Claim:
    """A claim that a player reaches a score; what is known of it serves later calls.

    Args:
      rules: of `check_provable`.
      player: the claimant.
      target: the score, see `train.solver.contest.score_of`: 0 is a draw, 1 a win.
      entries: of the table, at 48 bytes each.
      is_compiled: whether compiled code searches; None for where numba and the size allow it. The
        result is the same.

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
        if is_compiled is None:
            is_compiled = compiled.is_available(rules.size)
        self.rules, self._call = rules, _compiled_ask() if is_compiled else _ask
        size = entries // _BUCKET * _BUCKET * _FIELDS
        array = np.array if is_compiled else list
        # On larger boards only late positions are searched, which have hardly a turned copy.
        symmetries = NUM_SYMMETRIES if rules.size in BY_PROOF_NUMBERS else 1
        turns = make_turns(rules.size, is_compiled=is_compiled, symmetries=symmetries)
        order = [player for _, _, player in rules.start] + [*rules.order, 0]
        table = np.zeros(size, np.int64) if is_compiled else [0] * size
        openings = openings_of(rules.size)
        self._claim = _Claim(
            geometry_of(rules), player, target, array(order), *openings, turns, table, array([0, 0])
        )

    @property
    def nodes(self) -> int:
        """Positions that all calls looked at: searched ones each time, those after them once."""
        return int(self._claim.counts[0])

    def toward(self, target: int) -> Self:
        """The same player's claim of another score; what is known of one serves both."""
        other = copy.copy(self)
        other._claim = self._claim._replace(target=target)
        return other

    def decide(self, contest: Contest, nodes: int) -> bool | None:
        """Whether the claim holds, or None if that takes more nodes than about these.

        A claim that is refuted may still hold where players have several stones; a proof of the
        other side's claim tells.
        """
        known = self.ask(contest, nodes)
        return None if known.proof and known.disproof else not known.proof

    def ask(self, contest: Contest, nodes: int = 0) -> Known:
        """What is known of a position after a search of about this many nodes."""
        return Known(*map(int, self._call(self._claim, contest, nodes)))

    def decided(self) -> dict[int, int]:
        """Positions in the table that are decided and of which no region is settled, by walls."""
        target = self._claim.target + FAR
        table = np.reshape(np.asarray(self._claim.table, np.int64), (-1, _FIELDS))
        table = table[(table[:, 0] > 0) & (table[:, 1] & 63 == 0) & (table[:, 2] & 63 == 0)]
        low = table[:, 5] >> 2 * _SCORE
        high = table[:, 5] >> _SCORE & (1 << _SCORE) - 1
        table = table[(low >= target) | (high < target)]
        openings = np.bitwise_count(table[:, 0] >> 14) + np.bitwise_count(table[:, 1] >> 13)
        every = self._claim.down.bit_count() + self._claim.right.bit_count()
        return dict(sorted(Counter((every - openings).tolist()).items()))

    def save(self, path: Path) -> None:
        """Write what is known to an array file."""
        np.save(path, np.concatenate([self._claim.table, self._claim.counts, [_FIELDS]]))

    def load(self, path: Path) -> None:
        """Go on from what `save` wrote for the same claim and number of entries.

        Raises:
          UsageError: the file is of another number of entries, or of an earlier version.
        """
        saved = np.load(path)
        if len(saved) != len(self._claim.table) + 3 or saved[-1] != _FIELDS:
            raise UsageError(f"{path}: holds a claim of another size or version; remove it")
        self._claim.table[:] = saved[:-3]
        self._claim.counts[:] = saved[-3:-1]

    def start(self, placed: tuple[int, ...] = ()) -> Contest:
        """The position after some placements, by their cells."""
        first, second = placed_sets(self.rules, placed)
        mover = int(self._claim.order[len(self.rules.start) + len(placed)])
        return Contest(self._claim.down, self._claim.right, first, second, 0, 0, 0, 0, 0, mover)


def check_provable(rules: Rules) -> None:
    """Refuse rules whose late positions cannot be proven here with a UsageError."""
    if rules.players != 2 or rules.stay_needs_room or has_wall_limit(rules):
        raise UsageError(
            "late positions: proofs need two players, stones that may always stay, and no limit "
            "of walls"
        )


def _make_ask(compile_function: Callable[[Any], Any]) -> Callable[..., tuple[int, int, int, int]]:
    """The search, as it stands or compiled; it calls itself by the name that it has here."""

    @compile_function
    def search(
        claim: _Claim, contest: Contest, key: Key, most_proof: int, most_disproof: int
    ) -> tuple[int, int]:
        """The proof and disproof number of an open position, searched until one of them reaches
        its limit or the nodes are used up."""
        before = claim.counts[0]
        is_own = contest.player == claim.claimant
        after, keys, efforts, others = _expand(claim, contest)
        # What follows a position counts again only where the table forgot the position.
        claim.counts[0] += 1 if _look_up(claim.table, key) >= 0 else 1 + len(after)
        if not is_own:
            most_proof, most_disproof = most_disproof, most_proof
        while True:
            effort, second, other, num_open, chosen = _choose(efforts, others)
            if effort >= most_proof or other >= most_disproof or claim.counts[0] >= claim.counts[1]:
                break
            most_effort = min(most_proof, second + second // 4 + 1)
            most_other = min(most_disproof - num_open + 1, NEVER)
            if is_own:
                numbers = search(claim, after[chosen], keys[chosen], most_effort, most_other)
                efforts[chosen], others[chosen] = numbers
            else:
                numbers = search(claim, after[chosen], keys[chosen], most_other, most_effort)
                others[chosen], efforts[chosen] = numbers
        proof, disproof = (effort, other) if is_own else (other, effort)
        _store(claim, key, proof, disproof, claim.counts[0] - before)
        return proof, disproof

    @compile_function
    def ask(claim: _Claim, contest: Contest, nodes: int) -> tuple[int, int, int, int]:
        """The fields of `Known`."""
        low, high = _bounds(claim, contest)
        key = _key(claim, contest)
        if low < claim.target <= high:
            proof, disproof = _numbers(claim, contest, key)
            if nodes and proof and disproof:
                claim.counts[1] = claim.counts[0] + nodes
                search(claim, contest, key, NEVER, NEVER)
                proof, disproof = _numbers(claim, contest, key)
        else:
            proof, disproof = (0, NEVER) if low >= claim.target else (NEVER, 0)
        place = _look_up(claim.table, key)
        if place >= 0:
            known_low, known_high, _ = _known(claim.table, place)
            low, high = max(low, known_low), min(high, known_high)
        return low, high, proof, disproof

    return ask


_ask = _make_ask(lambda function: function)


@functools.cache
def _compiled_ask() -> Callable[..., tuple[int, int, int, int]]:
    """The search compiled by numba; takes some seconds."""
    helpers = (_place, _look_up, _known, _store, _numbers, _key, _has_walls, _bounds)
    helpers += (children, _plies, _expand, _choose)
    return compiled.compile_recursive(_make_ask, helpers)


def _choose(efforts: list[int], others: list[int]) -> tuple[int, int, int, int, int]:
    """The least effort of a child, the second least, the number of the node's other side, how many
    children are open, and the child of the least effort."""
    effort = second = NEVER
    hardest = 0
    num_open = 0
    chosen = 0
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
) -> tuple[list[Contest], list[Key], list[int], list[int]]:
    """The distinct open positions after each ply, their keys, and their numbers: for the player to
    move first. One that decides for that player stands alone, with the number 0."""
    is_own = contest.player == claim.claimant
    plies = _plies(claim, contest)
    after = plies[:0]
    keys = [(0, 0, 0, 0) for _ in plies[:0]]
    efforts = [0 for _ in plies[:0]]
    others = [0 for _ in plies[:0]]
    for ply in plies:
        low, high = _bounds(claim, ply)
        if low >= claim.target if is_own else high < claim.target:
            return [ply], [(0, 0, 0, 0)], [0], [NEVER]
        if low < claim.target <= high:
            after.append(ply)
    plies, after = after, after[:0]
    for ply in plies:
        key = _key(claim, ply)
        if key not in keys:
            proof, disproof = _numbers(claim, ply, key)
            after.append(ply)
            keys.append(key)
            efforts.append(proof if is_own else disproof)
            others.append(disproof if is_own else proof)
    return after, keys, efforts, others


def _has_walls(claim: _Claim, contest: Contest) -> bool:
    return contest.down != claim.down or contest.right != claim.right


def _bounds(claim: _Claim, contest: Contest) -> tuple[int, int]:
    """Scores that the claimant surely reaches, and that it surely does not exceed."""
    if _has_walls(claim, contest):
        low, high = bounds(contest, claim.geometry)
        return (-high, -low) if claim.claimant else (low, high)
    return -FAR, FAR


def _plies(claim: _Claim, contest: Contest) -> list[Contest]:
    """The positions after each ply: a placement while no wall stands and stones are left."""
    stones = contest.first | contest.second
    first = contest.first
    second = contest.second
    if _has_walls(claim, contest) or popcount(stones) + 1 >= len(claim.order):
        return children(contest, claim.claimant, claim.geometry)
    plies = [contest]
    mover = claim.order[popcount(stones) + 1]
    for cell in range(claim.turns.cells):
        stone = 1 << cell
        if not stones & stone:
            one, two = (first, second | stone) if contest.player else (first | stone, second)
            plies.append(Contest(claim.down, claim.right, one, two, 0, 0, 0, 0, 0, mover))
    return plies[1:]


def children(contest: Contest, claimant: int, geometry: Geometry) -> list[Contest]:
    """The contests after each ply of the player to move; a wait is the last."""
    own = contest.second if contest.player else contest.first
    stones = contest.first | contest.second
    after = [
        after_wall(contest, moved, row, column, claimant, geometry)
        for moved, row, column in turns(contest.down, contest.right, own, stones, geometry.size)
    ]
    can_wait, waited = after_wait(contest, claimant)
    if can_wait:
        after.append(waited)
    return after


def _numbers(claim: _Claim, contest: Contest, key: Key) -> tuple[int, int]:
    """A position's proof and disproof number: known, else a guess by its lag."""
    target = claim.target
    table = claim.table
    place = _look_up(table, key)
    low = -FAR
    high = FAR
    if place >= 0:
        low, high, known_target = _known(table, place)
        if low >= target:
            return 0, NEVER
        if high < target:
            return NEVER, 0
        if known_target == target:
            numbers = table[place + _KEY] >> _WORK
            return numbers >> 28, numbers & NEVER
    if not contest.first or not contest.second:
        return 1, 1
    expected = expected_score(contest, claim.geometry)
    lag = target - min(max(-expected if claim.claimant else expected, low), high)
    return 1 + max(0, lag), 1 + max(0, -lag)


def _key(claim: _Claim, contest: Contest) -> Key:
    """Four integers for a position and its symmetries."""
    down, right, first, second = canonical(
        claim.turns, contest.down, contest.right, contest.first, contest.second
    )
    return (
        ((down << 7 | contest.lead + 64) << 6 | contest.pays) << 1 | contest.player,
        (right << 7 | contest.waits + 64) << 6 | contest.largest0,
        first << 6 | contest.largest1,
        second,
    )


def _place(table: Any, key: Key) -> int:
    """Where the entries of a key begin."""
    mixed = 0
    for number in key:
        mixed = ((mixed ^ number) * 0x1E3779B97F4A7C15) & ((1 << 62) - 1)
        mixed ^= mixed >> 29
    bucket = _BUCKET * _FIELDS
    return mixed % (len(table) // bucket) * bucket


def _look_up(table: Any, key: Key) -> int:
    """The place of a key's entry, or -1."""
    first = _place(table, key)
    for place in range(first, first + _BUCKET * _FIELDS, _FIELDS):
        is_start = table[place] == key[0] and table[place + 1] == key[1]
        if is_start and table[place + 2] == key[2] and table[place + 3] == key[3]:
            return place
    return -1


def _known(table: Any, place: int) -> tuple[int, int, int]:
    """The bounds of an entry's score, and the target of its numbers."""
    number = table[place + _KEY + 1]
    mask = (1 << _SCORE) - 1
    return (number >> 2 * _SCORE) - FAR, (number >> _SCORE & mask) - FAR, (number & mask) - FAR


def _store(claim: _Claim, key: Key, proof: int, disproof: int, nodes: int) -> None:
    """Keep a position's numbers in place of the entry of its bucket that took the least work."""
    table = claim.table
    low = -FAR
    high = FAR
    work = 0
    place = _look_up(table, key)
    first = _place(table, key)
    if place >= 0:
        low, high, _ = _known(table, place)
    else:
        place = first
        for entry in range(first, first + _BUCKET * _FIELDS, _FIELDS):
            if table[entry + _KEY] & 63 < table[place + _KEY] & 63:
                place = entry
    if not proof:
        low = max(low, claim.target)
    if not disproof:
        high = min(high, claim.target - 1)
    while nodes:
        nodes, work = nodes >> 1, work + 1
    for index in range(_KEY):
        table[place + index] = key[index]
    table[place + _KEY] = (proof << 28 | disproof) << _WORK | work
    bounds_of = (low + FAR) << _SCORE | (high + FAR)
    table[place + _KEY + 1] = bounds_of << _SCORE | (claim.target + FAR)
