"""A game on the host: plies by the referee, in notation, with a way back."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax.game import actions as actions_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_position, make_variant
from wallgo_jax.notation import COLOURS, parse_action
from wallgo_jax.view.game_replay import play_action


class GamePosition(NamedTuple):
    """A position of a game and the way to it. Arrays are NumPy's."""

    state: State
    legal: int  # number of legal moves
    result: tuple[float, ...] | None  # each player's reward once the game is over
    before: "GamePosition | None"  # None where the game begins
    actions: tuple[int, ...]  # public ids of the plies from there
    slots: tuple[int, ...]  # of these plies

    @property
    def ply(self) -> int:
        """Plies played, those before a given position included."""
        return int(self.state.position.ply)

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.position.player)

    def play(self, move: str | int) -> "GamePosition":
        """The position after a move in any notation, or a public action id.

        Raises:
          UsageError: it is unreadable or illegal.
        """
        action = self.read(move)
        try:
            state, rewards = play_action(self.state, action)
        except ValueError as error:
            raise UsageError(f"move: {error}") from None
        slot = _slot_of(self.state, np.int32(action))
        way = (*self.actions, action), (*self.slots, int(slot))
        result = rewards if state.position.terminated else None
        return GamePosition(state, int(_count_legal(state)), result, self, *way)

    def read(self, move: str | int) -> int:
        """The public action of a move in any notation, or of a public action id; legal or not.

        Raises:
          UsageError: it is unreadable, or names another colour than that of the player to move.
        """
        if not isinstance(move, str):
            return int(move)
        try:
            action, player = parse_action(move, grid=self.state.grid)
        except ValueError as error:
            raise UsageError(f"move: {error}") from None
        if player not in (None, self.player) and self.result is None:
            raise UsageError(f"move: {COLOURS[self.player]} is to move, not {COLOURS[player]}")
        return action


@dataclasses.dataclass(eq=False)
class Session:
    """An open game, and the budget of an answer where the session has its own."""

    rules: Rules
    position: GamePosition
    simulations: int | None = None
    seconds: float | None = None


def begin_game(rules: Rules, state: State | None = None) -> GamePosition:
    """Begin a game, or go on from one board of the rules whose game goes on."""
    if state is None:
        variant: Any = make_variant(rules)
        state = State(variant, fetch(_begin(variant)))
    return GamePosition(state, int(fetch(_count_legal(state))), None, None, (), ())


def play_moves(position: GamePosition, moves: Sequence[str | int]) -> GamePosition:
    """The position after moves.

    Raises:
      UsageError: the first of the moves that cannot be played, as `ply N: reason`.
    """
    for move in moves:
        try:
            position = position.play(move)
        except UsageError as error:
            raise UsageError(f"ply {position.ply + 1}: {error}") from None
    return position


_begin = jax.jit(initial_position)
_slot_of = jax.jit(actions_lib.slot_of_action)


@jax.jit
def _count_legal(state: State) -> jax.Array:
    return actions_lib.legal_slots(state).sum()
