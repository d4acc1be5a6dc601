"""How many actions should a player consider at its root, by its simulations? Matches of a player
with itself that considers more.

Each opening is played with both colours; intervals are Wilson's over games, of one training.
"""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

from train.experiments import lab
from train.experiments.tables import Table, estimate_of
from train.metrics.intervals import Curve, curves_figure


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page, after `python -m train run`."""

    players: tuple[str, ...] = ("pretrained:wallzero-4stone-v2", "search:runs/quickstart")
    """Networks."""
    considered: tuple[int, ...] = (2, 4, 8)
    """Actions that the first side considers; 0 for its own choice."""
    most: int = 16
    """Actions that the other side considers."""
    simulations: tuple[int, ...] = (4, 8, 16, 32, 64)
    """Numbers of simulations, of both sides."""
    games: int = 200
    """Games of each match."""
    opening_plies: int = 2


def main(work: lab.Lab) -> dict[str, Any]:
    """Play the matches."""
    scale = work.scale
    rows = []
    lines = {}
    for player in scale.players:
        lab.check_network(player)
    options = {"games": scale.games, "opening_plies": scale.opening_plies, "seed": scale.seed}
    sides = itertools.product(scale.players, scale.simulations, scale.considered)
    for player, simulations, actions in sides:
        if actions > simulations:
            continue
        name = f"{player}@{simulations}"
        first = f"{name}?considered={actions}" if actions else name
        counts = work.match(first, f"{name}?considered={scale.most}", **options)
        row = {"player": player, "simulations": simulations, "actions": actions, "games": counts}
        rows.append(row)
        label = f"{actions or 'own'} actions, {Path(player.partition(':')[2]).name}"
        lines.setdefault(label, {})[simulations] = estimate_of(counts)
    figure = curves_figure(
        [Curve(label, points) for label, points in lines.items()],
        title=f"Fewer considered actions against {scale.most}",
        x_label="simulations of both sides",
        y_label="win rate",
        level=0.5,
        is_log=True,
    )
    work.save_figure("considered", figure, caption="bands: 95 % intervals over games")
    columns = [["player", "player"], ["simulations", "simulations"], ["actions", "actions"]]
    columns += [["won, drawn, lost", "games", "counts"], ["% won", "games"]]
    return work.finish({"table": Table(f"Against {scale.most} actions", columns, rows)})


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
