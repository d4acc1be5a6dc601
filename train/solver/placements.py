"""Values of placements, backwards from those of the boards after setup."""

from collections.abc import Callable, Sequence

from wallgo_jax.game.rules import Rules

Sets = tuple[int, int]
"""Both players' stones as bits."""


def placed_sets(rules: Rules, placed: Sequence[int] = ()) -> Sets:
    """Both players' stones after some placements, by their cells."""
    sets = [0, 0]
    for row, column, player in rules.start:
        sets[player] |= 1 << row * rules.size + column
    for player, cell in zip(rules.order, placed, strict=False):
        sets[player] |= 1 << cell
    return sets[0], sets[1]


class Placements:
    """Solves the placements of a small board; the value of two sets of stones is asked for once.

    Args:
      rules: of two players.
      value_of: (both sets after setup) -> their value for player 0.

    Attributes:
      known: the value for player 0 of all sets that were met.
    """

    def __init__(self, rules: Rules, value_of: Callable[[Sets], int]) -> None:
        self.known: dict[Sets, int] = {}
        self._rules, self._value_of = rules, value_of

    def values(self, sets: Sets) -> dict[int, int]:
        """The value of a placement on each free cell, by its cell, for the player who makes it."""
        mover, (first, second) = self._mover(sets), sets
        values = {}
        for cell in range(self._rules.size**2):
            stone = 1 << cell
            if not (first | second) & stone:
                after = (first, second | stone) if mover else (first | stone, second)
                values[cell] = -self.value(after) if mover else self.value(after)
        return values

    def value(self, sets: Sets) -> int:
        """The value for player 0 if both place what is left as well as they can."""
        if sets not in self.known:
            mover = self._mover(sets)
            if mover is None:
                self.known[sets] = self._value_of(sets)
            else:
                best = max(self.values(sets).values())
                self.known[sets] = -best if mover else best
        return self.known[sets]

    def _mover(self, sets: Sets) -> int | None:
        """Who places next, None after the last placement."""
        placed = sum(map(int.bit_count, sets)) - len(self._rules.start)
        return self._rules.order[placed] if placed < len(self._rules.order) else None
