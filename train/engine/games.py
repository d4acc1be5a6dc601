"""A session's game on the host: plies by the referee, in notation, with a way back."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from train.engine.answers import SessionError
from train.runtime.host import fetch
from wallgo_jax.game import actions as actions_lib
from wallgo_jax.game import referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, Variant, initial_position, make_variant
from wallgo_jax.notation import CANONICAL_SIDES, COLOURS, NotatedMove, format_action, parse_action
from wallgo_jax.view.illegality import illegality
from wallgo_jax.view.snapshot import take_snapshot


class Ply(NamedTuple):
    """A ply that was played, and the position before it."""

    before: State
    legal: int  # how many moves there were
    action: int  # public id
    slot: int


class SessionGame:
    """A game that can be played on and taken back, ply by ply. Arrays are NumPy's.

    Attributes:
      state: the position.
      legal: number of legal moves in it.
      rewards: each player's after the end, else None.
      plies: played here, oldest first.
    """

    def __init__(self, rules: Rules, position: State | None = None) -> None:
        """Begin a game, or go on from a position.

        Raises:
          SessionError: nobody can move in the position, or it is not of these rules.
        """
        self.rules = rules
        if position is None:
            variant: Any = make_variant(rules)
            self.state = State(variant, fetch(_begin(variant)))
        else:
            self.state = _checked(fetch(position), rules)
        self.start_ply = int(self.state.position.ply)
        self.plies: list[Ply] = []
        self.rewards: tuple[float, ...] | None = None
        self.legal = int(fetch(_count_legal(self.state)))

    @property
    def grid(self) -> int:
        """Side length of the grid that numbers the cells."""
        return self.state.grid

    @property
    def ply(self) -> int:
        """Plies played, those before a given position included."""
        return self.start_ply + len(self.plies)

    @property
    def player(self) -> int:
        """Who is to move."""
        return int(self.state.position.player)

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return self.rewards is not None

    def name_of(self, action: int) -> str:
        """A public action in canonical notation."""
        return format_action(action, grid=self.grid, sides=CANONICAL_SIDES)

    def play(self, move: str | int) -> None:
        """Play a move in any notation, or a public action id.

        Raises:
          SessionError: it is unreadable or illegal; the game is unchanged.
        """
        action = self._read(move)
        is_known = 0 <= action < actions_lib.num_actions(self.grid)
        played = np.int32(action if is_known else actions_lib.NO_ACTION)
        after, rewards, is_legal, slot, legal = fetch(_advance(self.state, played))
        if self.is_over or not is_legal:
            raise SessionError(f"move: {illegality(take_snapshot(self.state), action)}")
        self.plies.append(Ply(self.state, self.legal, action, int(slot)))
        self.state, self.legal = after, int(legal)
        if after.position.terminated:
            self.rewards = tuple(float(share) for share in rewards)

    def play_all(self, moves: Sequence[str | int]) -> None:
        """Play moves one after the other.

        Raises:
          SessionError: `ply N: reason` at the first that cannot be played.
        """
        for move in moves:
            try:
                self.play(move)
            except SessionError as error:
                raise SessionError(f"ply {self.ply + 1}: {error}") from None

    def take_back(self, ply: int) -> None:
        """Return to the position after so many plies.

        Raises:
          SessionError: the game has not been there.
        """
        if not self.start_ply <= ply <= self.ply:
            raise SessionError(f"ply: {ply} is not from {self.start_ply} to {self.ply}")
        if ply < self.ply:
            self.state, self.legal, *_ = self.plies[ply - self.start_ply]
            del self.plies[ply - self.start_ply :]
            self.rewards = None

    def _read(self, move: str | int) -> int:
        if isinstance(move, int):
            return move
        try:
            action, player = parse_action(move, grid=self.grid)
        except ValueError as error:
            raise SessionError(f"move: {error}") from None
        if player is not None and player != self.player and not self.is_over:
            raise SessionError(f"move: {COLOURS[self.player]} is to move, not {COLOURS[player]}")
        return NotatedMove(action, player).action


def warm_up(rules: Rules) -> None:
    """Compile everything that a game of these rules' shape needs."""
    game = SessionGame(rules)
    try:
        game.play(-1)
    except SessionError:
        return
    raise AssertionError("an illegal move was played")


def _checked(state: State, rules: Rules) -> State:
    """A position of these rules, in which somebody can move.

    Raises:
      SessionError: it is not.
    """
    expected: Any = make_variant(rules)
    same = jax.tree.map(np.array_equal, state.variant, expected)
    if state.grid != rules.size or not all(jax.tree.leaves(same)):
        raise SessionError("position: it is of other rules than the session")
    if bool(state.position.terminated):
        raise SessionError("position: the game is over; start from one that goes on")
    return state


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
