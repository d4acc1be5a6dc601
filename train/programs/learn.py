"""All steps of an iteration of learning, compiled for the machine and the replay's memory.

S steps an iteration, N samples a step.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Compiled, Traced

from train.config import RunConfig
from train.data.replay import ReplayState, Sample
from train.learning.learner import Learner, LearnerState, StepMetrics
from train.programs.numbers import Numbers
from train.programs.replay import HOST, ReplayPrograms
from train.runtime.devices import EVERYWHERE, Devices, backend
from wallgo_jax.game.state import Variant

State = TypeVar("State")
Batch = TypeVar("Batch")
Metrics = TypeVar("Metrics")

# A step gets its index as an array, so that one program serves all steps.
_FIRST = np.int32(0)


LearnerOf = Callable[[Numbers], Learner]
"""Makes a run's learner of the numbers that its programs take as arguments."""


class LearnInputs(NamedTuple):
    """Arguments of `LearnProgram.learn`, or their shapes and how they lie on the devices."""

    numbers: Numbers
    learner: LearnerState
    replay_state: ReplayState
    variant: Variant  # [B]
    keys: jax.Array  # [S]


class LearnProgram(NamedTuple):
    """Learning, compiled."""

    learn: Callable[[LearnInputs, int], tuple[LearnerState, list[StepMetrics]]]
    """(inputs, steps) -> the learner so many steps later, at most S, and what each step saw:
    metrics of scalars, one a step, or one of arrays [S], of which the first belong to the steps.
    The learner is consumed."""
    traced: Traced
    compiled: Compiled


def make_learn_program(
    config: RunConfig,
    learner_of: LearnerOf,
    replay_programs: ReplayPrograms,
    like: LearnInputs,
    devices: Devices,
) -> LearnProgram:
    """Compile all steps of an iteration; the arguments are those of `trace_learning`."""
    traced = trace_learning(config, learner_of, replay_programs, like, devices)
    compiled = traced.lower().compile()
    if config.replay.memory == HOST:
        learn = _learn_from_host(compiled, replay_programs, like)
    elif backend() == "cpu":
        learn = _learn_by_steps(compiled)
    else:
        learn = _learn_at_once(compiled)
    return LearnProgram(learn, traced, compiled)


def trace_learning(
    config: RunConfig,
    learner_of: LearnerOf,
    replay_programs: ReplayPrograms,
    like: LearnInputs,
    devices: Devices,
) -> Traced:
    """Trace the program that learns: all steps of an iteration, or one of them.

    On accelerators they are one program. XLA runs the gradients of convolutions many times slower
    inside a loop on a CPU, so there each step is a call. A host's replay is sampled between two
    steps, so there, too, each step is a call.
    """
    arguments: tuple[Any, ...] = like
    if config.replay.memory == HOST:
        arguments = like.numbers, like.learner, replay_programs.sample_like(), like.keys
        function = _make_host_step(learner_of)
    elif backend() == "cpu":
        function = _make_step(learner_of, replay_programs)
    else:
        function = _make_loop(_make_step(learner_of, replay_programs))
    # Weights and optimizer state are updated in place.
    jitted = jax.jit(function, donate_argnums=1, out_shardings=devices.sharding(EVERYWHERE))
    return jitted.trace(*arguments, _FIRST)


_Learn = Callable[[LearnInputs, int], tuple[LearnerState, list[StepMetrics]]]


def _learn_from_host(
    compiled: Compiled, replay_programs: ReplayPrograms, like: LearnInputs
) -> _Learn:
    """The host samples the batch of the next step while the devices learn from the last."""

    def sample_key_of(keys: jax.Array, index: jax.Array) -> jax.Array:
        return jax.random.split(keys[index])[0]

    # The key of `_make_step`, so that one device draws the same samples from either memory. It is
    # worked out beside the replay: on an accelerator it would wait for the step before.
    sample_key = jax.jit(sample_key_of).lower(replay_programs.beside(like.keys), _FIRST).compile()

    def learn(inputs: LearnInputs, steps: int) -> tuple[LearnerState, list[StepMetrics]]:
        numbers, state, replay_state, variant, keys = inputs
        variant, sample_keys = replay_programs.beside((variant, keys))

        def sample(index: int) -> Sample:
            key = sample_key(sample_keys, np.int32(index))
            return replay_programs.sample(replay_state, variant, key)

        def learn_from(state: LearnerState, batch: Sample, index: int) -> tuple[Any, StepMetrics]:
            return compiled(numbers, state, batch, keys, np.int32(index))

        return learn_ahead(state, steps, sample, learn_from)

    return learn


