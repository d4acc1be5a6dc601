"""The functions of a run, jitted: init, play, write, reanalyse, learn and validate.

They read tables of a config (`tables_of`), whose floats are leaves and whose other values are
static. So runs that differ in floats, seed and weights share what is compiled, and what has been
compiled for shapes (`loop.compiling`) is not compiled again.

B boards, T plies of an iteration, R rows of the replay, S steps of an iteration, N samples.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced

from train.data import replay as replay_lib
from train.data.diversity import OpeningDiversity, opening_diversity
from train.data.reanalyse import draw_rows, search_again
from train.data.replay import ReplayState, Sample, StoredPlies, stored
from train.data.selfplay import (
    Boards,
    BoardSums,
    SelfPlaySums,
    first_boards,
    plies_like,
    stagger,
    sum_by_board,
)
from train.game import Variant
from train.learning.learner import Learner, LearnerState, StepMetrics, make_learner
from train.learning.losses import Losses
from train.loop.batches import draw, draw_held_out, sample, spread, to_host
from train.loop.stages import reanalysis_of, selfplay_of, split_coin_key
from train.loop.tables import REPLAY_SPECS, LearnTables, PlayTables, ReplayPlace, Tables
from train.network import Network, Variables, network_for, observer_for
from train.runtime.devices import (
    AXIS,
    BY_BOARD,
    EVERYWHERE,
    ROWS_BY_BOARD,
    Devices,
    backend,
    constrained,
    device_key,
    shapes_of,
)
from train.search.search import cast_own_weights

_INIT_SALT = 2**31 - 1
"""Folded into the seed for the first weights; iterations fold in their own, smaller numbers."""
_STAGGER_SALT = 2**31 - 2
"""Folded into the seed for the plies that the first games begin with."""
_REANALYSE_SALT = 2**31 - 4
"""Folded into the key of an iteration's self-play."""
_STAGGER_PLIES = 64
"""The most plies before a run's first one on a board: about two random games."""


class TrainState(NamedTuple):
    """Everything that an iteration changes; with the config, everything that resuming needs."""

    learner: LearnerState
    boards: Boards  # [B], games under way
    replay_state: ReplayState
    iterations: jax.Array  # int32, iterations done


class Keys(NamedTuple):
    """The random keys of an iteration."""

    play: jax.Array
    reanalyse: jax.Array
    learn: jax.Array  # [S], one for each step


class IterationFigures(NamedTuple):
    """Figures of an iteration on all devices, float32[] where nothing else is said."""

    sums: SelfPlaySums
    setups: OpeningDiversity
    openings: OpeningDiversity
    by_board: BoardSums  # float32[B]


class FinishedPlies(NamedTuple):
    """Number of plies that can be sampled, int32[]."""

    all: jax.Array
    least: jax.Array  # on the device that has the fewest
    newest: jax.Array  # of games that ended in this iteration, on the device that has the fewest


def init(
    tables: Tables, variant: Variant | None, seed: int, weights: Variables | None = None
) -> TrainState:
    """Make the first state, with random weights or with a copy of given ones.

    Args:
      tables: of the run.
      variant: [B], what each board plays; None without self-play.
      seed: of the run.
      weights: to begin with; None for random ones.
    """
    play = tables.play
    state = _first_state(play, tables.learn, variant, seed_data(seed), weights)
    if play is None or variant is None:
        return state
    plies = plies_like(variant, play.selfplay, has_root_value=play.has_root_value)
    return state._replace(replay_state=_empty_replay(tables.learn.place, tables.rows, plies))


def seed_data(seed: int) -> np.ndarray:
    """The data of a seed's key, uint32[...]: an argument, so that runs of all seeds share what is
    compiled."""
    return np.asarray(jax.random.key_data(jax.random.key(seed)))


def first_key(seed: Any) -> jax.Array:
    """The key of a run's random weights, by its seed or by its `seed_data`."""
    key = jax.random.key(seed) if isinstance(seed, int) else jax.random.wrap_key_data(seed)
    return jax.random.fold_in(key, _INIT_SALT)


def iteration_keys(tables: LearnTables, seed: int, iteration: int) -> Keys:
    """The keys of an iteration, counted from 0: they come from it and the seed alone."""
    steps, devices = tables.learner.steps, tables.place.devices
    return _iteration_keys(seed_data(seed), np.int32(iteration), steps=steps, devices=devices)


