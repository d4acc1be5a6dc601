"""Strength of residual, Transformer and walled blocks, trained on equal positions with the same
settings; players of the same seed meet at equal simulations, and at equal time: there the slowest
keeps its simulations, and the others get more by the measured cost of a move.

ResTNet (Wu, Wu, Shih, Ju, Wu, Table 1) matches six blocks of 256 channels, trained for GPU-days on
Go; these are a few blocks of a small network, trained in minutes on WallGo, so its figures cannot
be compared with ours.
"""

import dataclasses
import time
from typing import Any

import jax
import numpy as np

import train
import wallgo_jax
from train.experiments import lab
from train.experiments.tables import Table, rates_of

_BOARDS, _CALLS = 64, 7


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    blocks: tuple[str, ...] = ("RRR", "RTR", "WTW")
    """Block strings."""
    seeds: int = 3
    """Trainings of each."""
    config: str | None = None
    """TOML file of the run, whose blocks are set; the quickstart by default."""
    iterations: int = 30
    games: int = 60
    """Games of each two players of a seed."""
    simulations: int = 32
    opening_plies: int = 4


def main(work: lab.Lab) -> dict[str, Any]:
    """Train every block string on equal positions, and match all of them twice."""
    scale = work.scale
    configs = {
        blocks: train.make_config(
            scale.config, {"network.blocks": blocks}, iterations=scale.iterations
        )
        for blocks in scale.blocks
    }
    trained = work.train_all(configs, scale.seeds)
    names = {name: lab.player_of(runs[0], scale.simulations) for name, runs in trained.items()}
    costs = work.keep("costs", {"players": names}, lambda: move_costs(names))
    budgets = {
        name: max(1, round(scale.simulations * max(costs.values()) / cost))
        for name, cost in costs.items()
    }
    options = {"games": scale.games, "opening_plies": scale.opening_plies}
    meetings = {
        "equal": work.round_robin(trained, simulations=scale.simulations, **options),
        "time": work.round_robin(trained, simulations=budgets, **options),
    }
    rows = [
        {
            "blocks": f"`{name}`",
            **{
                kind: {"rates": rates_of(met, name), "games": scale.games}
                for kind, met in meetings.items()
            },
            "budget": budgets[name],
            "milliseconds": round(1000 * costs[name], 2),
            "minutes": round(float(np.mean([run["minutes"] for run in trained[name]])), 1),
        }
        for name in scale.blocks
    ]
    columns = [["blocks", "blocks"], ["equal simulations, % won", "equal"], ["equal time", "time"]]
    columns += [["simulations there", "budget"], ["milliseconds of a move", "milliseconds"]]
    columns += [["minutes of training", "minutes"]]
    return work.finish({"table": Table("Strength by blocks", columns, rows)}, meetings=meetings)


def move_costs(names: dict[str, str]) -> dict[str, float]:
    """Seconds of a searched move of each player, a batch of 64: the median of 7 calls, which the
    players make in turns, so that other work on the machine slows all of them."""
    calls = []
    for name in names.values():
        player = train.make_player(name)
        init = jax.jit(jax.vmap(wallgo_jax.make(player.rules).init))
        states = init(jax.random.split(jax.random.key(0), _BOARDS))
        player.act(states)  # compiles
        calls.append((player, states))
    times = np.zeros((_CALLS, len(calls)))
    for turn in range(_CALLS):
        for place, (player, states) in enumerate(calls):
            began = time.perf_counter()
            player.act(states, seed=turn)
            times[turn, place] = time.perf_counter() - began
    seconds = np.median(times, axis=0) / _BOARDS
    return dict(zip(names, seconds.tolist(), strict=True))


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
