"""Strength of residual, Transformer and walled blocks, trained on equal positions with the same
settings; players of one seed meet at equal simulations, and with simulations in proportion to the
measured cost of a move (equal time), where the slowest keeps its own.

ResTNet (Wu, Wu, Shih, Ju, Wu, Table 1) matches six blocks of 256 channels, trained for GPU-days on
Go; these are a few blocks of a small network, trained in minutes on WallGo, so its figures cannot
be compared with ours.
"""

import functools
import time
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from train.experiments.lib import stats, trainings
from train.experiments.lib.pages import Report
from train.experiments.lib.scales import BlocksScale
from train.experiments.lib.trainings import Trained, Variant
from train.experiments.lib.work import Work
from train.players.registry import make_player
from train.runtime.devices import broadcast_boards, machine
from train.runtime.display import Table
from wallgo_jax.game.state import initial_state

_BOARDS, _CALLS = 64, 7


def report(work: Work) -> Report:
    """Train every block string on equal positions, and match all of them twice."""
    scale = work.scale.blocks
    variants = block_variants(scale, scale.blocks)
    trained = trainings.train_all(work, variants, seeds=scale.seeds)
    costs = move_costs(work, variants, trained)
    equal_time = {
        name: max(1, round(scale.simulations * max(costs.values()) / cost))
        for name, cost in costs.items()
    }
    meetings = {
        "equal simulations": trainings.round_robin(work, variants, trained, scale),
        "equal time": trainings.round_robin(work, variants, trained, scale, simulations=equal_time),
    }
    rows = []
    for name in scale.blocks:
        rates = [stats.mean_rate(met, name).cells() for met in meetings.values()]
        cost, minutes = f"{1000 * costs[name]:.2f} ms", trainings.mean_minutes(trained[name])
        rows.append([f"`{name}`", *rates[0], *rates[1], cost, str(equal_time[name]), minutes])
    interval = stats.interval_head(scale.seeds)
    heads = ["blocks", "equal simulations", interval, "equal time", interval]
    heads += ["cost of a move", "simulations at equal time", "minutes of training"]
    return Report(
        title="Strength by blocks",
        tables=[Table("Mean win rates against the other block strings", heads, rows)],
        data={
            "meetings": meetings,
            "seconds_a_move": costs,
            "simulations_at_equal_time": equal_time,
            "trainings": trained,
        },
    )


def block_variants(scale: BlocksScale, blocks: Sequence[str]) -> list[Variant]:
    """The scale's config with each of these block strings."""
    where = "blocks: config"
    base = trainings.base_config(scale, where=where)
    return [
        trainings.variant(each, base, {"network": {"blocks": each}}, where=where) for each in blocks
    ]


def move_costs(
    work: Work, variants: Sequence[Variant], trained: Mapping[str, Sequence[Trained]]
) -> dict[str, float]:
    """Seconds of a searched move of each variant's player, a batch of 64: the median of 7 calls,
    which the players make in turns, so that other work on the machine slows all of them."""
    simulations = work.scale.blocks.simulations
    runs = [trained[variant.name][0] for variant in variants]

    def measure() -> dict[str, float]:
        calls = []
        for variant, run in zip(variants, runs, strict=True):
            rules = variant.config.rules
            player = make_player(trainings.player_of(work, run, simulations), rules)
            states = broadcast_boards(jax.tree.map(np.asarray, initial_state(rules)), _BOARDS)
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

    settings = {"simulations": simulations, "machine": machine(), "runs": [*map(list, runs)]}
    return work.cached("costs-in-turns", settings, measure)