@functools.partial(jax.jit, static_argnames=("steps", "devices"))
def _iteration_keys(seed: jax.Array, iteration: jax.Array, *, steps: int, devices: Devices) -> Keys:
    key = jax.random.fold_in(jax.random.wrap_key_data(seed), iteration)
    play_key, learn_key = jax.random.split(key)
    reanalyse_key = jax.random.fold_in(play_key, _REANALYSE_SALT)
    keys = Keys(play_key, reanalyse_key, jax.random.split(learn_key, steps))
    return constrained(keys, devices.sharding(EVERYWHERE))


@jax.jit
def _first_state(
    play: PlayTables | None,
    learn: LearnTables,
    variant: Variant | None,
    seed: jax.Array,
    weights: Variables | None,
) -> TrainState:
    """All of the first state but the replay, which may lie in the host's memory."""
    if weights is None:
        first = network_of(learn).init(first_key(seed))
    else:
        # Copied, for the first step of learning consumes the state.
        first = jax.tree.map(jnp.copy, weights)
    nothing: Any = None
    boards = nothing
    devices = learn.place.devices
    if play is not None and variant is not None:
        boards = first_boards(variant, has_opponent=play.opponent is not None)
        stagger_key = jax.random.fold_in(jax.random.wrap_key_data(seed), _STAGGER_SALT)
        boards = stagger(variant, boards, stagger_key, plies=_STAGGER_PLIES)
        boards = constrained(boards, devices.sharding(BY_BOARD))
    everywhere = devices.sharding(EVERYWHERE)
    learner = constrained(learner_of(learn).init(first), everywhere)
    iterations = constrained(jnp.zeros((), jnp.int32), everywhere)
    return TrainState(learner, boards, nothing, iterations)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _empty_replay(place: ReplayPlace, rows: int, plies: StoredPlies) -> ReplayState:
    # Made in parts, each on its device: one device may be too small for the whole.
    return constrained(replay_lib.init(rows, plies), place.shardings(REPLAY_SPECS))


def state_like(tables: Tables, variant: Variant | None) -> TrainState:
    """Shapes of a state, and where its arrays lie; nothing is computed."""
    seed = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
    play = tables.play
    place = tables.learn.place
    like = jax.eval_shape(_first_state, play, tables.learn, variant, seed, None)
    replay: Any = None
    if play is not None and variant is not None:
        plies = plies_like(variant, play.selfplay, has_root_value=play.has_root_value)
        replay = jax.eval_shape(functools.partial(replay_lib.init, tables.rows, plies))
        replay = shapes_of(replay, place.shardings(REPLAY_SPECS))
    return TrainState(
        learner=place.devices.like(like.learner, EVERYWHERE),
        boards=place.devices.like(like.boards, BY_BOARD),
        replay_state=replay,
        iterations=place.devices.like(like.iterations, EVERYWHERE),
    )


@functools.partial(jax.jit, static_argnames="simulations", donate_argnames="boards")
def play(
    tables: PlayTables,
    simulations: int,
    variables: Any,
    variant: Variant,
    boards: Boards,
    key: jax.Array,
) -> tuple[Boards, StoredPlies, IterationFigures]:
    """Play T plies on boards [B], each device for itself, with one coin for all of them.

    Args:
      tables: of the run.
      simulations: of a full search, `simulations_of` the iteration; static.
      variables: the weights, or `variables_of` them.
      variant: [B], what each board plays.
      boards: [B], games under way; consumed.
      key: of the iteration; consumed.

    Returns:
      The boards as they stand, the plies [T, B] and their figures.
    """

    def on_device(
        tables: PlayTables, variables: Any, variant: Variant, boards: Boards, key: jax.Array
    ) -> tuple[Boards, StoredPlies, IterationFigures]:
        key, coin_key = split_coin_key(key)
        selfplay = selfplay_of(tables, simulations)
        variables = cast_own_weights(variables, tables.network) if simulations else variables
        boards, plies, sums = selfplay(variables, variant, boards, device_key(key), coin_key)
        gather = functools.partial(jax.lax.all_gather, axis_name=AXIS)
        setups, openings = opening_diversity(variant, plies.position, gather)
        by_board = jax.tree.map(functools.partial(gather, tiled=True), sum_by_board(plies))
        sums = jax.lax.psum(sums, AXIS)
        return boards, stored(plies), IterationFigures(sums, setups, openings, by_board)

    on_devices = tables.devices.per_device(
        on_device,
        (EVERYWHERE, EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE),
        (BY_BOARD, ROWS_BY_BOARD, EVERYWHERE),
    )
    return on_devices(tables, variables, variant, boards, key)


