"""Are more planes stronger? Plane sets trained with equal games and settings; players of one seed
meet in a round robin.

The paper trains WallZero's network for days on GPUs; its figures are win rates against the other
three sets ("WallZero", Chen, Arjonilla, Wu, Wu, slide "Feature Design Evaluation", four stones);
ours are against all other sets of the table.
"""

import dataclasses
import itertools
from typing import Any

import train
from train.experiments import lab
from train.experiments.tables import Table, gaps_of, rates_of

PAPER = {"B": 10.45, "BT": 28.65, "BTR": 78.88, "BTRH": 82.02}
"""Per cent, with residual blocks."""


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    planes: tuple[str, ...] = ("B", "BT", "BTR", "BTRH", "BTRD")
    """Plane sets."""
    blocks: tuple[str, ...] = ("R", "W")
    """Block strings, each with every plane set."""
    seeds: int = 3
    """Trainings of each network."""
    config: str | None = None
    """TOML file of the run, whose planes and blocks are set; the quickstart by default."""
    iterations: int = 30
    games: int = 60
    """Games of each two players of a seed."""
    simulations: int = 32
    opening_plies: int = 4


def main(work: lab.Lab) -> dict[str, Any]:
    """Train every plane set with every block string, and match those of equal blocks."""
    scale = work.scale
    tables = {}
    played = {}
    for blocks in scale.blocks:
        configs = {
            f"{planes}-{blocks}": train.make_config(
                scale.config,
                {"network.planes": planes, "network.blocks": blocks},
                iterations=scale.iterations,
            )
            for planes in scale.planes
        }
        meetings = work.round_robin(
            work.train_all(configs, scale.seeds),
            games=scale.games,
            simulations=scale.simulations,
            opening_plies=scale.opening_plies,
        )
        rows = []
        for above, planes in itertools.pairwise(("", *scale.planes)):
            name = f"{planes}-{blocks}"
            row = {"planes": f"`{planes}`", "paper": PAPER.get(planes, "")}
            row["rate"] = {"rates": rates_of(meetings, name), "games": scale.games}
            if above:
                row["step"] = {"gaps": gaps_of(meetings, name, f"{above}-{blocks}")}
            rows.append(row)
        columns = [["planes", "planes"], ["% won against the other sets", "rate"]]
        columns += [["over the set above, points", "step", "points"]]
        columns += [["the paper", "paper"]] if blocks == "R" else []
        tables[blocks] = Table(f"Blocks {blocks}", columns, rows)
        played[blocks] = meetings
    return work.finish(tables, meetings=played)


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
