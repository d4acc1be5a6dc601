"""Warm starts: training from another network's weights, with and without freezing, or from nothing.

The trainings of a case have one config, so that equal iterations are equal time but for chance;
the minutes are told all the same. The time that made the source is no part of them.
"""

import dataclasses
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from train.config import EvaluationConfig, RunConfig, config_to_dict
from train.learning.freezing import frozen_steps
from train.loop.run_directory import RESULT_FILE
from train.metrics.rows import METRICS_FILE, read_rows
from train.network.build import network_for
from train.players.registry import load_network, make_player
from train.runtime.errors import UsageError
from train.study.frame.report import Picture, Report, Table, percent, percent_range, points_range
from train.study.frame.seeds import count_of, estimate, interval_kind, interval_unit
from train.study.frame.variants import (
    Meeting,
    Trained,
    Variant,
    difference,
    mean_rate,
    round_robin,
    runs_of,
    settings_of,
    train_all,
)
from train.study.frame.weights import made_by, named_weights
from train.study.frame.work import Work
from train.study.scale.trainings import TransferCase, TransferConfig
from train.study.trainings.features import base_config, config_for_matches

SCRATCH, WARM, FROZEN = "scratch", "warm", "frozen"


class CurvePoint(NamedTuple):
    """A match of a training."""

    minutes: float  # of training up to it
    rate: float


class CaseResult(NamedTuple):
    """What a case came to."""

    case: TransferCase
    source_minutes: list[float]  # of each seed's source; empty for one that is named
    trained: Mapping[str, Sequence[Trained]]
    curves: Mapping[str, list[list[CurvePoint]]]  # of each training, a curve a seed
    meetings: list[Meeting]


def report(work: Work) -> Report:
    """Train each case in all ways, draw the curves, and let the players of a seed meet."""
    scale = work.scale.transfer
    base = base_config(scale, where="study transfer: config")
    # Refused here rather than after the sources are trained.
    make_player(scale.opponent, base.rules)
    for case in scale.cases:
        _check(scale, base, case)
    found = [_case(work, scale, base, case) for case in scale.cases]
    return Report(
        title="Warm starts",
        text=_text(scale, found),
        tables=[_table(scale, result) for result in found],
        pictures=[_picture(scale, result) for result in found],
        data={
            result.case.name: {
                "source_minutes": result.source_minutes,
                "curves": {
                    name: [[list(point) for point in curve] for curve in curves]
                    for name, curves in result.curves.items()
                },
                "meetings": [meeting._asdict() for meeting in result.meetings],
            }
            for result in found
        },
    )


def _check(scale: TransferConfig, base: RunConfig, case: TransferCase) -> None:
    """Refuse a case that cannot be trained with a UsageError."""
    where = f"study transfer: {case.name}"
    if case.source:
        try:
            before = load_network(case.source).config
        except UsageError as error:
            raise UsageError(f"{where}: source: {error}") from None
        base = dataclasses.replace(base, network=before.network)
    else:
        before = _changed(scale, base, case.source_config, case)
    config = _changed(scale, base, case.config, case)
    players = before.rules.players, config.rules.players
    if players[0] != players[1]:
        raise UsageError(f"{where}: its source learns games of {players[0]} players, not 2")
    network = network_for(config.network, config.rules.players, size=config.grid_side)
    try:
        learner = dataclasses.replace(config.learner, freeze=case.freeze)
        frozen_steps(network.shapes.params, learner)
    except (UsageError, ValueError) as error:
        raise UsageError(f"{where}: {error}") from None


def _case(work: Work, scale: TransferConfig, base: RunConfig, case: TransferCase) -> CaseResult:
    source, minutes = case.source, []
    if source:
        learned = load_network(source)
        base = dataclasses.replace(base, network=learned.config.network)
        source_by: Any = made_by(learned)
    else:
        config = _changed(scale, base, case.source_config, case)
        variant = Variant(f"{case.name}-source", config, made_by=named_weights(config) or None)
        source_by = settings_of(variant, 0)
        sources = train_all(work, [variant], seeds=scale.seeds)[variant.name]
        minutes = [run.seconds / 60 for run in sources]
        source = str(runs_of(work) / f"{variant.name}-seed{{seed}}")
    variants = _variants(scale, _changed(scale, base, case.config, case), case, source, source_by)
    trained = train_all(work, variants, seeds=scale.seeds)
    meetings = round_robin(
        work,
        variants,
        trained,
        games=scale.games,
        simulations={variant.name: scale.simulations for variant in variants},
        opening_plies=scale.opening_plies,
    )
    curves = {name: [_curve(work, run) for run in runs] for name, runs in trained.items()}
    return CaseResult(case, minutes, trained, curves, meetings)


