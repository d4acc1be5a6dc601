"""Matches of a run: short ones while it learns, the final ones at its end."""

from pathlib import Path
from typing import Any

import jax

from train import registry
from train.arena.config import parse_sprt
from train.arena.elo import pair_counts
from train.arena.match import MatchResult, play_match, play_rounds
from train.arena.sprt import UNDECIDED, decide
from train.checkpoints import store
from train.config import BEST, RunConfig
from train.loop.metrics import Display, match_record, match_table
from train.loop.run_directory import RESULT_FILE, write_json
from train.network import Variables
from train.network.build import network_for
from train.players.basic import Player
from train.players.learned import search_player
from train.runtime.devices import own_copy

_FINAL = 2**20
"""Sets the random numbers of final matches apart from those of short ones."""


def check_opponents(config: RunConfig) -> None:
    """Refuse opponents that cannot play the rules.

    Raises:
      UsageError: which, and why.
    """
    options = config.evaluation
    for opponent in dict.fromkeys((*options.opponents, *options.anchors)):
        if opponent != BEST:
            _opponent(config, opponent)


def short_matches(
    config: RunConfig, variables: Variables, done: int, directory: Path, display: Display
) -> dict[str, Any]:
    """The newest weights against each anchor, and their best predecessor if it is one.

    Args:
      config: the run.
      variables: the weights.
      done: iterations that they have seen.
      directory: the run's, where all earlier checkpoints lie.
      display: shows each match's progress.

    Returns:
      For the row of metrics: `matches`, win rates by opponent; `win_rate` against the first
      `opponent` of them that stays the same all along, by which checkpoints are the best.
    """
    rates: dict[str, float] = {}
    for number, anchor in enumerate(config.evaluation.anchors):
        opponent = (
            _predecessor(config, directory, done) if anchor == BEST else _opponent(config, anchor)
        )
        if opponent is not None:
            key = jax.random.fold_in(_key(config, done), number)
            result = _short_match(config, variables, opponent, key, display)
            rates[anchor] = result.win_rate
    fixed = next((anchor for anchor in rates if anchor != BEST), None)
    row: dict[str, Any] = {"matches": rates}
    return row if fixed is None else row | {"opponent": fixed, "win_rate": rates[fixed]}


def _short_match(
    config: RunConfig, variables: Variables, opponent: Player, key: jax.Array, display: Display
) -> MatchResult:
    options = config.evaluation
    player = _player(config, variables)
    with display.match(f"{player.name} against {opponent.name}", options.games) as on_progress:
        settings: dict[str, Any] = {
            "games": options.games,
            "key": key,
            "batch": options.batch,
            "opening_plies": options.opening_plies,
            "on_progress": on_progress,
        }
        if not options.sprt:
            return play_match(player, opponent, config.rules, **settings)
        test = parse_sprt(options.sprt)

        def is_decided(result: MatchResult) -> bool:
            counts = pair_counts(result.outcome)
            return decide(test, counts).decision != UNDECIDED

        return play_rounds(
            player,
            opponent,
            config.rules,
            is_decided=is_decided,
            round_games=options.batch,
            **settings,
        )


def final_matches(
    config: RunConfig, variables: Variables, directory: Path, display: Display
) -> None:
    """The last weights against every opponent: a table on the console, and in a file."""
    options, results = config.evaluation, []
    for number, name in enumerate(options.opponents):
        opponent = _opponent(config, name)
        title = f"{config.name} against {opponent.name}"
        with display.match(title, options.final_games) as on_progress:
            result = play_match(
                _player(config, variables),
                opponent,
                config.rules,
                games=options.final_games,
                key=_key(config, _FINAL + number),
                batch=options.batch,
                opening_plies=options.opening_plies,
                on_progress=on_progress,
            )
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


def _key(config: RunConfig, salt: int) -> jax.Array:
    return jax.random.fold_in(jax.random.key(config.seed + 1), salt)


def _player(config: RunConfig, variables: Variables) -> Player:
    simulations = config.evaluation.simulations
    name = f"{config.name}@{simulations}"
    return search_player(
        name,
        own_copy(variables),
        config.network,
        config.search,
        config.rules,
        simulations=simulations,
    )


def _opponent(config: RunConfig, name: str) -> Player:
    return registry.make_player(name, config.rules, heuristics=config.heuristics)


def _predecessor(config: RunConfig, directory: Path, done: int) -> Player | None:
    """The best checkpoint of an earlier iteration, where there is one."""
    best = store.best_iteration(directory, before=done)
    if best is None:
        return None
    network = network_for(config.network, config.rules.players)
    weights = store.read_weights(directory, network.shapes, best)
    return _player(config, weights)._replace(name=f"iteration {best}")
