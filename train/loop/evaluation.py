"""Matches of a run: short ones while it learns, the final ones at its end.

With three or four players one opponent has all seats but the player's. Each rule set of a run has
matches of its own, on a grid of its board's size.
"""

import contextlib
import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from train.arena.match import (
    MatchOptions,
    check_players,
    compile_match,
    fill_seats,
    play_in_rounds,
    play_match,
)
from train.arena.match_openings import OpeningOptions
from train.arena.report import match_line, match_record, match_table
from train.arena.result import MatchResult
from train.arena.sprt import decide, in_words
from train.checkpoints import store
from train.config import BEST, RunConfig, config_to_dict
from train.config.sprt import Sprt, parse_sprt
from train.loop.run_directory import RESULT_FILE, resume_command
from train.network import Variables, network_for
from train.players import registry
from train.players.basic import Player
from train.players.searching import network_player
from train.runtime.devices import local_copy
from train.runtime.display import Display, Table
from train.runtime.files import write_json
from train.runtime.showing import sparing

_FINAL = 2**20
"""Added to the salt of final matches, so that they share no key with short ones."""


def check_opponents(config: RunConfig) -> None:
    """Refuse opponents that cannot play the rules.

    Raises:
      UsageError: names the opponent and the reason.
    """
    options = config.evaluation
    anchors = (anchor for anchor in options.anchors if anchor != BEST)
    for opponent in dict.fromkeys((*options.opponents, *anchors)):
        for rules in config.learned:
            check_players([_named(config.alone(rules), opponent)], rules)


def match_compilers(config: RunConfig) -> Iterator[Callable[[], None]]:
    """Functions that compile a run's matches, each once, in the order in which they are played."""
    options = config.evaluation
    if not options.opponents:
        return
    short = [(anchor, options.games) for anchor in options.anchors if options.every]
    final = [(opponent, options.final_games) for opponent in options.opponents]
    for each in config.rule_sets:
        alone = config.alone(each.rules) if config.mix else config
        for opponent, games in (*short, *final):
            yield functools.partial(_compile_match, alone, opponent, games)


def _compile_match(config: RunConfig, opponent: str, games: int) -> None:
    network = network_for(config.network, config.rules.players, size=config.rules.size)
    weights = jax.tree.map(lambda like: np.zeros(like.shape, like.dtype), network.shapes)
    player = _player_of(config, weights)
    other = player if opponent == BEST else _named(config, opponent)
    players = fill_seats([player, other], config.rules)
    compile_match(players, config.rules, _match_options(config, games))


def short_matches(
    config: RunConfig, variables: Variables, done: int, directory: Path, display: Display
) -> dict[str, Any]:
    """Play the newest weights against each anchor, by each rule set.

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
      are the best. Of several rule sets these are means, and `matches_by_rules`,
      `intervals_by_rules` and `elo_by_rules` have each one's.
    """
    options, results = config.evaluation, dict[str, dict[str, MatchResult]]()
    has_test = options.sprt and config.rules.players == 2
    test = parse_sprt(options.sprt) if has_test else None
    for number, each in enumerate(config.rule_sets):
        alone, key, label = config, _key(config, done), ""
        if config.mix:
            alone, label = config.alone(each.rules), f"{each.name}: "
            key = jax.random.fold_in(key, number)
        results[each.name] = {}
        for place, anchor in enumerate(options.anchors):
            is_best = anchor == BEST
            opponent = _best_so_far(alone, directory, done) if is_best else _named(alone, anchor)
            if opponent is not None:
                own_key = jax.random.fold_in(key, place)
                results[each.name][anchor] = _play(
                    alone, variables, opponent, options.games, own_key, display, test, label
                )
    rates = {name: {x: y.win_rate for x, y in by.items()} for name, by in results.items()}
    intervals = {name: {x: [*y.interval] for x, y in by.items()} for name, by in results.items()}
    means, wide = mean_over_rules(rates, intervals)
    row: dict[str, Any] = {"matches": means, "intervals_95": wide}
    fixed = next((anchor for anchor in means if anchor != BEST), None)
    row |= {} if fixed is None else {"opponent": fixed, "win_rate": means[fixed]}
    if config.mix:
        # Points above the opponent; None where it won or lost all.
        elo = {
            name: {x: 400 * math.log10(y / (1 - y)) if 0 < y < 1 else None for x, y in by.items()}
            for name, by in rates.items()
        }
        row |= {"matches_by_rules": rates, "intervals_by_rules": intervals, "elo_by_rules": elo}
    return row


