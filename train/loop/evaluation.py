"""Matches of a run: short ones while it learns, the final ones at its end.

With three or four players one opponent has all seats but the player's. Each rule set of a run has
matches of its own, on a grid of its board's size.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from train.arena.match import MatchOptions, check_players, fill_seats, play_match
from train.arena.openings import OpeningOptions
from train.arena.report import match_line, match_record, match_table
from train.arena.result import MatchResult
from train.arena.sprt import decide, in_words, play_until_decided
from train.checkpoints import store
from train.config import BEST, RunConfig, config_to_dict
from train.config.sprt import Sprt, parse_sprt
from train.loop.run_directory import RESULT_FILE
from train.metrics.text_table import Table
from train.network import Variables
from train.network.build import network_for
from train.players import registry
from train.players.basic import Player
from train.players.searching import network_player
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
    anchors = (anchor for anchor in options.anchors if anchor != BEST)
    for opponent in dict.fromkeys((*options.opponents, *anchors)):
        for rules in config.learned:
            check_players([_opponent(config.alone(rules), opponent)], rules)


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
    key = _key(config, done)
    if not config.mix:
        return _row(*_rates(config, variables, done, directory, display, key))
    rates: dict[str, dict[str, float]] = {}
    intervals: dict[str, dict[str, list[float]]] = {}
    for number, each in enumerate(config.rule_sets):
        alone, own_key = config.alone(each.rules), jax.random.fold_in(key, number)
        rates[each.name], intervals[each.name] = _rates(
            alone, variables, done, directory, display, own_key, label=f"{each.name}: "
        )
    return _row(*mean_over_rules(rates, intervals)) | {
        "matches_by_rules": rates,
        "intervals_by_rules": intervals,
        "elo_by_rules": {
            name: {anchor: elo_lead(rate) for anchor, rate in own.items()}
            for name, own in rates.items()
        },
    }


def mean_over_rules(
    rates: Mapping[str, Mapping[str, float]], intervals: Mapping[str, Mapping[str, Sequence[float]]]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Mean win rates over rule sets, each counting the same, with intervals.

    The half widths of independent estimates add up as squares do.
    """
    first = next(iter(rates))
    means, wide = {}, {}
    for anchor in rates[first]:
        found = [own[anchor] for own in rates.values()]
        halves = [(own[anchor][1] - own[anchor][0]) / 2 for own in intervals.values()]
        mean, half = sum(found) / len(found), math.hypot(*halves) / len(halves)
        means[anchor] = mean
        wide[anchor] = [max(0.0, mean - half), min(1.0, mean + half)]
    return means, wide


def elo_lead(rate: float) -> float | None:
    """Elo points above an opponent by a win rate; None where it is 0 or 1."""
    return 400 * math.log10(rate / (1 - rate)) if 0 < rate < 1 else None


def _row(rates: dict[str, float], intervals: dict[str, list[float]]) -> dict[str, Any]:
    """Figures of short matches for the row of metrics."""
    fixed = next((anchor for anchor in rates if anchor != BEST), None)
    row: dict[str, Any] = {"matches": rates, "intervals_95": intervals}
    return row if fixed is None else row | {"opponent": fixed, "win_rate": rates[fixed]}


def _rates(
    config: RunConfig,
    variables: Variables,
    done: int,
    directory: Path,
    display: Display,
    key: jax.Array,
    *,
    label: str = "",
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Win rates against the anchors by a run's one rule set, and their intervals."""
    rates: dict[str, float] = {}
    intervals: dict[str, list[float]] = {}
    for number, anchor in enumerate(config.evaluation.anchors):
        opponent = (
            _predecessor(config, directory, done) if anchor == BEST else _opponent(config, anchor)
        )
        if opponent is not None:
            own_key = jax.random.fold_in(key, number)
            has_test = config.evaluation.sprt and config.rules.players == 2
            result = _play(
                config,
                variables,
                opponent,
                config.evaluation.games,
                own_key,
                display,
                test=parse_sprt(config.evaluation.sprt) if has_test else None,
                label=label,
            )
            rates[anchor], intervals[anchor] = result.win_rate, list(result.interval)
    return rates, intervals


def _play(
    config: RunConfig,
    variables: Variables,
    opponent: Player,
    games: int,
    key: jax.Array,
    display: Display,
    *,
    test: Sprt | None = None,
    label: str = "",
    title: str = "",
) -> MatchResult:
    """Play a match with an opponent at every seat but the player's, or until a test decides."""
    options = config.evaluation
    how = MatchOptions(games, options.batch, options.opening_plies, options.players_place)
    players = fill_seats([_player(config, variables), opponent], config.rules)
    others = "" if len(players) == 2 else f"{len(players) - 1} "
    title = title or f"{label}{players[0].name} against {others}{opponent.name}"
    with display.match(title, games) as task:
        if test is None:
            result = play_match(players, config.rules, how, key=key, on_progress=task)
        else:
            result = play_until_decided(players, config.rules, how, test, key=key, on_progress=task)
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
    found: list[MatchResult] = []
    records: list[dict[str, Any]] = []
    for number, each in enumerate(config.rule_sets):
        alone, salt = config.alone(each.rules), _FINAL * (number + 1)
        told = {"rule_set": each.name} if config.mix else {}
        results: list[MatchResult] = []
        for place, name in enumerate(config.evaluation.opponents):
            result = _final_match(alone, variables, name, _key(config, salt + place), display)
            results.append(result)
            records.append(match_record(result) | told)
            _write(config, directory, records)
        table = _final_table(alone, results)
        if config.mix:
            table = table._replace(title=f"{config.name} on {each.name}")
        display.console.print(table)
        found += results
    return found


def _final_match(
    config: RunConfig, variables: Variables, name: str, key: jax.Array, display: Display
) -> MatchResult:
    """A final match by a run's one rule set."""
    options, opponent = config.evaluation, _opponent(config, name)
    games, title = options.final_games, f"{config.name} against {opponent.name}"
    return _play(config, variables, opponent, games, key, display, title=title)


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
    options, path = config.evaluation, directory / RESULT_FILE
    about = {
        "seed": config.seed,
        "iterations": config.iterations,
        "simulations": options.simulations,
        "opening_plies": options.opening_plies,
        "players_place": options.players_place,
    }
    done, total = len(matches), len(config.rule_sets) * len(options.opponents)
    before = _matches_before(path, about)
    more = before[done:total] if before[:done] == [*matches] else []
    write_json(path, {**about, "matches": [*matches, *more]})


def _matches_before(path: Path, about: Mapping[str, Any]) -> list[Any]:
    """The matches in a file of final ones; none where it is missing, damaged or about others."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return list(found["matches"]) if about.items() <= found.items() else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _key(config: RunConfig, salt: int) -> jax.Array:
    return jax.random.fold_in(jax.random.key(config.seed + 1), salt)


def _player(config: RunConfig, variables: Variables) -> Player:
    simulations = config.evaluation.simulations
    name = f"{config.name}@{simulations}"
    return network_player(
        name, local_copy(variables), config, config.rules, simulations=simulations
    )


def _opponent(config: RunConfig, name: str) -> Player:
    return registry.make_player(name, config.rules, heuristics=config.heuristics)


def _predecessor(config: RunConfig, directory: Path, done: int) -> Player | None:
    """The best checkpoint of an earlier iteration; None where there is none."""
    best = store.best_iteration(directory, config_to_dict(config), before=done)
    if best is None:
        return None
    network = network_for(config.network, config.rules.players, size=config.rules.size)
    weights = store.read_weights(directory, network.shapes, best)
    return _player(config, weights)._replace(name=f"iteration {best}")
