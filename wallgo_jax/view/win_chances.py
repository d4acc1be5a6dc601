"""The values that a record holds, as win chances of every player in every position."""

from collections.abc import Sequence

from wallgo_jax.view.game_replay import Game


def win_chances(game: Game, values: Sequence[float | None]) -> tuple[tuple[float | None, ...], ...]:
    """Return each player's win chance in each of the T + 1 positions, None where nothing tells it.

    With two players a value v is the chance (1 + v) / 2 of its mover and the rest of the other;
    with P players it is ((P - 1) v + 1) / P, and tells nothing of the others.

    Args:
      values: T expected rewards, each for the mover of its ply, or None.
    """
    players = game.rules.players

    def chance(value: float) -> float:
        return min(max(((players - 1) * value + 1) / players, 0.0), 1.0)

    found: list[tuple[float | None, ...]] = []
    for mover, value in zip(game.movers, values, strict=True):
        row: list[float | None] = [None] * players
        if value is not None:
            row[mover] = chance(value)
            if players == 2:
                row[1 - mover] = 1 - chance(value)
        found.append(tuple(row))
    end = tuple(map(chance, game.rewards)) if game.is_over else (None,) * players
    return (*found, end)
