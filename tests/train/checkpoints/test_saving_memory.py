"""Saving holds no second copy of the arrays that it writes."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np

from train.checkpoints.store import Store
from train.runtime.host import fetch

ARRAYS, BYTES = 4, 2**21


def test_a_checkpoint_is_written_without_copies(tmp_path):
    store = Store(tmp_path, keep=2)
    numbers = np.arange(BYTES // 4, dtype=np.int32)
    state = {str(i): jnp.asarray(numbers // 64 + i) for i in range(ARRAYS)}
    weights = {"kernel": jnp.asarray(np.ones((16, 16), np.float32))}
    jax.block_until_ready(state)
    tracemalloc.start()
    try:
        store.save(1, *fetch((weights, state)), {})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        store.close()
    assert peak < 0.75 * ARRAYS * BYTES
