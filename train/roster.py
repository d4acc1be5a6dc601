"""From a name to a player: `kind[:target][@simulations]`.

    random            any legal action
    greedy            one ply, largest immediate lead in territory
    net:PATH          raw policy of a checkpoint
    search:PATH[@n]   its network in a search of n simulations (64 unless said)

PATH is a run directory and means its newest checkpoint.
"""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from train import checkpoint
from train.config import RunConfig, config_from_dict
from train.errors import UsageError
from train.network import Network, NetworkConfig, Variables, make_network
from train.players import (
    Player,
    make_greedy_player,
    make_network_player,
    make_random_player,
    make_search_player,
)
from train.search import Evaluator, SearchConfig, make_evaluator, make_search
from wallgo_jax import observation
from wallgo_jax.game.rules import Rules

DEFAULT_SIMULATIONS = 64
MAX_SIMULATIONS = 100_000
_KINDS = "random, greedy, net:PATH, search:PATH[@simulations]"


def make_player(name: str, rules: Rules) -> Player:
    """The player that a name means, ready to play the rules.

    Raises:
      UsageError: there is no such kind, target or checkpoint.
    """
    kind, colon, rest = name.partition(":")
    target, at, count = rest.rpartition("@") if "@" in rest else (rest, "", "")
    if kind in ("random", "greedy"):
        if colon or "@" in kind:
            raise UsageError(f"player {name!r}: {kind} takes no target; known players: {_KINDS}")
        return _simple_player(kind, rules.size)
    if kind not in ("net", "search"):
        raise UsageError(f"player {name!r}: unknown; known players: {_KINDS}")
    if not target:
        raise UsageError(f"player {name!r}: names no run directory; known players: {_KINDS}")
    if kind == "net" and at:
        raise UsageError(f"player {name!r}: a raw policy takes no simulations; use search:PATH@n")
    config, variables = load_weights(Path(target))
    if config.game.players != rules.players:
        raise UsageError(
            f"player {name!r}: learned games of {config.game.players} players, "
            f"the rules are for {rules.players}"
        )
    if kind == "net":
        return Player(name, variables, _network_act(config.network, rules.size, rules.players))
    simulations = _read_simulations(name, count) if at else DEFAULT_SIMULATIONS
    return search_player(
        f"search:{target}@{simulations}", variables, config, rules, simulations=simulations
    )


@functools.cache
def _simple_player(kind: str, grid: int) -> Player:
    make = make_random_player if kind == "random" else make_greedy_player
    return make(grid=grid)


def search_player(
    name: str, variables: Variables, config: RunConfig, rules: Rules, *, simulations: int
) -> Player:
    """A run's search without exploration noise; players of one shape share one program."""
    options = dataclasses.replace(config.search, simulations=simulations, first_simulations=0)
    return Player(name, variables, _search_act(config.network, rules.size, rules.players, options))


@functools.cache
def _network_act(config: NetworkConfig, grid: int, players: int) -> Callable[..., Any]:
    return make_network_player("net", (), _evaluator(config, grid, players)).act


@functools.cache
def _search_act(
    config: NetworkConfig, grid: int, players: int, options: SearchConfig
) -> Callable[..., Any]:
    search = make_search(
        _evaluator(config, grid, players),
        options,
        grid=grid,
        explores=False,
    )
    return make_search_player("search", (), search).act


def evaluator_for(config: NetworkConfig, rules: Rules) -> Evaluator:
    """How a network judges states of these rules; one object for one shape."""
    return _evaluator(config, rules.size, rules.players)


@functools.cache
def _evaluator(config: NetworkConfig, grid: int, players: int) -> Evaluator:
    return make_evaluator(
        network_for(config, players), grid=grid, planes=config.planes, has_playable=False
    )


@functools.cache
def network_for(config: NetworkConfig, players: int) -> Network:
    """The network of a config; one object for one shape."""
    return make_network(config, observation.channels(config.planes, players))


def load_weights(directory: Path) -> tuple[RunConfig, Variables]:
    """A run's config and its newest weights.

    Raises:
      UsageError: no such directory, no checkpoint in it, or one that cannot be read.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such run directory")
    meta = checkpoint.read_meta(directory, checkpoint.WEIGHTS)
    config = config_from_dict(meta["config"], where=f"{directory}: saved config")
    network = network_for(config.network, config.game.players)
    return config, checkpoint.read_weights(directory, network.shapes)


def _read_simulations(name: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SIMULATIONS:
        raise UsageError(f"player {name!r}: {text!r} simulations; allowed: 1 to {MAX_SIMULATIONS}")
    return int(text)
