"""WallGo in the shape of a gymnax environment; gymnax itself is not needed.

    from wallgo_jax.adapters.gymnax import WallGoGymnax
    from wallgo_jax.adapters.opponents import play_randomly

    env = WallGoGymnax("wallzero-4stone", opponent=play_randomly)
    obs, state = env.reset(key, env.default_params)
    obs, state, reward, terminated, truncated, info = env.step(key, state, action)

Lange, "gymnax: A JAX-based Reinforcement Learning Environment Library", API of version 1.0:
`step` starts a new game where one ends and returns its first observation. WallGo has two to four
players, so one of two views must be chosen:

    opponent    who acts           reward                        observation
    a function  the learner        the learner's, +1, 0 or -1    from the learner's side
    None        whoever's turn     that of the player who acted  from the side of the next mover

Without an opponent the player may change at every step: a value of the next observation belongs to
`info["current_player"]`, and counts negative where two players alternate.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from wallgo_jax import env as env_lib
from wallgo_jax.adapters import spaces
from wallgo_jax.adapters.opponents import Opponent
from wallgo_jax.adapters.sides import observe_from
from wallgo_jax.arguments import check_key
from wallgo_jax.game import referee
from wallgo_jax.game.rules import Rules

RANDOM_SEAT = -1
"""A seat that is drawn at each reset."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EnvParams:
    """What may differ between environments of one batch.

    Attributes:
      max_steps_in_episode: steps after which a game is cut off; the default lets every game end.
      seat: the colour that the learner plays against an opponent, or RANDOM_SEAT; 0 is Red.
    """

    max_steps_in_episode: Any
    seat: Any = RANDOM_SEAT

    def replace(self, **changes: Any) -> "EnvParams":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EnvState:
    """One game.

    Attributes:
      time: int32, steps taken in this game.
      seat: int32, the colour of the learner; RANDOM_SEAT where there is no opponent.
      board: the env's state; `board.legal_action_mask` is the mask of the next action.
    """

    time: jax.Array
    seat: jax.Array
    board: env_lib.State

    def replace(self, **changes: Any) -> "EnvState":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def __str__(self) -> str:
        return str(self.board)


