"""The interface that pgx users know: `init`, `step` and `observe` of one board.

The contract is that of pgx (Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators
for Reinforcement Learning", API): an illegal action ends the game and costs the offender 1, a step
after the end changes nothing and pays zeros, the mask of a finished game is all true.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from wallgo_jax import arguments, display
from wallgo_jax import observation as observation_lib
from wallgo_jax import planes as planes_lib
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.board.geometry import MAX_GRID
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game import state as state_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import assert_board
from wallgo_jax.game.terrain import BoardAnalysis, Terrain
from wallgo_jax.serialization import register_with_flax

T = TypeVar("T")

VERSION = "1"
"""It rises whenever a game may run or look different; records and checkpoints hold it."""


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
      rewards: float32[P], the rewards of the last step.
      terminated: bool. After an auto-reset step it says whether that step ended a game.
      truncated: bool, always False.
      legal_action_mask: bool[num_actions] over public actions; all true after the end.
      final_observation: bool[grid, grid, C], the observation that the last step led to, before any
        auto-reset.
      _planes: uint32[W, C], the observation as sets of cells; the next one takes its past from it.
      game: the state of the rules (`wallgo_jax.game.state.State`), from which mask, planes and
        player to move are made. To put in another, use `WallGo.state_of`, not `replace`: a step
        trusts the mask.
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
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def __str__(self) -> str:
        return display.to_text(self)

    def _repr_html_(self) -> str:
        """Draw the board, or the first boards of a batch, for a notebook."""
        return display.to_html(self)


def compiled(method: Any) -> Any:
    """Compile a method once for all equal envs; inside another program it leaves no call.

    The method gets JAX arrays, also where `jit` is switched off and so converts none.
    """

    @functools.wraps(method)
    def take_arrays(self: Any, *arguments: Any) -> Any:
        return method(self, *jax.tree.map(jnp.asarray, arguments))

    return functools.partial(jax.jit, static_argnums=0, inline=True)(take_arrays)


class WallGo:
    """An environment for boards that share grid size, player count and room for stones.

    Rules are data: `init` starts this env's own rules, but `step` plays the rules that the state
    holds, so that states of several envs may be stacked into one batch.

    Envs of equal rules, grid and planes are equal, so that one may be a static argument of
    `jax.jit`. Functions of one board refuse an argument that is not one board's while JAX traces,
    with a TypeError or a ValueError that names it.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        grid: int | None = None,
        stones: int | None = None,
        planes: str = planes_lib.DEFAULT_PLANES,
    ) -> None:
        planes_lib.check_planes(planes)
        self.rules = rules
        self.planes = planes
        self.has_playable = grid is not None
        self.sizes = state_lib.sizes_of(rules, grid=grid, stones=stones)
        self.grid = self.sizes.grid
        self._variant = state_lib.make_variant(rules, grid=grid, stones=stones)
        register_with_flax(State, state_lib.Grid)

    def _identity(self) -> tuple[Rules, int | None, int, str]:
        return self.rules, self.grid if self.has_playable else None, self.sizes.stones, self.planes

    def __eq__(self, other: object) -> bool:
        return (
            self._identity() == other._identity() if isinstance(other, WallGo) else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        rules = repr(self.id) if self.id in rules_lib.PRESETS else repr(self.rules)
        grid = f", grid={self.grid}" if self.has_playable else ""
        stones = self.sizes.stones
        grid += f", stones={stones}" if stones != self.rules.stones else ""
        return f"WallGo({rules}{grid}, planes={self.planes!r})"

    def _repr_html_(self) -> str:
        """Draw the first position for a notebook."""
        return display.to_html(state_lib.initial_state(self.rules, grid=self.grid))

    @property
    def id(self) -> str:
        """The preset's name, or `custom`."""
        return rules_lib.name_of(self.rules)

    @property
    def version(self) -> str:
        """The version, which rises when behaviour changes."""
        return VERSION

    @property
    def num_players(self) -> int:
        """P."""
        return self.sizes.players

    @property
    def num_actions(self) -> int:
        """The size of the public action space."""
        return self.sizes.num_actions

    @property
    def num_slots(self) -> int:
        """Compact actions of search and training (see `wallgo_jax.game.actions`)."""
        return self.sizes.num_slots

    @property
    def channels(self) -> tuple[planes_lib.Channel, ...]:
        """The content of each plane of an observation."""
        return planes_lib.channels(self.planes, self.num_players, has_playable=self.has_playable)

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """(grid, grid, C)."""
        return self.grid, self.grid, len(self.channels)

    def init(self, key: jax.Array | None = None) -> State:
        """Start a new game; the key, which pgx's interface has, is not used."""
        if key is not None:
            arguments.check_key(key, call="env.init(keys)")
        # Flax may have been loaded since this env was made.
        register_with_flax(State, state_lib.Grid)
        return self._first_state()

    @compiled
    def _first_state(self) -> State:
        variant = jax.tree.map(jnp.asarray, self._variant)
        game = state_lib.State(variant, state_lib.initial_position(variant))
        nothing = jnp.zeros(self.num_players, jnp.float32)
        sets = self._sets(game, self._precompute_first(game))
        return self._make_state(game, nothing, jnp.int32(0), jnp.bool_(False), sets, sets)

    def state_of(self, game: state_lib.State) -> State:
        """Make the state that `step` would return for a game on this env's grid.

        Its rewards are zeros, and its plies count as its steps.
        """
        assert_board(game)
        return self._state_of(game)

    @compiled
    def _state_of(self, game: state_lib.State) -> State:
        nothing = jnp.zeros(self.num_players, jnp.float32)
        sets, position = self._sets(game), game.position
        return self._make_state(game, nothing, position.ply, position.terminated, sets, sets)

    def step(self, state: State, action: ArrayLike, key: jax.Array | None = None) -> State:
        """Play a public action for the player to move; the key is not used."""
        del key
        self._check_state(state, "step")
        arguments.check_action(action, num_actions=self.num_actions, function="step")
        return self._play(state, jnp.asarray(action, jnp.int32))

    @compiled
    def _play(self, state: State, action: jax.Array) -> State:
        game, rewards, count, analysis = self._advance(state, action)
        sets = self._next_sets(state, game, analysis)
        over = game.position.terminated
        return self._make_state(game, rewards, count, over, sets, sets, terrain=analysis.terrain)

    def step_auto_reset(
        self, state: State, action: ArrayLike, key: jax.Array | None = None
    ) -> State:
        """Step, and replace a finished game by a new one of its own rules.

        The returned state is the new game's, with the finished game's `rewards`, `terminated` true
        and its last `final_observation`. The next step goes on from there.
        """
        del key
        self._check_state(state, "step_auto_reset")
        arguments.check_action(action, num_actions=self.num_actions, function="step_auto_reset")
        return self._play_on(state, jnp.asarray(action, jnp.int32))

    @compiled
    def _play_on(self, state: State, action: jax.Array) -> State:
        game, rewards, count, analysis = self._advance(state, action)
        over = game.position.terminated
        # A new game is a select, not a second `init`: its planes need no flood and no history.
        fresh = referee.restart_if_over(game)
        first = state_lib.State(game.variant, state_lib.initial_position(game.variant))
        sets = self._next_sets(state, game, analysis)
        shown = jnp.where(over, self._sets(first, self._precompute_first(first)), sets)
        return self._make_state(fresh, rewards, jnp.where(over, 0, count), over, shown, sets)

    def observe(self, state: State, player: jax.Array | None = None) -> jax.Array:
        """bool[grid, grid, C]: the planes of the state, the same for every player."""
        del player
        self._check_state(state, "observe")
        return self._observe(state.game)

    @compiled
    def _observe(self, game: state_lib.State) -> jax.Array:
        return observation_lib.observe(game, planes=self.planes, has_playable=self.has_playable)

    def random_action(self, state: State, key: jax.Array) -> jax.Array:
        """int32: a legal public action, each as likely as the others within one in 2^16 / their
        number.

        It takes one random number. `jax.random.categorical` takes one for each of the
        `num_actions`, which costs far more than a step of the game.
        """
        self._check_state(state, "random_action")
        arguments.check_key(key, call="env.random_action(states, keys)")
        return self._draw(state.legal_action_mask, key)

    @compiled
    def _draw(self, mask: jax.Array, key: jax.Array) -> jax.Array:
        return chance.choose_from_mask(jax.random.bits(key, (), jnp.uint32), mask)

    def territory(self, state: State) -> jax.Array:
        """int32[P]: the number of cells of the regions whose stones all belong to one player."""
        self._check_state(state, "territory")
        return self._territory(state.game)

    @compiled
    def _territory(self, game: state_lib.State) -> jax.Array:
        return referee.territory(game)

    def legal_slots(self, state: State) -> jax.Array:
        """bool[num_slots]: the legal actions in the compact action space."""
        self._check_state(state, "legal_slots")
        return self._legal_slots(state.game)

    @compiled
    def _legal_slots(self, game: state_lib.State) -> jax.Array:
        return actions.legal_slots(game)

    def _check_state(self, state: State, function: str) -> None:
        arguments.check_state(
            state,
            State,
            num_actions=self.num_actions,
            channels=len(self.channels),
            function=function,
        )

    def _sets(
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

    def _next_sets(self, state: State, game: state_lib.State, analysis: BoardAnalysis) -> jax.Array:
        """uint32[W, C]: the planes' sets after a step, those shown before if it played no ply."""
        sets = self._sets(game, observation_lib.Precomputed(state._planes, analysis))
        return jnp.where(game.position.ply != state.game.position.ply, sets, state._planes)

    def _advance(
        self, state: State, action: jax.Array
    ) -> tuple[state_lib.State, jax.Array, jax.Array, BoardAnalysis]:
        """Return the next game, its rewards, the steps taken, and the analysis of the board.

        The analysis is undefined where no ply was played.
        """
        slot = actions.slot_of_action(state.game, action)
        before = state.game.position
        is_legal = (slot != actions.NO_SLOT) & state.legal_action_mask.at[action].get(mode="clip")
        game, rewards, analysis = referee.step_with_analysis(state.game, slot, is_legal)
        # Mask and planes are wide: without a barrier the ply is worked out for each of their bits.
        position, rewards = fusion_barrier((game.position, rewards), token=before.ply < 0)
        count = state._step_count + (~before.terminated).astype(jnp.int32)
        return state_lib.State(game.variant, position), rewards, count, analysis

    def _make_state(
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
        """Make the state that users see.

        Args:
          final_sets: the planes' sets that the last step led to.
          terrain: that of the game, where it is known; it may be wrong where the game is over.
        """
        show = functools.partial(observation_lib.show, grid=self.grid, token=game.position.ply < 0)
        observation = show(sets)
        final = observation if sets is final_sets else show(final_sets)
        made = State(
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
        return with_own_buffers(made)


def with_own_buffers(tree: T) -> T:
    """Arrays of a program, none of them twice, so that a caller can donate them."""
    leaves, structure = jax.tree.flatten(tree)
    first = {id(leaf): place for place, leaf in reversed([*enumerate(leaves)])}
    return jax.tree.unflatten(
        structure,
        [leaf if first[id(leaf)] == place else jnp.copy(leaf) for place, leaf in enumerate(leaves)],
    )


def make(
    name_or_rules: str | Mapping[str, Any] | Rules,
    *,
    grid: int | None = None,
    stones: int | None = None,
    planes: str = planes_lib.DEFAULT_PLANES,
) -> WallGo:
    """Make an env for a preset's name or for custom rules.

    Args:
      name_or_rules: a name of `wallgo_jax.PRESETS`, `wallgo_jax.Rules`, or a dict of their fields,
        such as `{"size": 5, "stones": 2}`.
      grid: side length of a larger grid whose top-left corner holds the board; the observation then
        has a plane of playable cells, and ids and masks are the grid's.
      stones: stones a player for which states have room, so that games of fewer stones can stand in
        one batch with games of that many; the stones that the rules lack are never placed.
      planes: the feature planes to show: B, BT, BTR or BTRH; D, DL, W, DW or DLW behind the last
        two adds distances, a V behind all that planes that name the variant.

    Raises:
      ValueError: for an unknown name, field or plane set, a board larger than the grid, or no room
        for its stones.
    """
    rules = rules_lib.named(name_or_rules)
    if grid is not None and not rules.size <= grid <= MAX_GRID:
        raise ValueError(
            f"grid: {grid!r} is not between the board's size {rules.size} and {MAX_GRID}"
        )
    if stones is not None and not rules.stones <= stones <= rules_lib.MAX_STONES:
        raise ValueError(
            f"stones: {stones!r} is not between the rules' {rules.stones} and "
            f"{rules_lib.MAX_STONES}"
        )
    return WallGo(rules, grid=grid, stones=stones, planes=planes)
