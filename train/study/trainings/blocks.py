"""Strength by blocks: residual, Transformer and walled, at equal simulations and equal time."""

import functools
import statistics
import time
from collections.abc import Sequence

import jax
import numpy as np

from train.config import config_from_dict, config_to_dict
from train.players.registry import make_player
from train.runtime.devices import broadcast_boards, machine
from train.study.frame.report import Picture, Report, Table, percent, percent_range
from train.study.frame.seeds import count_of, interval_kind, interval_unit
from train.study.frame.variants import (
    Meeting,
    Trained,
    Variant,
    mean_rate,
    round_robin,
    runs_of,
    train_all,
)
from train.study.frame.weights import named_weights
from train.study.frame.work import Work
from train.study.scale.trainings import BlocksConfig
from train.study.trainings.features import base_config
from wallgo_jax.game.state import initial_state

_BOARDS, _CALLS = 64, 7


def report(work: Work) -> Report:
    """Train every block string on equal positions, and let all of them meet twice."""
    scale = work.scale.blocks
    variants = block_variants(scale, scale.blocks)
    trained = train_all(work, variants, seeds=scale.seeds)
    costs = move_costs(work, variants, trained)
    slowest = max(costs.values())
    equal_time = {
        name: max(1, round(scale.simulations * slowest / cost)) for name, cost in costs.items()
    }
    kinds = {
        "equal simulations": {variant.name: scale.simulations for variant in variants},
        "equal time": equal_time,
    }
    meetings = {
        kind: round_robin(
            work,
            variants,
            trained,
            games=scale.games,
            simulations=simulations,
            opening_plies=scale.opening_plies,
        )
        for kind, simulations in kinds.items()
    }
    return Report(
        title="Strength by blocks",
        text=_text(scale),
        tables=[_table(variants, meetings, costs, equal_time, trained)],
        pictures=[_picture(scale, variants, meetings)],
        data={
            "meetings": {
                kind: [meeting._asdict() for meeting in found] for kind, found in meetings.items()
            },
            "seconds_a_move": costs,
            "simulations_at_equal_time": equal_time,
            "training_seconds": {
                name: [run.seconds for run in runs] for name, runs in trained.items()
            },
        },
    )


def _text(scale: BlocksConfig) -> list[str]:
    return [
        f"Each block string was trained with {count_of(scale.seeds)}, the same settings and the "
        "same number of positions. Players of one seed met at equal simulations, and with "
        "simulations in proportion to the measured cost of a move (equal time; the slowest "
        f"keeps {scale.simulations}). Intervals are {interval_kind(scale.seeds)}.",
        "ResTNet (Wu, Wu, Shih, Ju, Wu, Table 1) matches six blocks of 256 channels, trained "
        "for GPU-days on Go; these are a few blocks of a small network, trained in minutes on "
        "WallGo, so its figures cannot be compared with ours.",
    ]


def block_variants(scale: BlocksConfig, blocks: Sequence[str]) -> list[Variant]:
    """The topic's config with each of these block strings.

    Raises:
      UsageError: a key or a value is not allowed.
    """
    config = base_config(scale, where="study blocks: config")
    base, known_by, found = config_to_dict(config), named_weights(config) or None, []
    for each in blocks:
        fields = base | {"network": base["network"] | {"blocks": each}}
        changed = config_from_dict(fields, where="study blocks")
        found.append(Variant(each, changed, made_by=known_by))
    return found


def move_costs(
    work: Work, variants: Sequence[Variant], trained: dict[str, list[Trained]]
) -> dict[str, float]:
    """Seconds of a searched move of each variant's player, a batch of 64: the median of 7 calls,
    which the players make in turns, so that other work on the machine slows all of them."""
    simulations = work.scale.blocks.simulations
    runs = [trained[variant.name][0] for variant in variants]

    def measure() -> dict[str, float]:
        calls = []
        for variant, run in zip(variants, runs, strict=True):
            rules = variant.config.rules
            player = make_player(f"search:{runs_of(work) / run.run}@{simulations}", rules)
            one = jax.tree.map(np.asarray, initial_state(rules))
            states = broadcast_boards(one, _BOARDS)
            act = functools.partial(jax.jit(player.act), player.variables, states)
            jax.block_until_ready(act(jax.random.key(0)))
            calls.append(act)
        times = np.zeros((_CALLS, len(calls)))
        for turn in range(_CALLS):
            for place, act in enumerate(calls):
                began = time.perf_counter()
                jax.block_until_ready(act(jax.random.key(turn)))
                times[turn, place] = time.perf_counter() - began
        seconds = np.median(times, axis=0) / _BOARDS
        return {variant.name: float(each) for variant, each in zip(variants, seconds, strict=True)}

    settings = {
        "simulations": simulations,
        "runs": [list(run) for run in runs],
        "machine": machine(),
    }
    return work.pieces.keep("costs-in-turns", settings, measure)


def _table(
    variants: Sequence[Variant],
    meetings: dict[str, list[Meeting]],
    costs: dict[str, float],
    equal_time: dict[str, int],
    trained: dict[str, list[Trained]],
) -> Table:
    rows = []
    for variant in variants:
        cells = [f"`{variant.name}`"]
        for found in meetings.values():
            mean = mean_rate(found, variant.name)
            cells += [percent(mean.mean), percent_range(mean.low, mean.high)]
        minutes = [run.seconds / 60 for run in trained[variant.name]]
        cells += [
            f"{1000 * costs[variant.name]:.2f} ms",
            str(equal_time[variant.name]),
            f"{statistics.mean(minutes):.1f}",
        ]
        rows.append(tuple(cells))
    interval = f"95 % {interval_unit(len(next(iter(trained.values()))))}"
    heads = (
        "blocks",
        "equal simulations",
        interval,
        "equal time",
        interval,
        "cost of a move",
        "simulations at equal time",
        "minutes of training",
    )
    return Table("Mean win rates against the other block strings", heads, tuple(rows))


def _picture(
    scale: BlocksConfig, variants: Sequence[Variant], meetings: dict[str, list[Meeting]]
) -> Picture:
    from train.metrics.intervals import Interval, intervals_figure

    rows = []
    for variant in variants:
        for kind, found in meetings.items():
            mean = mean_rate(found, variant.name)
            rows.append(Interval(f"{variant.name}, {kind}", mean.mean, mean.low, mean.high))
    figure = intervals_figure(
        rows,
        title="Strength by blocks",
        x_label=f"mean win rate against the others, 95 % intervals {interval_unit(scale.seeds)}",
        middle=0.5,
        is_share=True,
    )
    return Picture("blocks", count_of(scale.seeds), figure)
