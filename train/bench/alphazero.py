"""Self-play as pgx's AlphaZero example runs it: mctx's Gumbel search steps a game of pgx.

Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators for Reinforcement Learning"
(2023), section on AlphaZero: a scan over plies; each searches all boards with
`mctx.gumbel_muzero_policy` as it comes, evaluates leaves by a residual network over the game's own
observation, and restarts finished games. The trunk is the config's with all its blocks residual;
the heads are the example's.

B boards, A actions.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.bench.games import pgx_env
from train.bench.timing import CHECKSUM, Benchmark, compile_traced, count_set, make_call_bench
from train.network import MASKED, make_network
from train.network.blocks import RESIDUAL, parse_blocks
from train.network.config import NetworkConfig
from train.search import mctx_engine
from train.search.config import SearchConfig
from train.search.engine import Root
from train.search.tree import Step
from wallgo_jax.planes import Channel

LOOP, GAME = "pgx AlphaZero", "othello"
_PLIES = 8
"""Plies of one call."""


def make_bench(network: NetworkConfig, simulations: int, boards: int) -> Benchmark:
    """Compile the loop of GAME on one device.

    Raises:
      UsageError: pgx is not installed.
    """
    env, step = pgx_env(GAME)
    choose = mctx_engine.make_gumbel(SearchConfig(simulations=simulations), explores=True)
    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(9), boards))
    weights, evaluate_planes = make_residual_network(
        network, states.observation.shape[1:], env.num_actions
    )

    def evaluate(weights: Any, states: Any) -> tuple[jax.Array, jax.Array]:
        logits, value = evaluate_planes(weights, states.observation)
        return jnp.where(states.legal_action_mask, logits, MASKED), value

    def play(weights: Any, action: jax.Array, states: Any) -> Step:
        after = jax.vmap(env.step)(states, action)
        logits, value = evaluate(weights, after)
        mover = states.current_player[:, None]
        reward = jnp.take_along_axis(after.rewards, mover, axis=1)[:, 0]
        value = jnp.where(after.terminated, 0.0, value)
        discount = jnp.where(after.terminated, 0.0, -1.0)
        return Step(reward, discount, logits, value, after, None, None)

    def iteration(weights: Any, states: Any, key: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        def ply(states: Any, key: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
            search_key, reset_key = jax.random.split(key)
            root = Root(*evaluate(weights, states), states, states.legal_action_mask)
            chosen = choose(search_key, root, lambda action, at: play(weights, action, at))
            after = jax.vmap(step)(states, chosen.slot, jax.random.split(reset_key, boards))
            return after, (states.observation, chosen.policy, chosen.value, after.terminated)

        states, plies = jax.lax.scan(ply, states, jax.random.split(key, _PLIES))
        checksum = count_set(plies[1]) + count_set(plies[2])
        return states, {"games": plies[-1].sum(), CHECKSUM: checksum}

    def amounts(calls: int, sums: dict[str, float]) -> dict[str, float]:
        positions = boards * calls * _PLIES
        return sums | {"positions": positions, "evaluations": positions * (simulations + 1)}

    program, stats = compile_traced(
        lambda: jax.jit(iteration).trace(weights, states, jax.random.key(0))
    )
    return make_call_bench(
        f"{LOOP}, {GAME}",
        boards,
        lambda states, number: program(weights, states, jax.random.key(number)),
        states,
        stats,
        amounts,
    )


def make_residual_network(config: NetworkConfig, shape: tuple[int, ...], actions: int) -> Any:
    """Weights, and (weights, observations bool[B, H, W, C]) -> logits float32[B, A] and value
    float32[B] for the player to move, of a network for observations of a shape [H, W, C]."""
    blocks = RESIDUAL * len(parse_blocks(config.blocks))
    config = dataclasses.replace(config, blocks=blocks, mover_first=False, ownership=False)
    trunk = make_network(config, tuple(Channel("turn", i) for i in range(shape[-1])))
    key, cells, width = jax.random.key(0), shape[0] * shape[1], config.width
    shapes = (width, 2), (cells * 2, actions), (width, 1), (cells, width), (width, 1)
    keys = jax.random.split(key, len(shapes))
    normal = [
        np.sqrt(2 / sizes[0]) * jax.random.normal(key, sizes)
        for key, sizes in zip(keys, shapes, strict=True)
    ]

    def evaluate(weights: Any, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
        variables, (policy, logits, value, hidden, out) = weights
        features = trunk.features(variables, observation)
        policy, value = (
            jax.nn.relu(features @ layer).reshape(len(features), -1) for layer in (policy, value)
        )
        return policy @ logits, jnp.tanh(jax.nn.relu(value @ hidden) @ out)[:, 0]

    return (trunk.init(key), normal), evaluate
