"""How many actions should self-play consider at its roots, by its simulations? Trainings with equal
games and steps, each matched once with the same opponent.

`considered` asks the same of players. Intervals are Student's over seeds; gaps are between
trainings of one seed.
"""

import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np

import train
from train.experiments import lab
from train.experiments.tables import Estimate, Table, estimate_of, rate
from train.metrics.intervals import Curve, curves_figure
from train.runtime.errors import UsageError


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    config: str = "docs/results/data/speedrun/plain11/config.toml"
    """TOML file of the run, whose simulations and considered actions are set."""
    considered: tuple[int, ...] = (2, 4, 8, 16, 32)
    """Actions that self-play considers; more than its simulations are left out."""
    simulations: tuple[int, ...] = (8, 16, 32)
    """Simulations of self-play's full searches."""
    seeds: int = 3
    """Trainings of each."""
    opponent: str = "heuristic-search:wjx@64"
    games: int = 400
    """Games of each match. The players place the stones."""
    player_simulations: int = 64
    """Simulations of the trained player in its match."""
    opening_plies: int = 4
    """Random plies after the placements."""


class Cell(NamedTuple):
    """What self-play searches with."""

    simulations: int
    actions: int


Results = dict[Cell, list[dict[str, Any]]]
"""By cell and seed: the training, and `counts` of its match."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Train and match each cell, seed by seed."""
    scale = work.scale
    configs = {
        cell: train.make_config(
            scale.config,
            {
                "search.simulations": cell.simulations,
                "search.max_considered_actions": cell.actions,
            },
        )
        for cell in itertools.starmap(Cell, itertools.product(scale.simulations, scale.considered))
        if cell.actions <= cell.simulations
    }
    if not configs:
        raise UsageError("breadth: all numbers of considered actions are above the simulations")
    results: Results = {cell: [] for cell in configs}
    for seed in range(scale.seeds):
        for cell, config in configs.items():
            name = f"breadth-{cell.simulations}x{cell.actions}-seed{seed}"
            trained = work.train(name, dataclasses.replace(config, seed=seed))
            counts = work.match(
                lab.player_of(trained, scale.player_simulations),
                scale.opponent,
                rules=config.rules,
                games=scale.games,
                opening_plies=scale.opening_plies,
                players_place=True,
                seed=scale.seed,
            )
            results[cell].append(trained | {"counts": counts})
    _draw(work, results)
    return work.finish({"table": _by_cell(results), "pairs": _pooled(results)})


def _games(trained: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Counts by seed."""
    return {key: [each["counts"][key] for each in trained] for key in ("won", "drawn", "lost")}


def _gaps(results: Results, cell: Cell) -> list[float]:
    """By seed, the win rate over that of the most considered actions with equal simulations; empty
    for these themselves."""
    most = max(other for other in results if other.simulations == cell.simulations)
    if cell == most:
        return []
    pairs = zip(results[cell], results[most], strict=True)
    return [rate(each["counts"]) - rate(other["counts"]) for each, other in pairs]


def _by_cell(results: Results) -> Table:
    rows = []
    for cell, trained in results.items():
        evaluations = np.mean([each["evaluations"] for each in trained])
        row: dict[str, Any] = {"simulations": cell.simulations, "actions": cell.actions}
        row["games"] = _games(trained)
        row["evaluations"] = f"{evaluations / 1e6:.2f}"
        if gaps := _gaps(results, cell):
            row["gap"] = {"gaps": gaps}
        rows.append(row)
    columns = [["simulations", "simulations"], ["considered", "actions"]]
    columns += [["million evaluations", "evaluations"], ["won, drawn, lost", "games", "counts"]]
    columns += [["% won", "games"], ["over the most considered, points", "gap", "points"]]
    return Table("Trained with each", columns, rows)


def _pooled(results: Results) -> Table:
    by_actions: dict[int, list[float]] = {}
    for cell in results:
        if gaps := _gaps(results, cell):
            by_actions.setdefault(cell.actions, []).extend(gaps)
    rows = [
        {"actions": actions, "pairs": len(gaps), "gap": {"gaps": gaps}}
        for actions, gaps in sorted(by_actions.items())
    ]
    columns = [["considered", "actions"], ["pairs of trainings", "pairs"]]
    columns += [["over the most considered, points", "gap", "points"]]
    return Table("Fewer considered actions, all simulations together", columns, rows)


def _draw(work: lab.Lab, results: Results) -> None:
    """Draw win rates over considered actions, a line for each number of simulations."""
    curves: dict[int, dict[int, Estimate]] = {}
    for cell, trained in results.items():
        found = estimate_of(_games(trained))
        curves.setdefault(cell.simulations, {})[cell.actions] = found
    figure = curves_figure(
        [Curve(f"{simulations} simulations", points) for simulations, points in curves.items()],
        title="Actions that self-play considers",
        x_label="considered actions in training",
        y_label=f"win rate against {work.scale.opponent}",
        is_log=True,
    )
    caption = f"{work.scale.seeds} trainings each; bands: 95 % intervals over seeds"
    work.save_figure("breadth", figure, caption=caption)


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
