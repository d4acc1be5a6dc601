"""Builds networks from configs; equal configs share one network and its compiled programs."""

import functools
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from train.functions import call_of
from train.network.config import NetworkConfig
from train.network.custom import make_custom_network
from train.network.restnet import Network, make_network
from wallgo_jax import observation
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.game.state import State, initial_state
from wallgo_jax.observation import Precomputed
from wallgo_jax.planes import Channel, channels

CUSTOM = "custom"
"""The kind of the channels that a function of one's own shows."""
_SIZE = 7

Observe = Callable[[State, Precomputed | None], jax.Array]
"""(state of one board, what is known of it or None) -> bool[H, W, C]."""


def network_for(config: NetworkConfig, players: int, *, size: int = _SIZE) -> Network:
    """The network of a config for that number of players; equal arguments give the same object.

    Args:
      config: of the network.
      players: P.
      size: side of the board, which only networks of one's own are told, when they are made.

    Raises:
      UsageError: it is a network of one's own that this process has not been told.
    """
    return _network(config, players, size if config.custom else _SIZE)


@functools.cache
def _network(config: NetworkConfig, players: int, size: int) -> Network:
    shown = channels_of(config, players)
    if not config.custom:
        return make_network(config, shown)
    return make_custom_network(
        call_of("network.custom", config.custom),
        shown,
        players=players,
        size=size,
        has_mover_first=config.mover_first,
    )


def channels_of(config: NetworkConfig, players: int) -> tuple[Channel, ...]:
    """The channels that the network reads: those of `planes`, then those of `custom_planes`."""
    own = 0
    if config.custom_planes:
        rules = next(rules for rules in PRESETS.values() if rules.players == players)
        own = jax.eval_shape(_custom_planes(config), initial_state(rules)).shape[-1]
    # An age tells planes of one kind apart.
    shown = channels(config.planes, players, has_playable=config.playable)
    return (*shown, *(Channel(CUSTOM, age=i) for i in range(own)))


@functools.cache
def observer_for(config: NetworkConfig) -> Observe:
    """The function that shows states to a config's network."""

    def observe(state: State, precomputed: Precomputed | None = None) -> jax.Array:
        return observation.observe(
            state, planes=config.planes, has_playable=config.playable, precomputed=precomputed
        )

    if not config.custom_planes:
        return observe
    own = _custom_planes(config)
    return lambda state, precomputed=None: jnp.concatenate(
        [observe(state, precomputed), own(state)], axis=-1
    )


def _custom_planes(config: NetworkConfig) -> Callable[[State], jax.Array]:
    call = call_of("network.custom_planes", config.custom_planes)

    def planes(state: State) -> jax.Array:
        shown = jnp.asarray(call(state))
        chex.assert_shape(shown, (state.grid, state.grid, None))
        return shown.astype(bool)

    return planes
