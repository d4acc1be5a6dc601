"""One network for several rule sets, beside a specialist of each.

A specialist of each rule set, on a grid of its own, is trained for the same time; the mixed network
as long as one of them, and as long as all of them together. Times are turned into iterations once,
by the pace that each training has in turns with the first specialist's, so that a machine that
changes its speed treats all alike.
"""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax

from train.config import RunConfig, config_to_dict
from train.config.rule_sets import RuleSet, read_rule_sets
from train.players.registry import make_player
from train.runtime.errors import UsageError
from train.study.frame.budget import iterations_within, measure_pace, measure_pace_beside
from train.study.frame.report import Report, Table, percent, percent_range
from train.study.frame.seeds import estimate, interval_kind
from train.study.frame.variants import (
    Meeting,
    Trained,
    Variant,
    mean_rate,
    meet,
    play_counts,
    runs_of,
    train_all,
)
from train.study.frame.work import Work
from train.study.scale.trainings import MixedConfig
from train.study.trainings.features import base_config
from wallgo_jax.game.rules import Rules

AS_ONE, AS_ALL = "mixed-as-one", "mixed-as-all"
"""The mixed network, trained as long as one specialist, and as long as all together."""


class Unseen(NamedTuple):
    """Games of the mixed network by rules that no training has, for it."""

    opponent: str
    seed: int
    wins: int
    draws: int
    losses: int


def report(work: Work) -> Report:
    """Train the mixed network and the specialists, and let them meet by each rule set."""
    scale = work.scale.mixed
    rule_sets, unseen_rules = read_rule_sets(scale.rules), Rules.from_dict(scale.unseen)
    for name in scale.opponents:
        make_player(name, unseen_rules)  # refused now, not after the trainings
    specialists, mixed = _variants(work, scale, rule_sets)
    variants = [*specialists.values(), *mixed]
    trained = train_all(work, variants, seeds=scale.seeds)
    simulations = {variant.name: scale.simulations for variant in variants}
    meetings = {
        name: [
            meet(
                work,
                (network, specialist),
                trained,
                seed,
                specialist.config.rules,
                games=scale.games,
                simulations=simulations,
                opening_plies=scale.opening_plies,
                kind=f"mixed-{name}",
            )
            for network in mixed
            for seed in range(scale.seeds)
        ]
        for name, specialist in specialists.items()
    }
    unseen = _play_unseen(work, scale, mixed[1], trained)
    return Report(
        title="One network for several rule sets",
        text=_text(scale, trained),
        tables=[_table(specialists, meetings, trained), _unseen_table(scale, unseen)],
        pictures=[],
        data={
            "meetings": {
                name: [meeting._asdict() for meeting in found] for name, found in meetings.items()
            },
            "unseen": [found._asdict() for found in unseen],
            "iterations": {variant.name: variant.config.iterations for variant in variants},
            "seconds": {name: [run.seconds for run in runs] for name, runs in trained.items()},
        },
    )


def _variants(
    work: Work, scale: MixedConfig, rule_sets: Sequence[RuleSet]
) -> tuple[dict[str, Variant], tuple[Variant, Variant]]:
    """The specialists by rule set, and the mixed network trained for two times."""
    base = base_config(scale, where="study mixed: config")
    planes = base.network.planes
    told = planes if "V" in planes else f"{planes}V"
    network = dataclasses.replace(base.network, planes=told, playable=True)
    # `mix` stands for a list in `rules`, whose first entry the run keeps there.
    try:
        both = dataclasses.replace(
            base, rules=rule_sets[0].rules, mix=tuple(rule_sets), grid=0, network=network
        )
        alone = {each.name: _alone(base, each.rules) for each in rule_sets}
    except ValueError as error:
        raise UsageError(f"study mixed: config: {error}") from None
    lengths = _lengths(work, scale, both, alone)
    specialists = {
        name: Variant(_only(name), _long(config, lengths[_only(name)]))
        for name, config in alone.items()
    }
    return specialists, (
        Variant(AS_ONE, _long(both, lengths[AS_ONE])),
        Variant(AS_ALL, _long(both, lengths[AS_ALL])),
    )


def _alone(base: RunConfig, rules: Rules) -> RunConfig:
    """A specialist's config; its targets look no further ahead than its games have plies."""
    td_steps = min(base.learner.td_steps, rules.max_plies - 1)
    learner = dataclasses.replace(base.learner, td_steps=td_steps)
    return dataclasses.replace(base.alone(rules), learner=learner)


def _only(rule_set: str) -> str:
    """The name of a specialist's training."""
    return f"only-{rule_set}"


def _long(config: RunConfig, iterations: int) -> RunConfig:
    return dataclasses.replace(config, iterations=iterations)


