"""Plays that give up territory for reach, and plays that pass: what they are, and which are.

Each definition below was fixed before the figures that it decides were looked at:

- *Reach* of a side: the cells that its stones can enter within k turns, two steps a turn, over
  exits free of walls and stones, while nobody else moves.
- A play *gives up territory for reach* if another legal play owns at least `LEAD` more enclosed
  cells at once (own less the opponent's), and the played one leads to at least `GAIN` more cells of
  reach within 4 turns (own less the opponent's) than the best of those that own most.
- An *implicit pass* is a play after which neither side's reach within 4 turns nor its enclosed
  territory has changed by more than `HARDLY` cells in all: it hands over the turn.
- In a position whose best play is an implicit pass, *moving first loses* if the best of the other
  plays has a win chance at least `BURDEN` below that of the same position with the other side to
  move: then the pass is played because whoever moves gives something away.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.experiments.selfplay_games import OwnGames, states_of
from train.runtime.host import in_batches
from wallgo_jax.board import bitboard
from wallgo_jax.game import actions, referee
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.state import State

TURNS = 4
LEAD, GAIN, HARDLY = 1, 3, 1
"""Cells; see above."""
BURDEN = 0.05
"""Win chance; see above."""
POSITIONS = 256
"""Positions that are looked at in one batch."""
THIRDS = ("first third", "second third", "last third")


class Plays(NamedTuple):
    """The plays of games, without placements."""

    states: State  # [N]
    slot: np.ndarray  # int[N]
    game: np.ndarray  # int[N]
    third: np.ndarray  # int[N], third of the game's plies that the play falls into

    @property
    def mover(self) -> np.ndarray:
        """int[N]: the player to move."""
        return np.asarray(self.states.position.player)


def plays_of(games: OwnGames) -> Plays:
    """The plays of games, placements left out."""
    examples, placements = games.examples(), len(games.rules.order)
    ply, states = examples.position.ply, states_of(examples)
    chosen = np.flatnonzero(ply >= placements)
    game = np.asarray(examples.game)[chosen]
    length = np.maximum(games.plies[game] - placements, 1)
    third = np.minimum(3 * (ply[chosen] - placements) // length, 2)
    states = jax.tree.map(lambda x: np.asarray(x)[chosen], states)
    return Plays(states, np.asarray(examples.slot)[chosen], game, third)


def reach_of(states: State) -> tuple[np.ndarray, np.ndarray]:
    """int[N] legal actions of the player to move in states [N], and int[N, 4, 2] cells of each
    player's reach within 1 to 4 turns."""
    legal, cells = in_batches(_reach_of, states, 8 * POSITIONS)
    return legal, cells


@jax.jit
def _reach_of(states: State) -> tuple[jax.Array, jax.Array]:
    def one(state: State) -> tuple[jax.Array, jax.Array]:
        terrain = terrain_lib.read_terrain(*state)
        sets = terrain_lib.reach_by_turn(terrain, terrain.free_exits, TURNS)[1:]
        legal = jax.lax.population_count(actions.legal_words(state)).sum()
        return legal.astype(jnp.int32), jnp.stack([terrain_lib.areas(each) for each in sets])

    return jax.vmap(one)(states)


def kinds_of(
    states: State, on_progress: Callable[[int], Any] = lambda done: None
) -> tuple[np.ndarray, np.ndarray]:
    """bool[N, A] the plays from states [N] after setup that give up territory for reach, and those
    that pass."""
    gives_up, passes = in_batches(_kinds_of, states, POSITIONS, on_progress)
    return gives_up, passes


@jax.jit
def _kinds_of(states: State) -> tuple[jax.Array, jax.Array]:
    def sets_of(state: State) -> tuple[jax.Array, jax.Array]:
        """uint32[2, W] reach within 4 turns, and uint32[2, W] enclosed cells."""
        analysis = terrain_lib.analyse_board(*state)
        terrain = analysis.terrain
        reach = terrain_lib.reach_by_turn(terrain, terrain.free_exits, TURNS)[-1]
        return bitboard.pack_sets(reach), bitboard.pack_sets(analysis.owned)

    def count(words: jax.Array) -> jax.Array:
        return jax.lax.population_count(words).sum(axis=-1).astype(jnp.int32)

    def one(state: State) -> tuple[jax.Array, jax.Array]:
        legal, mover = actions.legal_slots(state), state.position.player.astype(jnp.int32)
        reach, owned = sets_of(state)

        def after(slot: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            new_reach, new_owned = sets_of(referee.play(state, slot)[0])
            changed = count(reach ^ new_reach).sum() + count(owned ^ new_owned).sum()
            cells, reached = count(new_owned), count(new_reach)
            return changed, cells[mover] - cells[1 - mover], reached[mover] - reached[1 - mover]

        changed, lead, ahead = jax.vmap(after)(jnp.arange(legal.shape[0]))
        most = jnp.where(legal, lead, -99).max()
        rival = jnp.where(legal & (lead == most), ahead, -99).max()
        gives_up = legal & (lead <= most - LEAD) & (ahead >= rival + GAIN)
        return gives_up, legal & (changed <= HARDLY)

    return jax.vmap(one)(states)