def _variants(
    scale: TransferConfig, config: RunConfig, case: TransferCase, source: str, source_by: Any
) -> list[Variant]:
    """From nothing, from the source, and from the source with groups frozen.

    Args:
      source_by: what decides the source's weights, JSON-ready.
    """
    others = named_weights(config)
    warm_by = [source_by, others] if others else source_by
    evaluation = EvaluationConfig(
        every=max(1, config.iterations // scale.points),
        opponents=(scale.opponent,),
        anchors=(scale.opponent,),
        games=scale.curve_games,
        final_games=scale.curve_games,
        batch=scale.curve_games,
        simulations=scale.simulations,
        opening_plies=scale.opening_plies,
    )
    warm = dataclasses.replace(config, init_from=source)
    configs = {SCRATCH: config, WARM: warm}
    if case.freeze:
        learner = dataclasses.replace(warm.learner, freeze=case.freeze)
        configs[FROZEN] = dataclasses.replace(warm, learner=learner)
    return [
        Variant(
            f"{case.name}-{name}",
            each,
            evaluation,
            made_by=warm_by if each.init_from else others or None,
        )
        for name, each in configs.items()
    ]


def _changed(
    scale: TransferConfig, base: RunConfig, changes: Mapping[str, Any], case: TransferCase
) -> RunConfig:
    fields: dict[str, Any] = config_to_dict(base)
    for key, value in changes.items():
        inner = fields.get(key)
        if isinstance(inner, dict) and isinstance(value, dict) and key != "rules":
            value = inner | value
        fields[key] = value
    return config_for_matches(fields, scale, where=f"study transfer: {case.name}")


def _curve(work: Work, run: Trained) -> list[CurvePoint]:
    """The matches of a run over its minutes, the final one included."""

    def read() -> list[list[float]]:
        directory = runs_of(work) / run.run
        try:
            final = json.loads((directory / RESULT_FILE).read_text(encoding="utf-8"))
            rows = read_rows(directory / METRICS_FILE)
            minutes, found = 0.0, []
            for row in rows:
                minutes += (row["selfplay_seconds"] + row["learn_seconds"]) / 60
                if "win_rate" in row:
                    found.append([minutes, row["win_rate"]])
            return [*found, [minutes, final["matches"][0]["win_rate"]]]
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise UsageError(f"{directory}: its matches cannot be read: {error}") from None

    points = work.pieces.keep(f"curve-{run.run}", {"run": list(run)}, read)
    return [CurvePoint(*point) for point in points]


def mean_curve(curves: Sequence[Sequence[CurvePoint]]) -> list[CurvePoint]:
    """The mean over seeds of minutes and win rates, match by match."""
    return [
        CurvePoint(
            statistics.fmean(point.minutes for point in points),
            statistics.fmean(point.rate for point in points),
        )
        for points in zip(*curves, strict=True)
    ]


def minutes_to(curve: Sequence[CurvePoint], rate: float) -> float | None:
    """The minutes of the first match with at least a win rate; None where there is none."""
    return next((point.minutes for point in curve if point.rate >= rate), None)


def _table(scale: TransferConfig, result: CaseResult) -> Table:
    name, rows = result.case.name, []
    level = mean_curve(result.curves[f"{name}-{SCRATCH}"])[-1].rate
    for variant, curves in result.curves.items():
        last = estimate([curve[-1].rate for curve in curves], scale.curve_games)
        mean = mean_rate(result.meetings, variant)
        reached = minutes_to(mean_curve(curves), level)
        rows.append(
            (
                variant.removeprefix(f"{name}-"),
                percent(last.mean),
                percent_range(last.low, last.high),
                percent(mean.mean),
                percent_range(mean.low, mean.high),
                "not reached" if reached is None else f"{reached:.1f}",
                f"{statistics.fmean(run.seconds for run in result.trained[variant]) / 60:.1f}",
            )
        )
    interval = f"95 % {interval_unit(scale.seeds)}"
    heads = (
        "training",
        f"against {scale.opponent}",
        interval,
        "against the others",
        interval,
        f"minutes to scratch's last {percent(level)}",
        "minutes",
    )
    return Table(f"{name}: after equal training", heads, tuple(rows))


def _text(scale: TransferConfig, found: Sequence[CaseResult]) -> list[str]:
    lines = [
        f"Each training was made with {count_of(scale.seeds)}; those of a case have the same "
        "config and the same number of iterations, so they take equal time but for chance. Players "
        f"of one seed met one another. Intervals are {interval_kind(scale.seeds)}.",
    ]
    for result in found:
        case = result.case
        told = f"its source is `{case.source}`"
        if result.source_minutes:
            told = f"its sources took {statistics.fmean(result.source_minutes):.1f} minutes each"
        frozen = f"; `frozen` begins with {', '.join(case.freeze)}" if case.freeze else ""
        lines.append(f"`{case.name}`: {told}, which are not counted{frozen}.")
        for name in result.curves:
            if name != f"{case.name}-{SCRATCH}":
                gap = difference(result.meetings, name, f"{case.name}-{SCRATCH}")
                lines.append(
                    f"`{name}` has a mean win rate {100 * gap.mean:+.1f} points above training "
                    f"from nothing{points_range(gap.low, gap.high)}."
                )
    return lines


def _picture(scale: TransferConfig, result: CaseResult) -> Picture:
    from train.metrics.plot_style import COLOURS, MARKS, new_plot

    figure, axes = new_plot(
        title=f"{result.case.name}: win rate against {scale.opponent}",
        x_label="minutes of self-play and learning",
        y_label=f"win rate{', mean over seeds' if scale.seeds > 1 else ''}",
    )
    for place, (name, curves) in enumerate(result.curves.items()):
        mean = mean_curve(curves)
        minutes = [point.minutes for point in mean]
        rates = np.array([[point.rate for point in curve] for curve in curves])
        colour = COLOURS[place]
        axes.fill_between(
            minutes, rates.min(axis=0), rates.max(axis=0), color=colour, alpha=0.15, linewidth=0
        )
        label = name.removeprefix(f"{result.case.name}-")
        marks = {"marker": MARKS[place], "markersize": 5}
        axes.plot(minutes, [point.rate for point in mean], color=colour, label=label, **marks)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.legend(frameon=False)
    told = "bands: from the least to the best seed" if scale.seeds > 1 else count_of(1)
    return Picture(f"curves-{result.case.name}", told, figure)
