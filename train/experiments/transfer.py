"""Is a warm start worth it? Training from another network's weights, with and without freezing, and
from nothing.

The trainings of a case have one config, so equal iterations take about equal time; the minutes are
printed as well. They do not include the time that trained the source. Players of one seed meet one
another.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import train
from train.config import EvaluationConfig, RunConfig
from train.experiments import lab
from train.experiments.tables import Table, gaps_of, rates_of
from train.metrics.intervals import Curve, curves_figure
from wallgo_jax import Rules

SCRATCH, WARM, FROZEN = "scratch", "warm", "frozen"
FIVE = Rules(
    size=5, stones=4, order=(0, 1, 1, 0, 0, 1, 1, 0), stay_needs_room=False, tie=("region",)
)
"""Rules of the smaller board that a source is trained on."""


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    cases: tuple[str, ...] = ("5x5", "pretrained:wallzero-4stone-v2")
    """Sources: a network, whose shape the trainings have, or `5x5` to train one with each seed."""
    rules: str = "wallzero-empty"
    """What the trainings learn, a preset."""
    freeze: str = "trunk=5"
    """What the third training freezes, for how many iterations."""
    seeds: int = 3
    """Trainings of each kind."""
    config: str | None = None
    """TOML file of the run; the quickstart by default."""
    iterations: int = 15
    games: int = 60
    """Games of each match."""
    simulations: int = 32
    opening_plies: int = 4
    opponent: str = "wjx"
    """A player that needs no weights, against which the curves are drawn."""
    points: int = 5
    """Points of a curve, the last one included."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Train each case in all ways, draw the curves, and match the players of a seed."""
    scale = work.scale
    tables = {}
    counts = {}
    train.make_player(scale.opponent, scale.rules)  # refused now, not after the trainings
    base = train.make_config(scale.config, iterations=scale.iterations)
    for case in scale.cases:
        name = case.rpartition(":")[2]
        if case == "5x5":
            source = dataclasses.replace(base, rules=FIVE)
            runs = work.train_all({"source": source}, scale.seeds)["source"]
            sources = [run["run"] for run in runs]
            config = base
        else:
            network = train.make_player(case).trained.config.network
            sources = [case] * scale.seeds
            config = dataclasses.replace(base, network=network)
        config = train.make_config(config, rules=scale.rules)
        trained = _train(work, name, config, sources)
        options = {"games": scale.games, "opening_plies": scale.opening_plies}
        meetings = work.round_robin(trained, simulations=scale.simulations, **options)
        tables[name] = _table(scale, name, trained, meetings)
        counts[name] = {"meetings": meetings, "trainings": trained}
        _draw(work, name, trained)
    return work.finish(tables, cases=counts)


def _train(
    work: lab.Lab, name: str, config: RunConfig, sources: Sequence[str]
) -> dict[str, list[Any]]:
    """Train from nothing, from the source, and from the source with groups frozen."""
    scale = work.scale
    matches = EvaluationConfig(
        every=max(1, config.iterations // scale.points),
        opponents=(scale.opponent,),
        anchors=(scale.opponent,),
        games=scale.games,
        final_games=scale.games,
        batch=scale.games,
        simulations=scale.simulations,
        opening_plies=scale.opening_plies,
    )
    trained: dict[str, list[Any]] = {SCRATCH: [], WARM: [], FROZEN: []}
    for seed, source in enumerate(sources):
        seeded = dataclasses.replace(config, seed=seed)
        warm = dataclasses.replace(seeded, init_from=source)
        frozen = train.make_config(warm, {"learner.freeze": [scale.freeze]})
        for way, each in ((SCRATCH, seeded), (WARM, warm), (FROZEN, frozen)):
            trained[way].append(work.train(f"{name}-{way}-seed{seed}", each, keeps=matches))
    return trained


def _table(scale: Scale, name: str, trained: Mapping[str, Any], meetings: Any) -> Table:
    rows = []
    for way, runs in trained.items():
        last = [run["curve"][-1]["rate"] for run in runs]
        row = {
            "training": way,
            "minutes": round(float(np.mean([run["minutes"] for run in runs])), 1),
            "opponent": {"rates": last, "games": scale.games},
            "others": {"rates": rates_of(meetings, way), "games": 2 * scale.games},
        }
        if way != SCRATCH:
            row["gap"] = {"gaps": gaps_of(meetings, way, SCRATCH)}
        rows.append(row)
    columns = [["training", "training"], [f"% won against {scale.opponent}", "opponent"]]
    columns += [["against the other two", "others"], ["over nothing, points", "gap", "points"]]
    columns += [["minutes", "minutes"]]
    return Table(f"{name}: after equal training", columns, rows)


def _draw(work: lab.Lab, name: str, trained: Mapping[str, Any]) -> None:
    """The mean win rate over mean minutes, with the least and the best seed."""
    curves = []
    for way, runs in trained.items():
        points = {}
        for match in zip(*(run["curve"] for run in runs), strict=True):
            rates = [each["rate"] for each in match]
            minutes = float(np.mean([each["minutes"] for each in match]))
            points[minutes] = float(np.mean(rates)), min(rates), max(rates)
        curves.append(Curve(way, points))
    figure = curves_figure(
        curves,
        title=f"{name}: win rate against {work.scale.opponent}",
        x_label="minutes of self-play and learning",
        y_label="win rate",
        is_share=True,
    )
    work.save_figure(f"curves-{name}", figure, caption="bands: from the least to the best seed")


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
