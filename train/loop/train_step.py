"""The three functions of an iteration, to be jitted: self-play, the write to the replay, learning.

Each gets the `Parts` of a run bound to it. Seeds and numbers (`train.loop.numbers`) are arguments,
so runs that differ in nothing else share what is compiled (`train.loop.compiled_step`).

B boards, T plies of an iteration, R rows of the replay, S steps of an iteration, N samples.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.config import RunConfig
from train.data import replay
from train.data.config import SelfPlayConfig
from train.data.diversity import OpeningDiversity, opening_diversity
from train.data.replay import ReplayState, Sample, Trajectory
from train.data.selfplay import Boards, SelfPlayMetrics, first_boards, make_selfplay, stagger
from train.learning.learner import Learner, LearnerState, StepMetrics, make_learner
from train.learning.losses import Losses
from train.loop.numbers import Numbers, with_numbers
from train.loop.selfplay import (
    BoardSums,
    Stage,
    selfplay_of,
    split_coin_key,
    sum_by_board,
    variants_of,
)
from train.loop.start import first_key
from train.network import Network, Variables
from train.network.build import network_for, observer_for
from train.players.basic import Player, make_random_search
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, ROWS_BY_BOARD, Devices, device_key
from train.runtime.numbers import is_off
from wallgo_jax.game.state import Variant

_STAGGER_SALT = 2**31 - 2
"""Folded into the seed for the plies that the first games begin with, as in `first_key`."""
_VALIDATION_SALT = 2**31 - 3
"""Folded into the key of an iteration's first step."""
_STAGGER_PLIES = 64
"""The most plies before a run's first one on a board: about two random games."""
REPLAY_SPECS: Any = ReplayState._make((ROWS_BY_BOARD, ROWS_BY_BOARD, EVERYWHERE, BY_BOARD))
"""Rows lie with the boards that played them, so writing and sampling transfer nothing."""


class TrainState(NamedTuple):
    """Everything that an iteration changes; with the config, everything that resuming needs."""

    learner: LearnerState
    boards: Boards  # [B], games under way
    replay_state: ReplayState
    iterations: jax.Array  # int32, iterations done


class Keys(NamedTuple):
    """The random keys of an iteration."""

    play: jax.Array
    learn: jax.Array  # [S], one for each step


class SelfPlayFigures(NamedTuple):
    """Figures of an iteration on all devices, float32[] where nothing else is said."""

    sums: SelfPlayMetrics
    setups: OpeningDiversity
    openings: OpeningDiversity
    by_board: BoardSums | None  # float32[B]; None where the run has one rule set


class FinishedPlies(NamedTuple):
    """Number of plies that can be sampled, int32[]."""

    all: jax.Array
    least: jax.Array  # on the device that has the fewest
    newest: jax.Array  # of games that ended in this iteration, on the device that has the fewest


class Shared(NamedTuple):
    """What the steps of an iteration share."""

    numbers: Numbers
    variant: Variant  # [B]
    keys: jax.Array  # [S]


@dataclasses.dataclass(frozen=True)
class Parts:
    """What the functions of a run are made of; none of it is on a device.

    Attributes:
      config: the run; of the numbers that are arguments it says only which there are.
      devices: that share boards and samples.
      opponent: the frozen one of self-play, None without one.
      has_host_replay: whether the host keeps and samples the replay, not the devices.
    """

    config: RunConfig
    devices: Devices
    opponent: Player | None
    has_host_replay: bool

    @functools.cached_property
    def network(self) -> Network:
        """The network that learns."""
        config = self.config
        return network_for(config.network, config.rules.players, size=config.grid_side)

    @functools.cached_property
    def variants(self) -> Variant:
        """NumPy arrays [B], what each board plays."""
        return variants_of(self.config)

    @functools.cached_property
    def plies(self) -> Trajectory:
        """Shapes of the plies [T, B] of an iteration, which are the same whoever plays."""
        selfplay = make_selfplay(
            make_random_search(),
            SelfPlayConfig(plies=self.config.selfplay.plies),
            has_root_value=not is_off(self.config.learner.value_mix),
        )
        boards, key = jax.eval_shape(first_boards, self.variants), jax.random.key(0)
        plies = jax.eval_shape(selfplay, (), self.variants, boards, key)[1]
        return self.devices.like(plies, ROWS_BY_BOARD)

    def learner(self, numbers: Numbers) -> Learner:
        """The learner of numbers that may be arguments of a function."""
        config = with_numbers(self.config, numbers)
        return make_learner(
            self.network,
            config.learner,
            total_steps=config.iterations * config.learner.steps,
            observe=observer_for(config.network),
            per_device=lambda prepare: self.devices.per_device(prepare, BY_BOARD, BY_BOARD),
        )


