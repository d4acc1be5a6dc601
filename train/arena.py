"""Matches on the device: both colours, shared openings, intervals.

N games, K = N / 2 boards that a player looks at at once, L plies at most, P = 2 players. Each tick
a player gets up to K of the boards where it is to move; in games whose turns alternate that is all
of them, so neither player ever looks at a board of the other's.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.host import fetch
from train.players import Player
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_position, make_variant

NO_ACTION = -1
Z_95 = 1.959963984540054
_TICKS_BETWEEN_CHECKS = 8


class Table(NamedTuple):
    """Boards under way."""

    states: State  # [N]
    first_is_red: jax.Array  # bool[N]
    rewards: jax.Array  # float32[N, P], of the last ply
    actions: jax.Array  # int32[N, L] public ids, NO_ACTION after the end


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """A match from the first player's side, game by game.

    Attributes:
      first: name of the first player.
      second: name of the second player.
      rules: what was played.
      outcome: int[N]: 1 won, 0 drawn, -1 lost by the first player.
      first_is_red: bool[N].
      territory: int[N, 2] at the end: the first player's, the second's.
      games: public actions of each game.
    """

    first: str
    second: str
    rules: Rules
    outcome: np.ndarray
    first_is_red: np.ndarray
    territory: np.ndarray
    games: tuple[tuple[int, ...], ...]

    @property
    def wins(self) -> int:
        """Games that the first player won."""
        return int((self.outcome > 0).sum())

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return int((self.outcome == 0).sum())

    @property
    def losses(self) -> int:
        """Games that the first player lost."""
        return int((self.outcome < 0).sum())

    @property
    def win_rate(self) -> float:
        """(W + D / 2) / N."""
        return (self.wins + self.draws / 2) / len(self.outcome)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the win rate (Wilson)."""
        return wilson_interval(self.win_rate, len(self.outcome))

    @property
    def territory_ratio(self) -> float:
        """The first player's cells over the second's, all games together; inf if it had none."""
        own, other = self.territory.sum(axis=0)
        return float(own) / float(other) if other else math.inf

    def win_rate_as(self, *, red: bool) -> float:
        """The first player's win rate in the games where it has this colour."""
        return float((self.outcome[self.first_is_red == red] + 1).mean() / 2)

    @property
    def mean_length(self) -> float:
        """Plies a game."""
        return float(np.mean([len(game) for game in self.games]))

    @property
    def distinct_games(self) -> int:
        """Games that differ in at least one action."""
        return len(set(self.games))


