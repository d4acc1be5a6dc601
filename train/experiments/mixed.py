"""Can one network play several rule sets? A mixed network against a specialist of each.

A specialist of each rule set, on a grid of its own, is trained for the same time; the mixed network
as long as one of them, and as long as all of them together. Times are turned into iterations once:
each training takes turns with the first specialist's, and their speeds are compared. So a machine
whose speed changes treats all alike.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

import train
from train.config import RunConfig, config_to_dict, read_rule_sets
from train.experiments import lab
from train.experiments.pace import iterations_within, measure_pace
from train.experiments.tables import Table
from wallgo_jax import Rules

AS_ONE, AS_ALL = "mixed-as-one", "mixed-as-all"
"""The mixed network, trained as long as one specialist, and as long as all together."""
FIVE = {"name": "5x5", "rules": {"size": 5, "stones": 2, "order": [0, 1, 0, 1]}}
SIX = {"name": "6x6", "rules": {"size": 6, "stones": 3, "order": [0, 1, 0, 1, 0, 1]}}
UNSEEN = Rules(size=8, stones=4, order=(0, 1, 1, 0, 0, 1, 1, 0))
"""Rules that no training has."""


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    presets: tuple[str, ...] = ("wallzero-4stone", "wallzero-empty", "hkoi", "playwallgo-2p")
    """Rule sets, next to 5×5 with two stones each and 6×6 with three."""
    minutes: float = 2.0
    """Minutes of each specialist."""
    seeds: int = 1
    """Trainings of each."""
    config: str | None = None
    """TOML file of the run; the quickstart by default."""
    games: int = 200
    """Games of each match."""
    simulations: int = 64
    opening_plies: int = 2
    opponents: tuple[str, ...] = ("random", "greedy", "wjx")
    """Players that need no weights, met on 8×8, which no training has."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Train the mixed network and the specialists, and match them by each rule set."""
    scale = work.scale
    rule_sets = read_rule_sets([*scale.presets, FIVE, SIX])
    base = train.make_config(scale.config)
    planes = base.network.planes if "V" in base.network.planes else f"{base.network.planes}V"
    network = dataclasses.replace(base.network, planes=planes, playable=True)
    # `mix` stands for a list in `rules`, whose first entry the run keeps there.
    mix: dict[str, Any] = {"rules": rule_sets[0].rules, "mix": tuple(rule_sets), "grid": 0}
    mixed = dataclasses.replace(base, **mix, network=network)
    alone = {each.name: specialist_config(base, each.rules) for each in rule_sets}
    lengths = _lengths(work, mixed, alone)
    configs = {**alone, AS_ONE: mixed, AS_ALL: mixed}
    configs = {
        name: dataclasses.replace(config, iterations=lengths[name])
        for name, config in configs.items()
    }
    trained = work.train_all(configs, scale.seeds)
    options = {"games": scale.games, "opening_plies": scale.opening_plies, "seed": scale.seed}
    rows = []
    for each in rule_sets:
        row: dict[str, Any] = {"rules": f"`{each.name}`"}
        for name in (AS_ONE, AS_ALL):
            pairs = zip(trained[name], trained[each.name], strict=True)
            players = [[lab.player_of(run, scale.simulations) for run in pair] for pair in pairs]
            met = [work.match(*pair, rules=each.rules, **options) for pair in players]
            row[name] = _by_seed(met)
        rows.append(row)
    unseen = []
    for opponent in scale.opponents:
        names = [lab.player_of(run, scale.simulations) for run in trained[AS_ALL]]
        met = [work.match(name, opponent, rules=UNSEEN, transfer=True, **options) for name in names]
        unseen.append({"against": f"`{opponent}`", "games": _by_seed(met)})
    columns = [["rule set", "rules"], ["trained as long as one specialist", AS_ONE]]
    columns += [["as all", AS_ALL]]
    heads = [["against", "against"], ["won, drawn, lost", "games", "counts"], ["% won", "games"]]
    tables = {
        "table": Table("% won by the mixed network against each specialist", columns, rows),
        "unseen": Table("The mixed network on 8×8, which it has never seen", heads, unseen),
    }
    return work.finish(tables, trainings=trained)


def specialist_config(base: RunConfig, rules: Rules) -> RunConfig:
    """A specialist's config; its targets look no further ahead than its games have plies."""
    td_steps = min(base.learner.td_steps, rules.max_plies - 1)
    learner = dataclasses.replace(base.learner, td_steps=td_steps)
    return dataclasses.replace(base.alone(rules), learner=learner)


def _by_seed(met: list[dict[str, Any]]) -> dict[str, list[int]]:
    return {key: [counts[key] for counts in met] for key in ("won", "drawn", "lost")}


def _lengths(work: lab.Lab, mixed: RunConfig, alone: Mapping[str, RunConfig]) -> dict[str, int]:
    """The iterations of each training, by name."""
    seconds = 60 * work.scale.minutes
    key = {"seconds": seconds, "configs": [*map(config_to_dict, (mixed, *alone.values()))]}

    def measure() -> dict[str, int]:
        first = next(iter(alone.values()))
        base = measure_pace(first).seconds
        lengths = {}
        for name, config in {AS_ONE: mixed, **alone}.items():
            pace = measure_pace(config, first, base).seconds
            lengths[name] = iterations_within(config, pace, seconds)
            if name == AS_ONE:
                lengths[AS_ALL] = iterations_within(config, pace, seconds * len(alone))
            # Each config has programs of its own, which would fill the memory.
            jax.clear_caches()
        return lengths

    return work.keep("lengths", key, measure)


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
