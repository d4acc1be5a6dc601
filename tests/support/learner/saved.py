"""Run directories with checkpoints that no run made."""

from pathlib import Path

import numpy as np

from tests.support.learner import tiny
from train.checkpoints.store import save_checkpoint
from train.config import RunConfig, config_to_dict
from train.network.build import network_for


def save_run(directory: Path, *, seeds: dict[int, int], config: RunConfig | None = None) -> Path:
    """A run directory with checkpoints {iteration: seed of its weights}, and nothing to resume."""
    config = config or tiny.config()
    network = network_for(config.network, config.rules.players)
    fields = config_to_dict(config) | {"checkpoint": {"keep": 9}}
    for iteration, seed in seeds.items():
        weights = tiny.new_weights(network, seed)
        save_checkpoint(directory, iteration, weights, {"nothing": np.zeros(1)}, fields)
    return directory
