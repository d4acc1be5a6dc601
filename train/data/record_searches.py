"""What searches say of the positions of recorded games, for their records.

N positions, A slots, K slots that are kept.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.data.best_slots import keep_best
from train.data.record_dataset import RecordedGames, make_examples
from train.game import State, action_of_slot
from train.runtime.host import fetch, in_batches
from train.search.search import Search
from wallgo_jax.formats.records import Record, Searched

_BATCH = 256
_DIGITS = 5  # a share is kept in half precision


class Searcher(NamedTuple):
    """A search, and the weights that it takes."""

    search: Search
    variables: Any


def add_searches(
    records: Sequence[Record],
    searchers: Mapping[str, Searcher],
    *,
    seed: int,
    on_progress: Callable[[int], Any] = lambda done: None,
) -> list[Record]:
    """Search each position of finished games as its mover does, and keep what the search says.

    Args:
      records: games; those without a result stay as they are.
      searchers: by the names of players in the records. Plies of others get none.
      seed: of the searches' noise, if they have any.
      on_progress: called with the number of positions that are done.

    Returns:
      The records, with `values` and `searches` where there is a searcher.
    """
    finished = [number for number, record in enumerate(records) if record.result is not None]
    if not finished:
        return list(records)
    games = RecordedGames(
        records=tuple(records[number] for number in finished),
        places=tuple(f"game {number + 1}" for number in finished),
    )
    examples = fetch(make_examples(games))
    variant = examples.variant
    position = examples.position
    game = examples.game
    plies = zip(game, position.player, strict=True)
    movers = np.array([_mover(games.records[number], player) for number, player in plies])
    searches: list[Searched | None] = [None] * len(game)
    values: list[float | None] = [None] * len(game)
    done = 0
    for name, searcher in searchers.items():
        of_mover = np.flatnonzero(movers == name)
        if not len(of_mover):
            continue
        states = State(
            jax.tree.map(lambda x, index=of_mover: x[game[index]], variant),
            jax.tree.map(lambda x, index=of_mover: x[index], position),
        )
        ask = functools.partial(_ask, searcher.search, searcher.variables, jax.random.key(seed))
        told = functools.partial(lambda done, more: on_progress(done + more), done)
        for place, *said, value in zip(
            of_mover, *in_batches(ask, states, _BATCH, told), strict=True
        ):
            searches[place] = _searched(*said)
            values[place] = round(float(value), _DIGITS)
        done += len(of_mover)
    found = list(records)
    for number, record in enumerate(games.records):
        own = slice(*np.searchsorted(game, (number, number + 1)))
        if any(each is not None for each in searches[own]):
            found[finished[number]] = dataclasses.replace(
                record, searches=tuple(searches[own]), values=tuple(values[own])
            )
    return found


def _mover(record: Record, player: int) -> str:
    return record.players[player] if record.players else ""


@functools.partial(jax.jit, static_argnums=0)
def _ask(
    search: Search, variables: Any, key: jax.Array, states: State
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Public actions int32[B, K], shares float16[B, K], visits int32[B, K], -1 without any, and
    values float32[B]."""
    result = search(variables, states, key)
    best = keep_best(result.policy)
    slots = best.slot.astype(jnp.int32)
    public = jax.vmap(jax.vmap(action_of_slot, (None, 0)))(states, slots).astype(jnp.int32)
    visits = jnp.full_like(slots, -1)
    if result.visits is not None:
        visits = jnp.take_along_axis(result.visits, slots, axis=1).astype(jnp.int32)
    return public, best.share, visits, result.value


def _searched(actions: np.ndarray, shares: np.ndarray, visits: np.ndarray) -> Searched:
    rounded = shares.astype(np.float64).round(_DIGITS)
    likely = rounded > 0
    return Searched(
        actions=tuple(actions[likely].tolist()),
        shares=tuple(rounded[likely].tolist()),
        visits=tuple(visits[likely].tolist()) if (visits >= 0).all() else None,
    )
