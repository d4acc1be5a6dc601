"""Operations of a network, and the most that the device reaches: a large matrix product in the
same precision.

A multiply-add counts as two operations. Convolutions count cells beyond the border too.
"""

import jax
import jax.numpy as jnp
import numpy as np

from train.bench.harness.program import compile_program
from train.bench.harness.timing import CHECKSUM, Bench
from train.config import RunConfig
from train.network import Output, Part, census, compute_dtype
from train.network.build import channels_of
from train.runtime.devices import AXIS, BY_BOARD, EVERYWHERE, Devices
from train.runtime.host import fetch

PRODUCT, OPERATIONS = "matrix product", "operations"
CPU_SIDE, SIDE = 1024, 8192
"""Rows and columns of the matrices, large enough for arithmetic to take nearly all the time."""


def forward_operations(config: RunConfig) -> int:
    """Operations of one evaluation of a board, with the heads that a search reads."""
    idle = set(Output._fields) - {"policy", "value"}
    return 2 * sum(part.multiply_adds for part in _parts(config) if part.name not in idle)


def step_operations(config: RunConfig) -> int:
    """Operations of one sample of a learner's step: forward with all heads, and twice as much
    backward, except for the stem, whose planes need no gradient."""
    parts = _parts(config)
    return 2 * (3 * sum(part.multiply_adds for part in parts) - parts[0].multiply_adds)


def _parts(config: RunConfig) -> tuple[Part, ...]:
    channels = channels_of(config.network, config.rules.players)
    return census(config.network, channels, size=config.rules.size)


def make_product_bench(config: RunConfig, batch: int, devices: Devices) -> Bench:
    """Compile a chain of square matrix products, in the network's precision, on each device."""
    side = CPU_SIDE if jax.default_backend() == "cpu" else SIDE
    dtype = compute_dtype(config.network.dtype)

    def products(factor: jax.Array, start: jax.Array, length: jax.Array):
        made = jax.lax.fori_loop(0, length, lambda _, x: x @ factor, start[0])
        return jax.lax.psum((made != 0).sum(dtype=jnp.uint32), AXIS)

    everywhere, by_board = devices.sharding(EVERYWHERE), devices.sharding(BY_BOARD)
    factor_key, start_key = jax.random.split(jax.random.key(0))
    # The scale keeps the entries of every product about as large as those of its factors.
    scale = np.asarray(side**-0.5, dtype)
    factor = jax.random.normal(factor_key, (side, side), dtype) * scale
    start = jax.random.normal(start_key, (devices.count, side, side), dtype)
    factor, start = jax.device_put(factor, everywhere), jax.device_put(start, by_board)
    program = devices.per_device(products, (EVERYWHERE, BY_BOARD, EVERYWHERE), EVERYWHERE)
    compiled = compile_program(program, (factor, start, np.int32(1)))

    def run(length: int) -> dict[str, float]:
        checksum = int(fetch(compiled.call(factor, start, np.int32(length))))
        return {OPERATIONS: 2 * side**3 * devices.count * length, CHECKSUM: checksum}

    return Bench(PRODUCT, batch, run, compiled.stats)
