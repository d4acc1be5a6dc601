"""The games that a player analyses: those of record files, or those that it plays against itself,
all boards at once, with the noise of self-play."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import jax

from train.data.record_dataset import Examples, RecordedGames, make_examples
from train.data.whole_games import WholeGames, make_whole_games
from train.players.basic import Player
from train.runtime.host import fetch
from train.search.config import SearchConfig
from train.search.evaluator import Evaluator
from train.search.search import make_search
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

_BOARDS = 256


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
    rules, boards = player.rules, min(games, boards)
    options = dataclasses.replace(player.search, simulations=simulations)
    play = _make_games(player.evaluate, options, rules, boards, opening_plies)
    for done in range(0, games, boards):
        key = jax.random.fold_in(jax.random.key(seed), done)
        played = play(
            player.variables, key, lambda over, done=done: on_progress(min(done + over, games))
        )
        plies = zip(played.actions.tolist(), played.lengths, played.rewards.tolist(), strict=True)
        records = tuple(
            Record(rules=rules, actions=tuple(actions[:length]), result=tuple(rewards))
            for actions, length, rewards in plies
        )[: games - done]
        places = (f"own game {number}" for number in range(done + 1, done + len(records) + 1))
        yield RecordedGames(records, tuple(places))


@functools.lru_cache(maxsize=4)
def _make_games(
    evaluate: Evaluator, options: SearchConfig, rules: Rules, games: int, opening_plies: int
) -> Callable[..., WholeGames]:
    search = make_search(evaluate, options, explores=True)
    return make_whole_games(
        search, rules, games=games, opening_plies=opening_plies, has_policies=False
    )


def states_of(recorded: RecordedGames) -> tuple[Examples, list[State]]:
    """The positions before each ply of some games, as arrays and board by board, on the host."""
    examples: Examples = fetch(make_examples(recorded))
    variant = jax.tree.map(lambda x: x[examples.game], examples.variant)
    leaves, tree = jax.tree.flatten(State(variant, examples.position))
    rows = zip(*leaves, strict=True)
    return examples, [tree.unflatten(row) for row in rows]
