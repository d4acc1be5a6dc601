"""Builds networks from configs; equal configs share one network and its compiled programs."""

import functools

from train.network.config import NetworkConfig
from train.network.restnet import Network, make_network
from wallgo_jax import planes


@functools.cache
def network_for(config: NetworkConfig, players: int) -> Network:
    """The network of a config for that number of players; equal arguments give the same object."""
    return make_network(config, planes.channels(config.planes, players))
