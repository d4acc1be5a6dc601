"""A player that searches positions for others to read: a network or a heuristic, by its name."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.checkpoints.calibration import of_card
from train.config import RunConfig
from train.network import Output, cast_weights
from train.network.build import network_for, observer_for
from train.players.config import HeuristicsConfig
from train.players.heuristics import make_heuristic_evaluator
from train.registry import read_name
from train.registry.networks import network_of, refuse_other_rules
from train.registry.players import heuristic_of, with_named_options
from train.runtime.errors import UsageError
from train.search.calibration import Calibration
from train.search.config import SearchConfig, as_player
from train.search.evaluator import Evaluator, evaluator_for
from train.search.reporting import EvaluateHeads
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

ALLOWED = "PATH, net:PATH, search:PATH, pretrained:NAME, heuristic-search:ethen|wjx"
RAW_POLICY = 0
"""Simulations of a player that does not search."""


class SearchPlayer(NamedTuple):
    """An evaluator with its weights, and how its searches ask it."""

    name: str
    evaluate: Evaluator
    variables: Any
    search: SearchConfig  # as of a player in a match; the budget is that of an analysis alone
    symmetries: int = 1  # turned copies of a root that are evaluated
    simulations: int | None = None  # of a move by the player's name; None where it names a time
    seconds: float | None = None  # a move by the player's name
    evaluate_heads: EvaluateHeads | None = None  # None without a network
    learned: tuple[Rules, ...] = ()  # rules that it has learned; empty without a network
    transfer: bool = True  # whether it may play others
    calibration: Calibration = Calibration()  # of its values
    rules: Any = None  # Rules of the games that it analyses; None where they may be any

    def chance(self, value: Any, *, is_searched: bool = True) -> Any:
        """Win chances of values, as an array of their shape, each of the side whose value it is;
        `is_searched` says whether a search found them."""
        players = 2 if self.rules is None else self.rules.players
        return self.calibration.chance(value, players=players, is_searched=is_searched)


def make_search_player(
    name: str, *, heuristics: HeuristicsConfig | None = None, transfer: bool = False
) -> SearchPlayer:
    """Make a player that searches or has a network.

    Args:
      name: see `train.registry.names`.
      heuristics: weights of `ethen` and `wjx`.
      transfer: let networks play rules that they were not trained on.

    Raises:
      UsageError: there is no such player, or it has nothing to evaluate positions with.
    """
    read = read_name(name)
    if read.kind == "heuristic-search":
        weights = heuristic_of(read, read.target, heuristics or HeuristicsConfig())
        return SearchPlayer(
            name=read.full,
            evaluate=_heuristic_evaluator(weights),
            variables=(),
            search=with_named_options(SearchConfig(), read),
            simulations=None if read.seconds else read.budget,
            seconds=read.seconds,
        )
    if not read.has_network:
        raise UsageError(f"player {name!r}: cannot evaluate positions; allowed: {ALLOWED}")
    trained = network_of(read)
    budget = RAW_POLICY if read.kind == "net" else read.budget
    player = network_search_player(
        read.full,
        trained.config,
        trained.variables,
        simulations=None if read.seconds else budget,
    )
    return player._replace(
        search=with_named_options(player.search, read),
        symmetries=read.symmetries,
        seconds=read.seconds,
        transfer=transfer,
        calibration=of_card(trained.about, where=trained.source),
    )


def make_level_player(name: str) -> SearchPlayer:
    """Make a player whose simulations a level of play says.

    Raises:
      UsageError: there is no such player, it does not search, or its name says how long.
    """
    read = read_name(name)
    if read.has_budget or read.kind == "net":
        raise UsageError(
            f"player {name!r}: name one that searches, without simulations; levels say them"
        )
    return make_search_player(name)


def network_search_player(
    name: str, config: RunConfig, variables: Any, *, simulations: int | None
) -> SearchPlayer:
    """Make the player of a network's weights, which evaluates a root from one side.

    Args:
      name: of the player.
      config: of the run that made the weights.
      variables: the weights.
      simulations: of a move.
    """
    return SearchPlayer(
        name=name,
        evaluate=evaluator_for(config.network, config.rules),
        variables=cast_weights(variables, config.network),
        search=as_player(config.search, config.search.simulations),
        simulations=simulations,
        evaluate_heads=_make_heads(config.network, config.rules.players),
        learned=config.learned,
        transfer=False,
    )


def check_rules(player: SearchPlayer, rules: Rules) -> None:
    """Refuse rules that a player has not learned with a UsageError."""
    if player.learned:
        refuse_other_rules(player.name, player.learned, rules, transfer=player.transfer)


_heuristic_evaluator = functools.cache(make_heuristic_evaluator)


@functools.cache
def _make_heads(config: Any, players: int) -> EvaluateHeads:
    network, observe = network_for(config, players), observer_for(config)

    def evaluate_heads(variables: Any, states: State) -> Output:
        planes = jax.vmap(lambda state: observe(state, None))(states)
        return network.evaluate(variables, jnp.asarray(planes))

    return evaluate_heads