def learn_ahead(
    state: State,
    steps: int,
    sample: Callable[[int], Batch],
    learn_from: Callable[[State, Batch, int], tuple[State, Metrics]],
) -> tuple[State, list[Metrics]]:
    """Learn from one batch while the next is sampled.

    Args:
      state: consumed by the first step.
      steps: number of batches, each drawn and learned from in its turn.
      sample: index -> the batch of a step; works on the host until it returns.
      learn_from: (state, batch, index) -> the next state and what the step saw; only starts the
        work of the devices.

    Returns:
      The last state, and what each step saw.
    """
    found = []
    batch = sample(0) if steps else None
    for index in range(steps):
        assert batch is not None
        state, metrics = learn_from(state, batch, index)
        # Read after the last step: reading here would make each step wait for the one before.
        found.append(metrics)
        if index + 1 < steps:
            batch = sample(index + 1)
        if index:
            # Two batches at most lie on the devices: that of the step under way and the next.
            jax.block_until_ready(found[index - 1])
    return state, found


def _learn_by_steps(compiled: Compiled) -> _Learn:
    """Each step samples and learns on the devices, in a call of its own."""

    def learn(inputs: LearnInputs, steps: int) -> tuple[LearnerState, list[StepMetrics]]:
        found = []
        for index in map(np.int32, range(steps)):
            state, metrics = compiled(*inputs, index)
            inputs = inputs._replace(learner=state)
            found.append(metrics)
        return inputs.learner, found

    return learn


def _learn_at_once(compiled: Compiled) -> _Learn:
    """One call samples and learns all steps on the devices."""

    def learn(inputs: LearnInputs, steps: int) -> tuple[LearnerState, list[StepMetrics]]:
        state, metrics = compiled(*inputs, np.int32(steps))
        return state, [metrics]

    return learn


_Step = Callable[
    [Numbers, LearnerState, ReplayState, Variant, jax.Array, jax.Array],
    tuple[LearnerState, StepMetrics],
]


def _make_loop(step: _Step) -> _Step:
    """All steps; the last argument is their number."""

    def learn_all(
        numbers: Numbers,
        state: LearnerState,
        replay_state: ReplayState,
        variant: Variant,
        keys: jax.Array,
        steps: jax.Array,
    ) -> tuple[LearnerState, StepMetrics]:
        # The loop changes neither numbers nor replay, so they are not in the carry.
        def one(
            index: jax.Array, carry: tuple[LearnerState, StepMetrics]
        ) -> tuple[LearnerState, StepMetrics]:
            state, seen = step(numbers, carry[0], replay_state, variant, keys, index)
            return state, jax.tree.map(lambda all, new: all.at[index].set(new), carry[1], seen)

        arguments = (numbers, state, replay_state, variant, keys, jnp.int32(0))
        like = jax.eval_shape(step, *arguments)[1]
        nothing = jax.tree.map(lambda x: jnp.zeros((keys.shape[0], *x.shape), x.dtype), like)
        return jax.lax.fori_loop(0, steps, one, (state, nothing))

    return learn_all


def _make_host_step(learner_of: LearnerOf) -> Callable[..., tuple[LearnerState, StepMetrics]]:
    """A step that learns from a batch that the host has sampled."""

    def step(
        numbers: Numbers, state: LearnerState, sample: Sample, keys: jax.Array, index: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        _, turn_key = jax.random.split(keys[index])
        return learner_of(numbers).update(state, sample, turn_key)

    return step


def _make_step(learner_of: LearnerOf, replay_programs: ReplayPrograms) -> _Step:
    """A step that samples from the devices' replay and learns."""

    def step(
        numbers: Numbers,
        state: LearnerState,
        replay_state: ReplayState,
        variant: Variant,
        keys: jax.Array,
        index: jax.Array,
    ) -> tuple[LearnerState, StepMetrics]:
        sample_key, turn_key = jax.random.split(keys[index])
        sample = replay_programs.sample(replay_state, variant, sample_key)
        return learner_of(numbers).update(state, sample, turn_key)

    return step
