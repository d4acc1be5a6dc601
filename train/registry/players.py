"""Players made from their names, for the rules that they are to play."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from train.checkpoints.weights import TrainedNetwork
from train.players.basic import Player, make_greedy_player, make_random_player
from train.players.config import HeuristicConfig, HeuristicsConfig
from train.players.external import MOVE_SECONDS, make_external_player
from train.players.heuristics import (
    make_heuristic_evaluator,
    make_heuristic_player,
    make_two_ply_player,
)
from train.players.learned import Act, make_search_player, network_player, search_act
from train.players.time_budget import PROBE, simulations_in
from train.registry.names import PlayerName, read_name
from train.registry.networks import network_of, refuse_other_rules
from train.runtime.errors import UsageError
from train.search.config import SearchConfig, as_player
from train.search.gumbel import pay_for_one_board
from train.search.search import make_search
from train.solver.exact_player import make_exact_player
from wallgo_jax.game.rules import Rules

_DEFAULT_HEURISTICS = HeuristicsConfig()


class PlayerSpec(NamedTuple):
    """A player's name, read, with the rules and options that it is made for."""

    name: PlayerName
    rules: Rules
    heuristics: HeuristicsConfig
    transfer: bool
    move_seconds: float
    temperature: float


def make_player(
    name: str | Player,
    rules: Rules,
    *,
    heuristics: HeuristicsConfig = _DEFAULT_HEURISTICS,
    transfer: bool = False,
    move_seconds: float = MOVE_SECONDS,
    temperature: float = 0.0,
) -> Player:
    """Make the player of a name, ready to play the rules.

    Args:
      name: see `train.registry.names`. A budget of time becomes simulations, in rounds where they
        are faster, which is printed; the player has the name of that many simulations. A player
        stays as it is.
      rules: the rules to play.
      heuristics: weights of `ethen` and `wjx`.
      transfer: let networks play rules that they were not trained on.
      move_seconds: that a program may take for a move.
      temperature: of a network's search, see `train.players.learned.search_act`.

    Raises:
      UsageError: there is no such kind, target or checkpoint, it is for other rules, or it cannot
        draw moves at a temperature.
    """
    if isinstance(name, Player):
        return name
    read = read_name(name)
    if temperature and read.kind not in ("search", "pretrained"):
        raise UsageError(f"player {name!r}: only the search of a network draws at a temperature")
    spec = PlayerSpec(read, rules, heuristics, transfer, move_seconds, temperature)
    return _MAKERS[read.kind](spec)


def _make_simple(make: Callable[..., Player]) -> Callable[[PlayerSpec], Player]:
    shared = functools.cache(make)
    return lambda spec: shared()


def _make_exact(spec: PlayerSpec) -> Player:
    return _exact(spec.rules)


_exact = functools.cache(make_exact_player)


def heuristic_of(player: PlayerName, name: str, heuristics: HeuristicsConfig) -> HeuristicConfig:
    """The weights of a heuristic, which a player's name names.

    Raises:
      UsageError: there is no such heuristic.
    """
    if name not in ("ethen", "wjx"):
        raise UsageError(
            f"player {player.text!r}: no heuristic {name!r}; known heuristics: ethen, wjx"
        )
    return getattr(heuristics, name)


def _weights_of(spec: PlayerSpec, name: str) -> HeuristicConfig:
    return heuristic_of(spec.name, name, spec.heuristics)


def _make_one_ply(spec: PlayerSpec) -> Player:
    return _one_ply(spec.name.kind, _weights_of(spec, spec.name.kind))


_one_ply = functools.cache(make_heuristic_player)


def _make_two_ply(spec: PlayerSpec) -> Player:
    return _two_ply(spec.name.full, _weights_of(spec, spec.name.target))


_two_ply = functools.cache(make_two_ply_player)


def _make_heuristic_search(spec: PlayerSpec) -> Player:
    weights = _weights_of(spec, spec.name.target)

    def make_act(options: SearchConfig, simulations: int) -> Act:
        return _heuristic_act(weights, options, simulations)

    return _make_searching(spec, (), SearchConfig(), make_act)


