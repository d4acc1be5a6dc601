"""Shared by every test: the settings of JAX and hypothesis, and the conformance games."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import hypothesis
import jax
import pytest

_ROOT = Path(__file__).parents[1]

# Commands that tests start get as many devices as the tests themselves, and compile as they do:
# most of the time of the tests is compiling, little of which is made good by faster programs.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "1")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update(
    "jax_disable_most_optimizations", os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1"
)
jax.config.update("jax_compilation_cache_dir", str(_ROOT / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

# The first example compiles, so no deadline; the same examples in every run.
hypothesis.settings.register_profile("wallgo", deadline=None, derandomize=True, max_examples=20)
hypothesis.settings.load_profile("wallgo")


@pytest.fixture(scope="session")
def conformance() -> dict[str, list[dict[str, Any]]]:
    """Complete games of a slow independent referee, by rule set."""
    games: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(_ROOT / "tests" / "data" / "conformance.jsonl.gz", "rt") as lines:
        for line in lines:
            game = json.loads(line)
            games.setdefault(game["variant"], []).append(game)
    return games
