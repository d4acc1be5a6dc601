"""Is a warm start worth it? Training from another network's weights, with and without freezing, and
from nothing.

The trainings of a case have one config, so that equal iterations are equal time but for chance;
the minutes are printed all the same. They leave out the time that made the source. Players of
one seed meet one another.
"""

import dataclasses
import functools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from train.config import EvaluationConfig, RunConfig
from train.experiments.lib import stats, trainings
from train.experiments.lib.pages import Picture, Report
from train.experiments.lib.scales import TransferCase, TransferScale
from train.experiments.lib.stats import Estimate, MatchCounts
from train.experiments.lib.trainings import Trained, Variant
from train.experiments.lib.work import Work
from train.learning.optimizer import frozen_steps
from train.loop.run_directory import RESULT_FILE
from train.metrics.intervals import Curve, curves_figure
from train.metrics.rows import METRICS_FILE, read_rows
from train.network import network_for
from train.players.networks import load_network
from train.players.registry import make_player
from train.runtime.display import Table
from train.runtime.errors import check_two_players, usage_errors
from train.runtime.files import read_json

SCRATCH, WARM, FROZEN = "scratch", "warm", "frozen"
CurvePoints = list[list[float]]
"""The matches of a training: the minutes up to each, and its win rate."""


class CaseResult(NamedTuple):
    """The trainings of a case and their games."""

    case: TransferCase
    sources: Sequence[Trained]  # one a seed; empty where the source is named
    trained: Mapping[str, Sequence[Trained]]
    curves: Mapping[str, list[CurvePoints]]  # of each training, a curve a seed
    meetings: list[MatchCounts]


def report(work: Work) -> Report:
    """Train each case in all ways, draw the curves, and match the players of a seed."""
    scale = work.scale.transfer
    base = trainings.base_config(scale, where="transfer: config")
    # Refused here rather than after the sources are trained.
    make_player(scale.opponent, base.rules)
    for case in scale.cases:
        _check(scale, base, case)
    results = [train_case(work, base, case) for case in scale.cases]
    return Report(
        title="Warm starts",
        text=[*map(_about, results)],
        tables=[_table(scale, result) for result in results],
        pictures=[_picture(scale, result) for result in results],
        data={result.case.name: result._replace(case=result.case.source) for result in results},
    )


def _check(scale: TransferScale, base: RunConfig, case: TransferCase) -> None:
    """Refuse a case that cannot be trained with a UsageError."""
    where = f"transfer: {case.name}"
    config_of = functools.partial(trainings.base_config, scale, where=where)
    with usage_errors(where):
        if case.source:
            source = load_network(case.source).config
            base = dataclasses.replace(base, network=source.network)
        else:
            source = config_of(base=base, changes=case.source_config)
        config = config_of(base=base, changes=case.config)
        network = network_for(config.network, config.rules.players, size=config.grid_side)
        learner = dataclasses.replace(config.learner, freeze=case.freeze)
        frozen_steps(network.shapes.params, learner)
        check_two_players(source.rules, f"{where}: its source")