class WallGoGymnax:
    """Any rules behind gymnax's interface.

    Args:
      rules, grid, planes: as for `wallgo_jax.make`.
      opponent: plays every seat but the learner's, a function that JAX can trace; None lets the
        caller play all seats.
      legacy_step: return one `done` for `terminated` and `truncated`, as gymnax did before 1.0.
    """

    def __init__(
        self,
        rules: str | Rules = "wallzero-4stone",
        *,
        opponent: Opponent | None = None,
        grid: int | None = None,
        planes: str = "BTRH",
        legacy_step: bool = False,
    ) -> None:
        self._env = env_lib.make(rules, grid=grid, planes=planes)
        self._opponent = opponent
        self._legacy_step = legacy_step

    def _identity(self) -> tuple[Any, ...]:
        return self._env, self._opponent, self._legacy_step

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, WallGoGymnax)
        return self._identity() == other._identity() if same else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"WallGoGymnax({self._env!r})"

    @property
    def name(self) -> str:
        """`WallGo-` and the preset's name, or `WallGo-custom`."""
        return f"WallGo-{self._env.id}"

    @property
    def num_actions(self) -> int:
        """The size of the public action space."""
        return self._env.num_actions

    @property
    def default_params(self) -> EnvParams:
        """No cut-off, and a drawn seat."""
        return EnvParams(max_steps_in_episode=self._env.rules.max_plies + 1)

    def action_space(self, params: EnvParams | None = None) -> Any:
        """Return a Discrete of the public actions."""
        del params
        return spaces.discrete(self.num_actions)

    def observation_space(self, params: EnvParams | None = None) -> Any:
        """Return a Box of float32[grid, grid, C], zeros and ones."""
        del params
        return spaces.box(self._env.observation_shape)

    def reset(self, key: jax.Array, params: EnvParams | None = None) -> tuple[jax.Array, EnvState]:
        """Start a game; where the first turn is an opponent's, it plays.

        Raises:
          ValueError: the game has no such seat; not seen where JAX traces `params`.
        """
        check_key(key, call="env.reset(keys)")
        return self._reset(key, self._checked(params))

    def step(
        self, key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams | None = None
    ) -> tuple[Any, ...]:
        """Play a public action and the opponents' replies; start a new game where this one ends.

        Returns:
          observation, state, reward, terminated, truncated, info; with `legacy_step` one bool
          `done` in the place of two. An illegal action ends the game and costs 1. `info` holds
          `action_mask` and `current_player` of the returned state, the `rewards` float32[P] of all
          players, `terminated`, `truncated`, `discount` and `final_observation`, the observation
          before a new game.

        Raises:
          ValueError: as `reset`.
        """
        check_key(key, call="env.step(keys, states, actions)")
        return self._step(key, state, action, self._checked(params))

    def _checked(self, params: EnvParams | None) -> EnvParams:
        """The parameters, or the default ones, with a seat of this game."""
        params = self.default_params if params is None else params
        if not isinstance(params.seat, Tracer):
            seats, last = np.asarray(params.seat), self._env.num_players - 1
            if not ((seats == RANDOM_SEAT) | ((seats >= 0) & (seats <= last))).all():
                raise ValueError(
                    f"seat: {params.seat} is not a player from 0 to {last}, or RANDOM_SEAT"
                )
        return params

    @functools.partial(jax.jit, static_argnames=("self",))
    def _reset(self, key: jax.Array, params: EnvParams) -> tuple[jax.Array, EnvState]:
        return self.reset_env(key, params)

    @functools.partial(jax.jit, static_argnames=("self",))
    def _step(
        self, key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> tuple[Any, ...]:
        key_step, key_reset, key_reply = jax.random.split(key, 3)
        seen, after, reward, terminated, info = self.step_env(key_step, state, action, params)
        truncated = self.is_truncated(after, params)
        done = terminated | truncated
        fresh = self._start(key_reset, params)
        state = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, after)
        # Opponents reply in new games alone: elsewhere it is the learner's turn.
        state = self._let_opponents_play(key_reply, state)
        info = info | {
            "terminated": terminated,
            "truncated": truncated,
            "final_observation": seen,
            "action_mask": state.board.legal_action_mask,
            "current_player": state.board.current_player,
        }
        ends = (done,) if self._legacy_step else (terminated, truncated)
        return self.get_obs(state), state, reward, *ends, info

    def reset_env(self, key: jax.Array, params: EnvParams) -> tuple[jax.Array, EnvState]:
        """Start a game, not compiled."""
        key_start, key_reply = jax.random.split(key)
        state = self._let_opponents_play(key_reply, self._start(key_start, params))
        return self.get_obs(state), state

    def step_env(
        self, key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """Play without starting a new game: observation, state, reward, terminated, info."""
        del params
        actor = state.board.current_player
        board = self._env.step(state.board, action)
        after = self._let_opponents_play(key, state.replace(time=state.time + 1, board=board))
        terminated = after.board.terminated
        info = {
            "rewards": after.board.rewards,
            "discount": jnp.where(terminated, jnp.float32(0), jnp.float32(1)),
        }
        reward = referee.reward_of(after.board.rewards, actor)
        return self.get_obs(after), after, reward, terminated, info

    def get_obs(
        self, state: EnvState, params: EnvParams | None = None, key: jax.Array | None = None
    ) -> jax.Array:
        """float32[grid, grid, C]: the planes, the observer's colour first."""
        del params, key
        board = state.board
        observer = board.current_player if self._opponent is None else state.seat
        seen = observe_from(self._env, board.game, board._planes, observer)
        return seen.astype(jnp.float32)

    def observe(
        self, key: jax.Array, state: EnvState, action: Any, params: EnvParams | None = None
    ) -> jax.Array:
        """As `get_obs`, with the arguments of gymnax 1.0."""
        del key, action
        return self.get_obs(state, params)

    def is_terminated(self, state: EnvState, params: EnvParams | None = None) -> jax.Array:
        """bool: whether the game is over."""
        del params
        return state.board.game.position.terminated

    is_terminal = is_terminated

    def is_truncated(self, state: EnvState, params: EnvParams) -> jax.Array:
        """bool: whether the game is cut off."""
        return state.time >= params.max_steps_in_episode

    def discount(self, state: EnvState, params: EnvParams | None = None) -> jax.Array:
        """float32: 0 after the end, else 1."""
        return 1.0 - self.is_terminated(state, params).astype(jnp.float32)

    def _start(self, key: jax.Array, params: EnvParams) -> EnvState:
        """Start a game without any ply."""
        drawn = jax.random.randint(key, (), 0, self._env.num_players, jnp.int32)
        seat = jnp.where(jnp.asarray(params.seat) == RANDOM_SEAT, drawn, params.seat)
        seat = RANDOM_SEAT if self._opponent is None else seat
        return EnvState(jnp.int32(0), jnp.asarray(seat, jnp.int32), self._env.init())

    def _let_opponents_play(self, key: jax.Array, state: EnvState) -> EnvState:
        """Play until it is the learner's turn, or the game is over."""
        opponent = self._opponent
        if opponent is None:
            return state

        def waits(carry: tuple[jax.Array, env_lib.State]) -> jax.Array:
            _, board = carry
            return ~board.terminated & (board.current_player != state.seat)

        def ply(carry: tuple[jax.Array, env_lib.State]) -> tuple[jax.Array, env_lib.State]:
            key, board = carry
            key, act_key = jax.random.split(key)
            return key, self._env.step(board, opponent(board, act_key))

        return state.replace(board=jax.lax.while_loop(waits, ply, (key, state.board))[1])