def mean_over_rules(
    rates: Mapping[str, Mapping[str, float]], intervals: Mapping[str, Mapping[str, Sequence[float]]]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Mean win rates over rule sets, each counting the same, with intervals.

    The half widths of independent estimates add up as squares do. Those of one are left alone.
    """
    if len(rates) == 1:
        (means,), (wide,) = rates.values(), intervals.values()
        return {**means}, {anchor: [*ends] for anchor, ends in wide.items()}
    means, wide = {}, {}
    for anchor in next(iter(rates.values())):
        halves = [(by[anchor][1] - by[anchor][0]) / 2 for by in intervals.values()]
        mean = means[anchor] = sum(by[anchor] for by in rates.values()) / len(rates)
        half = math.hypot(*halves) / len(halves)
        wide[anchor] = [max(0.0, mean - half), min(1.0, mean + half)]
    return means, wide


def _play(
    config: RunConfig,
    variables: Variables,
    opponent: Player,
    games: int,
    key: jax.Array,
    display: Display,
    test: Sprt | None = None,
    label: str = "",
) -> MatchResult:
    """Play a match by a run's one rule set, with an opponent at every seat but the player's, or
    until a test decides."""
    how = _match_options(config, games)
    players = fill_seats([_player(config, variables), opponent], config.rules)
    others = "" if len(players) == 2 else f"{len(players) - 1} "
    title = f"{label}{players[0].name} against {others}{opponent.name}"
    with display.task(title, games, "games") as task:
        if test is None:
            result = play_match(players, config.rules, how, key=key, on_progress=task)
        else:
            result = play_in_rounds(players, config.rules, how, test, key=key, on_progress=task)
    display.say(label + match_line(result, seconds=task.seconds))
    if test is not None:
        display.say(in_words(test, decide(test, result.pair_counts)))
    return result


def final_matches(
    config: RunConfig, variables: Variables, directory: Path, display: Display
) -> list[MatchResult]:
    """Play the last weights against every opponent, with more than two players against it at all
    other seats; print a table for each rule set, and write all matches to a file, each as soon as
    it is over."""
    matches: list[MatchResult] = []
    records: list[dict[str, Any]] = []
    for number, each in enumerate(config.rule_sets):
        alone, salt = config.alone(each.rules), _FINAL * (number + 1)
        by_rules = {"rule_set": each.name} if config.mix else {}
        results: list[MatchResult] = []
        for place, name in enumerate(config.evaluation.opponents):
            key = _key(config, salt + place)
            games = config.evaluation.final_games
            result = _play(alone, variables, _named(alone, name), games, key, display)
            results.append(result)
            records.append(match_record(result) | by_rules)
            with sparing(directory / RESULT_FILE, f"to write it: {resume_command(directory)}"):
                _write(config, directory, records)
        table = _final_table(alone, results)
        if config.mix:
            table = table._replace(title=f"{config.name} on {each.name}")
        display.console.print(table)
        matches += results
    return matches


def _final_table(config: RunConfig, results: Sequence[MatchResult]) -> Table:
    """The final matches by a run's one rule set."""
    options = config.evaluation
    caption = (
        f"seed {config.seed} · {options.simulations} simulations · "
        f"{OpeningOptions(options.opening_plies, options.players_place).text} · "
        "95 % intervals by Wilson · territory in cells"
    )
    if config.rules.players == 2:
        caption += ", this player's first"
    return match_table(results, caption=caption)


def _write(config: RunConfig, directory: Path, matches: Sequence[dict[str, Any]]) -> None:
    """Write the final matches so far. Those after them that an earlier start has played stay until
    they are played again, if the ones so far came out as they did there."""
    options, path, before = config.evaluation, directory / RESULT_FILE, []
    about = {"seed": config.seed, "iterations": config.iterations}
    about |= {x: getattr(options, x) for x in ("simulations", "opening_plies", "players_place")}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        earlier = json.loads(path.read_text(encoding="utf-8"))  # it may be damaged
        before = list(earlier["matches"]) if about.items() <= earlier.items() else []
    done, total = len(matches), len(config.rule_sets) * len(options.opponents)
    more = before[done:total] if before[:done] == [*matches] else []
    write_json(path, {**about, "matches": [*matches, *more]})


def _key(config: RunConfig, salt: int) -> jax.Array:
    return jax.random.fold_in(jax.random.key(config.seed + 1), salt)


def _match_options(config: RunConfig, games: int) -> MatchOptions:
    options = config.evaluation
    opening = OpeningOptions(options.opening_plies, options.players_place)
    return MatchOptions(games, options.batch, opening)


def _player(config: RunConfig, variables: Variables) -> Player:
    return _player_of(config, local_copy(variables))


def _player_of(config: RunConfig, weights: Variables) -> Player:
    simulations = config.evaluation.simulations
    name = f"{config.name}@{simulations}"
    return network_player(name, weights, config, config.rules, simulations=simulations)


def _named(config: RunConfig, name: str) -> Player:
    return registry.make_player(name, config.rules, heuristics=config.heuristics)


def _best_so_far(config: RunConfig, directory: Path, done: int) -> Player | None:
    """The best checkpoint of an earlier iteration; None where there is none."""
    best = store.best_iteration(directory, config_to_dict(config), before=done)
    if best is None:
        return None
    network = network_for(config.network, config.rules.players, size=config.rules.size)
    weights = store.read_weights(directory, network.shapes, best)
    return _player(config, weights)._replace(name=f"iteration {best}")
