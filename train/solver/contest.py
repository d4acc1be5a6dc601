"""Late positions reduced to the regions that are still contested, and the search that bounds them.

A region with stones of one side alone is settled: the other side can neither enter it nor build in
it, and its owner loses cells of it by its own walls only. So only three things of a settled region
matter: its cells, its size among the regions (ties), and how many turns its owner can wait in
it. A `Contest` counts them and drops the rest of the region.

A turn of waiting answers one of the other side's: a side that plays as if neither existed loses
nothing by keeping its own for the answer. So only the difference of both sides' waits counts.

Sets of cells are the bits of integers. Openings are stored like walls: by the upper cell of a
vertical neighbourhood (`down`) and the left cell of a horizontal one (`right`).

Everything here runs in the interpreter and is compiled by `train.solver.compiled` as it stands, so
it keeps to integers, tuples and loops.
"""

import functools
from typing import NamedTuple

from wallgo_jax.game.rules import MOVER_LOSES, REGION, Rules

MAX_PAYS = 8
"""Turns for a cell each that are looked for in one settled region."""
JOINED = -1
"""The cost of a wall that leaves a region in one part."""


class Geometry(NamedTuple):
    """The rules as integers, as far as the search reads them."""

    size: int
    everywhere: int  # all cells
    region_place: int  # place of the tie rules REGION and MOVER_LOSES in their order, from 1;
    mover_place: int  # 0 where the rules lack them


class Contest(NamedTuple):
    """The contested part of a position, and the sum of the settled rest, as one side claims it.

    The claim is that a side, the claimant, reaches some score. Its waits are turns that it surely
    can spend in its settled regions without loss; the other side's are at least as many as it can.
    """

    down: int
    right: int
    first: int  # player 0's stones in contested regions
    second: int  # player 1's
    lead: int  # settled cells of player 0 minus player 1's
    largest0: int  # cells of player 0's largest settled region
    largest1: int  # and of player 1's
    waits: int  # waiting turns of player 0 minus player 1's
    pays: int  # turns that the claimant can spend for one of its settled cells each
    player: int  # to move


def geometry_of(rules: Rules) -> Geometry:
    """The rules as the search reads them."""
    places = {rule: place for place, rule in enumerate(rules.tie, start=1)}
    return Geometry(
        rules.size,
        (1 << rules.size**2) - 1,
        places.get(REGION, 0),
        places.get(MOVER_LOSES, 0),
    )


def popcount(cells: int) -> int:
    """Number of members of a set."""
    return cells.bit_count()


def step(down: int, right: int, cells: int, size: int) -> int:
    """The cells and their neighbours across openings."""
    return (
        cells
        | (cells & down) << size
        | (cells >> size) & down
        | (cells & right) << 1
        | (cells >> 1) & right
    )


def flood(down: int, right: int, cells: int, allowed: int, size: int) -> int:
    """The cells that walks from some cells reach within the allowed ones."""
    while True:
        grown = step(down, right, cells, size) & allowed
        if grown == cells:
            return cells
        cells = grown


def ends(down: int, right: int, stone: int, stones: int, size: int) -> int:
    """The cells where a move of 0, 1 or 2 steps of a stone ends, among all stones."""
    free = ~stones
    once = step(down, right, stone, size) & free
    return (step(down, right, once, size) & free) | once | stone


def turns(down: int, right: int, own: int, stones: int, size: int) -> list[tuple[int, int, int]]:
    """A player's stones after each turn among all stones, and its wall: the vertical opening that
    it closes as a set, or the horizontal one."""
    found = [(0, 0, 0) for _ in range(0)]
    left = own
    while left:
        stone = left & -left
        left ^= stone
        reached = ends(down, right, stone, stones, size)
        while reached:
            end = reached & -reached
            reached ^= end
            below, beside = down & (end | end >> size), right & (end | end >> 1)
            while below | beside:
                row, column = below & -below, 0 if below else beside & -beside
                below, beside = below ^ row, beside ^ column
                found.append((own & ~stone | end, row, column))
    return found


