"""What is a doubling of simulations worth? Matches of a player with itself at half of them.

Each opening is played with both colours; intervals are Wilson's over games, of one training.
"""

import dataclasses
import itertools
from typing import Any

from train.experiments import lab
from train.experiments.tables import Table, elo, estimate_of
from train.metrics.intervals import Curve, curves_figure


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    player: str = "pretrained:wallzero-4stone-v3"
    """A network."""
    simulations: tuple[int, ...] = (16, 32, 64, 128, 256, 512)
    """Each is matched with the next."""
    games: int = 200
    """Games of each match."""
    opening_plies: int = 2


def main(work: lab.Lab) -> dict[str, Any]:
    """Play the matches."""
    scale = work.scale
    rows = []
    points = {}
    lab.check_network(scale.player)
    options = {"games": scale.games, "opening_plies": scale.opening_plies, "seed": scale.seed}
    for less, more in itertools.pairwise(scale.simulations):
        counts = work.match(f"{scale.player}@{more}", f"{scale.player}@{less}", **options)
        rows.append({"match": f"{more} against {less}", "games": counts})
        found = estimate_of(counts)
        if 0 < found.mean < 1:
            points[more] = tuple(map(elo, found[:3]))
    figure = curves_figure(
        [Curve("", points)] if points else [],
        title=f"{scale.player} against itself with fewer simulations",
        x_label="simulations of the stronger side",
        y_label="Elo above the weaker side",
        level=0,
        is_log=True,
    )
    work.save_figure("doublings", figure, caption="band: 95 % intervals over games")
    columns = [["simulations", "match"], ["won, drawn, lost", "games", "counts"]]
    columns += [["% won", "games"], ["Elo", "games", "elo"]]
    return work.finish({"table": Table("Doublings of simulations", columns, rows)})


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
