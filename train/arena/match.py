"""Matches: each opening is played twice, once with each colour.

In each tick a player gets up to half of a device's boards, those where it is to move. Where turns
alternate that is nearly all of them, so no player evaluates a board that is not its own.

K boards of a half, Q pairs of games, G = 2 Q games, P = 2 players, D devices; see
`train.arena.active_games`.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.arena import host_match, match_programs
from train.arena.active_games import (
    GameLog,
    MatchState,
    boards_to_move,
    play_slots,
    set_up,
)
from train.arena.match_programs import MOST_PROGRAMS, Act, Programs, never, own_openings
from train.arena.openings import OpeningOptions, Openings, Positions, open_games
from train.arena.result import MatchResult, join, keep_finished
from train.players.basic import Player
from train.runtime.devices import AXIS, Devices, broadcast_boards, local_devices
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, make_variant

_LEAST_CAPACITY = 256  # matches of fewer pairs share one program


@dataclasses.dataclass(frozen=True)
class MatchOptions:
    """Number of games of a match, and how they are played.

    Attributes:
      games: an even number.
      batch: games in parallel on all devices together, an even number; rounded up to a multiple of
        two for each device.
      opening_plies: random plies at the start, the same for the two games of a pair.
      players_place: the players place the stones; the random plies come after.
      positions: of a file, which games start from in place of random plies.
      round_games: games of a round of `play_rounds`, an even number; 0 for all games in one round.
      devices: share the boards; None for all devices of this process.
      should_stop: asked every few plies; where it says True the match ends with the games that are
        over.

    Raises:
      ValueError: odd or negative numbers.
    """

    games: int
    batch: int = 400
    opening_plies: int = 0
    players_place: bool = False
    positions: Positions | None = None
    round_games: int = 0
    devices: Devices | None = None
    should_stop: Callable[[], bool] = never

    def __post_init__(self) -> None:
        for name in ("games", "batch"):
            number = getattr(self, name)
            if number < 2 or number % 2:
                raise ValueError(f"match: {name} ({number}) must be an even number, at least 2")
        if self.opening_plies < 0:
            raise ValueError(f"match: opening_plies ({self.opening_plies}) must not be negative")
        if self.round_games < 0 or self.round_games % 2:
            raise ValueError(f"match: round_games ({self.round_games}) must be even, at least 0")

    @property
    def opening(self) -> OpeningOptions:
        """How the games open."""
        return OpeningOptions(self.opening_plies, self.players_place, self.positions)


def check_rules(rules: Rules) -> None:
    """Refuse rules that are not for two players with a ValueError."""
    if rules.players != 2:
        raise ValueError(f"match: the rules are for {rules.players} players, a match is for 2")


def play_match(
    first: Player,
    second: Player,
    rules: Rules,
    options: MatchOptions,
    *,
    key: jax.Array,
    on_progress: Callable[[int], None] = lambda games_done: None,
) -> MatchResult:
    """Play a match, half of its games with the first player as Red.

    Args:
      first: the player whose side the result takes.
      second: its opponent.
      rules: two-player rules.
      options: how many games, and how.
      key: consumed; decides the openings and all that the players draw.
      on_progress: called with the number of games done so far, first when all is compiled.

    Raises:
      ValueError: the rules are not for two players.
      UsageError: the opening plies are as many as a whole game's, or the match needs more memory
        than there is.
    """
    check_rules(rules)
    match_programs.check_opening(rules, options.opening_plies)
    games, devices = options.games, options.devices or local_devices()
    if host_match.is_external(first) or host_match.is_external(second):
        return _play_on_host(first, second, rules, options, key, on_progress)
    match_programs.check_match_size(games=options.games, batch=options.batch)
    log = match_programs.play_to_end(
        _programs_of(first, second, rules, options),
        (first.variables, second.variables),
        games // 2,
        games=games,
        devices=devices,
        key=key,
        on_progress=on_progress,
        should_stop=options.should_stop,
    )
    return _read(log, first, second, rules, games)


def _play_on_host(
    first: Player,
    second: Player,
    rules: Rules,
    options: MatchOptions,
    key: jax.Array,
    on_progress: Callable[[int], None],
) -> MatchResult:
    open_key, play_key = jax.random.split(key)
    games = host_match.HostMatch(
        (first, second),
        rules,
        games=options.games,
        boards=options.batch,
        opening=options.opening,
        keys=(open_key, play_key),
    )
    return host_match.play_on_host(games, on_progress=on_progress, should_stop=options.should_stop)


def play_rounds(
    first: Player,
    second: Player,
    rules: Rules,
    options: MatchOptions,
    *,
    key: jax.Array,
    is_decided: Callable[[MatchResult], bool],
    on_progress: Callable[[int], None] = lambda games_done: None,
) -> MatchResult:
    """Play a match in rounds, up to the one after which `is_decided` says True of all games so far.

    Args:
      options: at most `games` games, in rounds of `round_games`.
      key: consumed; each round gets a key of its own, so one round is another match than
        `play_match` with the same key.

    The rest is as in `play_match`.
    """
    games, size = options.games, options.round_games or options.games
    result: MatchResult | None = None
    for done in range(0, games, size):
        found = play_match(
            first,
            second,
            rules,
            dataclasses.replace(options, games=min(size, games - done)),
            key=jax.random.fold_in(key, done),
            on_progress=lambda more, done=done: on_progress(done + more),
        )
        result = found if result is None else join(result, found)
        if options.should_stop() or is_decided(result):
            break
    assert result is not None
    return result


def play_meeting(
    first: Player,
    second: Player,
    rules: Rules,
    options: MatchOptions,
    *,
    seed: int,
    before: int,
    on_progress: Callable[[int], None] = lambda games_done: None,
) -> MatchResult:
    """Play a meeting of a tournament, whose games are the same whatever was played before it.

    Args:
      seed: of the tournament, from 0 to 2³¹ - 1.
      before: pairs of games that the two have played in it.

    The rest is as in `play_match`.
    """
    key = match_programs.key_of_names((first.name, second.name), seed)
    key = jax.random.fold_in(key, before)
    return play_match(first, second, rules, options, key=key, on_progress=on_progress)


def _programs_of(first: Player, second: Player, rules: Rules, options: MatchOptions) -> Programs:
    devices = options.devices or local_devices()
    own_pairs = -(-options.games // (2 * devices.count))
    return _programs(
        (first.act, second.act),
        rules,
        devices,
        boards=min(-(-options.batch // (2 * devices.count)), own_pairs),
        capacity=match_programs.capacity_of(own_pairs, least=_LEAST_CAPACITY),
        opening=options.opening,
    )


@functools.lru_cache(maxsize=MOST_PROGRAMS)
def _programs(
    acts: tuple[Act, Act],
    rules: Rules,
    devices: Devices,
    *,
    boards: int,
    capacity: int,
    opening: OpeningOptions,
) -> Programs:
    """Make the programs for K = `boards` boards a half and Q = `capacity` pairs on each device."""
    variant = make_variant(rules)
    own_pairs = functools.partial(own_openings, capacity=capacity, devices=devices)

    def begin(pairs: jax.Array, key: jax.Array) -> tuple[Openings, MatchState]:
        openings = open_games(variant, *own_pairs(pairs), key, opening)
        return openings, set_up(openings, boards=boards, plies=rules.max_plies)

    def go_on(
        variables: Any, openings: Openings, match: MatchState, pairs: jax.Array, key: jax.Array
    ) -> tuple[MatchState, jax.Array]:
        def play_tick(match: MatchState, key: jax.Array) -> MatchState:
            keys = jax.random.split(key)
            for player, act in enumerate(acts):
                chosen, is_valid = boards_to_move(match, player=player)
                position = jax.tree.map(operator.itemgetter(chosen), match.active.position)
                states = State(broadcast_boards(variant, boards), position)
                slots = act(variables[player], states, keys[player])
                match = play_slots(match, openings, states, chosen, slots, is_valid)
            return match

        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        match = match_programs.play_ticks(match, play_tick, key)
        is_done = match.log.position.terminated.reshape(2, capacity) & own_pairs(pairs)[1][None]
        return match, is_done.sum(dtype=jnp.int32)[None]

    return match_programs.make_programs(begin, go_on, devices)


def _read(log: GameLog, first: Player, second: Player, rules: Rules, games: int) -> MatchResult:
    """Read the games on the host, in the order of pairs: the first player as Red, then as Blue."""
    played, devices = match_programs.read_log(log, rules)
    share = -(-games // (2 * devices))

    def in_order(x: np.ndarray) -> np.ndarray:
        """[D * 2 * Q, ...], device by device, to [games, ...], half by half."""
        by_half = x.reshape(devices, 2, -1, *x.shape[1:]).swapaxes(0, 1)[:, :, :share]
        return by_half.reshape(2, -1, *x.shape[1:])[:, : games // 2].reshape(-1, *x.shape[1:])

    rewards, cells, actions, is_over = map(in_order, played)
    is_red = np.arange(games) < games // 2
    red_result = np.sign(rewards[:, 0]).astype(int)
    result = MatchResult(
        first=first.name,
        second=second.name,
        rules=rules,
        outcome=np.where(is_red, red_result, -red_result),
        first_is_red=is_red,
        territory=np.where(is_red[:, None], cells, cells[:, ::-1]),
        games=match_programs.actions_of(actions),
    )
    return result if is_over.all() else keep_finished(result, is_over)
