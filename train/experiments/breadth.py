"""How many actions should self-play consider at its roots, by its simulations? Trainings with equal
games and steps, each matched once with the same opponent.

`considered` asks the same of players. Intervals are Student's over seeds; gaps are between
trainings of one seed.
"""

import dataclasses
import itertools
from typing import Any

import numpy as np

import train
from train.experiments import lab
from train.experiments.tables import Table, estimate_of, rate
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


def main(work: lab.Lab) -> dict[str, Any]:
    """Train and match each, seed by seed."""
    scale = work.scale
    cells = [
        (simulations, actions)
        for simulations, actions in itertools.product(scale.simulations, scale.considered)
        if actions <= simulations
    ]
    if not cells:
        raise UsageError("breadth: all numbers of considered actions are above the simulations")
    configs = {
        (simulations, actions): train.make_config(
            scale.config,
            {"search.simulations": simulations, "search.max_considered_actions": actions},
        )
        for simulations, actions in cells
    }
    options = {
        "rules": configs[cells[0]].rules,
        "games": scale.games,
        "opening_plies": scale.opening_plies,
        "players_place": True,
        "seed": scale.seed,
    }
    found: dict[tuple[int, int], list[dict[str, Any]]] = {each: [] for each in cells}
    for seed, each in itertools.product(range(scale.seeds), cells):
        name = f"breadth-{each[0]}x{each[1]}-seed{seed}"
        trained = work.train(name, dataclasses.replace(configs[each], seed=seed))
        player = lab.player_of(trained, scale.player_simulations)
        counts = work.match(player, scale.opponent, **options)
        found[each].append(trained | {"counts": counts})
    rows, curves = [], {}
    gaps: dict[int, list[float]] = {}
    for each, trained in found.items():
        simulations, actions = each
        most = max(other for same, other in cells if same == simulations)
        games = {key: [one["counts"][key] for one in trained] for key in ("won", "drawn", "lost")}
        row = {"simulations": simulations, "actions": actions, "games": games}
        row["evaluations"] = f"{np.mean([one['evaluations'] for one in trained]) / 1e6:.2f}"
        if actions < most:
            pairs = zip(trained, found[simulations, most], strict=True)
            below = [rate(one["counts"]) - rate(other["counts"]) for one, other in pairs]
            row["gap"] = {"gaps": below}
            gaps.setdefault(actions, []).extend(below)
        rows.append(row)
        curves.setdefault(f"{simulations} simulations", {})[actions] = estimate_of(games)
    figure = curves_figure(
        [Curve(label, points) for label, points in curves.items()],
        title="Actions that self-play considers",
        x_label="considered actions in training",
        y_label=f"win rate against {scale.opponent}",
        is_log=True,
    )
    caption = f"{scale.seeds} trainings each; bands: 95 % intervals over seeds"
    work.save_figure("breadth", figure, caption=caption)
    columns = [["simulations", "simulations"], ["considered", "actions"]]
    columns += [["million evaluations", "evaluations"], ["won, drawn, lost", "games", "counts"]]
    columns += [["% won", "games"], ["over the most considered, points", "gap", "points"]]
    pooled = [
        {"actions": actions, "pairs": len(below), "gap": {"gaps": below}}
        for actions, below in sorted(gaps.items())
    ]
    pairs = [["considered", "actions"], ["pairs of trainings", "pairs"]]
    pairs += [["over the most considered, points", "gap", "points"]]
    tables = {
        "table": Table("Trained with each", columns, rows),
        "pairs": Table("Fewer considered actions, all simulations together", pairs, pooled),
    }
    return work.finish(tables)


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