def train_case(work: Work, base: RunConfig, case: TransferCase) -> CaseResult:
    """Train a case from nothing, from its source, and from the source with groups frozen."""
    scale, source, sources, where = work.scale.transfer, case.source, [], case.name
    if source:
        learned = load_network(source)
        base = dataclasses.replace(base, network=learned.config.network)
        source_by: Any = trainings.weights_of(learned)
    else:
        variant = trainings.variant(f"{where}-source", base, case.source_config, where=where)
        source_by = variant.settings(0)
        sources = trainings.train_all(work, [variant], seeds=scale.seeds)[variant.name]
        source = str(work.runs / variant.run_name("{seed}"))
    scratch = trainings.changed_config(base, case.config, where=where)
    others = trainings.named_weights(scratch)
    warm_by = [source_by, others] if others else source_by
    evaluation = EvaluationConfig(
        every=max(1, scratch.iterations // scale.points),
        opponents=(scale.opponent,),
        anchors=(scale.opponent,),
        games=scale.curve_games,
        final_games=scale.curve_games,
        batch=scale.curve_games,
        simulations=scale.simulations,
        opening_plies=scale.opening_plies,
    )
    warm = dataclasses.replace(scratch, init_from=source)
    variants = [
        Variant(f"{where}-{SCRATCH}", scratch, evaluation, made_by=others or None),
        Variant(f"{where}-{WARM}", warm, evaluation, made_by=warm_by),
    ]
    if case.freeze:
        learner = dataclasses.replace(scratch.learner, freeze=case.freeze)
        config = dataclasses.replace(warm, learner=learner)
        variants.append(Variant(f"{where}-{FROZEN}", config, evaluation, made_by=warm_by))
    trained = trainings.train_all(work, variants, seeds=scale.seeds)
    meetings = trainings.round_robin(work, variants, trained, scale)
    curves = {name: [_curve(work, run) for run in runs] for name, runs in trained.items()}
    return CaseResult(case, sources, trained, curves, meetings)


def _curve(work: Work, run: Trained) -> CurvePoints:
    """The matches of a run over its minutes, the final one included."""

    def read() -> CurvePoints:
        directory, minutes, points = work.runs / run.run, 0.0, []
        for row in read_rows(directory / METRICS_FILE):
            minutes += (row["selfplay_seconds"] + row["learn_seconds"]) / 60
            if "win_rate" in row:
                points.append([minutes, row["win_rate"]])
        final = read_json(directory / RESULT_FILE)["matches"][0]
        return [*points, [minutes, final["win_rate"]]]

    return work.cached(f"curve-{run.run}", {"run": list(run)}, read)


def _mean_curve(curves: Sequence[CurvePoints]) -> dict[float, Estimate]:
    """The mean win rate over seeds by mean minutes, match by match, with the least and the best."""
    points = {}
    for minutes, rates in (zip(*match, strict=True) for match in zip(*curves, strict=True)):
        mean = Estimate(statistics.fmean(rates), min(rates), max(rates), len(rates))
        points[statistics.fmean(minutes)] = mean
    return points


def _table(scale: TransferScale, result: CaseResult) -> Table:
    name, rows = result.case.name, []
    level = [*_mean_curve(result.curves[f"{name}-{SCRATCH}"]).values()][-1].mean
    for variant, curves in result.curves.items():
        last = stats.over_seeds([curve[-1][1] for curve in curves], scale.curve_games)
        reached = (f"{x:.1f}" for x, rate in _mean_curve(curves).items() if rate.mean >= level)
        cells = [*last.cells(), *stats.mean_rate(result.meetings, variant).cells()]
        cells += [next(reached, "not reached"), trainings.mean_minutes(result.trained[variant])]
        rows.append([variant.removeprefix(f"{name}-"), *cells])
    interval = stats.interval_head(scale.seeds)
    heads = ["training", f"against {scale.opponent}", interval, "against the others", interval]
    heads += [f"minutes to scratch's last {stats.percent(level)}", "minutes"]
    return Table(f"{name}: after equal training", heads, rows)


def _about(result: CaseResult) -> str:
    """The source of a case, and what starts from it are worth."""
    case, sources, _, curves, meetings = result
    words = f"its source is `{case.source}`"
    if sources:
        words = f"its sources took {trainings.mean_minutes(sources)} minutes each"
    frozen = f"; `frozen` begins with {', '.join(case.freeze)}" if case.freeze else ""
    scratch, *others = curves
    gaps = (f"`{name}` {stats.difference(meetings, name, scratch).points()}" for name in others)
    return (
        f"`{case.name}`: {words}, which are not counted{frozen}. Mean win rates less that of "
        f"training from nothing, in points: {', '.join(gaps)}."
    )


def _picture(scale: TransferScale, result: CaseResult) -> Picture:
    name, several = result.case.name, scale.seeds > 1
    figure = curves_figure(
        [
            Curve(variant.removeprefix(f"{name}-"), _mean_curve(curves))
            for variant, curves in result.curves.items()
        ],
        title=f"{name}: win rate against {scale.opponent}",
        x_label="minutes of self-play and learning",
        y_label=f"win rate{', mean over seeds' if several else ''}",
        is_share=True,
    )
    caption = "bands: from the least to the best seed" if several else "one seed"
    return Picture(f"curves-{name}", caption, figure)
