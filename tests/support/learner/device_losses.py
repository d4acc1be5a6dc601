"""Three steps of learning on one batch, spread over devices."""

import jax
import numpy as np

from tests.support.learner import tiny
from tests.support.learner.samples import SAMPLES, played
from train.learning.config import LearnerConfig
from train.learning.learner import make_learner
from train.network import NetworkConfig, make_network
from train.network.build import observer_for
from train.runtime.devices import BY_BOARD, EVERYWHERE, Devices
from wallgo_jax import planes as planes_lib

STEPS = 3


def losses(devices: Devices) -> dict[str, object]:
    """Losses and gradient norms of a network with batch norm, its batch spread over the devices,
    each of which makes its own part's targets and planes."""
    network = make_network(
        NetworkConfig(blocks="RT", width=8, margin=True), planes_lib.channels("BTR", 2)
    )
    config = LearnerConfig(batch=SAMPLES, steps=1, warmup=0)
    learner = make_learner(
        network,
        config,
        total_steps=STEPS,
        observe=observer_for(NetworkConfig(planes="BTR")),
        per_device=lambda prepare: devices.per_device(prepare, BY_BOARD, BY_BOARD),
    )
    state = jax.device_get(jax.jit(learner.init)(tiny.new_weights(network)))
    sample = jax.device_put(played(2).sample._replace(reply=None), devices.sharding(BY_BOARD))
    state = jax.device_put(state, devices.sharding(EVERYWHERE))
    update, rows = jax.jit(learner.update), []
    for step in range(STEPS):
        state, metrics = update(state, sample, jax.random.key(step))
        found = [x for x in metrics.losses if x is not None]
        rows.append([float(x) for x in (*found, metrics.gradient_norm)])
    mean = jax.tree.leaves(state.variables.batch_stats)
    return {
        "devices": devices.count,
        "losses": rows,
        "statistics": [float(np.abs(x).sum()) for x in mean],
        "weights": float(np.mean([np.abs(x).mean() for x in jax.tree.leaves(state.variables)])),
    }
