"""WallGo as a `pgx.Env` (extra `pgx`).

    from wallgo_jax.adapters.pgx import WallGoPgx

    env = WallGoPgx("wallzero-4stone")
    state = jax.jit(jax.vmap(env.init))(jax.random.split(key, 256))
    state = jax.jit(jax.vmap(env.step))(state, action)
    state.save_svg("boards.svg")

Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators for Reinforcement Learning",
API. As in pgx's own games, a player's id is not its colour: the key of `init` draws who is Red, and
an observation shows the board from the side of a player.
"""

import dataclasses
import re
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax import arguments, render
from wallgo_jax import env as env_lib
from wallgo_jax.adapters.extras import needs
from wallgo_jax.adapters.sides import observe_from
from wallgo_jax.game import state as state_lib
from wallgo_jax.game.rules import Rules

with needs("pgx"):
    import pgx

ENV_ID = "wallgo"
# pgx has no registry: its API test takes the ids of its own games alone, from a Literal.
pgx.api_test.__globals__["EnvId"] = Literal[(*get_args(pgx.EnvId), ENV_ID)]
# It has a function that sets its pictures' options, and none that reads them.
_PICTURES = pgx.set_visualization_config.__globals__["global_config"]


@jax.tree_util.register_dataclass
# pgx freezes its State by a decorator of its own, which type checkers do not see.
@dataclasses.dataclass(frozen=True)  # pyright: ignore[reportGeneralTypeIssues]
class State(pgx.State):
    """One board as pgx's users see it. P players, grid x grid cells, C planes.

    Attributes:
      current_player: int32, the id of the player to move.
      observation: bool[grid, grid, C], from the side of `current_player`: its colour comes first,
        the colour that moves next second.
      rewards: float32[P] by id.
      _id_of_colour: int32[P], the id that plays each colour; Red is colour 0.
      _planes, _game: see `wallgo_jax.State`.
    """

    current_player: jax.Array
    observation: jax.Array
    rewards: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    legal_action_mask: jax.Array
    _step_count: jax.Array
    _id_of_colour: jax.Array
    _planes: jax.Array
    _game: state_lib.State

    @property
    def env_id(self) -> Any:
        """`wallgo`, whatever the rules."""
        return ENV_ID

    def __str__(self) -> str:
        return str(self._game)

    def to_svg(self, *, color_theme: str | None = None, scale: float | None = None) -> str:
        """Draw the board, or every board of a batch; None means pgx's own configuration."""
        theme = _PICTURES.color_theme if color_theme is None else color_theme
        boards = np.size(self._game.position.ply)
        is_one = np.ndim(self._game.position.ply) == 0
        svg = (
            render.svg(self._game, theme=theme)
            if is_one
            else render.contact_sheet(self._game, theme=theme, limit=boards)
        )
        return _scaled(svg, _PICTURES.scale if scale is None else scale)

    def save_svg(
        self, filename: Any, *, color_theme: str | None = None, scale: float | None = None
    ) -> None:
        """Write `to_svg` to a file.

        Raises:
          ValueError: if the file's name does not end in `.svg`.
        """
        if Path(filename).suffix != ".svg":
            raise ValueError(f"filename: {str(filename)!r} does not end in .svg")
        svg = self.to_svg(color_theme=color_theme, scale=scale)
        Path(filename).write_text(svg, encoding="utf-8")


def _scaled(svg: str, scale: float) -> str:
    """Multiply the size at which an SVG document shows."""

    def grow(found: re.Match[str]) -> str:
        return f'{found[1]}="{float(found[2]) * scale:g}"'

    head, end, rest = svg.partition(">")
    return re.sub(r'(?<= )(width|height)="([\d.]+)"', grow, head) + end + rest


