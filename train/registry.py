"""From a name to a player: `kind[:target][@simulations]`.

    random                     any legal action
    greedy                     one ply, largest immediate lead in territory
    ethen, wjx                 one ply, by a distance heuristic of the HKOI contest
    two-ply:NAME               its best plies, each with the best reply to it
    heuristic-search:NAME[@n]  the heuristic in place of a network in a search of n simulations
    exact                      perfect play on small boards
    net:PATH                   raw policy of a checkpoint
    search:PATH[@n]            its network in a search of n simulations (64 unless said)
    pretrained:NAME[@n]        a search with weights that come with the package

PATH is a run directory, which means its newest checkpoint, or one of its checkpoints,
RUN/checkpoints/ITERATION.
"""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from train.checkpoints import pretrained, store
from train.config import RunConfig, config_from_dict
from train.network import Variables
from train.network.build import network_for
from train.players.basic import (
    Player,
    make_greedy_player,
    make_network_player,
    make_random_player,
    make_search_player,
)
from train.players.config import HeuristicConfig, HeuristicsConfig
from train.players.heuristics import (
    make_heuristic_evaluator,
    make_heuristic_player,
    make_two_ply_player,
)
from train.runtime.errors import UsageError
from train.search.evaluator import Evaluator, evaluator_for
from train.search.search import SearchConfig, make_search
from train.solver.exact_player import make_exact_player
from wallgo_jax.game.rules import Rules, name_of

DEFAULT_SIMULATIONS = 64
MAX_SIMULATIONS = 100_000
KINDS = (
    "random, greedy, ethen, wjx, two-ply:ethen|wjx, heuristic-search:ethen|wjx[@simulations], "
    "exact, net:PATH, search:PATH[@simulations], pretrained:NAME[@simulations]"
)
_DEFAULT_HEURISTICS = HeuristicsConfig()


class PlayerSpec(NamedTuple):
    """What a name asks for."""

    name: str
    target: str
    simulations: int  # 0 where none are said
    rules: Rules
    heuristics: HeuristicsConfig
    transfer: bool


class PlayerKind(NamedTuple):
    """How a player of a kind is made."""

    make: Callable[[PlayerSpec], Player]
    target: str = ""  # what the target is; empty where there is none
    searches: bool = False


def make_player(
    name: str,
    rules: Rules,
    *,
    heuristics: HeuristicsConfig = _DEFAULT_HEURISTICS,
    transfer: bool = False,
) -> Player:
    """The player that a name means, ready to play the rules.

    Args:
      name: `kind[:target][@simulations]`.
      rules: what will be played.
      heuristics: weights of `ethen` and `wjx`.
      transfer: let networks play rules that they have not learned.

    Raises:
      UsageError: there is no such kind, target or checkpoint, or it is for other rules.
    """
    kind, colon, rest = name.partition(":")
    if kind not in _PLAYERS:
        raise UsageError(f"player {name!r}: unknown; known players: {KINDS}")
    made = _PLAYERS[kind]
    if not made.target and colon:
        raise UsageError(f"player {name!r}: {kind} takes no target; known players: {KINDS}")
    target, at, count = rest.rpartition("@") if "@" in rest else (rest, "", "")
    if made.target and not target:
        raise UsageError(f"player {name!r}: names no {made.target}; known players: {KINDS}")
    if at and not made.searches:
        raise UsageError(f"player {name!r}: {kind} takes no simulations; known players: {KINDS}")
    simulations = _read_simulations(name, count) if at else DEFAULT_SIMULATIONS
    return made.make(PlayerSpec(name, target, simulations, rules, heuristics, transfer))