def first_state(parts: Parts, seed: jax.Array, variables: Variables | None = None) -> TrainState:
    """A run's first state, with random weights or with these.

    Args:
      parts: of the run.
      seed: the data of its key.
      variables: copied, for the first step of learning consumes the state.

    Returns:
      All but the replay (`empty_replay`), which may lie in the host's memory.
    """
    key, variant = first_key(seed), jax.tree.map(jnp.asarray, parts.variants)
    first = parts.network.init(key) if variables is None else jax.tree.map(jnp.copy, variables)
    boards = first_boards(variant, has_opponent=parts.opponent is not None)
    stagger_key = jax.random.fold_in(jax.random.wrap_key_data(seed), _STAGGER_SALT)
    boards = stagger(variant, boards, stagger_key, plies=_STAGGER_PLIES)
    no_replay: Any = None
    return TrainState(parts.learner({}).init(first), boards, no_replay, jnp.zeros((), jnp.int32))


def empty_replay(parts: Parts) -> ReplayState:
    """A replay of R rows, a multiple of T, so that the rows of an iteration never wrap round the
    end of the ring."""
    options = parts.config.selfplay
    iterations = -(-parts.config.replay.positions // (options.boards * options.plies))
    return replay.init(iterations * options.plies, parts.plies)


def iteration_keys(parts: Parts, seed: jax.Array, iteration: jax.Array) -> Keys:
    """The keys of an iteration, counted from 0, by the data of the seed's key."""
    key = jax.random.fold_in(jax.random.wrap_key_data(seed), iteration)
    play_key, learn_key = jax.random.split(key)
    return Keys(play_key, jax.random.split(learn_key, parts.config.learner.steps))


def self_play(
    parts: Parts,
    stage: Stage,
    numbers: Numbers,
    variables: Any,
    variant: Variant,
    boards: Boards,
    key: jax.Array,
) -> tuple[Boards, Trajectory, SelfPlayFigures]:
    """Play T plies on boards [B], each device for itself, with one coin for all of them.

    Args:
      parts: of the run.
      stage: says who plays.
      numbers: of the run.
      variables: as `variables_of` makes them.
      variant: [B].
      boards: [B], to be donated.
      key: consumed.

    Returns:
      The boards as they stand, the plies [T, B] and their figures.
    """
    has_sets = bool(parts.config.mix)

    def play(numbers: Numbers, variables: Any, variant: Variant, boards: Boards, key: jax.Array):
        selfplay = selfplay_of(with_numbers(parts.config, numbers), stage, parts.opponent)
        key, coin_key = split_coin_key(key)
        boards, plies, sums = selfplay(variables, variant, boards, device_key(key), coin_key)
        gather = functools.partial(jax.lax.all_gather, axis_name=AXIS)
        setups, openings = opening_diversity(variant, plies.position, gather)
        by_board = sum_by_board(plies) if has_sets else None
        sums = jax.lax.psum(sums, AXIS)
        return boards, plies, SelfPlayFigures(sums, setups, openings, by_board)

    figures = SelfPlayFigures._make((EVERYWHERE,) * 3 + (BY_BOARD if has_sets else None,))
    return parts.devices.per_device(
        play,
        (EVERYWHERE, EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE),
        (BY_BOARD, ROWS_BY_BOARD, figures),
    )(numbers, variables, variant, boards, key)


def write(
    parts: Parts, replay_state: ReplayState, plies: Trajectory
) -> tuple[ReplayState, FinishedPlies]:
    """Write plies [T, B] to the replay, to be donated, and count what can be sampled."""
    written = replay.add(replay_state, plies)
    devices = 1 if parts.has_host_replay else parts.devices.count

    def by_device(plies: jax.Array) -> jax.Array:
        return plies.reshape(devices, -1).sum(axis=1, dtype=jnp.int32)

    counts = by_device(written.finished)
    newest = by_device(replay.newly_finished(written, parts.config.selfplay.plies))
    return written, FinishedPlies(counts.sum(dtype=jnp.int32), counts.min(), newest.min())


def sample(
    parts: Parts,
    replay_state: ReplayState,
    variant: Variant,
    key: jax.Array,
    *,
    newest: int | None = None,
) -> Sample:
    """Draw a batch [N], with what the losses read.

    Devices that keep the replay draw equally many samples, so a ply is as likely as any other of
    its device. `newest` is that of `replay.sample`.
    """
    config, spread = parts.config, not parts.has_host_replay
    draw = functools.partial(
        replay.sample,
        size=config.learner.batch // (parts.devices.count if spread else 1),
        has_reply=config.network.reply,
        td_steps=config.learner.td_steps,
        newest=newest,
    )
    if not spread:
        # The key of the first device, so that one device draws the same from either memory.
        return draw(replay_state, variant, jax.random.fold_in(key, 0))
    return parts.devices.per_device(
        lambda replay_state, variant, key: draw(replay_state, variant, device_key(key)),
        (REPLAY_SPECS, BY_BOARD, EVERYWHERE),
        BY_BOARD,
    )(replay_state, variant, key)


def host_batch(
    parts: Parts, replay_state: ReplayState, variant: Variant, keys: jax.Array, index: jax.Array
) -> Sample:
    """The batch of a step, from a host's replay."""
    return sample(parts, replay_state, variant, jax.random.split(keys[index])[0])


def learn_step(
    parts: Parts, shared: Shared, learner: LearnerState, batch: Any, index: jax.Array
) -> tuple[LearnerState, StepMetrics]:
    """Take a step of learning.

    Args:
      parts: of the run.
      shared: with the other steps of the iteration.
      learner: to be donated.
      batch: the devices' replay, which is sampled, or the batch of a host's.
      index: of the step, an array, so that one program serves all steps.
    """
    sample_key, turn_key = jax.random.split(shared.keys[index])
    if not parts.has_host_replay:
        batch = sample(parts, batch, shared.variant, sample_key)
    return parts.learner(shared.numbers).update(learner, batch, turn_key)


def validation_batch(
    parts: Parts, replay_state: ReplayState, variant: Variant, keys: jax.Array
) -> Sample:
    """A batch of games that ended in this iteration, which no step has learned from yet; `keys` are
    those of its steps."""
    key, newest = jax.random.fold_in(keys[0], _VALIDATION_SALT), parts.config.selfplay.plies
    return sample(parts, replay_state, variant, key, newest=newest)


def validate(parts: Parts, shared: Shared, variables: Variables, batch: Any) -> Losses:
    """Losses of weights on a `validation_batch`; of a replay on the devices it is drawn here."""
    if not parts.has_host_replay:
        batch = validation_batch(parts, batch, shared.variant, shared.keys)
    return parts.learner(shared.numbers).validation_losses(variables, batch)


def learn_steps(
    parts: Parts, shared: Shared, learner: LearnerState, replay_state: ReplayState, steps: jax.Array
) -> tuple[LearnerState, StepMetrics]:
    """Take a number of steps as one program; metrics [S], of which the first belong to them."""

    def step(learner: LearnerState, index: jax.Array) -> tuple[LearnerState, StepMetrics]:
        # The loop changes neither numbers nor replay, so they are not in the carry.
        return learn_step(parts, shared, learner, replay_state, index)

    def one(index: jax.Array, carry: Any) -> tuple[LearnerState, StepMetrics]:
        learner, seen = step(carry[0], index)
        return learner, jax.tree.map(lambda all, new: all.at[index].set(new), carry[1], seen)

    like, count = jax.eval_shape(step, learner, jnp.int32(0))[1], shared.keys.shape[0]
    nothing = jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), like)
    return jax.lax.fori_loop(0, steps, one, (learner, nothing))


def steps_due(config: RunConfig, finished: FinishedPlies) -> int:
    """Number of steps of an iteration that ends with so many finished plies, read by the host.

    It is `learner.steps`, but fewer at the start of a run, where the few finished games are the
    short ones: a ply is not drawn more often in an iteration than new plies are in all. One step is
    taken as soon as each device has a finished game.
    """
    if finished.least == 0:
        return 0
    played = config.selfplay.boards * config.selfplay.plies
    return min(max(config.learner.steps * int(finished.all) // played, 1), config.learner.steps)


def seed_of(config: RunConfig) -> np.ndarray:
    """A run's seed as its functions take it: the data of its key, uint32[...]."""
    return np.asarray(jax.random.key_data(jax.random.key(config.seed)))
