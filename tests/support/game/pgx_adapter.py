"""WallGo as a `pgx.Env`: as little as pgx's own machinery needs to drive it."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pgx
from pgx._src.struct import dataclass

import wallgo_jax
from wallgo_jax import render

ENV_ID = "wallgo"


@dataclass
class State(pgx.State):
    """pgx's six fields and the state that they were read off."""

    current_player: jax.Array
    observation: jax.Array
    rewards: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    legal_action_mask: jax.Array
    _step_count: jax.Array
    _inner: wallgo_jax.State

    @property
    def env_id(self) -> Any:
        return ENV_ID

    def save_svg(self, filename: str, **options: Any) -> None:
        del options
        Path(filename).write_text(render.html(self._inner))


def show(inner: wallgo_jax.State, count: jax.Array) -> State:
    """The fields as pgx wants them; pgx counts the steps itself."""
    return State(
        current_player=inner.current_player,
        observation=inner.observation,
        rewards=inner.rewards,
        terminated=inner.terminated,
        truncated=inner.truncated,
        legal_action_mask=inner.legal_action_mask,
        _step_count=count,
        _inner=inner,
    )


class PgxWallGo(pgx.Env):
    """Any rules, with the fewest planes, which compile the fastest."""

    def __init__(self, rules: str | wallgo_jax.Rules) -> None:
        super().__init__()
        self._env = wallgo_jax.make(rules, planes="B")

    def _init(self, key: jax.Array) -> State:
        return show(self._env.init(key), jnp.int32(0))

    def _step(self, state: State, action: jax.Array, key: jax.Array) -> State:
        return show(self._env.step(state._inner, action, key), state._step_count)

    def _observe(self, state: State, player_id: jax.Array) -> jax.Array:
        return self._env.observe(state._inner, player_id)

    @property
    def id(self) -> Any:
        return ENV_ID

    @property
    def version(self) -> str:
        return self._env.version

    @property
    def num_players(self) -> int:
        return self._env.num_players
