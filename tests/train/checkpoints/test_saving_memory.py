"""Saving holds no second copy of the arrays that it writes."""

import subprocess
import sys

import pytest

from tests.support import compiling

ARRAYS, BYTES = 4, 2**26
# The arrays lie in the host's memory already: whatever the process takes on top is copies.
DRIVER = f"""
import resource, sys
from pathlib import Path
import jax, jax.numpy as jnp
from train.checkpoints.store import Store
from train.runtime.host import fetch

store = Store(Path(sys.argv[1]), keep=2)
weights = {{"kernel": jnp.ones((256, 256))}}
numbers = jnp.arange({BYTES // 4}, dtype=jnp.int32)
store.save(1, weights, {{"first": numbers[:10]}}, {{}})
state = jax.block_until_ready({{str(i): numbers // 64 + i for i in range({ARRAYS})}})
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
store.save(2, *fetch((weights, state)), {{}})
print((peak() - before) * 1024)
"""


@pytest.mark.slow
def test_a_checkpoint_is_written_without_copies(tmp_path):
    found = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        env=compiling.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(found.stdout) < 0.75 * ARRAYS * BYTES
