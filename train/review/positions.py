"""Searches many positions in batches, in parts between which progress is shown.

Gumbel search without noise, whatever the player's own kind of search.

B positions of a batch, A slots.
"""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from train.engine import pool
from train.engine.pool import searching_of
from train.network import MASKED
from train.players.basic import Player
from train.runtime.host import fetch
from train.search.report import SearchReport
from train.search.sequential_halving import halving_schedule
from train.search.tree import ROOT
from wallgo_jax.game import actions
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import State

_BATCHES = (16, 64, 256)
_TREE_BYTES = 2**30
"""Room for the trees of a batch; more positions take more batches."""
_MOST_PARTS = 20
"""Equal parts of a search, between which progress is shown."""


def search_positions(
    player: Player,
    states: Sequence[State],
    *,
    simulations: int | None = None,
    excluded: Sequence[int | None] | None = None,
    is_only: bool = False,
    on_progress: Callable[[int], None] = lambda simulations: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[SearchReport]:
    """Search positions, none of them after the end of a game.

    Args:
      player: searches.
      states: one board each, on one grid, of the player's rules.
      simulations: of each search; the player's own by default.
      excluded: a public action of each position that its search must not choose, or None.
      is_only: the search must choose these actions instead, and looks at no other.
      on_progress: called with the simulations done so far, summed over positions.
      should_stop: asked before each batch; what is searched by then is returned.
    """
    reports: list[SearchReport] = []
    count = player.search.simulations if simulations is None else simulations
    player = player._replace(search=dataclasses.replace(player.search, simulations=count))
    while (first := len(reports)) < len(states) and not should_stop():
        batch = _batch_size(len(states) - first, count, states[0])
        part = slice(first, first + batch)
        some, barred = states[part], None if excluded is None else excluded[part]

        def on_part(done: int, first: int = first, positions: int = len(some)) -> None:
            on_progress(first * count + positions * done)

        reports += _search_batch(player, some, barred, is_only, batch, on_part)
    return reports


def _batch_size(positions: int, simulations: int, state: State) -> int:
    """Positions of a batch; there are few sizes, because each is compiled."""
    # A node has a float32 and at most a uint32 by slot.
    room = max(_TREE_BYTES // ((simulations + 1) * state.num_slots * 8), 1)
    most = 1 << (room.bit_length() - 1)
    enough = next((size for size in _BATCHES if size >= positions), _BATCHES[-1])
    return min(most, enough)


def _search_batch(
    player: Player,
    states: Sequence[State],
    excluded: Sequence[int | None] | None,
    is_only: bool,
    batch: int,
    on_part: Callable[[int], None],
) -> list[SearchReport]:
    """The reports of some positions, in one batch that is filled up by the first of them."""
    count, variables, how = player.search.simulations, player.variables, searching_of(player)
    filled = [states[i % len(states)] for i in range(batch)]
    stacked: State = jax.tree.map(lambda *x: np.stack(x), *filled)
    allowed = None
    if excluded is not None:
        barred = np.full(batch, NO_ACTION, np.int32)
        barred[: len(states)] = [NO_ACTION if x is None else x for x in excluded]
        allowed = _allow(stacked, jnp.asarray(barred), is_only)
    trees = pool.begin(how, variables, stacked, allowed, nodes=count + 1)
    rows = np.arange(batch, dtype=np.int32)
    schedule = halving_schedule(player.search.max_considered_actions, count)
    num_slots = (trees.tree.logits[:, ROOT] > MASKED).sum(axis=1)
    dues = schedule[np.minimum(num_slots, len(schedule) - 1)]
    size = count // max(part for part in range(1, _MOST_PARTS + 1) if count % part == 0)
    for done in range(0, count, size):
        trees = pool.grow(how, variables, trees, rows, dues[:, done : done + size], np.int32(size))
        jax.block_until_ready(trees.used)
        on_part(done + size)
    report: SearchReport = fetch(pool.report(how, variables, trees, rows))
    report = report.of_player(player, player.rules, count)
    return [report[board] for board in range(len(states))]


@jax.jit
def _allow(states: State, excluded: jax.Array, is_only: bool) -> jax.Array:
    """bool[B, A]: slots other than those of public actions int32[B], or these alone; all where the
    action is NO_ACTION."""
    slots = jax.vmap(actions.slot_of_action)(states, excluded)
    barred = jax.nn.one_hot(slots, states.num_slots, dtype=jnp.bool_)
    return (excluded == NO_ACTION)[:, None] | (barred == is_only)
