"""A name becomes a player, or the network and the rules of a trained one (docs/players.md)."""

from train.registry.frozen import FrozenOpponent, make_frozen_opponent, make_modelling_player
from train.registry.names import KINDS, PlayerName, read_name
from train.registry.networks import common_rules, load_network, network_config
from train.registry.players import make_player
from train.registry.teachers import make_teacher

__all__ = [
    "KINDS",
    "FrozenOpponent",
    "PlayerName",
    "common_rules",
    "load_network",
    "make_frozen_opponent",
    "make_modelling_player",
    "make_player",
    "make_teacher",
    "network_config",
    "read_name",
]
