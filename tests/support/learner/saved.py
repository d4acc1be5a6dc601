"""Run directories with checkpoints that no run made."""

from pathlib import Path

import numpy as np

from tests.support.learner import tiny
from train.checkpoints.checkpoint import write_checkpoint
from train.checkpoints.store import RESUME, WEIGHTS
from train.config import RunConfig, config_to_dict
from train.network.build import network_for


def save_run(directory: Path, *, seeds: dict[int, int], config: RunConfig | None = None) -> Path:
    """A run directory with checkpoints {iteration: seed of its weights}, and nothing to resume."""
    config = config or tiny.config()
    network = network_for(config.network, config.rules.players)
    about = {"config": config_to_dict(config), "win_rate": None}
    for iteration, seed in seeds.items():
        trees = {WEIGHTS: ("weights", tiny.new_weights(network, seed))}
        trees[RESUME] = "run", {"nothing": np.zeros(1)}
        for kind, (item, tree) in trees.items():
            write_checkpoint(directory / kind / str(iteration), item, tree, **about)
    return directory
