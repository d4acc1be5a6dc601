"""Matches on the device: both colours, shared openings, intervals.

N boards at once on a device, K = N / 2 that a player looks at at once, Q pairs of games that the
device plays, L plies at most, P = 2 players. Boards 0..K-1 play the games that the first player
opens as Red, the others those that it plays as Blue; a board whose game has ended takes the next
one of its half. Each tick a player gets up to K of the boards where it is to move; in games whose
turns alternate that is nearly all of them, so neither player looks at a board of the other's.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.players.basic import Player
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices, local_devices
from train.runtime.host import fetch
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, Variant, initial_position, make_variant

NO_ACTION = -1
Z_95 = 1.959963984540054
_TICKS_A_DISPATCH = 8
_LEAST_CAPACITY = 256  # so that matches of some games and of some hundreds share a program

Act = Callable[[Any, State, jax.Array], jax.Array]


class Openings(NamedTuple):
    """Where the games of each pair begin."""

    position: Position  # [Q]
    rewards: jax.Array  # float32[Q, P], of games that are over in the opening already
    actions: jax.Array  # int32[Q, O] public ids, NO_ACTION after the end
    queue: jax.Array  # int32[Q], pairs in the order of their playing
    live: jax.Array  # int32[1], how many of the queue are to be played


class ActiveGames(NamedTuple):
    """Boards under way."""

    position: Position  # [N]
    game: jax.Array  # int32[N], half * Q + pair, or 2 * Q where there is none
    since: jax.Array  # int32[N], tick of the board's last ply
    turn: jax.Array  # int32[2], place in the queue of the next game of each half
    tick: jax.Array  # int32[1]


class GameLog(NamedTuple):
    """Games as far as they have come, G = 2 * Q."""

    position: Position  # [G], of finished games the last
    rewards: jax.Array  # float32[G, P], of the last ply
    actions: jax.Array  # int32[G, L] public ids, NO_ACTION after the end


class Match(NamedTuple):
    """All that a match changes."""

    active: ActiveGames
    log: GameLog


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """A match from the first player's side, game by game.

    Attributes:
      first: name of the first player.
      second: name of the second player.
      rules: what was played.
      outcome: int[N]: 1 won, 0 drawn, -1 lost by the first player. Games i and i + N / 2 are a
        pair: the same opening, colours changed.
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
    def pairs(self) -> np.ndarray:
        """int[N / 2]: wins less losses of the first player in the two games of each pair."""
        half = len(self.outcome) // 2
        return self.outcome[:half] + self.outcome[half:]

    @property
    def territory_ratio(self) -> float:
        """The first player's cells over the second's, all games together; inf if it had none."""
        own, other = self.territory.sum(axis=0)
        return float(own) / float(other) if other else math.inf

    def win_rate_as(self, *, red: bool) -> float:
        """The first player's win rate in the games where it has this colour."""
        return float((self.outcome[self.first_is_red == red] + 1).mean() / 2)

    @property
    def red_win_rate(self) -> float:
        """Red's win rate, whoever plays it: above one half if opening is an advantage."""
        red = np.where(self.first_is_red, self.outcome, -self.outcome)
        return float((red + 1).mean() / 2)

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
    devices: Devices | None = None,
) -> MatchResult:
    """Play `games` games, half of them with the first player as Red.

    Args:
      first: the player whose side the result takes.
      second: its opponent.
      rules: two-player rules.
      games: an even number.
      key: consumed whole.
      batch: games at once on all devices together, an even number; rounded up to a multiple of
        two for each device.
      opening_plies: random plies at the start, the same for the two games of a pair.
      on_progress: called with the number of games done so far.
      devices: share the boards; all of this process unless given.

    Raises:
      ValueError: for odd or negative numbers, or rules that are not for two players.
    """
    check_match(rules, games=games, batch=batch, opening_plies=opening_plies)
    devices = local_devices() if devices is None else devices
    own_pairs = -(-games // (2 * devices.count))
    programs = _programs(
        (first.act, second.act),
        rules,
        devices,
        boards=min(-(-batch // (2 * devices.count)), own_pairs),
        capacity=max(_LEAST_CAPACITY, 1 << (own_pairs - 1).bit_length()),
        opening_plies=opening_plies,
    )
    open_key, play_key = jax.random.split(key)
    variables = jax.device_put((first.variables, second.variables), devices.sharding(EVERYWHERE))
    pairs = np.int32(games // 2)
    openings, match = programs.begin(pairs, open_key)
    while True:
        match, done = programs.go_on(variables, openings, match, pairs, play_key)
        finished = int(fetch(done).sum())
        on_progress(finished)
        if finished == games:
            return _read(match.log, first, second, rules, games)


def play_rounds(
    first: Player,
    second: Player,
    rules: Rules,
    *,
    games: int,
    key: jax.Array,
    is_decided: Callable[[MatchResult], bool],
    round_games: int,
    batch: int = 400,
    on_progress: Callable[[int], None] = lambda games_done: None,
    **options: Any,
) -> MatchResult:
    """`play_match` in rounds of so many games, an even number, up to the round after which all
    games so far decide the matter; at most `games`."""
    check_match(rules, games=games, batch=batch, opening_plies=options.get("opening_plies", 0))
    result: MatchResult | None = None
    for done in range(0, games, round_games):
        found = play_match(
            first,
            second,
            rules,
            games=min(round_games, games - done),
            key=jax.random.fold_in(key, done),
            batch=batch,
            on_progress=lambda more, done=done: on_progress(done + more),
            **options,
        )
        result = found if result is None else _join(result, found)
        if is_decided(result):
            break
    assert result is not None
    return result


def _join(one: MatchResult, other: MatchResult) -> MatchResult:
    """Both matches as one, its games in the order of pairs."""

    def both(a: Any, b: Any) -> Any:
        half_a, half_b = len(a) // 2, len(b) // 2
        parts = a[:half_a], b[:half_b], a[half_a:], b[half_b:]
        return sum(parts, ()) if isinstance(a, tuple) else np.concatenate(parts)

    names = ("outcome", "first_is_red", "territory", "games")
    joined = {name: both(getattr(one, name), getattr(other, name)) for name in names}
    return dataclasses.replace(one, **joined)


def check_match(rules: Rules, *, games: int, batch: int, opening_plies: int) -> None:
    """Refuse what cannot be played with a ValueError."""
    if rules.players != 2:
        raise ValueError(f"match: the rules are for {rules.players} players, a match is for 2")
    if games < 2 or games % 2 or batch < 2 or batch % 2:
        raise ValueError(f"match: games ({games}) and batch ({batch}) must be even, at least 2")
    if opening_plies < 0:
        raise ValueError(f"match: opening_plies ({opening_plies}) must not be negative")


class _Programs(NamedTuple):
    """What is compiled once for two kinds of players, whatever they have learned and however many
    games they play."""

    begin: Callable[[np.int32, jax.Array], tuple[Openings, Match]]
    """(pairs, key) -> the games to be played, the first ones on the boards."""
    go_on: Callable[..., tuple[Match, jax.Array]]
    """(variables of both, openings, match, pairs, key) -> the match some ticks later, and the
    number of finished games of each device, int32[D]. The match is consumed."""


@functools.lru_cache(maxsize=64)
def _programs(
    acts: tuple[Act, Act],
    rules: Rules,
    devices: Devices,
    *,
    boards: int,
    capacity: int,
    opening_plies: int,
) -> _Programs:
    """Programs for K boards a half and up to Q games a half, on each device."""
    variant = make_variant(rules)

    def own_pairs(pairs: jax.Array) -> tuple[jax.Array, jax.Array]:
        """int32[Q] numbers of the device's pairs, and bool[Q] which of them there are."""
        share = -(-pairs // devices.count)
        local = jnp.arange(capacity)
        number = jax.lax.axis_index(AXIS) * share + local
        return number, (local < share) & (number < pairs)

    def begin(pairs: jax.Array, key: jax.Array) -> tuple[Openings, Match]:
        openings = _open(variant, *own_pairs(pairs), key, plies=opening_plies)
        return openings, _set_up(openings, boards=boards, plies=rules.max_plies)

    def go_on(
        variables: Any, openings: Openings, match: Match, pairs: jax.Array, key: jax.Array
    ) -> tuple[Match, jax.Array]:
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        end, no_game = match.active.tick[0] + _TICKS_A_DISPATCH, 2 * capacity

        def is_on(match: Match) -> jax.Array:
            return (match.active.tick[0] < end) & (match.active.game < no_game).any()

        def tick(match: Match) -> Match:
            keys = jax.random.split(jax.random.fold_in(key, match.active.tick[0]))
            for seat, act in enumerate(acts):
                place, is_valid = _boards_to_move(match, seat=seat)
                states = _states(variant, jax.tree.map(lambda x: x[place], match.active.position))  # noqa: B023
                slots = act(variables[seat], states, keys[seat])
                match = _apply(match, openings, states, place, slots, is_valid)
            active = match.active
            return match._replace(active=active._replace(tick=active.tick + 1))

        match = jax.lax.while_loop(is_on, tick, match)
        is_done = match.log.position.terminated.reshape(2, capacity) & own_pairs(pairs)[1][None]
        return match, is_done.sum(dtype=jnp.int32)[None]

    first = devices.per_device(begin, (EVERYWHERE, EVERYWHERE), BY_BOARD)
    in_specs = (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE, EVERYWHERE)
    onward = devices.per_device(go_on, in_specs, BY_BOARD)
    return _Programs(jax.jit(first), jax.jit(onward, donate_argnums=2))


def _states(variant: Variant, position: Position) -> State:
    """The same variant for each board."""
    return State(_spread(variant, position.ply.shape[0]), position)


def _spread(tree: Any, count: int) -> Any:
    """The same for each of so many boards."""
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (count, *np.shape(x))), tree)


def _open(
    variant: Variant, pairs: jax.Array, is_own: jax.Array, key: jax.Array, *, plies: int
) -> Openings:
    """Random plies, which depend on the key and the number of the pair alone; of pairs int32[Q]
    those that are not the device's own, bool[Q], are never played."""
    keys = jax.vmap(lambda pair: jax.random.fold_in(key, pair))(pairs)
    every = _spread(variant, pairs.shape[0])
    empty = State(every, jax.vmap(initial_position)(every))

    def ply(carry: tuple[State, jax.Array], number: jax.Array) -> tuple[Any, jax.Array]:
        states, paid = carry
        bits = jax.vmap(lambda k: jax.random.bits(jax.random.fold_in(k, number)))(keys)
        words = jax.vmap(actions.legal_words)(states)
        after, rewards, public = _play(states, jax.vmap(chance.choose_bit)(bits, words))
        is_live = ~states.position.terminated
        paid = jnp.where(is_live[:, None], rewards, paid)
        return (after, paid), jnp.where(is_live, public, NO_ACTION)

    paid = jnp.zeros((pairs.shape[0], variant.start.shape[0]), jnp.float32)
    (after, paid), played = jax.lax.scan(ply, (empty, paid), jnp.arange(plies))
    is_played = is_own & ~after.position.terminated
    return Openings(
        position=after.position,
        rewards=paid,
        actions=played.T,
        queue=jnp.argsort(~is_played, stable=True).astype(jnp.int32),
        live=is_played.sum(dtype=jnp.int32)[None],
    )


def _play(states: State, slots: jax.Array) -> tuple[State, jax.Array, jax.Array]:
    """The states [B] after slots int32[B], the rewards, and the slots' public ids."""
    public = jax.vmap(actions.action_of_slot)(states, slots)
    after, rewards = jax.vmap(referee.play)(states, slots)
    return after, rewards, public.astype(jnp.int32)


def _set_up(openings: Openings, *, boards: int, plies: int) -> Match:
    """The first K games of each half on the boards."""
    pairs, opening_plies = openings.actions.shape
    both = lambda tree: jax.tree.map(lambda x: jnp.concatenate([x, x]), tree)  # noqa: E731
    played = jnp.full((2 * pairs, plies), NO_ACTION, jnp.int32)
    log = GameLog(
        position=both(openings.position),
        rewards=both(openings.rewards),
        actions=played.at[:, :opening_plies].set(both(openings.actions)[:, :plies]),
    )
    half, turn = jnp.repeat(jnp.arange(2), boards), jnp.tile(jnp.arange(boards), 2)
    pair = openings.queue[turn]
    active = ActiveGames(
        position=jax.tree.map(lambda x: x[pair], openings.position),
        game=jnp.where(turn < openings.live, half * pairs + pair, 2 * pairs).astype(jnp.int32),
        since=jnp.zeros(2 * boards, jnp.int32),
        turn=jnp.full(2, boards, jnp.int32),
        tick=jnp.zeros(1, jnp.int32),
    )
    return Match(active, log)


def _boards_to_move(match: Match, *, seat: int) -> tuple[jax.Array, jax.Array]:
    """Up to K boards where a player is to move: int32[K] places, and bool[K] whether the board is
    really that player's. Boards that have waited longest come first."""
    active, no_game = match.active, match.log.rewards.shape[0]
    boards = active.game.shape[0]
    first_is_red = jnp.arange(boards) < boards // 2
    wants = ((active.position.player == 0) == first_is_red) == (seat == 0)
    wants &= active.game < no_game
    waiting = jnp.where(wants, active.since, jnp.iinfo(jnp.int32).max)
    place = jnp.argsort(waiting, stable=True)[: boards // 2]
    return place, wants[place]


def _apply(
    match: Match,
    openings: Openings,
    states: State,
    place: jax.Array,
    slots: jax.Array,
    is_valid: jax.Array,
) -> Match:
    """Play slots on the given boards, write them down, and begin new games where some ended."""
    active, log = match
    no_game = log.rewards.shape[0]
    half_pairs, half_boards = no_game // 2, active.game.shape[0] // 2
    after, rewards, public = _play(states, slots)
    game = active.game[place]
    over = is_valid & after.position.terminated
    written, ended = jnp.where(is_valid, game, no_game), jnp.where(over, game, no_game)
    ply = states.position.ply.astype(jnp.int32)
    log = GameLog(
        position=jax.tree.map(
            lambda old, new: old.at[ended].set(new, mode="drop"), log.position, after.position
        ),
        rewards=log.rewards.at[ended].set(rewards, mode="drop"),
        actions=log.actions.at[written, ply].set(public, mode="drop"),
    )

    half = place // half_boards
    ends = over[:, None] & (half[:, None] == jnp.arange(2)[None])  # [K, 2]
    order = jnp.cumsum(ends, axis=0, dtype=jnp.int32) - 1
    turn = active.turn[half] + jnp.take_along_axis(order, half[:, None], axis=1)[:, 0]
    goes_on = over & (turn < openings.live)
    pair = openings.queue[jnp.minimum(turn, half_pairs - 1)]

    def next_of(new: jax.Array, opening: jax.Array, old: jax.Array) -> jax.Array:
        def spread(flags: jax.Array) -> jax.Array:
            return flags.reshape(-1, *[1] * (new.ndim - 1))

        kept = jnp.where(spread(is_valid), new, old[place])
        return old.at[place].set(jnp.where(spread(goes_on), opening[pair], kept))

    new_game = jnp.where(goes_on, half * half_pairs + pair, jnp.where(over, no_game, game))
    since = jnp.where(is_valid, active.tick, active.since[place])
    active = active._replace(
        position=jax.tree.map(next_of, after.position, openings.position, active.position),
        game=active.game.at[place].set(new_game.astype(jnp.int32)),
        since=active.since.at[place].set(since),
        turn=active.turn + ends.sum(axis=0, dtype=jnp.int32),
    )
    return Match(active, log)


def _read(log: GameLog, first: Player, second: Player, rules: Rules, games: int) -> MatchResult:
    """The games in the order of their pairs: the first player as Red, then as Blue."""
    territory = _territory(log.position, rules)
    rewards, cells, played = fetch((log.rewards, territory, log.actions))
    devices = log.rewards.sharding.num_devices

    share = -(-games // (2 * devices))

    def in_order(x: np.ndarray) -> np.ndarray:
        by_half = x.reshape(devices, 2, -1, *x.shape[1:]).swapaxes(0, 1)[:, :, :share]
        return by_half.reshape(2, -1, *x.shape[1:])[:, : games // 2].reshape(-1, *x.shape[1:])

    rewards, cells, played = in_order(rewards), in_order(cells), in_order(played)
    is_red = np.arange(games) < games // 2
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


@functools.partial(jax.jit, static_argnames=("rules",))
def _territory(position: Position, rules: Rules) -> jax.Array:
    states = _states(make_variant(rules), position)
    return jax.vmap(referee.territory)(states)
