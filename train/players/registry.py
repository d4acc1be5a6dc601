"""Makes players from their names: to play, to teach self-play, to be its frozen opponent."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from train.checkpoints import weights
from train.checkpoints.exported import calibration_of_card, is_model
from train.checkpoints.weights import TrainedNetwork
from train.config.run import HeuristicsConfig
from train.network import cast_weights
from train.players.basic import (
    Act,
    Player,
    make_greedy_player,
    make_move_search,
    make_random_player,
)
from train.players.names import MOVE_SECONDS, PlayerName, check_without_budget, read_name
from train.players.networks import load_network, model_of, refuse_other_rules
from train.players.searching import (
    PROBE,
    RAW_POLICY,
    evaluating_player,
    network_player,
    simulations_in,
)
from train.runtime.errors import UsageError, usage_errors
from train.runtime.fields import check
from train.runtime.host import fetch
from train.search.config import SearchConfig
from train.search.gumbel import rounds_pay_for_one_board
from train.search.search import Search, make_search
from wallgo_jax.game.rules import Rules

_DEFAULT_HEURISTICS = HeuristicsConfig()


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
      name: see `train.players.names`. A budget of time becomes simulations, in rounds where they
        are faster, which is printed; the player has the name of that many simulations. A player
        stays as it is.
      rules: the rules to play.
      heuristics: weights of `ethen` and `wjx`.
      transfer: let networks play rules that they were not trained on.
      move_seconds: that a program may take for a move.
      temperature: of a network's search, see `train.players.searching.evaluating_player`.

    Raises:
      UsageError: there is no such kind, target or checkpoint, it is for other rules, or it cannot
        draw moves at a temperature.
    """
    if isinstance(name, Player):
        return name
    read = read_name(name)
    # Each kind is loaded where it is named: a run without matches needs none.
    match read.kind:
        case "random":
            return make_random_player()
        case "greedy":
            return make_greedy_player()
        case "ethen" | "wjx":
            from train.players.heuristics import make_heuristic_player

            return make_heuristic_player(read.kind, getattr(heuristics, read.kind))
        case "two-ply":
            from train.players.heuristics import make_two_ply_player

            return make_two_ply_player(read.full, getattr(heuristics, read.target))
        case "exact":
            from train.solver.exact_player import make_exact_act

            return Player("exact", *make_exact_act(rules))
        case "external":
            from train.players.external import make_external_player

            return make_external_player(read.target, seconds=move_seconds)
    make = functools.partial(
        _make_evaluating,
        trained=_load(read, rules, transfer=transfer) if read.has_network else None,
        rules=rules,
        heuristics=heuristics,
        transfer=transfer,
        temperature=temperature,
    )
    return make(read if read.seconds is None else _in_simulations(read, make, rules))


def make_evaluating_player(
    name: str, *, heuristics: HeuristicsConfig = _DEFAULT_HEURISTICS, transfer: bool = False
) -> Player:
    """Make a player for searches that are not its own: of any time and options, by any rules. Its
    variables are in the dtype that its network computes in.

    Args:
      name: of a player that searches or has a network.
      heuristics: weights of `ethen` and `wjx`.
      transfer: let networks play rules that they were not trained on.

    Raises:
      UsageError: there is no such player, or it has nothing to evaluate positions with.
    """
    read = read_name(name)
    can_evaluate = read.kind == "heuristic-search" or read.has_network
    _check_kind(read, can_evaluate, "players with a network or a search")
    trained = load_network(read) if read.has_network else None
    player = _make_evaluating(read, trained, None, heuristics=heuristics, transfer=transfer)
    if trained is None:
        return player
    return player._replace(
        variables=cast_weights(trained.variables, trained.config.network),
        calibration=calibration_of_card(trained.about, where=trained.source),
    )


def make_level_player(name: str) -> Player:
    """Make a player whose simulations a level of play says, by `make_evaluating_player`.

    Raises:
      UsageError: there is no such player, it does not search, or its name says how long.
    """
    read = read_name(name)
    check_without_budget(read, searches=True)
    return make_evaluating_player(name)


def check_rules(player: Player, rules: Rules) -> None:
    """Refuse rules that a player has not learned with a UsageError."""
    if player.learned:
        refuse_other_rules(player.name, player.learned, rules, transfer=player.transfer)


def _load(
    name: PlayerName, rules: Rules, *, transfer: bool | None = None, kept: Path | None = None
) -> TrainedNetwork:
    """The network of a player that plays these rules by its run's search, from a folder where its
    weights are kept in place of those that it names; `transfer` as in `refuse_other_rules`."""
    trained = load_network(name) if kept is None else weights.load_network(kept)
    refuse_other_rules(name.text, trained.config.learned, rules, transfer=transfer)
    if name.kind != "net" and trained.config.search.custom and name.options_text:
        raise UsageError(
            f"player {name.text!r}: its run searches by a function of its own, which takes no "
            f"options; leave out {name.options_text}"
        )
    return trained