def wilson_interval(rate: float, games: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a rate over independent games (Wilson, "Probable Inference, the
    Law of Succession, and Statistical Inference", 1927)."""
    if games == 0:
        return 0.0, 1.0
    spread = z * z / games
    centre = (rate + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(rate * (1 - rate) / games + spread / (4 * games))
    return max(0.0, centre - half), min(1.0, centre + half)


def play_match(
    first: Player,
    second: Player,
    rules: Rules,
    *,
    games: int,
    key: jax.Array,
    batch: int = 400,
    opening_plies: int = 0,
    on_progress: Callable[[int], None] = lambda games_done: None,
) -> MatchResult:
    """Play `games` games, half of them with the first player as Red.

    Args:
      first: the player whose side the result takes.
      second: its opponent.
      rules: two-player rules.
      games: an even number.
      key: consumed whole.
      batch: games at once, an even number. The last batch is filled up and cut, so that every
        batch has the same shape.
      opening_plies: random plies at the start, the same for the two games of a pair.
      on_progress: called with the number of games done so far.

    Raises:
      ValueError: for odd or negative numbers, or rules that are not for two players.
    """
    check_match(rules, games=games, batch=batch, opening_plies=opening_plies)
    batch = min(batch, games)
    parts: list[MatchResult] = []
    for index in range(-(-games // batch)):
        done = index * batch
        result = _play_batch(
            first,
            second,
            rules,
            batch,
            jax.random.fold_in(key, index),
            opening_plies,
            lambda finished, done=done: on_progress(min(done + finished, games)),
        )
        parts.append(_keep_pairs(result, min(batch, games - done) // 2))
    return _join(parts)


def check_match(rules: Rules, *, games: int, batch: int, opening_plies: int) -> None:
    """Refuse what cannot be played with a ValueError."""
    if rules.players != 2:
        raise ValueError(f"match: the rules are for {rules.players} players, a match is for 2")
    if games < 2 or games % 2 or batch < 2 or batch % 2:
        raise ValueError(f"match: games ({games}) and batch ({batch}) must be even, at least 2")
    if opening_plies < 0:
        raise ValueError(f"match: opening_plies ({opening_plies}) must not be negative")


def _play_batch(
    first: Player,
    second: Player,
    rules: Rules,
    boards: int,
    key: jax.Array,
    opening_plies: int,
    on_progress: Callable[[int], None],
) -> MatchResult:
    grid = rules.size
    open_key, play_key = jax.random.split(key)
    table = _open(_make_table(rules, boards), open_key, grid=grid, plies=opening_plies)
    for tick in range(2 * table.actions.shape[1]):
        for seat, player in enumerate((first, second)):
            act_key = jax.random.fold_in(play_key, 2 * tick + seat)
            place, states, is_valid = _seat(table, is_first=seat == 0)
            slots = player.act(player.variables, states, act_key)
            table = _apply(table, place, slots, is_valid, grid=grid)
        if tick % _TICKS_BETWEEN_CHECKS == 0:
            finished = int(fetch(table.states.position.terminated.sum()))
            on_progress(finished)
            if finished == boards:
                return _read(table, first, second, rules)
    raise RuntimeError("match: games went on longer than the board has walls")


def _make_table(rules: Rules, boards: int) -> Table:
    variant = jax.tree.map(
        lambda x: jnp.broadcast_to(jnp.asarray(x), (boards, *np.shape(x))), make_variant(rules)
    )
    states = State(variant, jax.vmap(initial_position)(variant))
    return Table(
        states=states,
        first_is_red=jnp.arange(boards) < boards // 2,
        rewards=jnp.zeros((boards, rules.players), jnp.float32),
        actions=jnp.full((boards, rules.max_plies), NO_ACTION, jnp.int32),
    )


@functools.partial(jax.jit, static_argnames=("grid", "plies"))
def _open(table: Table, key: jax.Array, *, grid: int, plies: int) -> Table:
    """Random plies; boards `i` and `i + N / 2`, the two games of a pair, draw the same ones."""
    pairs = table.first_is_red.shape[0] // 2

    def ply(table: Table, ply_key: jax.Array) -> tuple[Table, None]:
        bits = jnp.tile(jax.random.bits(ply_key, (pairs,), jnp.uint32), 2)
        words = jax.vmap(lambda state: actions.legal_words(state, grid=grid))(table.states)
        slots = jax.vmap(chance.choose_bit)(bits, words)
        everywhere = jnp.arange(2 * pairs)
        is_valid = jnp.ones(2 * pairs, jnp.bool_)
        return _apply(table, everywhere, slots, is_valid, grid=grid), None

    table, _ = jax.lax.scan(ply, table, jax.random.split(key, plies))
    return table


@functools.partial(jax.jit, static_argnames=("is_first",))
def _seat(table: Table, *, is_first: bool) -> tuple[jax.Array, State, jax.Array]:
    """Up to K boards where a player is to move: int32[K] places, their states, bool[K] whether
    the board is really that player's. Boards that are behind come first."""
    position = table.states.position
    boards = position.player.shape[0]
    wants = ((position.player == 0) == table.first_is_red) == is_first
    wants &= ~position.terminated
    behind = jnp.where(wants, position.ply, jnp.iinfo(position.ply.dtype).max)
    place = jnp.argsort(behind, stable=True)[: boards // 2]
    return place, jax.tree.map(lambda x: x[place], table.states), wants[place]


@functools.partial(jax.jit, static_argnames=("grid",))
def _apply(
    table: Table, place: jax.Array, slots: jax.Array, is_valid: jax.Array, *, grid: int
) -> Table:
    """Play slots on the given boards and write down their public ids."""
    states = jax.tree.map(lambda x: x[place], table.states)
    public = jax.vmap(lambda s, slot: actions.action_of_slot(s, slot, grid=grid))(states, slots)
    after, rewards = jax.vmap(lambda s, slot: referee.play(s, slot, grid=grid))(states, slots)
    acts = is_valid & ~states.position.terminated

    def put(old: jax.Array, new: jax.Array) -> jax.Array:
        keep = acts.reshape(-1, *[1] * (new.ndim - 1))
        return old.at[place].set(jnp.where(keep, new, old[place]))

    ply = states.position.ply.astype(jnp.int32)
    written = table.actions.at[place, ply].set(
        jnp.where(acts, public, table.actions[place, ply]), mode="drop"
    )
    return table._replace(
        states=State(
            table.states.variant, jax.tree.map(put, table.states.position, after.position)
        ),
        rewards=put(table.rewards, rewards),
        actions=written,
    )


def _read(table: Table, first: Player, second: Player, rules: Rules) -> MatchResult:
    territory = _territory(table.states, grid=rules.size)
    rewards, is_red, cells, played = fetch(
        (table.rewards, table.first_is_red, territory, table.actions)
    )
    red_result = np.sign(rewards[:, 0]).astype(int)
    return MatchResult(
        first=first.name,
        second=second.name,
        rules=rules,
        outcome=np.where(is_red, red_result, -red_result),
        first_is_red=is_red,
        territory=np.where(is_red[:, None], cells, cells[:, ::-1]),
        games=tuple(tuple(int(a) for a in game[game != NO_ACTION]) for game in played),
    )


@functools.partial(jax.jit, static_argnames=("grid",))
def _territory(states: State, *, grid: int) -> jax.Array:
    return jax.vmap(lambda state: referee.territory(state, grid=grid))(states)


def _keep_pairs(result: MatchResult, pairs: int) -> MatchResult:
    half = len(result.outcome) // 2
    keep = np.r_[0:pairs, half : half + pairs]
    return dataclasses.replace(
        result,
        outcome=result.outcome[keep],
        first_is_red=result.first_is_red[keep],
        territory=result.territory[keep],
        games=tuple(result.games[i] for i in keep),
    )


def _join(parts: list[MatchResult]) -> MatchResult:
    return dataclasses.replace(
        parts[0],
        outcome=np.concatenate([part.outcome for part in parts]),
        first_is_red=np.concatenate([part.first_is_red for part in parts]),
        territory=np.concatenate([part.territory for part in parts]),
        games=tuple(game for part in parts for game in part.games),
    )
