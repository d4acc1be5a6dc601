"""A trained player as the frozen opponent of another one's self-play."""

from pathlib import Path
from typing import NamedTuple

from train.checkpoints import weights
from train.checkpoints.weights import TrainedNetwork
from train.players.basic import Player
from train.players.learned import make_network_search, search_act
from train.registry.names import NETWORKS, read_name
from train.registry.networks import network_of, tell_unlearned
from train.registry.players import refuse_unread_options, with_named_options
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.search.config import as_player
from train.search.evaluator import (
    Evaluator,
    WithOpponentVariables,
    evaluator_for,
    make_symmetric_evaluator,
)
from train.search.search import Search, make_search
from wallgo_jax.game.rules import Rules


class FrozenOpponent(NamedTuple):
    """A trained player that does not learn."""

    name: str  # with everything said
    trained: TrainedNetwork  # variables as NumPy arrays
    search: Search
    """(variables, states, key) -> its move as in matches, without noise, and its raw policy."""
    evaluate: Evaluator  # of its network, which has its raw policy
    simulations: int  # of its search, 0 for a raw policy


def make_modelling_player(
    name: str, trained: TrainedNetwork, opponent: FrozenOpponent, *, simulations: int
) -> Player:
    """A network that searches as its self-play against a frozen opponent does, without noise: the
    opponent's moves in the tree follow the opponent's raw policy.

    Args:
      name: of the player.
      trained: its network.
      opponent: whom it plays.
      simulations: of each move.
    """
    config = trained.config
    act = search_act(
        config.network,
        config.search,
        config.rules,
        simulations=simulations,
        model=opponent.evaluate,
    )
    return Player(name, WithOpponentVariables(trained.variables, opponent.trained.variables), act)


def make_frozen_opponent(name: str, rules: Rules, *, kept: Path | None = None) -> FrozenOpponent:
    """Load a trained player for games by these rules.

    Args:
      name: see `train.registry.names`.
      rules: the rules to play.
      kept: a folder with its weights, which are read in place of those that the name means now.

    Raises:
      UsageError: there is no such player, it has no weights, its budget is time, its search does
        not take the options of the name, or it has learned other rules.
    """
    read = read_name(name)
    if not read.has_network:
        raise UsageError(f"player {name!r}: has no weights; allowed: {NETWORKS}")
    if read.seconds is not None:
        raise UsageError(
            f"player {name!r}: self-play counts simulations, not seconds, so that a seed repeats it"
        )
    trained = network_of(read) if kept is None else weights.load_network(kept)
    config = trained.config
    if rules not in config.learned:
        told, asked = tell_unlearned(config.learned, rules)
        raise UsageError(f"player {name!r}: learned {told}, the run plays {asked}")
    evaluate, is_raw = evaluator_for(config.network, rules), read.kind == "net"
    if is_raw:
        search = make_network_search(make_symmetric_evaluator(evaluate, read.symmetries))
    else:
        refuse_unread_options(config.search, read)
        options = as_player(with_named_options(config.search, read), read.budget)
        search = make_search(evaluate, options, explores=False, symmetries=read.symmetries)
    return FrozenOpponent(
        name=read.full,
        trained=trained._replace(variables=fetch(trained.variables)),
        search=search,
        evaluate=evaluate,
        simulations=0 if is_raw else read.budget,
    )
