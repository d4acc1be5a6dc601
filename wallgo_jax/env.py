"""The face that pgx users know: `init`, `step`, `observe` over one board, to be vmapped and jitted.

The contract is that of pgx (Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators
for Reinforcement Learning", API): an illegal action ends the game and costs the offender 1, a step
after the end changes nothing and pays zeros, the mask of a finished game is all true.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from wallgo_jax import observation as observation_lib
from wallgo_jax import planes as planes_lib
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.game import actions, referee
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game import state as state_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.terrain import BoardAnalysis, Terrain

VERSION = "1"
"""Raised whenever a game may run or look different than before; records and checkpoints hold it."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=(
        "current_player",
        "observation",
        "rewards",
        "terminated",
        "truncated",
        "legal_action_mask",
        "final_observation",
        "_step_count",
        "_planes",
        "game",
    ),
    meta_fields=(),
)
@dataclasses.dataclass(frozen=True)
class State:
    """One board as its users see it. P players, grid x grid cells, C planes.

    Attributes:
      current_player: int32, the player to move; player 0 is Red.
      observation: bool[grid, grid, C], absolute planes (see `wallgo_jax.planes`).
      rewards: float32[P], what the last step paid each player.
      terminated: bool. After an auto-reset step: whether that step ended a game.
      truncated: bool, always False.
      legal_action_mask: bool[num_actions] over public actions; all true after the end.
      final_observation: bool[grid, grid, C], what the last step led to, before any auto-reset.
      _planes: uint32[W, C], the observation as sets of cells; the next one takes its past from it.
      game: the state of the rules (`wallgo_jax.game.state.State`), of which mask, planes and player
        to move are made; to put in another, use `WallGo.state_of`, not `replace`: a step believes
        the mask.
    """

    current_player: jax.Array
    observation: jax.Array
    rewards: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    legal_action_mask: jax.Array
    final_observation: jax.Array
    _step_count: jax.Array
    _planes: jax.Array
    game: state_lib.State

    def replace(self, **changes: Any) -> "State":
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def _repr_html_(self) -> str:
        """The board, or the first boards of a batch, as a notebook shows them."""
        from wallgo_jax import render

        return render.html(self)


