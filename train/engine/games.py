"""A session's game on the host: plies by the referee, in notation, with a way back."""

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.search.report import canonical_move
from wallgo_jax.game import actions as actions_lib
from wallgo_jax.game import referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, Variant, initial_position, make_variant
from wallgo_jax.notation import COLOURS, parse_action
from wallgo_jax.view.illegality import illegality
from wallgo_jax.view.snapshot import take_snapshot


class Ply(NamedTuple):
    """A ply that was played, and the position before it."""

    before: State
    legal: int  # how many moves there were
    action: int  # public id
    slot: int


@dataclasses.dataclass
class SessionGame:
    """A game that can be played on and taken back, ply by ply. Arrays are NumPy's.

    Attributes:
      number: of the session, never used again.
      rules: what is played.
      state: the position.
      legal: number of legal moves in it.
      simulations: of an answer; None for the player's own.
      seconds: of an answer, in place of simulations.
      plies: played here, oldest first.
      result: each player's reward once the game is over, else None.
    """

    number: int
    rules: Rules
    state: State
    legal: int
    simulations: int | None = None
    seconds: float | None = None
    plies: list[Ply] = dataclasses.field(default_factory=list)
    result: tuple[float, ...] | None = None

    @property
    def ply(self) -> int:
        """Plies played, those before a given position included."""
        return int(self.state.position.ply)

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.position.player)

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return self.result is not None

    @property
    def actions(self) -> tuple[int, ...]:
        """Plies of the session as public action ids."""
        return tuple(ply.action for ply in self.plies)

    @property
    def moves(self) -> tuple[str, ...]:
        """Plies of the session in canonical notation, such as `B6->B5:W0`."""
        return tuple(canonical_move(action, grid=self.state.grid) for action in self.actions)

    def play(self, move: str | int) -> None:
        """Play a move in any notation, or a public action id.

        Raises:
          UsageError: it is unreadable or illegal; the game is unchanged.
        """
        action = self._read(move)
        is_known = 0 <= action < actions_lib.num_actions(self.state.grid)
        played = np.int32(action if is_known else actions_lib.NO_ACTION)
        after, rewards, is_legal, slot, legal = fetch(_advance(self.state, played))
        if self.is_over or not is_legal:
            raise UsageError(f"move: {illegality(take_snapshot(self.state), action)}")
        self.plies.append(Ply(self.state, self.legal, action, int(slot)))
        self.state, self.legal = after, int(legal)
        if after.position.terminated:
            self.result = tuple(float(share) for share in rewards)

    def take_back(self, ply: int) -> None:
        """Return to the position after this many plies.

        Raises:
          UsageError: the game has not been there.
        """
        first = self.ply - len(self.plies)
        if not first <= ply <= self.ply:
            raise UsageError(f"ply: {ply} is not from {first} to {self.ply}")
        if ply < self.ply:
            self.state, self.legal, *_ = self.plies[ply - first]
            del self.plies[ply - first :]
            self.result = None

    def _read(self, move: str | int) -> int:
        if not isinstance(move, str):
            return int(move)
        try:
            action, player = parse_action(move, grid=self.state.grid)
        except ValueError as error:
            raise UsageError(f"move: {error}") from None
        if player is not None and player != self.player and not self.is_over:
            raise UsageError(f"move: {COLOURS[self.player]} is to move, not {COLOURS[player]}")
        return action


def begin_game(
    number: int, rules: Rules, position: State | None = None, moves: Sequence[str | int] = ()
) -> SessionGame:
    """Begin a game, or go on from a position, and play moves.

    Raises:
      UsageError: nobody can move in the position, it is not of these rules, or the first of the
        moves that cannot be played, as `ply N: reason`.
    """
    variant: Any = make_variant(rules)
    if position is None:
        position = State(variant, fetch(_begin(variant)))
    state: State = fetch(position)
    is_same = jax.tree.map(np.array_equal, state.variant, variant)
    if state.grid != rules.size or not all(jax.tree.leaves(is_same)):
        raise UsageError("position: it is of other rules than the session")
    if bool(state.position.terminated):
        raise UsageError("position: the game is over; start from one that goes on")
    game = SessionGame(number, rules, state, int(fetch(_count_legal(state))))
    for move in moves:
        try:
            game.play(move)
        except UsageError as error:
            raise UsageError(f"ply {game.ply + 1}: {error}") from None
    return game


def warm_up(rules: Rules) -> None:
    """Compile everything that a game of these rules' shape needs."""
    with contextlib.suppress(UsageError):
        begin_game(0, rules).play(actions_lib.NO_ACTION)


@jax.jit
def _begin(variant: Variant) -> Position:
    return initial_position(variant)


@jax.jit
def _count_legal(state: State) -> jax.Array:
    return actions_lib.legal_slots(state).sum()


@jax.jit
def _advance(
    state: State, action: jax.Array
) -> tuple[State, jax.Array, jax.Array, jax.Array, jax.Array]:
    """The state after a public action, rewards, whether it is legal, its slot, and the number of
    legal slots after it."""
    slot = actions_lib.slot_of_action(state, action)
    is_legal = actions_lib.is_legal(state, slot)
    after, rewards = referee.play(state, slot)
    return after, rewards, is_legal, slot, actions_lib.legal_slots(after).sum()
