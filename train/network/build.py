"""Networks by config: one object for one shape, so that all who use it share compiled programs."""

import functools

from train.network.config import NetworkConfig
from train.network.restnet import Network, make_network
from wallgo_jax import planes


@functools.cache
def network_for(config: NetworkConfig, players: int) -> Network:
    """The network of a config for games of `players` players; the same object for equal ones."""
    return make_network(config, planes.channels(config.planes, players))