def write(
    place: ReplayPlace, replay_state: ReplayState, plies: StoredPlies
) -> tuple[ReplayState, FinishedPlies]:
    """Write plies [T, B] to the replay, which is consumed.

    Returns:
      The replay, and how many plies can be sampled.
    """
    return write_rows(place, replay_state, to_host(place, plies))


@functools.partial(jax.jit, static_argnames="place", donate_argnames="replay_state")
def write_rows(
    place: ReplayPlace, replay_state: ReplayState, plies: StoredPlies
) -> tuple[ReplayState, FinishedPlies]:
    """`write`, of plies that lie where the replay does."""
    with jax.named_scope("replay"):
        written = replay_lib.add(replay_state, plies)

    def by_device(plies: jax.Array) -> jax.Array:
        return plies.reshape(place.parts, -1).sum(axis=1, dtype=jnp.int32)

    counts = by_device(written.finished)
    newest = by_device(replay_lib.newly_finished(written, plies.terminated.shape[0]))
    finished = FinishedPlies(counts.sum(dtype=jnp.int32), counts.min(), newest.min())
    return (
        constrained(written, place.shardings(REPLAY_SPECS)),
        constrained(finished, place.shardings(EVERYWHERE)),
    )


@functools.partial(
    jax.jit, static_argnames=("plies", "simulations"), donate_argnames="replay_state"
)
def reanalyse(
    tables: PlayTables,
    plies: int,
    simulations: int,
    variables: Any,
    variant: Variant,
    replay_state: ReplayState,
    key: jax.Array,
) -> tuple[ReplayState, jax.Array]:
    """Search plies of the replay again, each device those of its boards.

    Args:
      tables: of the run.
      plies: K of each board; static.
      simulations: of each search; static.
      variables: as in `play`.
      variant: [B], what each board plays.
      replay_state: consumed.
      key: consumed.

    Returns:
      The replay, and the mean divergence of the new policies from the network's, nats float32[].
    """

    def on_device(
        tables: PlayTables, variables: Any, variant: Variant, source: ReplayState, key: jax.Array
    ) -> tuple[ReplayState, jax.Array]:
        search = functools.partial(
            reanalysis_of(tables, simulations), cast_own_weights(variables, tables.network)
        )
        row_key, search_key = jax.random.split(key)
        rows = draw_rows(source, row_key, count=plies)
        after, surprise = search_again(source, variant, rows, search, device_key(search_key))
        return after, jax.lax.pmean(surprise, AXIS)

    on_devices = tables.devices.per_device(
        on_device,
        (EVERYWHERE, EVERYWHERE, BY_BOARD, REPLAY_SPECS, EVERYWHERE),
        (REPLAY_SPECS, EVERYWHERE),
    )
    return on_devices(tables, variables, variant, replay_state, key)


def learn(
    tables: LearnTables,
    learner: LearnerState,
    source: Any,
    variant: Variant | None,
    keys: jax.Array,
    steps: int,
) -> tuple[LearnerState, list[StepMetrics]]:
    """Take a number of steps, at most S; nothing is read from the devices.

    Args:
      tables: of the run.
      learner: consumed.
      source: that batches are drawn from: a replay, or `RecordedPositions`.
      variant: [B], what each board of the replay plays.
      keys: [S].
      steps: to take.

    Returns:
      The learner, and what each step saw: metrics of scalars, one a step, or one of arrays [S],
      of which the first belong to the steps.
    """
    place = tables.place
    # XLA runs the gradients of convolutions many times slower inside a loop on a CPU, and a host's
    # replay is sampled between two steps: there each step is a call.
    if is_one_call(place):
        learner, metrics = learn_steps(tables, learner, source, variant, keys, np.int32(steps))
        return learner, [metrics]
    seen: list[StepMetrics] = []
    drawn_by = to_host(place, (variant, keys))
    for index in range(steps):
        batch = source
        if place.host is not None:
            batch = draw(tables, source, drawn_by, index)
            if index > 1:
                # Two batches at most lie on the devices: of the step under way and the next.
                jax.block_until_ready(seen[index - 2])
        learner, metrics = learn_step(tables, learner, batch, variant, keys, np.int32(index))
        # Read after the last step: reading here would make each step wait for the one before.
        seen.append(metrics)
    return learner, seen