def settle(contest: Contest, part: int, claimant: int, size: int) -> Contest:
    """Drop a region from a contest unless it is contested; without stones it is nobody's."""
    first, second = contest.first & part, contest.second & part
    if first and second:
        return contest
    down, right = contest.down & part, contest.right & part
    lead, waits, pays = contest.lead, contest.waits, contest.pays
    largest0, largest1 = contest.largest0, contest.largest1
    if first or second:
        cells = popcount(part)
        owner = 0 if first else 1
        more, paid, largest = free_waits(down, right, first | second, cells), 0, cells
        if owner == claimant:
            more, paid, largest = settled_turns(down, right, first | second, size)
        pays += paid
        if owner == 0:
            lead, waits, largest0 = lead + cells, waits + more, max(largest0, largest)
        else:
            lead, waits, largest1 = lead - cells, waits - more, max(largest1, largest)
    return Contest(
        contest.down & ~part,
        contest.right & ~part,
        contest.first & ~part,
        contest.second & ~part,
        lead,
        largest0,
        largest1,
        waits,
        pays,
        contest.player,
    )


def free_waits(down: int, right: int, stones: int, cells: int) -> int:
    """Most turns that the owner of a settled region can spend in it before each costs a cell.

    At the end it owns at most as many parts as it has stones there. A part of n cells keeps at
    least n - 1 openings, and each turn closes one: so turns are at most openings - (cells - stones)
    and the number of cells given up.
    """
    return popcount(down) + popcount(right) - cells + popcount(stones)


def sure_turns(down: int, right: int, stones: int, size: int) -> tuple[int, int, int]:
    """Turns that the owner of a settled region surely can spend in it.

    It plays the first cheapest turn that it finds, so there may be more.

    Returns:
      Turns that cost no cell, turns after them that cost at most one each, and the cells of the
      largest region that is left after the first ones.
    """
    waits, pays, largest = 0, 0, 0
    while pays < MAX_PAYS:
        cost, before = 0, (down, right, stones)
        exists, down, right, stones = cheap_turn(down, right, stones, size, 0)
        if not exists:
            cost = 1
            exists, down, right, stones = cheap_turn(down, right, stones, size, 1)
        if (cost or not exists) and not pays:
            largest = largest_part(before[0], before[1], before[2], -1, size)
        if not exists:
            break
        if cost or pays:
            pays += 1
        else:
            waits += 1
    return waits, pays, largest


_known_turns = functools.lru_cache(maxsize=1 << 16)(sure_turns)


def settled_turns(down: int, right: int, stones: int, size: int) -> tuple[int, int, int]:
    """`sure_turns`; the interpreter keeps them, because the same regions are settled often."""
    return _known_turns(down, right, stones, size)


def cheap_turn(
    down: int, right: int, stones: int, size: int, cost: int
) -> tuple[bool, int, int, int]:
    """Whether some turn in a settled region costs this many cells, and the region after the first.

    Turns that do not part the region come first.
    """
    plies = turns(down, right, stones, stones, size)
    for parts in range(2):
        for moved, row, column in plies:
            after_down, after_right = down & ~row, right & ~column
            other = row << size | column << 1
            paid = wall_cost(after_down, after_right, moved, row | column, other, size)
            if paid == (cost if parts else JOINED):
                return True, after_down, after_right, moved
    return False, down, right, stones


def wall_cost(down: int, right: int, stones: int, cell: int, other: int, size: int) -> int:
    """Cells that a new wall between two cells costs the owner of both, `JOINED` if it parts
    nothing."""
    part = flood(down, right, cell, -1, size)
    if part & other:
        return JOINED
    rest = flood(down, right, other, -1, size)
    if not part & stones:
        return popcount(part)
    return 0 if rest & stones else popcount(rest)


def largest_part(down: int, right: int, cells: int, allowed: int, size: int) -> int:
    """The size of the largest part of the allowed cells that holds one of some cells."""
    most = 0
    while cells:
        part = flood(down, right, cells & -cells, allowed, size)
        most = max(most, popcount(part))
        cells &= ~part
    return most


def score_of(lead: int, tie: int) -> int:
    """One number for a lead in cells and, where it is 0, the result of the tie rules.

    Its sign is the result. A lead of n cells scores n + 1, one more than a tie that is won.
    """
    if lead > 0:
        return lead + 1
    return lead - 1 if lead < 0 else tie


def final_score(contest: Contest, geometry: Geometry) -> int:
    """Player 0's score of a game that is over."""
    region = contest.largest0 - contest.largest1
    by_region = (region > 0) - (region < 0) if geometry.region_place else 0
    # The player to move is the one who did not move last.
    by_mover = 1 - 2 * contest.player if geometry.mover_place else 0
    if by_region and not (by_mover and geometry.mover_place < geometry.region_place):
        return score_of(contest.lead, by_region)
    return score_of(contest.lead, by_mover)


