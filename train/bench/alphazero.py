"""Self-play as pgx's AlphaZero example runs it: mctx's Gumbel search steps a game of pgx.

Koyamada et al., "Pgx: Hardware-Accelerated Parallel Game Simulators for Reinforcement Learning"
(2023), section on AlphaZero: a scan over plies; each searches all boards with
`mctx.gumbel_muzero_policy` as it comes, evaluates leaves by a residual network over the game's own
observation, and restarts finished games. The network here has the width and the number of blocks of
the config; its blocks are residual ones of two 3x3 convolutions.

B boards, A actions, F channels.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.bench.games import pgx_env
from train.bench.timing import CHECKSUM, Benchmark, compile_traced, count_set, make_call_bench
from train.network import MASKED, NetworkConfig, parse_blocks
from train.search import mctx_engine
from train.search.config import SearchConfig
from train.search.tree import Root, Step

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

    def evaluate(weights: Any, states: Any) -> tuple[jax.Array, jax.Array]:
        logits, value = apply(weights, states.observation)
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
            logits, value = evaluate(weights, states)
            root = Root(logits, value, states, states.legal_action_mask)
            chosen = choose(search_key, root, lambda action, at: play(weights, action, at))
            after = jax.vmap(step)(states, chosen.slot, jax.random.split(reset_key, boards))
            return after, (states.observation, chosen.policy, chosen.value, after.terminated)

        states, plies = jax.lax.scan(ply, states, jax.random.split(key, _PLIES))
        checksum = count_set(plies[1]) + count_set(plies[2])
        return states, {"games": plies[-1].sum(), CHECKSUM: checksum}

    def amounts(calls: int, sums: dict[str, float]) -> dict[str, float]:
        positions = boards * calls * _PLIES
        return sums | {"positions": positions, "evaluations": positions * (simulations + 1)}

    states = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(9), boards))
    weights = init(jax.random.key(0), network, states.observation.shape[1:], env.num_actions)
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


Convolution = tuple[jax.Array, jax.Array, jax.Array]
"""A kernel, then a scale and a shift of each channel, as a batch norm is at inference."""


class Weights(NamedTuple):
    """A residual network."""

    stem: Convolution
    blocks: list[tuple[Convolution, Convolution]]
    policy: Convolution
    policy_out: jax.Array  # float32[H * W * 2, A]
    value: Convolution
    value_hidden: jax.Array  # float32[H * W, F]
    value_out: jax.Array  # float32[F, 1]


def init(key: jax.Array, config: NetworkConfig, shape: tuple[int, ...], actions: int) -> Weights:
    """New weights for observations [H, W, C] of that shape."""
    blocks, features = len(parse_blocks(config.blocks)), config.width
    keys = iter(jax.random.split(key, 2 * blocks + 6))
    height, width, channels = shape

    def matrix(*sizes: int) -> jax.Array:
        return np.sqrt(2 / np.prod(sizes[:-1])) * jax.random.normal(next(keys), sizes)

    def conv(size: int, inputs: int, outputs: int) -> Convolution:
        return matrix(size, size, inputs, outputs), jnp.ones(outputs), jnp.zeros(outputs)

    return Weights(
        conv(3, channels, features),
        [(conv(3, features, features), conv(3, features, features)) for _ in range(blocks)],
        conv(1, features, 2),
        matrix(height * width * 2, actions),
        conv(1, features, 1),
        matrix(height * width, features),
        matrix(features, 1),
    )


def apply(weights: Weights, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Evaluate observations [B, H, W, C]: logits float32[B, A] and value float32[B], for the player
    to move."""

    def conv(layer: Convolution, x: jax.Array) -> jax.Array:
        kernel, scale, shift = layer
        names = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=names)
        return x * scale[None, None, None] + shift[None, None, None]

    x = jax.nn.relu(conv(weights.stem, observation.astype(jnp.float32)))
    for first, second in weights.blocks:
        x = jax.nn.relu(x + conv(second, jax.nn.relu(conv(first, x))))
    policy = jax.nn.relu(conv(weights.policy, x)).reshape(x.shape[0], -1)
    value = jax.nn.relu(conv(weights.value, x)).reshape(x.shape[0], -1)
    hidden = jax.nn.relu(value @ weights.value_hidden)
    return policy @ weights.policy_out, jnp.tanh(hidden @ weights.value_out)[:, 0]