def is_one_call(place: ReplayPlace) -> bool:
    """Whether all steps of an iteration are one program."""
    return place.host is None and backend() != "cpu"


def trace_learning(
    tables: LearnTables, learner: Any, source: Any, variant: Any, keys: jax.Array
) -> Traced:
    """Trace what `learn` calls, for arrays or shapes of them; nothing is computed."""
    program = learn_steps if is_one_call(tables.place) else learn_step
    return program.trace(tables, learner, source, variant, keys, np.int32(0))


@functools.partial(jax.jit, donate_argnames="learner")
def learn_step(
    tables: LearnTables,
    learner: LearnerState,
    source: Any,
    variant: Variant | None,
    keys: jax.Array,
    index: jax.Array,
) -> tuple[LearnerState, StepMetrics]:
    """Take a step, by one of keys [S]; of a `Sample`, or of one drawn from a replay or from
    recorded games."""
    sample_key, turn_key = jax.random.split(keys[index])
    batch = source
    if not isinstance(source, Sample):
        batch = sample(tables, source, variant, sample_key)
    # Weights and optimizer state are updated in place.
    after = learner_of(tables).update(learner, batch, turn_key)
    return constrained(after, tables.place.devices.sharding(EVERYWHERE))


@functools.partial(jax.jit, donate_argnames="learner")
def learn_steps(
    tables: LearnTables,
    learner: LearnerState,
    source: Any,
    variant: Variant | None,
    keys: jax.Array,
    steps: jax.Array,
) -> tuple[LearnerState, StepMetrics]:
    """Take a number of steps as one program; metrics [S], of which the first belong to them."""

    def step(learner: LearnerState, index: jax.Array) -> tuple[LearnerState, StepMetrics]:
        # The loop changes neither numbers nor replay, so they are not in the carry.
        return learn_step(tables, learner, source, variant, keys, index)

    def one(index: jax.Array, carry: Any) -> tuple[LearnerState, StepMetrics]:
        learner, seen = step(carry[0], index)
        return learner, jax.tree.map(lambda all, new: all.at[index].set(new), carry[1], seen)

    like, count = jax.eval_shape(step, learner, jnp.int32(0))[1], keys.shape[0]
    nothing = jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), like)
    return jax.lax.fori_loop(0, steps, one, (learner, nothing))


def validate(
    tables: LearnTables,
    weights: Variables,
    source: Any,
    variant: Variant | None,
    keys: jax.Array,
) -> Losses:
    """Losses of weights on games that ended in this iteration, before any step has learned from
    them; the rest is as in `learn`."""
    place = tables.place
    if place.host is not None:
        batch = draw_held_out(tables, source, *to_host(place, (variant, keys)))
        source = spread(place, batch)
    return held_out_losses(tables, weights, source, variant, keys)


@jax.jit
def held_out_losses(
    tables: LearnTables, weights: Variables, source: Any, variant: Variant | None, keys: jax.Array
) -> Losses:
    """Losses of a `Sample`, or of the one that `draw_held_out` draws."""
    batch = source if isinstance(source, Sample) else draw_held_out(tables, source, variant, keys)
    losses = learner_of(tables).validation_losses(weights, batch)
    return constrained(losses, tables.place.devices.sharding(EVERYWHERE))


def network_of(tables: LearnTables) -> Network:
    """The network that learns."""
    return network_for(tables.network, tables.players, size=tables.grid)


def learner_of(tables: LearnTables, *, is_split: bool = True) -> Learner:
    """The learner, whose numbers may be arrays of a program that is traced; its batches are split
    over the devices."""
    devices = tables.place.devices
    make = functools.partial(
        make_learner,
        network_of(tables),
        tables.learner,
        total_steps=tables.total_steps,
        observe=observer_for(tables.network),
    )
    if not is_split:
        return make()
    return make(per_device=lambda prepare: devices.per_device(prepare, BY_BOARD, BY_BOARD))
