"""What a run's self-play plays: the player of each iteration, and the rules of each board.

B boards, T plies of an iteration.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.config import RunConfig
from train.data.replay import Trajectory
from train.data.selfplay import PlayoutCapSearch, make_selfplay, toss_coins
from train.loop.numbers import unchecked
from train.players import registry
from train.players.basic import Player
from train.players.names import read_name
from train.runtime.errors import UsageError, usage_errors
from train.runtime.fields import is_off
from train.runtime.host import fetch
from train.search.config import boosts_at, simulations_at
from train.search.evaluator import WithOpponentVariables, evaluator_for
from train.search.search import (
    PriorBoost,
    Search,
    SearchResult,
    cast_own_weights,
    make_search,
)
from train.search.tree import Budget
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, Variant, make_variant

Stage = int
"""Simulations of a full search by the network. Iterations of one stage share a program."""
BOOTSTRAP = Stage(0)
"""The first iterations, which a player without weights plays."""


def stage_at(config: RunConfig, iteration: int) -> Stage:
    """The stage that an iteration, counted from 0, belongs to."""
    if iteration < config.selfplay.bootstrap_iterations:
        return BOOTSTRAP
    return simulations_at(config.search, iteration, config.iterations)


def variables_of(config: RunConfig, weights: Any, iteration: int, opponent: Any) -> Any:
    """The variables that an iteration's self-play takes: the learner's weights, with the boosts of
    the prior and the weights of a frozen opponent where the run has them."""
    if config.search.prior_boost:
        played = max(0, iteration - config.selfplay.bootstrap_iterations)
        # An array, so that one program serves all iterations.
        weights = PriorBoost(weights, np.array(boosts_at(config.search, played), np.float32))
    return weights if opponent is None else WithOpponentVariables(weights, opponent)


def selfplay_of(
    config: RunConfig, stage: Stage, opponent: Player | None = None
) -> Callable[..., Any]:
    """Make an iteration of self-play in a stage; jit it with its boards donated.

    Args:
      opponent: that of the run, which must have one if the config says so.
    """
    assert (opponent is None) == (not config.selfplay.opponent), "see load_opponent"
    options, has_root_value = config.selfplay, not is_off(config.learner.value_mix)
    reply = None if opponent is None else opponent.report
    if stage == BOOTSTRAP:
        teacher = make_bootstrap(config)

        def search_without_value(variables: Any, states: State, key: jax.Array) -> SearchResult:
            # Its values are not learned: its games teach their outcomes.
            result = teacher(variables, states, key)
            return result._replace(value=jnp.full_like(result.value, jnp.nan))

        options = unchecked(options, policy_surprise_weight=0.0, cheap_policy_weight=0.0)
        search = search_without_value if has_root_value else teacher
        return make_selfplay(search, options, has_root_value=has_root_value, opponent=reply)
    search = _make_search(config, stage, opponent)
    play = make_selfplay(search, options, has_root_value=has_root_value, opponent=reply)

    def cast_and_play(variables: Any, *rest: Any) -> Any:
        return play(cast_own_weights(variables, config.network), *rest)

    return cast_and_play


def make_bootstrap(config: RunConfig) -> Search:
    """The player of the first iterations.

    Raises:
      UsageError: there is no such player, it needs weights, or it cannot play the rules.
    """
    name, known = config.selfplay.bootstrap_player, config.heuristics
    with usage_errors("selfplay.bootstrap_player"):
        # All but the exact player are the same for all rules.
        first, *_ = [registry.make_teacher(name, x, heuristics=known) for x in config.learned]
        if config.mix and read_name(name).kind == "exact":
            raise UsageError(f"player {name!r}: solves one rule set, not several at once")
    return first


def _make_search(
    config: RunConfig, simulations: int, opponent: Player | None
) -> Search | PlayoutCapSearch:
    """The search by the network that learns."""
    options, evaluate = config.selfplay, evaluator_for(config.network, config.rules)
    search_config = unchecked(config.search, simulations=simulations, first_simulations=0)
    model = None if opponent is None else opponent.evaluate
    if is_off(options.full_search_prob, 1):
        return make_search(evaluate, search_config, explores=True, model=model)
    cheap = min(options.cheap_simulations, simulations)
    budgets = Budget(simulations, True), Budget(cheap, options.cheap_noise)
    return PlayoutCapSearch(make_search(evaluate, search_config, budgets=budgets, model=model))


def count_full_plies(config: RunConfig, key: jax.Array) -> int:
    """Number of plies of an iteration that are searched in full once the bootstrap is over; the key
    of its self-play is not consumed."""
    if config.selfplay.full_search_prob == 1:
        return config.selfplay.plies
    return int(fetch(toss_coins(split_coin_key(key)[1], config.selfplay)).sum())


def split_coin_key(key: jax.Array) -> jax.Array:
    """The key of all else in an iteration's self-play, and that of its coins, which all devices
    share: they search a ply equally deep."""
    return jax.random.split(key)


class BoardSums(NamedTuple):
    """Sums over an iteration of each board, float32[B]."""

    games: jax.Array  # that ended
    length: jax.Array  # plies of these
    red_wins: jax.Array
    draws: jax.Array


def rule_set_of_boards(config: RunConfig) -> np.ndarray:
    """int[B]: the number of each board's rule set.

    Boards are shared in proportion to the weights, at least one each, and dealt in turn, so that
    any run of neighbouring boards, such as a device's, has nearly the same shares.
    """
    boards = config.selfplay.boards
    weights = np.array([each.weight for each in config.rule_sets])
    # One each, the rest by largest remainders.
    exact = np.maximum(weights / weights.sum() * boards, 1.0)
    while exact.sum() > boards + 1e-9:
        spare = exact > 1.0
        exact[spare] *= 1 - (exact.sum() - boards) / exact[spare].sum()
        exact = np.maximum(exact, 1.0)
    counts = np.floor(exact + 1e-9).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: boards - counts.sum()]] += 1
    assert counts.sum() == boards
    place = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner[np.argsort(place, kind="stable")]


def rules_of_board(config: RunConfig, board: int) -> Rules:
    """The rules that a board plays."""
    return config.learned[int(rule_set_of_boards(config)[board])]


def variants_of(config: RunConfig) -> Variant:
    """The rules of each board, NumPy arrays [B]: in one grid, with room for the most stones."""
    # In NumPy: nothing is on a device until each process places its own part.
    variants = [
        make_variant(rules, grid=config.grid_side, stones=config.stones) for rules in config.learned
    ]
    boards = rule_set_of_boards(config)

    def lay_out(*leaves: Any) -> np.ndarray:
        if len(leaves) == 1:
            return np.broadcast_to(np.asarray(leaves[0]), (len(boards), *np.shape(leaves[0])))
        return np.stack(leaves)[boards]

    return jax.tree.map(lay_out, *variants)


def sum_by_board(plies: Trajectory) -> BoardSums:
    """Sum the games that ended within plies [T, B] by board."""
    rewards, ended = plies.step_outcome.rewards, plies.terminated
    length = jnp.where(ended, plies.position.ply + 1, 0)
    draws = ended & (rewards == 0).all(axis=-1)
    sums = (ended, length, rewards[..., 0] > 0, draws)
    return BoardSums(*(each.astype(jnp.float32).sum(axis=0) for each in sums))


def figures_by_rules(config: RunConfig, sums: BoardSums) -> dict[str, dict[str, float | None]]:
    """Figures of an iteration for its row of metrics, by the names of the rule sets, from sums on
    the host; a draw counts as an equal share of a win for each player."""
    figures, owner = {}, rule_set_of_boards(config)
    for number, each in enumerate(config.rule_sets):
        is_of_set = owner == number
        games, length, red_wins, draws = (float(np.asarray(x)[is_of_set].sum()) for x in sums)
        figures[each.name] = {
            "games": games,
            "positions": float(is_of_set.sum() * config.selfplay.plies),
            "mean_length": length / games if games else None,
            "red_win_rate": (red_wins + draws / config.rules.players) / games if games else None,
            "draw_rate": draws / games if games else None,
        }
    return figures