class WallGo:
    """An environment for boards that share grid size, player count and stones per player.

    Rules are data: `init` starts this env's own rules, but `step` plays whatever rules the state
    holds, so states of several envs may be stacked into one batch.
    """

    def __init__(
        self, rules: Rules, *, grid: int | None = None, planes: str = planes_lib.DEFAULT_PLANES
    ) -> None:
        planes_lib.check_planes(planes)
        self.rules = rules
        self.planes = planes
        self.has_playable = grid is not None
        self.sizes = state_lib.sizes_of(rules, grid=grid)
        self.grid = self.sizes.grid
        self._variant = state_lib.make_variant(rules, grid=grid)

    def __repr__(self) -> str:
        rules = repr(self.id) if self.id in rules_lib.PRESETS else repr(self.rules)
        grid = f", grid={self.grid}" if self.has_playable else ""
        return f"WallGo({rules}{grid}, planes={self.planes!r})"

    def _repr_html_(self) -> str:
        """The board at the start, as a notebook shows it."""
        from wallgo_jax import render

        return render.html(state_lib.initial_state(self.rules, grid=self.grid))

    @property
    def id(self) -> str:
        """The preset's name, or `custom`."""
        return rules_lib.name_of(self.rules)

    @property
    def version(self) -> str:
        """Raised when behaviour changes."""
        return VERSION

    @property
    def num_players(self) -> int:
        """P."""
        return self.sizes.players

    @property
    def num_actions(self) -> int:
        """Public actions: grid² * 53."""
        return self.sizes.num_actions

    @property
    def num_slots(self) -> int:
        """Compact actions of search and training (see `wallgo_jax.game.actions`)."""
        return self.sizes.num_slots

    @property
    def channels(self) -> tuple[planes_lib.Channel, ...]:
        """What each plane of an observation shows."""
        return planes_lib.channels(self.planes, self.num_players, has_playable=self.has_playable)

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """(grid, grid, C)."""
        return self.grid, self.grid, len(self.channels)

    def init(self, key: jax.Array | None = None) -> State:
        """A new game. The key is taken for pgx's sake; nothing is drawn."""
        del key
        variant = jax.tree.map(jnp.asarray, self._variant)
        game = state_lib.State(variant, state_lib.initial_position(variant))
        nothing = jnp.zeros(self.num_players, jnp.float32)
        sets = self._see(game, self._precompute_first(game))
        return self._show(game, nothing, jnp.int32(0), jnp.bool_(False), sets, sets)

    def state_of(self, game: state_lib.State) -> State:
        """What `step` would show of a game that came about elsewhere, on this env's grid; no one
        was paid for it, and its plies are its steps."""
        nothing = jnp.zeros(self.num_players, jnp.float32)
        sets, position = self._see(game), game.position
        return self._show(game, nothing, position.ply, position.terminated, sets, sets)

    def step(self, state: State, action: jax.Array, key: jax.Array | None = None) -> State:
        """Play a public action for the player to move; the key is not used."""
        del key
        game, rewards, count, analysis = self._advance(state, action)
        sets = self._see_next(state, game, analysis)
        over = game.position.terminated
        return self._show(game, rewards, count, over, sets, sets, terrain=analysis.terrain)

    def step_auto_reset(
        self, state: State, action: jax.Array, key: jax.Array | None = None
    ) -> State:
        """Like `step`, but a finished game is replaced by a new one of its own rules.

        The returned state is the new game's, with the finished game's `rewards`, `terminated` true
        and its last `final_observation`. The next step goes on from there. `init` is not paid for:
        the new game is a select of constants, its planes need no flood and no history.
        """
        del key
        game, rewards, count, analysis = self._advance(state, action)
        over = game.position.terminated
        fresh = referee.restart_if_over(game)
        first = state_lib.State(game.variant, state_lib.initial_position(game.variant))
        sets = self._see_next(state, game, analysis)
        shown = jnp.where(over, self._see(first, self._precompute_first(first)), sets)
        return self._show(fresh, rewards, jnp.where(over, 0, count), over, shown, sets)

    def observe(self, state: State, player: jax.Array | None = None) -> jax.Array:
        """bool[grid, grid, C] of the state; the same for every player, colours being absolute."""
        del player
        return observation_lib.observe(
            state.game, planes=self.planes, has_playable=self.has_playable
        )

    def territory(self, state: State) -> jax.Array:
        """int32[P]: cells of regions whose stones all belong to one player."""
        return referee.territory(state.game)

    def legal_slots(self, state: State) -> jax.Array:
        """bool[num_slots] of the compact action space."""
        return actions.legal_slots(state.game)

    def _see(
        self, game: state_lib.State, precomputed: observation_lib.Precomputed | None = None
    ) -> jax.Array:
        """uint32[W, C] (see `wallgo_jax.observation.observe_sets`)."""
        return observation_lib.observe_sets(
            game,
            planes=self.planes,
            has_playable=self.has_playable,
            precomputed=precomputed,
        )

    def _precompute_first(self, game: state_lib.State) -> observation_lib.Precomputed:
        return observation_lib.precompute_first(game, num_channels=len(self.channels))

    def _see_next(self, state: State, game: state_lib.State, analysis: BoardAnalysis) -> jax.Array:
        """The planes' sets after a step: those shown before where no ply was played."""
        sets = self._see(game, observation_lib.Precomputed(state._planes, analysis))
        return jnp.where(game.position.ply != state.game.position.ply, sets, state._planes)

    def _advance(
        self, state: State, action: jax.Array
    ) -> tuple[state_lib.State, jax.Array, jax.Array, BoardAnalysis]:
        """The next game, what it pays, its plies, and what was seen of the board, which means
        something only where a ply was played."""
        slot = actions.slot_of_action(state.game, action)
        before = state.game.position
        is_legal = (slot != actions.NO_SLOT) & state.legal_action_mask.at[action].get(mode="clip")
        game, rewards, analysis = referee.step_with_analysis(state.game, slot, is_legal)
        # Mask and planes are wide: without a border the ply is worked out for each of their bits.
        position, rewards = fusion_barrier((game.position, rewards), token=before.ply < 0)
        count = state._step_count + ~before.terminated
        return state_lib.State(game.variant, position), rewards, count, analysis

    def _show(
        self,
        game: state_lib.State,
        rewards: jax.Array,
        count: jax.Array,
        terminated: jax.Array,
        sets: jax.Array,
        final_sets: jax.Array,
        *,
        terrain: Terrain | None = None,
    ) -> State:
        """A state as its users see it; `final_sets` are what the last step led to. The ground need
        not be surveyed where it is known, nor be right where the game is over."""
        show = functools.partial(observation_lib.show, grid=self.grid, token=game.position.ply < 0)
        observation = show(sets)
        final = observation if sets is final_sets else show(final_sets)
        return State(
            current_player=game.position.player.astype(jnp.int32),
            observation=observation,
            rewards=rewards,
            terminated=terminated,
            truncated=jnp.bool_(False),
            legal_action_mask=actions.legal_actions(game, terrain=terrain),
            final_observation=final,
            _step_count=count.astype(jnp.int32),
            _planes=sets,
            game=game,
        )


def make(
    name_or_rules: str | Rules, *, grid: int | None = None, planes: str = planes_lib.DEFAULT_PLANES
) -> WallGo:
    """An env for a preset's name or for custom rules.

    Args:
      name_or_rules: a name of `wallgo_jax.PRESETS`, or `wallgo_jax.Rules`.
      grid: side length of a larger grid whose top-left corner holds the board; the observation then
        has a plane of playable cells, and ids and masks are the grid's.
      planes: which feature planes to show: B, BT, BTR or BTRH; with V behind it, planes that name
        the variant as well.

    Raises:
      ValueError: for an unknown name or plane set, or a board larger than the grid.
    """
    rules = rules_lib.named(name_or_rules)
    if grid is not None and not rules.size <= grid <= 9:
        raise ValueError(f"grid: {grid!r} is not between the board's size {rules.size} and 9")
    return WallGo(rules, grid=grid, planes=planes)
