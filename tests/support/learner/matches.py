"""Results of matches that were not played, and players whose moves are known."""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.figures import Counts
from train.arena.result import MatchResult
from train.players.basic import Player
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules


def pairs(first: str, second: str, counts: Sequence[int]) -> Counts:
    """The counts of pairs of games in which the first player has 0, ½, 1, 1½ and 2 points."""
    points = np.repeat([0, 0.5, 1, 1.5, 2], counts)
    apart = float(((points - points.mean()) ** 2).sum()) if len(points) else 0.0
    won, rows = float(points.sum()), ((apart, -apart), (-apart, apart))
    return Counts((first, second), (won, 2 * len(points) - won), len(points), rows)


def of_two(
    first: str,
    second: str,
    rules: Rules,
    outcome: Sequence[int],
    *,
    territory: Sequence[Sequence[int]] | Sequence[int] = (5, 4),
    games: Sequence[Sequence[int]] = (),
    is_red: Sequence[bool] | None = None,
) -> MatchResult:
    """A match of two: 1 won, 0 drawn, -1 lost by the first player, who is Red in the first half.

    Args:
      first: name of the first player.
      second: name of the second player.
      rules: what was played.
      outcome: of each game; games i and i + N / 2 are a pair.
      territory: cells of the first and of the second player, of all games or of each.
      games: public actions; by default one, the number of the game.
      is_red: whether the first player is Red, where it is otherwise.
    """
    count, own = len(outcome), np.array(outcome)[:, None]
    red = np.arange(count) < count // 2 if is_red is None else np.array(is_red)
    seats = np.where(red[:, None], (0, 1), (1, 0))
    cells = np.take_along_axis(np.broadcast_to(territory, (count, 2)), seats, axis=1)
    return MatchResult(
        names=(first, second),
        rules=rules,
        seats=seats,
        rewards=np.where(seats == 0, own, -own).astype(float),
        cells=cells,
        regions=cells,
        opening=np.arange(count) % max(count // 2, 1),
        games=tuple(map(tuple, games)) or tuple((number,) for number in range(count)),
    )


def at_table(names: Sequence[str], rules: Rules, games: int) -> MatchResult:
    """A match of three: each third game is a draw, the others are won by the seats in turn; those
    of one name are one entrant."""
    distinct = tuple(dict.fromkeys(names))
    held = [distinct.index(name) for name in names]
    paid = np.array([[1, -0.5, -0.5], [-0.5, 1, -0.5], [0.0, 0.0, 0.0]])
    return MatchResult(
        names=distinct,
        rules=rules,
        seats=np.array([np.roll(held, n) for n in range(games)]),
        rewards=paid[np.arange(games) % 3],
        cells=np.tile([4, 3, 2], (games, 1)),
        regions=np.tile([4, 2, 1], (games, 1)),
        opening=np.arange(games) // 6,
        games=tuple((number,) for number in range(games)),
    )


def of_winners(names: Sequence[str], rules: Rules, winners: np.ndarray) -> MatchResult:
    """A match of different players, whose openings are played in every seating.

    Args:
      names: of the players, one a seat.
      rules: what was played.
      winners: int[G], who won each game, as many as whole openings have.
    """
    count, players = len(winners), len(names)
    orders = list(itertools.permutations(range(players)))
    seats = np.tile(orders, (count // len(orders), 1))
    return MatchResult(
        names=tuple(names),
        rules=rules,
        seats=seats,
        rewards=np.where(seats == winners[:, None], 1.0, -1 / (players - 1)),
        cells=np.full_like(seats, 20),
        regions=np.full_like(seats, 9),
        opening=np.arange(count) // len(orders),
        games=((0,),) * count,
    )


def legal_player(name: str, *, highest: bool, traces: list[str] | None = None) -> Player:
    """Plays the legal slot of the lowest or the highest number: with one stone each also the legal
    action of that number. `traces` grows by its name whenever its program is traced."""

    @jax.jit
    def act(variables, states, key):
        del variables, key
        if traces is not None:
            traces.append(name)
        legal = jax.vmap(actions.legal_slots)(states)
        slots = jnp.where(legal, jnp.arange(legal.shape[1])[None], -1 if highest else 9999)
        return slots.max(axis=1) if highest else slots.min(axis=1)

    return Player(name, (), act)
