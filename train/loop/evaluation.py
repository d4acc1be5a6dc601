"""Matches of a run: short ones while it learns, the final ones at its end."""

from pathlib import Path
from typing import Any

import jax

from train import registry
from train.arena.config import parse_sprt
from train.arena.elo import pair_counts
from train.arena.match import MatchOptions, play_match, play_rounds
from train.arena.report import match_line, match_record, match_table
from train.arena.result import MatchResult
from train.arena.sprt import UNDECIDED, decide, in_words
from train.checkpoints import store
from train.config import BEST, RunConfig
from train.loop.run_directory import RESULT_FILE
from train.network import Variables
from train.network.build import network_for
from train.players.basic import Player
from train.players.learned import search_player
from train.runtime.devices import local_copy
from train.runtime.display import Display
from train.runtime.files import write_json

_FINAL = 2**20
"""Added to the salt of final matches, so that they share no key with short ones."""


def check_opponents(config: RunConfig) -> None:
    """Refuse opponents that cannot play the rules.

    Raises:
      UsageError: names the opponent and the reason.
    """
    options = config.evaluation
    for opponent in dict.fromkeys((*options.opponents, *options.anchors)):
        if opponent != BEST:
            _opponent(config, opponent)


def games_after(config: RunConfig, done: int) -> int:
    """Games of the short matches after the iterations that follow, and of the final matches."""
    options = config.evaluation
    if not options.opponents:
        return 0
    every = options.every
    short = (config.iterations - 1) // every - done // every if every else 0
    short = max(0, short) * len(options.anchors)
    return short * options.games + len(options.opponents) * options.final_games


def short_matches(
    config: RunConfig, variables: Variables, done: int, directory: Path, display: Display
) -> dict[str, Any]:
    """Play the newest weights against each anchor.

    Args:
      config: the run.
      variables: the weights.
      done: iterations that they have learned.
      directory: the run's, which holds the earlier checkpoints.
      display: shows the progress of each match.

    Returns:
      Figures for the row of metrics: `matches`, the win rate against each anchor, `best` left out
      while no earlier checkpoint had a match; `intervals_95` of these rates; `win_rate` against
      `opponent`, the first anchor that is the same player all along. It decides which checkpoints
      are the best.
    """
    rates: dict[str, float] = {}
    intervals: dict[str, list[float]] = {}
    for number, anchor in enumerate(config.evaluation.anchors):
        opponent = (
            _predecessor(config, directory, done) if anchor == BEST else _opponent(config, anchor)
        )
        if opponent is not None:
            key = jax.random.fold_in(_key(config, done), number)
            result = _short_match(config, variables, opponent, key, display)
            rates[anchor], intervals[anchor] = result.win_rate, list(result.interval)
    fixed = next((anchor for anchor in rates if anchor != BEST), None)
    row: dict[str, Any] = {"matches": rates, "intervals_95": intervals}
    return row if fixed is None else row | {"opponent": fixed, "win_rate": rates[fixed]}


def _short_match(
    config: RunConfig, variables: Variables, opponent: Player, key: jax.Array, display: Display
) -> MatchResult:
    options = config.evaluation
    player = _player(config, variables)
    how = MatchOptions(
        games=options.games,
        batch=options.batch,
        opening_plies=options.opening_plies,
        round_games=options.batch,
    )
    test = parse_sprt(options.sprt) if options.sprt else None
    with display.match(f"{player.name} against {opponent.name}", options.games) as task:
        if test is None:
            result = play_match(player, opponent, config.rules, how, key=key, on_progress=task)
        else:
            result = play_rounds(
                player,
                opponent,
                config.rules,
                how,
                key=key,
                is_decided=lambda found: (
                    decide(test, pair_counts(found.outcome)).decision != UNDECIDED
                ),
                on_progress=task,
            )
    display.say(match_line(result, seconds=task.seconds))
    if test is not None:
        display.say(in_words(test, decide(test, pair_counts(result.outcome))))
    return result


def final_matches(
    config: RunConfig, variables: Variables, directory: Path, display: Display
) -> list[MatchResult]:
    """Play the last weights against every opponent; print a table and write it to a file."""
    options, results = config.evaluation, []
    how = MatchOptions(
        games=options.final_games, batch=options.batch, opening_plies=options.opening_plies
    )
    for number, name in enumerate(options.opponents):
        opponent = _opponent(config, name)
        title = f"{config.name} against {opponent.name}"
        with display.match(title, options.final_games) as task:
            result = play_match(
                _player(config, variables),
                opponent,
                config.rules,
                how,
                key=_key(config, _FINAL + number),
                on_progress=task,
            )
        display.say(match_line(result, seconds=task.seconds))
        results.append(result)
    caption = (
        f"seed {config.seed} · {options.simulations} simulations · "
        f"{options.opening_plies} random opening plies · "
        "95 % intervals by Wilson · territory in cells, this player's first"
    )
    display.console.print(match_table(results, caption=caption))
    record = {
        "seed": config.seed,
        "iterations": config.iterations,
        "simulations": options.simulations,
        "opening_plies": options.opening_plies,
        "matches": [match_record(result) for result in results],
    }
    write_json(directory / RESULT_FILE, record)
    return results


def _key(config: RunConfig, salt: int) -> jax.Array:
    return jax.random.fold_in(jax.random.key(config.seed + 1), salt)


def _player(config: RunConfig, variables: Variables) -> Player:
    simulations = config.evaluation.simulations
    name = f"{config.name}@{simulations}"
    return search_player(
        name,
        local_copy(variables),
        config.network,
        config.search,
        config.rules,
        simulations=simulations,
    )


def _opponent(config: RunConfig, name: str) -> Player:
    return registry.make_player(name, config.rules, heuristics=config.heuristics)


def _predecessor(config: RunConfig, directory: Path, done: int) -> Player | None:
    """The best checkpoint of an earlier iteration; None where there is none."""
    best = store.best_iteration(directory, before=done)
    if best is None:
        return None
    network = network_for(config.network, config.rules.players, size=config.rules.size)
    weights = store.read_weights(directory, network.shapes, best)
    return _player(config, weights)._replace(name=f"iteration {best}")
