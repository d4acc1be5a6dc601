"""Seatings: every distinct order in which the entrants of a match sit down.

An entrant is a player that a match names; it may hold several seats. Three entrants have six
seatings at three seats, a player against two of another kind has three:

    entrants   A B B        seatings   A B B    B A B    B B A

E entrants, P seats, S seatings.
"""

import itertools
from collections.abc import Sequence

from wallgo_jax.game.rules import Rules


def check_rules(rules: Rules) -> None:
    """Refuse rules that are not for three or four players with a ValueError."""
    if rules.players < 3:
        raise ValueError(f"match: the rules are for {rules.players} players, seats are for 3 or 4")


def fill_seats(names: Sequence[str], rules: Rules) -> list[str]:
    """The players of all seats: as named, or, of two names, the second at every seat but one.

    Raises:
      ValueError: in one line, how many players are wanted.
    """
    players = rules.players
    if len(names) == players:
        return list(names)
    if len(names) == 2:
        return [names[0], *[names[1]] * (players - 1)]
    raise ValueError(
        f"match: {len(names)} players are named, the rules are for {players}: name {players}, or "
        f"2 for one player against {players - 1} of the other"
    )


def seatings_of(seats: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """All distinct orders of entrants 0 to E - 1, in each the entrant at each seat, sorted.

    Args:
      seats: how many seats each entrant holds.
    """
    held = [entrant for entrant, count in enumerate(seats) for _ in range(count)]
    return tuple(sorted(set(itertools.permutations(held))))
