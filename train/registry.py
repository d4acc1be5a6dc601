"""A name becomes a player: `kind[:target][@simulations]`.

    random                     any legal action
    greedy                     one ply, largest immediate lead in territory
    ethen, wjx                 one ply, by a distance heuristic of the HKOI contest
    two-ply:NAME               its best plies, each with the best reply to it
    heuristic-search:NAME[@n]  the heuristic in place of a network in a search of n simulations
    exact                      perfect play on small boards
    net:PATH                   raw policy of a checkpoint
    search:PATH[@n]            its network in a search of n simulations (64 by default)
    pretrained:NAME[@n]        a search with weights that come with the package

PATH is a run directory, which means its newest checkpoint, or one of its checkpoints,
RUN/checkpoints/ITERATION.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from train.checkpoints import pretrained
from train.checkpoints.weights import load_weights
from train.config import RunConfig
from train.network import Variables
from train.network.build import network_for
from train.players.basic import Player, make_greedy_player, make_random_player
from train.players.config import HeuristicConfig, HeuristicsConfig
from train.players.heuristics import (
    make_heuristic_evaluator,
    make_heuristic_player,
    make_two_ply_player,
)
from train.players.learned import make_search_player, network_player, search_player
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from train.search.search import make_search
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
    """A player's name, read, with the rules and options that it is made for."""

    name: str
    target: str
    simulations: int
    rules: Rules
    heuristics: HeuristicsConfig
    transfer: bool


class PlayerKind(NamedTuple):
    """Makes players of one kind from their specs."""

    make: Callable[[PlayerSpec], Player]
    target: str = ""  # what the target names; empty for a kind without target
    searches: bool = False


def make_player(
    name: str,
    rules: Rules,
    *,
    heuristics: HeuristicsConfig = _DEFAULT_HEURISTICS,
    transfer: bool = False,
) -> Player:
    """Make the player of a name, ready to play the rules.

    Args:
      name: `kind[:target][@simulations]`.
      rules: the rules to play.
      heuristics: weights of `ethen` and `wjx`.
      transfer: let networks play rules that they were not trained on.

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
    return lambda spec: shared()


def _make_exact(spec: PlayerSpec) -> Player:
    return _exact(spec.rules)


_exact = functools.cache(make_exact_player)


def _weights_of(spec: PlayerSpec, name: str) -> HeuristicConfig:
    if name not in ("ethen", "wjx"):
        raise UsageError(
            f"player {spec.name!r}: no heuristic {name!r}; known heuristics: ethen, wjx"
        )
    return getattr(spec.heuristics, name)


def _make_one_ply(spec: PlayerSpec) -> Player:
    return _one_ply(spec.name, _weights_of(spec, spec.name))


_one_ply = functools.cache(make_heuristic_player)


def _make_two_ply(spec: PlayerSpec) -> Player:
    return _two_ply(spec.name, _weights_of(spec, spec.target))


_two_ply = functools.cache(make_two_ply_player)


def _make_heuristic_search(spec: PlayerSpec) -> Player:
    weights = _weights_of(spec, spec.target)
    act = _heuristic_act(weights, spec.simulations)
    return Player(f"heuristic-search:{spec.target}@{spec.simulations}", (), act)


@functools.cache
def _heuristic_act(weights: HeuristicConfig, simulations: int) -> Callable[..., Any]:
    evaluate = make_heuristic_evaluator(weights)
    search = make_search(evaluate, SearchConfig(simulations=simulations), explores=False)
    return make_search_player("heuristic-search", (), search).act


def _make_net(spec: PlayerSpec) -> Player:
    config, variables = load_weights(Path(spec.target))
    _check_rules(spec, config)
    return network_player(spec.name, variables, config.network, spec.rules)


def _make_search(spec: PlayerSpec) -> Player:
    config, variables = load_weights(Path(spec.target))
    return _searching("search", spec, config, variables)


def _make_pretrained(spec: PlayerSpec) -> Player:
    config = pretrained.read_config(spec.target)
    network = network_for(config.network, config.rules.players)
    variables = pretrained.read_weights(spec.target, network.shapes)
    return _searching("pretrained", spec, config, variables)


def _searching(kind: str, spec: PlayerSpec, config: RunConfig, variables: Variables) -> Player:
    _check_rules(spec, config)
    name = f"{kind}:{spec.target}@{spec.simulations}"
    return search_player(
        name, variables, config.network, config.search, spec.rules, simulations=spec.simulations
    )


def _check_rules(spec: PlayerSpec, config: RunConfig) -> None:
    """Refuse weights that were trained on other rules."""
    if config.rules.players != spec.rules.players:
        raise UsageError(
            f"player {spec.name!r}: learned games of {config.rules.players} players, "
            f"the rules are for {spec.rules.players}"
        )
    if config.rules != spec.rules and not spec.transfer:
        raise UsageError(
            f"player {spec.name!r}: learned {_tell(config.rules)}, asked to play "
            f"{_tell(spec.rules)}; --transfer lets networks play rules they have not learned"
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
