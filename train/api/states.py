"""States as users have them, one board or a batch, as the batch that players take.

B boards, A slots.
"""

from typing import Any

import jax
import numpy as np

from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax.env import State as EnvState
from wallgo_jax.game import actions, referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import (
    NOT_PLACED,
    State,
    assert_board,
    make_variant,
    sizes_of,
    sizes_of_state,
)
from wallgo_jax.view.game_replay import Game

States = EnvState | State | Game
"""A state of the env or of the game, one board or a batch [B], or a game, for its last position."""

_TRANSFER = "; make_player(..., transfer=True) allows it"


def batch_of(states: States, rules: Rules) -> tuple[State, bool]:
    """The boards as a batch [B], and whether a single one was given.

    Raises:
      UsageError: they are no boards, not of as many players as the rules, or too small for their
        cells or stones.
    """
    game: Any = states.states[-1] if isinstance(states, Game) else getattr(states, "game", states)
    rank = np.ndim(getattr(getattr(game, "position", None), "ply", np.zeros((0, 0))))
    batch = game if rank else jax.tree.map(lambda x: np.asarray(x)[None], game)
    try:
        assert isinstance(game, State) and rank < 2
        jax.eval_shape(jax.vmap(assert_board), batch)
    except (AssertionError, ValueError):
        raise UsageError(
            f"state: {type(states).__name__} is no state of the env or of the game, a batch [B] of "
            "them, or a Game"
        ) from None
    sizes, given = sizes_of(rules), sizes_of_state(batch)
    is_smaller = given.grid < sizes.grid or given.stones < sizes.stones
    if sizes.players != given.players or is_smaller:
        its, players = (
            f"{grid}x{grid} cells, {count} players and {stones} stones each"
            for grid, count, stones in (given, sizes)
        )
        raise UsageError(f"state: its boards are of {its}, the player's of {players}")
    return batch, rank == 0


def check_rules(states: State, rules: Rules, name: str, *, has_learned: bool = True) -> None:
    """Refuse boards [B] of other rules than a network has learned, or a player was made for.

    Raises:
      UsageError: a board has other rules; the same board in a larger grid, or turned, is allowed.
    """
    grid, _, stones = sizes_of_state(states)
    learned = make_variant(rules, grid=grid, stones=stones)
    given = fetch(states.variant)
    for key, its, own in zip(learned._fields, given, learned, strict=True):
        if key == "start":  # a turned board has its first stones elsewhere
            its, own = its != NOT_PLACED, own != NOT_PLACED
        if key != "grid" and (np.asarray(its) != np.asarray(own)[None]).any():
            known, hint = ("has learned", _TRANSFER) if has_learned else ("was made for", "")
            raise UsageError(
                f"state: a board has other rules than {name} {known} ({key} differs){hint}"
            )


def step(states: State, slots: jax.Array) -> tuple[State, jax.Array]:
    """Play slots in states.

    Args:
      states: [B].
      slots: int32[B], legal ones.

    Returns:
      The states after them, and the reward of each player, float32[B, P], zeros while a game goes
      on.
    """
    return jax.vmap(referee.play)(states, slots)


def legal_slots(states: State) -> jax.Array:
    """Legal slots of game states, bool[B, A]: for players and planes of your own.

    Args:
      states: [B]; of one board the result is bool[A].
    """
    is_one = states.position.ply.ndim == 0
    return actions.legal_slots(states) if is_one else jax.vmap(actions.legal_slots)(states)


@jax.jit
def actions_of(states: State, slots: jax.Array) -> jax.Array:
    """int32[B]: public actions of slots int32[B]."""
    return jax.vmap(actions.action_of_slot)(states, slots)