def _read_simulations(name: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_SIMULATIONS:
        raise UsageError(f"player {name!r}: {text!r} simulations; allowed: 1 to {MAX_SIMULATIONS}")
    return int(text)


def _make_simple(make: Callable[..., Player]) -> Callable[[PlayerSpec], Player]:
    shared = functools.cache(make)
    return lambda order: shared(grid=order.rules.size)


def _make_exact(order: PlayerSpec) -> Player:
    return _exact(order.rules)


_exact = functools.cache(make_exact_player)


def _weights_of(order: PlayerSpec, name: str) -> HeuristicConfig:
    if name not in ("ethen", "wjx"):
        raise UsageError(
            f"player {order.name!r}: no heuristic {name!r}; known heuristics: ethen, wjx"
        )
    return getattr(order.heuristics, name)


def _make_one_ply(order: PlayerSpec) -> Player:
    return _one_ply(order.name, _weights_of(order, order.name), grid=order.rules.size)


_one_ply = functools.cache(make_heuristic_player)


def _make_two_ply(order: PlayerSpec) -> Player:
    return _two_ply(order.name, _weights_of(order, order.target), grid=order.rules.size)


_two_ply = functools.cache(make_two_ply_player)


def _make_heuristic_search(order: PlayerSpec) -> Player:
    weights = _weights_of(order, order.target)
    act = _heuristic_act(weights, order.rules.size, order.simulations)
    return Player(f"heuristic-search:{order.target}@{order.simulations}", (), act)


@functools.cache
def _heuristic_act(weights: HeuristicConfig, grid: int, simulations: int) -> Callable[..., Any]:
    evaluate = make_heuristic_evaluator(weights, grid=grid)
    search = make_search(evaluate, SearchConfig(simulations=simulations), grid=grid, explores=False)
    return make_search_player("heuristic-search", (), search).act


def _make_net(order: PlayerSpec) -> Player:
    config, variables = load_weights(Path(order.target))
    _check_rules(order, config)
    act = _network_act(evaluator_for(config.network, order.rules))
    return Player(order.name, variables, act)


def _make_search(order: PlayerSpec) -> Player:
    config, variables = load_weights(Path(order.target))
    return _searching("search", order, config, variables)


def _make_pretrained(order: PlayerSpec) -> Player:
    config = pretrained.read_config(order.target)
    network = network_for(config.network, config.rules.players)
    variables = pretrained.read_weights(order.target, network.shapes)
    return _searching("pretrained", order, config, variables)


def _searching(kind: str, order: PlayerSpec, config: RunConfig, variables: Variables) -> Player:
    _check_rules(order, config)
    name = f"{kind}:{order.target}@{order.simulations}"
    return search_player(name, variables, config, order.rules, simulations=order.simulations)


def _check_rules(order: PlayerSpec, config: RunConfig) -> None:
    """Refuse weights that learned other rules."""
    if config.rules.players != order.rules.players:
        raise UsageError(
            f"player {order.name!r}: learned games of {config.rules.players} players, "
            f"the rules are for {order.rules.players}"
        )
    if config.rules != order.rules and not order.transfer:
        raise UsageError(
            f"player {order.name!r}: learned {_tell(config.rules)}, asked to play "
            f"{_tell(order.rules)}; --transfer lets networks play rules they have not learned"
        )


def _tell(rules: Rules) -> str:
    name = name_of(rules)
    return name if name != "custom" else f"custom rules on {rules.size}x{rules.size}"


_PLAYERS = {
    "random": PlayerKind(_make_simple(make_random_player)),
    "greedy": PlayerKind(_make_simple(make_greedy_player)),
    "ethen": PlayerKind(_make_one_ply),
    "wjx": PlayerKind(_make_one_ply),
    "two-ply": PlayerKind(_make_two_ply, target="heuristic"),
    "heuristic-search": PlayerKind(_make_heuristic_search, target="heuristic", searches=True),
    "exact": PlayerKind(_make_exact),
    "net": PlayerKind(_make_net, target="run directory"),
    "search": PlayerKind(_make_search, target="run directory", searches=True),
    "pretrained": PlayerKind(_make_pretrained, target="model", searches=True),
}


def search_player(
    name: str, variables: Variables, config: RunConfig, rules: Rules, *, simulations: int
) -> Player:
    """A run's search without exploration noise; players of one shape share one program."""
    options = dataclasses.replace(config.search, simulations=simulations, first_simulations=0)
    evaluate = evaluator_for(config.network, rules)
    return Player(name, variables, _search_act(evaluate, rules.size, options))


@functools.cache
def _network_act(evaluate: Evaluator) -> Callable[..., Any]:
    return make_network_player("net", (), evaluate).act


@functools.cache
def _search_act(evaluate: Evaluator, grid: int, options: SearchConfig) -> Callable[..., Any]:
    search = make_search(evaluate, options, grid=grid, explores=False)
    return make_search_player("search", (), search).act


def load_weights(path: Path) -> tuple[RunConfig, Variables]:
    """A run's config and its newest weights, or those of the checkpoint that the path names.

    Raises:
      UsageError: no such directory, no checkpoint in it, or one that cannot be read.
    """
    directory, iteration = path, None
    if path.parent.name == store.WEIGHTS and path.name.isdecimal():
        directory, iteration = path.parents[1], int(path.name)
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such run directory")
    meta = store.read_meta(directory, store.WEIGHTS, iteration)
    config = config_from_dict(meta["config"], where=f"{directory}: saved config")
    network = network_for(config.network, config.rules.players)
    return config, store.read_weights(directory, network.shapes, iteration)
