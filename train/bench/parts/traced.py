"""Traces a run's programs for devices that need not be there.

B boards.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.stages import Traced

from train.bench.parts.search import make_uniform_evaluator
from train.config import RunConfig
from train.data.selfplay import first_boards
from train.loop.compiled_step import CompiledStep
from train.loop.start import load_opponent
from train.network.build import channels_of
from train.runtime.devices import BY_BOARD, EVERYWHERE, Devices
from train.search.evaluator import Evaluator, evaluator_for
from train.search.search import cast_own_weights, make_search
from wallgo_jax import env as env_lib
from wallgo_jax.game.state import Position, State, Variant

ENV_BOARDS = 65_536
PROGRAMS = ("env", "network", "tree", "search", "selfplay", "learn")


def make_traces(
    config: RunConfig, devices: Devices, *, simulations: int
) -> dict[str, Callable[[], Traced]]:
    """Functions that trace the programs of PROGRAMS; call them within `tracing_for`, as this.

    `env` is a step with auto-reset of ENV_BOARDS boards, `network` an evaluation of the boards of
    self-play, `tree` and `search` a move of all of them without and with the network. `selfplay`
    and `learn` are a run's own.

    Args:
      simulations: of `tree` and `search`.

    Raises:
      UsageError: boards or samples cannot be shared by the devices, or the frozen opponent of
        self-play cannot be loaded.
    """
    boards = config.selfplay.boards
    devices.check_divides(selfplay_boards=boards, learner_batch=config.learner.batch)
    step, rules = CompiledStep(config, devices, load_opponent(config)), config.rules
    parts = step.parts
    weights = devices.like(parts.network.shapes, EVERYWHERE)

    def env() -> Traced:
        env = env_lib.make(rules)
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), ENV_BOARDS))
        states = jax.eval_shape(jax.vmap(env.init), keys)
        actions = jax.ShapeDtypeStruct((ENV_BOARDS,), jnp.int32)
        step = jax.jit(jax.vmap(env.step_auto_reset), donate_argnums=0)
        return step.trace(devices.like(states, BY_BOARD), devices.like(actions, BY_BOARD))

    def network() -> Traced:
        channels = len(channels_of(config.network, rules.players))
        planes = jax.ShapeDtypeStruct((boards, rules.size, rules.size, channels), jnp.bool_)
        return jax.jit(parts.network.evaluate).trace(weights, devices.like(planes, BY_BOARD))

    def move(evaluate: Evaluator, variables: Any) -> Traced:
        options = dataclasses.replace(config.search, simulations=simulations, first_simulations=0)
        search = make_search(evaluate, options, explores=True)

        def own(variables: Any, variant: Variant, position: Position, key: jax.Array) -> Any:
            variables = cast_own_weights(variables, config.network) if variables else ()
            return search(variables, State(variant, position), key)

        program = devices.per_device(own, (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE), BY_BOARD)
        positions = jax.eval_shape(first_boards, parts.variants).position
        return jax.jit(program).trace(
            variables,
            devices.like(parts.variants, BY_BOARD),
            devices.like(positions, BY_BOARD),
            devices.like(jax.eval_shape(jax.random.key, 0), EVERYWHERE),
        )

    return {
        "env": env,
        "network": network,
        "tree": lambda: move(make_uniform_evaluator(players=rules.players), ()),
        "search": lambda: move(evaluator_for(config.network, rules), weights),
        "selfplay": lambda: step.trace_play(config.iterations - 1),
        "learn": step.learning.trace,
    }