def with_named_options(options: SearchConfig, name: PlayerName) -> SearchConfig:
    """A search's options with the `opponents`, `rounds` and `considered` that a player's name says.

    Raises:
      UsageError: the other options do not go with them.
    """
    rounds = options.rounds if name.rounds is None else name.rounds
    if name.rounds and options.kind != "gumbel":
        raise UsageError(
            f"player {name.text!r}: its search is {options.kind}, which has no rounds; they are "
            "those of gumbel's sequential halving"
        )
    if name.considered and options.kind != "gumbel":
        raise UsageError(
            f"player {name.text!r}: its search is {options.kind}, which considers every action; "
            "leave out considered"
        )
    considered = name.considered or options.player_max_considered_actions
    opponents = name.opponents or options.opponents
    try:
        return dataclasses.replace(
            options,
            opponents=opponents,
            rounds=rounds,
            player_max_considered_actions=considered,
        )
    except ValueError as error:
        raise UsageError(f"player {name.text!r}: search.{error}") from None


def refuse_unread_options(options: SearchConfig, name: PlayerName) -> None:
    """Refuse options of a player's name where its search is a function that Python passes, which
    reads none of them, with a UsageError."""
    if options.custom and name.options_text:
        raise UsageError(
            f"player {name.text!r}: its run has a search of its own, which takes no options; leave "
            f"out {name.options_text}"
        )


@functools.cache
def _heuristic_act(weights: HeuristicConfig, options: SearchConfig, simulations: int) -> Act:
    evaluate = make_heuristic_evaluator(weights)
    search = make_search(evaluate, as_player(options, simulations), explores=False)
    return make_search_player("heuristic-search", (), search).act


def _make_net(spec: PlayerSpec) -> Player:
    trained = _trained(spec)
    return network_player(
        spec.name.full,
        trained.variables,
        trained.config.network,
        spec.rules,
        symmetries=spec.name.symmetries,
    )


def _make_search(spec: PlayerSpec) -> Player:
    config, variables, *_ = _trained(spec)
    refuse_unread_options(config.search, spec.name)

    def make_act(options: SearchConfig, simulations: int) -> Act:
        return search_act(
            config.network,
            options,
            spec.rules,
            simulations=simulations,
            symmetries=spec.name.symmetries,
            temperature=spec.temperature,
        )

    return _make_searching(spec, variables, config.search, make_act)


def _make_searching(
    spec: PlayerSpec,
    variables: Any,
    options: SearchConfig,
    make_act: Callable[[SearchConfig, int], Act],
) -> Player:
    """A player that searches, whose time has become simulations.

    Args:
      options: of the search, before what the name says of them.
      make_act: makes the `act` from options and simulations.
    """
    name, options = spec.name, with_named_options(options, spec.name)
    seconds = name.seconds
    if seconds is None:
        return Player(name.full, variables, make_act(options, name.budget))
    if name.rounds is None and not options.rounds and pay_for_one_board(options):
        name = name._replace(rounds=True)
        options = with_named_options(options, name)
    act_of = functools.partial(make_act, options)
    measured = act_of(PROBE), spec.rules, seconds
    if measured not in _SIMULATIONS:
        found = simulations_in(seconds, act_of, variables, spec.rules)
        _SIMULATIONS[measured] = found
        print(
            f"{spec.name.full}: {found} simulations a move here, by one board; played as "
            f"{name.with_simulations(found).full}"
        )
    counted = name.with_simulations(_SIMULATIONS[measured])
    return Player(counted.full, variables, act_of(counted.budget))


_SIMULATIONS: dict[tuple[Act, Rules, float], int] = {}
"""Simulations by what was timed: players that differ in weights alone are timed once, so that the
same time is the same number for them."""


def _trained(spec: PlayerSpec) -> TrainedNetwork:
    """The player's network, unless it was trained on other rules."""
    trained = network_of(spec.name)
    learned = trained.config.learned
    refuse_other_rules(spec.name.text, learned, spec.rules, transfer=spec.transfer)
    return trained


def _make_external(spec: PlayerSpec) -> Player:
    return make_external_player(spec.name.target, seconds=spec.move_seconds)


_MAKERS: dict[str, Callable[[PlayerSpec], Player]] = {
    "random": _make_simple(make_random_player),
    "greedy": _make_simple(make_greedy_player),
    "ethen": _make_one_ply,
    "wjx": _make_one_ply,
    "two-ply": _make_two_ply,
    "heuristic-search": _make_heuristic_search,
    "exact": _make_exact,
    "net": _make_net,
    "search": _make_search,
    "pretrained": _make_search,
    "external": _make_external,
}
