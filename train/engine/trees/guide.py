"""What guides a session's search, by a player's name: a network or a heuristic."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.checkpoints.calibration import Calibration, of_card
from train.config import RunConfig
from train.network import Output, cast_weights
from train.network.build import network_for, observer_for
from train.players.config import HeuristicsConfig
from train.players.heuristics import make_heuristic_evaluator
from train.registry import read_name
from train.registry.networks import network_of, refuse_other_rules
from train.registry.players import heuristic_of, with_named_options
from train.runtime.errors import UsageError
from train.search.config import SearchConfig, as_player
from train.search.evaluator import Evaluator, evaluator_for
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

ALLOWED = "PATH, net:PATH, search:PATH, pretrained:NAME, heuristic-search:ethen|wjx"
RAW_POLICY = 0
"""Simulations of a player that does not search."""

Look = Callable[[Any, State], Output]
"""(variables, states [B]) -> the outputs of all heads."""


class Guide(NamedTuple):
    """An evaluator with its weights, and how a search asks it."""

    name: str  # of the player
    evaluate: Evaluator
    variables: Any
    search: SearchConfig  # as of a player in a match; the budget is not read
    symmetries: int  # turned copies of a root that are evaluated
    simulations: int | None  # of a move by the player's name; None where it names a time
    seconds: float | None  # a move by the player's name
    look: Look | None  # None without a network
    learned: tuple[Rules, ...]  # rules that it has learned; empty without a network
    transfer: bool  # whether it may play others
    calibration: Calibration  # of its values


def make_guide(
    name: str, *, heuristics: HeuristicsConfig | None = None, transfer: bool = False
) -> Guide:
    """Make the guide of a player that searches or has a network.

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
        return Guide(
            name=read.full,
            evaluate=_heuristic_evaluator(weights),
            variables=(),
            search=with_named_options(SearchConfig(), read),
            symmetries=1,
            simulations=None if read.seconds else read.budget,
            seconds=read.seconds,
            look=None,
            learned=(),
            transfer=True,
            calibration=Calibration(),
        )
    if not read.has_network:
        raise UsageError(f"player {name!r}: cannot evaluate positions; allowed: {ALLOWED}")
    trained = network_of(read)
    budget = RAW_POLICY if read.kind == "net" else read.budget
    made = network_guide(
        read.full,
        trained.config,
        trained.variables,
        simulations=None if read.seconds else budget,
    )
    return made._replace(
        search=with_named_options(made.search, read),
        symmetries=read.symmetries,
        seconds=read.seconds,
        transfer=transfer,
        calibration=of_card(trained.about, where=trained.source),
    )


def make_guide_for_levels(name: str) -> Guide:
    """Make the guide of a player whose simulations a level of play says.

    Raises:
      UsageError: there is no such player, it does not search, or its name says how long.
    """
    read = read_name(name)
    if read.has_budget or read.kind == "net":
        raise UsageError(
            f"player {name!r}: name one that searches, without simulations; levels say them"
        )
    return make_guide(name)


def network_guide(
    name: str, config: RunConfig, variables: Any, *, simulations: int | None
) -> Guide:
    """Make the guide of a network's weights, which evaluates a root from one side.

    Args:
      name: of the player.
      config: of the run that made the weights.
      variables: the weights.
      simulations: of a move.
    """
    return Guide(
        name=name,
        evaluate=evaluator_for(config.network, config.rules),
        variables=cast_weights(variables, config.network),
        search=as_player(config.search, config.search.simulations),
        symmetries=1,
        simulations=simulations,
        seconds=None,
        look=_make_look(config.network, config.rules.players),
        learned=config.learned,
        transfer=False,
        calibration=Calibration(),
    )


def chances_of_owners(output: Output) -> jax.Array | None:
    """float32[B, H, W, P + 1]: the chances of each cell's final owners, the player to move first,
    nobody last; None without a head for them."""
    return None if output.ownership is None else jax.nn.softmax(output.ownership, axis=-1)


def check_rules(guide: Guide, rules: Rules) -> None:
    """Refuse rules that a guide has not learned with a UsageError."""
    if guide.learned:
        refuse_other_rules(guide.name, guide.learned, rules, transfer=guide.transfer)


_heuristic_evaluator = functools.cache(make_heuristic_evaluator)


@functools.cache
def _make_look(config: Any, players: int) -> Look:
    network, observe = network_for(config, players), observer_for(config)

    def look(variables: Any, states: State) -> Output:
        planes = jax.vmap(lambda state: observe(state, None))(states)
        return network.evaluate(variables, jnp.asarray(planes))

    return look