def _lengths(
    work: Work, scale: MixedConfig, mixed: RunConfig, alone: Mapping[str, RunConfig]
) -> dict[str, int]:
    """The iterations of each training, by name."""
    settings = {
        "minutes": scale.minutes,
        "mixed": config_to_dict(mixed),
        "alone": {name: config_to_dict(config) for name, config in alone.items()},
    }

    def measure() -> dict[str, int]:
        first, seconds, found = next(iter(alone.values())), 60 * scale.minutes, {}
        with work.task("pace of each training", len(alone) + 1, "trainings") as on_progress:
            base = measure_pace(first).seconds
            each = {AS_ONE: mixed} | {_only(name): config for name, config in alone.items()}
            for done, (name, config) in enumerate(each.items()):
                pace = measure_pace_beside(config, first, base).seconds
                found[name] = iterations_within(config, pace, seconds)
                if name == AS_ONE:
                    found[AS_ALL] = iterations_within(config, pace, seconds * len(alone))
                # Each config has programs of its own, which would fill the memory.
                jax.clear_caches()
                on_progress(done + 1)
        return found

    return work.pieces.keep("mixed-iterations", settings, measure)


def _play_unseen(
    work: Work, scale: MixedConfig, variant: Variant, trained: Mapping[str, Sequence[Trained]]
) -> list[Unseen]:
    """The mixed network's games by the unseen rules."""
    rules, found = Rules.from_dict(scale.unseen), []
    for opponent in scale.opponents:
        for seed, run in enumerate(trained[variant.name]):
            name = f"search:{runs_of(work) / run.run}@{scale.simulations}"
            settings: dict[str, Any] = {
                "player": list(run),
                "opponent": opponent,
                "rules": rules.to_dict(),
                "simulations": scale.simulations,
                "games": scale.games,
                "opening_plies": scale.opening_plies,
                "seed": work.scale.seed,
            }

            def play(name: str = name, opponent: str = opponent) -> list[int]:
                players = [
                    make_player(name, rules, transfer=True),
                    make_player(opponent, rules),
                ]
                return play_counts(
                    work, players, rules, games=scale.games, opening_plies=scale.opening_plies
                )

            piece = f"mixed-unseen-{opponent.replace(':', '-')}-{seed}"
            found.append(Unseen(opponent, seed, *work.pieces.keep(piece, settings, play)))
    return found


def _minutes(runs: Sequence[Trained]) -> str:
    return f"{statistics.fmean(run.seconds for run in runs) / 60:.1f}"


def _text(scale: MixedConfig, trained: Mapping[str, Sequence[Trained]]) -> list[str]:
    of_one, of_all = _minutes(trained[AS_ONE]), _minutes(trained[AS_ALL])
    return [
        f"Specialists had {scale.minutes:g} minutes each by the pace that was measured; the mixed "
        f"network was trained as long as one of them ({of_one} minutes) and as long as all "
        f"together ({of_all} minutes). Networks have {scale.simulations} simulations and begin "
        f"after {scale.opening_plies} random plies; a draw counts as half. Intervals are "
        f"{interval_kind(scale.seeds)}.",
    ]


def _table(
    specialists: Mapping[str, Variant],
    meetings: Mapping[str, Sequence[Meeting]],
    trained: Mapping[str, Sequence[Trained]],
) -> Table:
    rows = []
    for name, specialist in specialists.items():
        cells = [f"`{name}`", _minutes(trained[specialist.name])]
        for network in (AS_ONE, AS_ALL):
            found = [each for each in meetings[name] if each.first == network]
            mean = mean_rate(found, network)
            cells += [percent(mean.mean), percent_range(mean.low, mean.high)]
        rows.append(tuple(cells))
    heads = (
        *("rule set", "specialist, minutes", "mixed as long as one", "95 %"),
        *("mixed as long as all", "95 %"),
    )
    return Table("Win rate of the mixed network against each specialist", heads, tuple(rows))


def _unseen_table(scale: MixedConfig, unseen: Sequence[Unseen]) -> Table:
    rows = []
    for opponent in scale.opponents:
        found = [each for each in unseen if each.opponent == opponent]
        rates = [(each.wins + each.draws / 2) / sum(each[2:]) for each in found]
        mean = estimate(rates, scale.games)
        total = [sum(counts) for counts in zip(*(each[2:] for each in found), strict=True)]
        rows.append(
            (
                f"`{opponent}`",
                ", ".join(str(count) for count in total),
                percent(mean.mean),
                percent_range(mean.low, mean.high),
            )
        )
    size = Rules.from_dict(scale.unseen).size
    return Table(
        f"The mixed network (as long as all) on {size}x{size}, which it has never seen",
        ("against", "won, drawn, lost", "win rate", "95 %"),
        tuple(rows),
    )