class WallGoPgx(pgx.Env):
    """Any rules behind pgx's interface.

    Args:
      rules, grid, planes: as for `wallgo_jax.make`.
      shuffle: whether the key of `init` draws which id plays which colour, as pgx's games do; else
        id 0 is Red, id 1 Blue, and so on.
    """

    def __init__(
        self,
        rules: str | Rules = "wallzero-4stone",
        *,
        grid: int | None = None,
        planes: str = "BTRH",
        shuffle: bool = True,
    ) -> None:
        super().__init__()
        self._env = env_lib.make(rules, grid=grid, planes=planes)
        self._shuffle = shuffle

    def __repr__(self) -> str:
        return f"WallGoPgx({self._env!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WallGoPgx):
            return NotImplemented
        return (self._env, self._shuffle) == (other._env, other._shuffle)

    def __hash__(self) -> int:
        return hash((self._env, self._shuffle))

    @property
    def unwrapped(self) -> env_lib.WallGo:
        """The env below."""
        return self._env

    @property
    def id(self) -> Any:
        """`wallgo`, whatever the rules."""
        return ENV_ID

    @property
    def version(self) -> str:
        """The version, which rises when behaviour changes."""
        return self._env.version

    @property
    def num_players(self) -> int:
        """P."""
        return self._env.num_players

    @property
    def num_actions(self) -> int:
        """The size of the public action space."""
        return self._env.num_actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """(grid, grid, C)."""
        return self._env.observation_shape

    def step(self, state: Any, action: jax.Array, key: jax.Array | None = None) -> Any:
        """Play a public action as pgx does, for one board; the key is not used.

        Raises:
          TypeError: the action is no integer.
          ValueError: it is not one integer.
        """
        arguments.check_action(action, num_actions=self.num_actions, function="step")
        return self._step_of_pgx(state, jnp.asarray(action, jnp.int32), key)

    @env_lib.compiled
    def _step_of_pgx(self, state: Any, action: jax.Array, key: jax.Array | None) -> Any:
        return super().step(state, action, key)

    def init(self, key: jax.Array) -> Any:
        """A new game of the env's rules; the key draws who plays which colour."""
        arguments.check_key(key, call="env.init(keys)")
        return self._init_of_pgx(key)

    @env_lib.compiled
    def _init_of_pgx(self, key: jax.Array) -> Any:
        return super().init(key)

    def _init(self, key: jax.Array) -> State:
        ids = jnp.arange(self.num_players, dtype=jnp.int32)
        ids = jax.random.permutation(key, ids) if self._shuffle else ids
        return self._show(self._env.init(), ids)

    def _step(self, state: Any, action: jax.Array, key: jax.Array | None) -> State:
        """Play an action; pgx's `step` has counted it already and ends games by illegal ones."""
        shown = self._env.step(self._restore(state), action, key)
        shown = shown.replace(_step_count=state._step_count)
        return self._show(shown, state._id_of_colour)

    def _step_with_illegal_action(self, state: Any, loser: jax.Array) -> State:
        """Pay -1 to the offender and +1 / (P - 1) to each other player, as WallGo's rules do."""
        ids = jnp.arange(self.num_players)
        rewards = jnp.where(ids == loser, jnp.float32(-1.0), 1.0 / (self.num_players - 1))
        return state.replace(rewards=rewards, terminated=jnp.bool_(True))

    @env_lib.compiled
    def _observe(self, state: Any, player_id: jax.Array) -> jax.Array:
        """bool[grid, grid, C]: the planes, the colour of `player_id` first."""
        colour = jnp.argmax(state._id_of_colour == player_id)
        return observe_from(self._env, state._game, state._planes, colour)

    def _show(self, inner: env_lib.State, id_of_colour: jax.Array) -> State:
        """Make pgx's state; its `init` and `step` put the observation in."""
        ids = jnp.arange(self.num_players)
        colour_of_id = jnp.argmax(id_of_colour[None, :] == ids[:, None], axis=1)
        return State(
            current_player=id_of_colour[inner.current_player],
            observation=inner.observation,
            rewards=inner.rewards[colour_of_id],
            terminated=inner.terminated,
            truncated=inner.truncated,
            legal_action_mask=inner.legal_action_mask,
            _step_count=inner._step_count,
            _id_of_colour=id_of_colour,
            _planes=inner._planes,
            _game=inner.game,
        )

    def _restore(self, state: State) -> env_lib.State:
        """Return the env's state; of its fields a step reads mask, count, planes and game alone."""
        return env_lib.State(
            current_player=state._game.position.player.astype(jnp.int32),
            observation=state.observation,
            rewards=state.rewards,
            terminated=state.terminated,
            truncated=state.truncated,
            legal_action_mask=state.legal_action_mask,
            final_observation=state.observation,
            _step_count=state._step_count,
            _planes=state._planes,
            game=state._game,
        )
