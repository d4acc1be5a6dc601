"""The state of a run, and its place on the devices."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from train.config import RunConfig
from train.data.replay import ReplayState
from train.data.selfplay import Boards, first_boards, stagger
from train.learning.learner import Learner, LearnerState
from train.network import Network, Variables
from train.programs.replay import ReplayPrograms
from train.runtime.devices import BY_BOARD, EVERYWHERE, Devices
from wallgo_jax.game.state import Variant

_INIT_SALT, _STAGGER_SALT = 2**31 - 1, 2**31 - 2
"""Folded into the seed for the first weights, and for the plies that the first games begin with;
iterations fold in their own, smaller numbers."""
_STAGGER_PLIES = 64
"""The most plies before a run's first one on a board: about two random games."""


class RunState(NamedTuple):
    """Everything that an iteration changes; with the config, everything that resuming needs."""

    learner: LearnerState
    boards: Boards  # [B], games under way
    replay_state: ReplayState
    iterations: jax.Array  # int32, iterations done


class Keys(NamedTuple):
    """The random keys of an iteration."""

    play: jax.Array
    learn: jax.Array  # [S], one for each step


class StatePrograms(NamedTuple):
    """Functions that put a run's state onto the devices."""

    init: Callable[..., RunState]
    """(seed) -> the first state, with random weights; (seed, variables) -> the same with these. The
    seed is as in `seed_of`."""
    place: Callable[[RunState], RunState]
    """Takes a state of NumPy arrays, such as a checkpoint's."""
    like: RunState
    """Shapes, and how they lie on the devices."""


def seed_of(config: RunConfig) -> np.ndarray:
    """A run's seed as its programs take it: the data of its key, uint32[...]."""
    return np.asarray(jax.random.key_data(jax.random.key(config.seed)))


def first_key(seed: int | jax.Array) -> jax.Array:
    """The key of a run's random weights, by its seed or by `seed_of`."""
    key = jax.random.key(seed) if isinstance(seed, int) else jax.random.wrap_key_data(seed)
    return jax.random.fold_in(key, _INIT_SALT)


def make_state_programs(
    config: RunConfig,
    network: Network,
    learner: Learner,
    variants: Variant,
    replay_programs: ReplayPrograms,
    devices: Devices,
) -> StatePrograms:
    """Make what builds and places states; nothing is compiled yet.

    Args:
      variants: NumPy arrays [B], what each board plays.
    """

    def init_all_but_replay(seed: jax.Array, variables: Variables | None = None) -> RunState:
        key = first_key(seed)
        # Copied, for the first step of learning consumes the state.
        first = network.init(key) if variables is None else jax.tree.map(jnp.copy, variables)
        has_opponent = bool(config.selfplay.opponent)
        variant = jax.tree.map(jnp.asarray, variants)
        boards = first_boards(variant, has_opponent=has_opponent)
        stagger_key = jax.random.fold_in(jax.random.wrap_key_data(seed), _STAGGER_SALT)
        boards = stagger(variant, boards, stagger_key, plies=_STAGGER_PLIES)
        # The replay has an init of its own, for it may lie in the host's memory.
        no_replay = cast(Any, ())
        return RunState(learner.init(first), boards, no_replay, jnp.zeros((), jnp.int32))

    like = jax.eval_shape(init_all_but_replay, seed_of(config))
    specs = jax.tree.map(lambda x: EVERYWHERE, like)
    specs = specs._replace(boards=jax.tree.map(lambda x: BY_BOARD, like.boards))

    jitted = jax.jit(init_all_but_replay, out_shardings=devices.shardings(specs))

    def init(seed: np.ndarray, variables: Variables | None = None) -> RunState:
        return jitted(seed, variables)._replace(replay_state=replay_programs.init())

    def place(state: RunState) -> RunState:
        rest = devices.place(state._replace(replay_state=cast(Any, ())), specs)
        return rest._replace(replay_state=replay_programs.place(state.replay_state))

    placed = devices.like(like, specs)._replace(replay_state=replay_programs.like)
    return StatePrograms(init, place, placed)


def make_keys(config: RunConfig, devices: Devices) -> Callable[[np.ndarray, int], Keys]:
    """Make a function from a seed, as in `seed_of`, and an iteration to the iteration's keys."""

    def keys(seed: jax.Array, iteration: jax.Array) -> Keys:
        key = jax.random.fold_in(jax.random.wrap_key_data(seed), iteration)
        play_key, learn_key = jax.random.split(key)
        return Keys(play_key, jax.random.split(learn_key, config.learner.steps))

    program = jax.jit(keys, out_shardings=devices.sharding(EVERYWHERE))
    return lambda seed, iteration: program(seed, jnp.int32(iteration))
