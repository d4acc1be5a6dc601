"""Players that need no weights as searches, by name: self-play begins with one of them."""

import dataclasses

from train.players.basic import make_greedy_search, make_player_search, make_random_search
from train.players.config import HeuristicsConfig
from train.players.heuristics import make_heuristic_evaluator, make_heuristic_search
from train.registry.names import read_name
from train.registry.players import heuristic_of, make_player, with_named_options
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from train.search.search import Search, make_search
from wallgo_jax.game.rules import Rules

TEACHERS = (
    "random, greedy, ethen, wjx, two-ply:ethen|wjx, heuristic-search:ethen|wjx[@simulations], exact"
)


def make_teacher(name: str, rules: Rules, *, heuristics: HeuristicsConfig) -> Search:
    """Make a player without weights into a search, which keeps the noise of self-play if it has
    any.

    Args:
      name: `kind[:target][@simulations]`, see `train.registry.names`.
      rules: the rules to play.
      heuristics: weights of `ethen` and `wjx`.

    Raises:
      UsageError: there is no such player, it needs weights, is a program or has time for a budget,
        or it cannot play the rules.
    """
    read = read_name(name)
    if read.has_network:
        raise UsageError(f"player {name!r}: needs weights; allowed: {TEACHERS}")
    if read.kind == "external":
        raise UsageError(f"player {name!r}: is a program; allowed: {TEACHERS}")
    if read.seconds is not None:
        raise UsageError(
            f"player {name!r}: self-play counts simulations, not seconds, so that a seed repeats it"
        )
    if read.kind == "random":
        return make_random_search()
    if read.kind == "greedy":
        return make_greedy_search()
    if read.kind in ("ethen", "wjx"):
        return make_heuristic_search(heuristic_of(read, read.kind, heuristics))
    if read.kind == "heuristic-search":
        evaluate = make_heuristic_evaluator(heuristic_of(read, read.target, heuristics))
        # With noise: without it the games of all boards would be the same.
        options = SearchConfig(simulations=read.budget)
        if read.considered:
            options = dataclasses.replace(options, max_considered_actions=read.considered)
        options = with_named_options(options, read)
        return make_search(evaluate, options, explores=True)
    return make_player_search(make_player(name, rules, heuristics=heuristics))
