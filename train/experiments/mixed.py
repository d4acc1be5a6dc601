"""Can one network play several rule sets? A mixed network against a specialist of each.

A specialist of each rule set, on a grid of its own, is trained for the same time; the mixed network
as long as one of them, and as long as all of them together. Times are turned into iterations once,
by the pace that each training has in turns with the first specialist's, so that a machine that
changes its speed treats all alike.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import jax

from train.config import RuleSet, RunConfig, config_to_dict, read_rule_sets
from train.experiments.lib import stats, trainings
from train.experiments.lib.pages import Report
from train.experiments.lib.scales import MixedScale
from train.experiments.lib.stats import MatchCounts
from train.experiments.lib.trainings import Trained, Variant
from train.experiments.lib.work import Work, played_counts
from train.experiments.pace import iterations_within, measure_pace
from train.players.basic import Player
from train.players.registry import make_player
from train.runtime.display import Table
from train.runtime.errors import usage_errors
from wallgo_jax.game.rules import Rules

AS_ONE, AS_ALL = "mixed-as-one", "mixed-as-all"
"""The mixed network, trained as long as one specialist, and as long as all together."""


def report(work: Work) -> Report:
    """Train the mixed network and the specialists, and match them by each rule set."""
    scale = work.scale.mixed
    rule_sets, unseen_rules = read_rule_sets(scale.rules), Rules.from_dict(scale.unseen)
    for name in scale.opponents:
        make_player(name, unseen_rules)  # refused now, not after the trainings
    specialists, mixed = _variants(work, rule_sets)
    trained = trainings.train_all(work, [*specialists.values(), *mixed], seeds=scale.seeds)
    meetings, rows = {}, []
    for name, only in specialists.items():
        pairs = itertools.product(mixed, range(scale.seeds))
        meetings[name] = [
            trainings.meet(work, (network, only), trained, seed, scale) for network, seed in pairs
        ]
        row = [f"`{name}`", trainings.mean_minutes(trained[only.name])]
        for network in (AS_ONE, AS_ALL):
            met = [each for each in meetings[name] if each.first == network]
            row += stats.mean_rate(met, network).cells()
        rows.append(row)
    of_one, of_all = (trainings.mean_minutes(trained[name]) for name in (AS_ONE, AS_ALL))
    heads = ["rule set", "specialist, minutes", f"mixed as long as one, {of_one} minutes", "95 %"]
    heads += [f"mixed as long as all, {of_all} minutes", "95 %"]
    table = Table("Win rate of the mixed network against each specialist", heads, rows)
    unseen = _play_unseen(work, trained[AS_ALL], unseen_rules)
    return Report(
        title="One network for several rule sets",
        tables=[table, _unseen_table(scale, unseen)],
        data={"meetings": meetings, "unseen": unseen, "trainings": trained},
    )


def _variants(
    work: Work, rule_sets: Sequence[RuleSet]
) -> tuple[dict[str, Variant], tuple[Variant, Variant]]:
    """The specialists by rule set, and the mixed network trained for two times."""
    base = trainings.base_config(work.scale.mixed, where="mixed: config")
    planes = base.network.planes if "V" in base.network.planes else f"{base.network.planes}V"
    network = dataclasses.replace(base.network, planes=planes, playable=True)
    # `mix` stands for a list in `rules`, whose first entry the run keeps there.
    mix = {"rules": rule_sets[0].rules, "mix": tuple(rule_sets), "grid": 0}
    with usage_errors("mixed: config"):
        both = dataclasses.replace(base, **mix, network=network)
        alone = {each.name: specialist_config(base, each.rules) for each in rule_sets}
    lengths = _lengths(work, both, alone)

    def variant(name: str, config: RunConfig) -> Variant:
        return Variant(name, dataclasses.replace(config, iterations=lengths[name]))

    specialists = {name: variant(f"only-{name}", config) for name, config in alone.items()}
    return specialists, (variant(AS_ONE, both), variant(AS_ALL, both))


def specialist_config(base: RunConfig, rules: Rules) -> RunConfig:
    """A specialist's config; its targets look no further ahead than its games have plies."""
    td_steps = min(base.learner.td_steps, rules.max_plies - 1)
    learner = dataclasses.replace(base.learner, td_steps=td_steps)
    return dataclasses.replace(base.alone(rules), learner=learner)


def _lengths(work: Work, mixed: RunConfig, alone: Mapping[str, RunConfig]) -> dict[str, int]:
    """The iterations of each training, by name."""
    minutes = work.scale.mixed.minutes
    settings = {
        "minutes": minutes,
        "mixed": config_to_dict(mixed),
        "alone": {name: config_to_dict(config) for name, config in alone.items()},
    }

    def measure() -> dict[str, int]:
        first, lengths = next(iter(alone.values())), {}
        with work.task("pace of each training", len(alone) + 1, "trainings") as on_progress:
            base = measure_pace(first).seconds
            configs = {AS_ONE: mixed} | {f"only-{name}": config for name, config in alone.items()}
            for done, (name, config) in enumerate(configs.items(), start=1):
                pace = measure_pace(config, first, base).seconds
                lengths[name] = iterations_within(config, pace, 60 * minutes)
                if name == AS_ONE:
                    lengths[AS_ALL] = iterations_within(config, pace, 60 * minutes * len(alone))
                # Each config has programs of its own, which would fill the memory.
                jax.clear_caches()
                on_progress(done)
        return lengths

    return work.cached("mixed-iterations", settings, measure)


def _play_unseen(work: Work, runs: Sequence[Trained], rules: Rules) -> list[MatchCounts]:
    """The mixed network's games by the unseen rules."""
    scale, meetings = work.scale.mixed, []
    sizes = {"games": scale.games, "opening_plies": scale.opening_plies}
    for opponent, (seed, run) in itertools.product(scale.opponents, enumerate(runs)):
        settings = {"player": list(run), "opponent": opponent, "rules": rules.to_dict()}
        settings["simulations"] = scale.simulations

        def players(run: Trained = run, opponent: str = opponent) -> list[Player]:
            name = trainings.player_of(work, run, scale.simulations)
            return [make_player(name, rules, transfer=True), make_player(opponent, rules)]

        piece = f"mixed-unseen-{opponent.replace(':', '-')}-{seed}"
        counts = played_counts(work, piece, settings, players, rules, **sizes)
        meetings.append(MatchCounts(AS_ALL, opponent, seed, *counts))
    return meetings


def _unseen_table(scale: MixedScale, unseen: Sequence[MatchCounts]) -> Table:
    rows = []
    for opponent in scale.opponents:
        met = [each for each in unseen if each.second == opponent]
        total = [sum(counts) for counts in zip(*(each[3:] for each in met), strict=True)]
        rate = stats.over_seeds([each.rate for each in met], scale.games)
        rows.append([f"`{opponent}`", ", ".join(map(str, total)), *rate.cells()])
    size = Rules.from_dict(scale.unseen).size
    title = f"The mixed network (as long as all) on {size}x{size}, which it has never seen"
    return Table(title, ("against", "won, drawn, lost", "win rate", "95 %"), rows)