def _make_evaluating(
    name: PlayerName,
    trained: TrainedNetwork | None,
    rules: Rules | None,
    *,
    heuristics: HeuristicsConfig = _DEFAULT_HEURISTICS,
    transfer: bool = False,
    temperature: float = 0.0,
) -> Player:
    """The player of a network, or of a heuristic's search; a budget of time is not read, and
    without rules it plays the first ones that it has learned."""
    own = SearchConfig() if trained is None else trained.config.search
    options: dict[str, Any] = {
        "search": with_named_options(own, name),
        "simulations": RAW_POLICY if name.kind == "net" else name.budget,
    }
    if trained is None:
        from train.players.heuristics import make_heuristic_evaluator

        evaluate = make_heuristic_evaluator(getattr(heuristics, name.target))
        player = evaluating_player(name.full, (), evaluate, **options)
    else:
        options |= {"symmetries": name.symmetries, "temperature": temperature}
        config = trained.config
        played = rules or config.rules
        player = network_player(name.full, trained.variables, config, played, **options)
    if name.seconds is not None:
        player = player._replace(simulations=None, seconds=name.seconds)
    return player._replace(trained=trained, transfer=transfer or trained is None)


def _in_simulations(
    name: PlayerName, make: Callable[[PlayerName], Player], rules: Rules
) -> PlayerName:
    """The name with the simulations that fit into its time here."""
    probe = make(name.with_simulations(PROBE))
    if name.rounds is None and not probe.search.rounds and rounds_pay_for_one_board(probe.search):
        name = name._replace(rounds=True)
        probe = make(name.with_simulations(PROBE))
    assert name.seconds is not None
    measured = probe.act, rules, name.seconds
    if measured not in _SIMULATIONS:
        count = simulations_in(
            name.seconds, lambda n: make(name.with_simulations(n)).act, probe.variables, rules
        )
        _SIMULATIONS[measured] = count
        said = f"{read_name(name.text).full}: {count} simulations a move here, by one board"
        print(f"{said}; played as {name.with_simulations(count).full}")
    return name.with_simulations(_SIMULATIONS[measured])


_SIMULATIONS: dict[tuple[Act, Rules, float], int] = {}
"""Simulations by what was timed: players that differ in weights alone are timed once, so that the
same time is the same number for them."""


def make_teacher(name: str, rules: Rules, *, heuristics: HeuristicsConfig) -> Search:
    """Make a player that does not learn into a search, which keeps the noise of self-play if it has
    any; a trained one has the search of its run.

    Args:
      name: `kind[:target][@simulations]`, see `train.players.names`.
      rules: the rules to play.
      heuristics: weights of `ethen` and `wjx`.

    Raises:
      UsageError: there is no such player, it is a program, a raw policy or a run, whose weights may
        change, or has time for a budget or several symmetries, or it cannot play the rules.
    """
    read = _read_for_selfplay(name)
    _check_kind(read, _can_teach(read), "players without weights, and searches of exported weights")
    if read.has_network:
        with jax.ensure_compile_time_eval():  # Self-play may be traced just now.
            player = make_frozen_opponent(name, rules)
    else:
        player = make_player(name, rules, heuristics=heuristics)
    if player.evaluate is not None:
        # With noise: without it the games of all boards would be the same.
        own = SearchConfig() if player.trained is None else player.trained.config.search
        options = dataclasses.replace(own, simulations=read.budget, first_simulations=0)
        if read.considered:
            options = dataclasses.replace(options, max_considered_actions=read.considered)
        report = make_search(player.evaluate, with_named_options(options, read), explores=True)
    else:
        report = player.report or make_move_search(player.act)
    return lambda variables, states, key: report(player.variables, states, key)


def _can_teach(name: PlayerName) -> bool:
    if not name.has_network:
        return name.kind != "external"
    is_search = name.kind != "net" and name.symmetries == 1
    return is_search and (model_of(name) is not None or is_model(Path(name.target)))


def make_frozen_opponent(name: str, rules: Rules, *, kept: Path | None = None) -> Player:
    """Load a trained player that does not learn, for games by these rules.

    Args:
      name: see `train.players.names`.
      rules: the rules to play.
      kept: a folder with its weights, which are read in place of those that the name means now.

    Returns:
      The player; its variables are NumPy arrays.

    Raises:
      UsageError: there is no such player, it has no weights, its budget is time, its search does
        not take the options of the name, or it has learned other rules.
    """
    read = _read_for_selfplay(name)
    _check_kind(read, read.has_network, "players with a network")
    trained = _load(read, rules, kept=kept)
    return _make_evaluating(read, trained._replace(variables=fetch(trained.variables)), rules)


def _read_for_selfplay(name: str) -> PlayerName:
    read = read_name(name)
    _check_kind(read, read.seconds is None, "simulations, not seconds, so that a seed repeats it")
    return read


def _check_kind(name: PlayerName, is_allowed: bool, allowed: str) -> None:
    """Refuse a player that is not of the kinds that are allowed with a UsageError."""
    if not is_allowed:
        raise UsageError(f"player {name.text!r}: allowed are {allowed}")


def with_named_options(options: SearchConfig, name: PlayerName) -> SearchConfig:
    """A search's options with the `opponents`, `rounds` and `considered` that a player's name says.

    Raises:
      UsageError: the other options do not go with them.
    """
    if (name.rounds or name.considered) and options.kind != "gumbel":
        raise UsageError(
            f"player {name.text!r}: its search is {options.kind}, which has no rounds and "
            "considers every action; leave out rounds and considered"
        )
    named: dict[str, Any] = {
        "opponents": name.opponents or None,
        "rounds": name.rounds,
        "player_max_considered_actions": name.considered or None,
    }
    with usage_errors(f"player {name.text!r}"):
        changed = {key: value for key, value in named.items() if value is not None}
        return check(dataclasses.replace(options, **changed))
