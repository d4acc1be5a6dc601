"""The games that a player analyses: those of record files, or those that it plays against itself,
all boards at once, with the noise of self-play.

B boards, P players.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.data.record_dataset import (
    Examples,
    RecordedGames,
    make_examples,
    read_recorded_games,
)
from train.players.basic import Player
from train.runtime.devices import broadcast_boards
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.search.config import SearchConfig
from train.search.evaluator import Evaluator
from train.search.search import make_search
from wallgo_jax.formats.records import Record
from wallgo_jax.game import actions, referee
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import State, initial_position, make_variant

_BOARDS = 256


def read_games(paths: Sequence[Path], player: Player) -> RecordedGames:
    """Read the finished games of record files; unfinished ones are left out.

    Raises:
      UsageError: as `read_recorded_games`, or a game is of other rules than the player.
    """
    recorded = read_recorded_games(paths, player.rules)
    for record, place in zip(recorded.records, recorded.places, strict=True):
        if record.rules != player.rules:
            raise UsageError(f"{place}: {_difference(record.rules, player.rules)}")
    return recorded


def _difference(rules: Rules, expected: Rules) -> str:
    """The difference between a game's rules and the player's: by name, else by the first field."""
    if name_of(rules) != name_of(expected):
        return f"its rules are {name_of(rules)}, the player's {name_of(expected)}"
    fields, wanted = rules.to_dict(), expected.to_dict()
    key = next(key for key in fields if fields[key] != wanted[key])
    return f"its rules have {key} {fields[key]}, the player's {wanted[key]}"


def play_own_games(player: Player, **options: Any) -> RecordedGames:
    """Play games of the player against itself to their end; the options are those of
    `own_rounds`."""
    records, places = zip(*own_rounds(player, **options), strict=True)
    return RecordedGames(tuple(chain(*records)), tuple(chain(*places)))


def own_rounds(
    player: Player,
    *,
    games: int,
    boards: int = _BOARDS,
    simulations: int,
    opening_plies: int,
    seed: int,
    on_progress: Callable[[int], None] = lambda games_done: None,
) -> Iterator[RecordedGames]:
    """Play games of the player against itself to their end, a round of them when it is asked for.

    Args:
      player: plays every side.
      games: to play.
      boards: games of a round at the most.
      simulations: of each move.
      opening_plies: random plies that each game begins with.
      seed: decides openings and noise.
      on_progress: called with the number of games that are over.
    """
    boards = min(games, boards)
    for done in range(0, games, boards):
        records = _play_batch(
            player,
            boards,
            simulations,
            opening_plies,
            jax.random.fold_in(jax.random.key(seed), done),
            lambda over, done=done: on_progress(min(done + over, games)),
        )[: games - done]
        places = (f"own game {number}" for number in range(done + 1, done + len(records) + 1))
        yield RecordedGames(tuple(records), tuple(places))


def states_of(recorded: RecordedGames) -> tuple[Examples, list[State]]:
    """The positions before each ply of some games, as arrays and board by board, on the host."""
    examples: Examples = fetch(make_examples(recorded))
    variant = jax.tree.map(lambda x: x[examples.game], examples.variant)
    leaves, tree = jax.tree.flatten(State(variant, examples.position))
    rows = zip(*leaves, strict=True)
    return examples, [tree.unflatten(row) for row in rows]


def _play_batch(
    player: Player,
    boards: int,
    simulations: int,
    opening_plies: int,
    key: jax.Array,
    on_over: Callable[[int], None],
) -> list[Record]:
    rules = player.rules
    options = dataclasses.replace(player.search, simulations=simulations)
    open_ply, play = _programs(player.evaluate, options)
    states, rewards = _first_states(rules, boards), jnp.zeros((boards, rules.players))
    played: list[np.ndarray] = []
    is_over = np.zeros(boards, np.bool_)
    while not is_over.all():
        program = open_ply if len(played) < opening_plies else play
        own_key = jax.random.fold_in(key, len(played))
        states, rewards, public = program(player.variables, states, rewards, own_key)
        public, is_over = fetch((public, states.position.terminated))
        played.append(public)
        on_over(int(is_over.sum()))
    ends = fetch(rewards)
    return [
        Record(
            rules=rules,
            actions=tuple(int(row[board]) for row in played if row[board] != actions.NO_ACTION),
            result=tuple(float(share) for share in ends[board]),
        )
        for board in range(boards)
    ]


def _first_states(rules: Rules, boards: int) -> State:
    variants = broadcast_boards(jax.tree.map(jnp.asarray, make_variant(rules)), boards)
    return State(variants, jax.vmap(initial_position)(variants))


@functools.cache
def _programs(evaluate: Evaluator, options: SearchConfig) -> tuple[Any, Any]:
    """A random ply and a searched one: (variables, states [B], rewards [B, P], key) -> states,
    rewards, public actions int32[B], NO_ACTION where the game was over."""
    search = make_search(evaluate, options, explores=True)

    @jax.jit
    def open_ply(variables: Any, states: State, rewards: jax.Array, key: jax.Array) -> Any:
        del variables
        bits = jax.random.bits(key, states.position.ply.shape, jnp.uint32)
        return _play(states, rewards, jax.vmap(actions.draw_slot)(states, bits))

    @jax.jit
    def play(variables: Any, states: State, rewards: jax.Array, key: jax.Array) -> Any:
        return _play(states, rewards, search(variables, states, key).slot)

    return open_ply, play


def _play(states: State, rewards: jax.Array, slots: jax.Array) -> tuple[Any, ...]:
    over = states.position.terminated
    public = jax.vmap(actions.action_of_slot)(states, slots).astype(jnp.int32)
    after, new = jax.vmap(referee.play)(states, slots)

    def unless_over(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(over.reshape(-1, *[1] * (new.ndim - 1)), old, new)

    states = State(states.variant, jax.tree.map(unless_over, after.position, states.position))
    return states, unless_over(new, rewards), jnp.where(over, actions.NO_ACTION, public)
