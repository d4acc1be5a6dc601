"""Replays a written-down game on the host, ply by ply, by the referee."""

from collections.abc import Sequence
from typing import NamedTuple

import jax

from wallgo_jax import display
from wallgo_jax.board.geometry import MAX_GRID
from wallgo_jax.game import actions as actions_lib
from wallgo_jax.game import referee
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import State, initial_state
from wallgo_jax.notation import COLOURS, NotatedMove
from wallgo_jax.view.illegality import illegality
from wallgo_jax.view.snapshot import take_snapshot


class Game(NamedTuple):
    """A game or its beginning: T actions and the T + 1 positions around them.

    `rewards` holds each player's reward for the last ply, zeros while the game goes on.
    """

    rules: Rules
    grid: int
    actions: tuple[int, ...]
    movers: tuple[int, ...]
    states: tuple[State, ...]
    rewards: tuple[float, ...]

    @property
    def is_over(self) -> bool:
        """Whether the last position ends the game."""
        return bool(self.states[-1].position.terminated)

    def __repr__(self) -> str:
        rules, plies = name_of(self.rules), len(self.actions)
        end = f"over, rewards {list(self.rewards)}" if self.is_over else "not over"
        return f"<Game of {rules}, {plies} plies, {end}>"

    def _repr_html_(self) -> str:
        """Draw the game, stepped by a slider, for a notebook."""
        return display.game_to_html(self)


def replay_actions(rules: Rules, actions: Sequence[int], *, grid: int | None = None) -> Game:
    """Play public actions (ids of the grid) from the start.

    Raises:
      ValueError: `ply N: reason` at the first action that is not allowed, plies counted from 1; or
        a board larger than the grid.
    """
    return replay_moves(rules, [NotatedMove(int(action), None) for action in actions], grid=grid)


def replay_moves(rules: Rules, moves: Sequence[NotatedMove], *, grid: int | None = None) -> Game:
    """Play moves from the start; a colour in front of a move must be that of the player to move.

    Raises:
      ValueError: as `replay_actions`, or at the first move of a player who is not to move.
    """
    grid = rules.size if grid is None else grid
    check_grid(grid, rules)
    states, movers = [jax.device_get(initial_state(rules, grid=grid))], []
    rewards: tuple[float, ...] = (0.0,) * rules.players
    for ply, (action, player) in enumerate(moves, start=1):
        before = states[-1]
        mover = int(before.position.player)
        if player is not None and player != mover and not before.position.terminated:
            raise ValueError(f"ply {ply}: {COLOURS[mover]} is to move, not {COLOURS[player]}")
        try:
            after, rewards = play_action(before, action)
        except ValueError as error:
            raise ValueError(f"ply {ply}: {error}") from None
        states.append(after)
        movers.append(mover)
    return Game(
        rules=rules,
        grid=grid,
        actions=tuple(move.action for move in moves),
        movers=tuple(movers),
        states=tuple(states),
        rewards=rewards,
    )


def check_grid(grid: int, rules: Rules) -> None:
    """Refuse a grid in which the rules' board cannot lie, with a ValueError."""
    if not rules.size <= grid <= MAX_GRID:
        raise ValueError(
            f"grid: {grid} is not between the board's size {rules.size} and {MAX_GRID}"
        )


def play_action(state: State, action: int) -> tuple[State, tuple[float, ...]]:
    """Play a public action on the host; return the position after it and each player's reward.

    Raises:
      ValueError: the action is not allowed, and why.
    """
    played = actions_lib.in_int32(action, grid=state.grid)
    after, rewards, legal = jax.device_get(_step(state, played))
    if not legal:
        raise ValueError(illegality(take_snapshot(state), action))
    return after, tuple(float(share) for share in rewards)


@jax.jit
def _step(state: State, action: jax.Array) -> tuple[State, jax.Array, jax.Array]:
    slot = actions_lib.slot_of_action(state, action)
    legal = actions_lib.is_legal(state, slot)
    return *referee.play(state, slot), legal