def bounds(contest: Contest, geometry: Geometry) -> tuple[int, int]:
    """Scores that player 0 surely reaches, and that it surely does not exceed.

    A side that leaves its stones where they stand can wall off, one turn each, every opening
    through which the other side could come. So it surely gets all cells that the other side's
    stones cannot walk to without passing its stones, and the other side gets no more than the rest.
    This needs no turn order: whoever stays always has the next such wall to build.
    """
    if not contest.first:
        score = final_score(contest, geometry)
        return score, score
    size, down, right = geometry.size, contest.down, contest.right
    second = flood(down, right, contest.second, geometry.everywhere & ~contest.first, size)
    first = flood(down, right, contest.first, geometry.everywhere & ~contest.second, size)
    low = fortress(contest, first & ~second, second, 0, geometry)
    return low, -fortress(contest, second & ~first, first, 1, geometry)


def fortress(contest: Contest, safe: int, rest: int, player: int, geometry: Geometry) -> int:
    """The score that a player surely reaches who gets the safe cells and leaves the rest."""
    lead = contest.lead if player == 0 else -contest.lead
    lead += popcount(safe) - popcount(rest)
    if lead:
        return score_of(lead, 0)
    worst = -1 if geometry.mover_place else 0
    if not geometry.region_place or 0 < geometry.mover_place < geometry.region_place:
        return -1 if geometry.region_place else worst
    mine, theirs = contest.largest0, contest.largest1
    if player:
        mine, theirs = theirs, mine
    mine = max(mine, largest_part(contest.down, contest.right, safe, safe, geometry.size))
    theirs = max(theirs, largest_part(contest.down, contest.right, rest, rest, geometry.size))
    if mine == theirs:
        return worst
    return 1 if mine > theirs else -1


def expected_score(contest: Contest, geometry: Geometry) -> int:
    """Player 0's score if each side gets the cells that it is nearer to: a guess."""
    lead = nearer(contest.down, contest.right, contest.first, contest.second, geometry.size)
    return score_of(contest.lead + lead, 0)


def nearer(down: int, right: int, own: int, other: int, size: int) -> int:
    """Cells that are nearer to some stones than to others, minus those that are nearer to these."""
    mine, theirs, seen = own, other, own | other
    while own or other:
        own = step(down, right, own, size) & ~seen
        other = step(down, right, other, size) & ~seen
        mine |= own & ~other
        theirs |= other & ~own
        seen |= own | other
    return popcount(mine) - popcount(theirs)


def after_wall(
    contest: Contest, moved: int, row: int, column: int, claimant: int, geometry: Geometry
) -> Contest:
    """The contest after one of the `turns` of the player to move."""
    size, player = geometry.size, contest.player
    after = Contest(
        contest.down & ~row,
        contest.right & ~column,
        contest.first if player else moved,
        moved if player else contest.second,
        contest.lead,
        contest.largest0,
        contest.largest1,
        contest.waits,
        contest.pays,
        1 - player,
    )
    other = row << size | column << 1
    part = flood(after.down, after.right, row | column, geometry.everywhere, size)
    if part & other:
        return after
    after = settle(after, part, claimant, size)
    rest = flood(after.down, after.right, other, geometry.everywhere, size)
    return settle(after, rest, claimant, size)


def after_wait(contest: Contest, claimant: int) -> tuple[bool, Contest]:
    """Whether the player can wait, and the contest after it did.

    Without waits left a turn costs a cell. The side that is not the claimant can always pay while
    it has one.
    """
    sign = 1 - 2 * contest.player
    lead, waits, pays = contest.lead, contest.waits, contest.pays
    largest0, largest1 = contest.largest0, contest.largest1
    if waits * sign > 0:
        waits -= sign
    elif contest.player == claimant and pays:
        lead, pays = lead - sign, pays - 1
        # The cell may be one of its largest region.
        largest0 -= 1 - contest.player
        largest1 -= contest.player
    elif contest.player != claimant and (largest1 if contest.player else largest0) > 1:
        lead -= sign
    else:
        return False, contest
    after = Contest(
        contest.down,
        contest.right,
        contest.first,
        contest.second,
        lead,
        largest0,
        largest1,
        waits,
        pays,
        1 - contest.player,
    )
    return True, after
