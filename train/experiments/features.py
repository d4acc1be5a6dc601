"""Are more planes stronger? Plane sets trained with equal games and settings; players of one seed
meet in a round robin.

The paper trains WallZero's network for days on GPUs; its figures are win rates against the other
three sets; ours are against all other sets of the table and, where it has more, against the paper's
alone.
"""

import itertools
from collections.abc import Sequence

from train.experiments.lib import stats, trainings
from train.experiments.lib.pages import Picture, Report
from train.experiments.lib.stats import MatchCounts
from train.experiments.lib.work import Work
from train.metrics.intervals import Interval, intervals_figure
from train.runtime.display import Table
from wallgo_jax.game.rules import Rules, named

PAPER = {
    "wallzero-4stone": {"B": 0.1045, "BT": 0.2865, "BTR": 0.7888, "BTRH": 0.8202},
    "wallzero-empty": {"B": 0.1065, "BT": 0.2705, "BTR": 0.7943, "BTRH": 0.8287},
}
"""Mean win rates against the other three sets ("WallZero", Chen, Arjonilla, Wu, Wu, slide "Feature
Design Evaluation"), with residual blocks."""
_PAPER_SETS, _PAPER_BLOCK = ("B", "BT", "BTR", "BTRH"), "R"


def report(work: Work) -> Report:
    """Train every plane set with every block string, and match all of them."""
    scale, where = work.scale.features, "features: config"
    base = trainings.base_config(scale, where=where)
    networks = list(itertools.product(scale.blocks, scale.planes))
    variants = [
        trainings.variant(
            f"{planes}-{blocks}",
            base,
            {"network": {"planes": planes, "blocks": blocks}},
            where=where,
        )
        for blocks, planes in networks
    ]
    trained = trainings.train_all(work, variants, seeds=scale.seeds)
    meetings = trainings.round_robin(work, variants, trained, scale)
    tables = [_table(meetings, scale.planes, blocks, base.rules) for blocks in scale.blocks]
    interval = stats.interval_head(scale.seeds)
    if len(scale.blocks) > 1:
        heads = ("planes", "blocks", "mean win rate", interval)
        rows = [
            [f"`{planes}`", f"`{blocks}`", *stats.mean_rate(meetings, f"{planes}-{blocks}").cells()]
            for blocks, planes in networks
        ]
        tables.append(Table("All variants against all others", heads, rows))
    figure = intervals_figure(
        [
            Interval(
                f"{planes}, {blocks}",
                *stats.mean_rate(_among(meetings, scale.planes, blocks), f"{planes}-{blocks}")[:3],
            )
            for blocks, planes in networks
        ],
        title="Plane sets against the others with the same blocks",
        x_label=f"mean win rate, {interval.replace('95 %', '95 % intervals')}",
        middle=0.5,
        is_share=True,
    )
    return Report(
        title="Ablation of plane sets",
        tables=tables,
        pictures=[Picture("plane_sets", f"seeds: {scale.seeds}", figure)],
        data={"meetings": meetings, "trainings": trained, "paper": PAPER},
    )


def _among(meetings: Sequence[MatchCounts], sets: Sequence[str], blocks: str) -> list[MatchCounts]:
    """The meetings of variants that both have one of these plane sets and these blocks."""
    names = {f"{planes}-{blocks}" for planes in sets}
    return [each for each in meetings if {each.first, each.second} <= names]


def _table(
    meetings: Sequence[MatchCounts], sets: Sequence[str], blocks: str, rules: Rules
) -> Table:
    same = _among(meetings, sets, blocks)
    paper = next((PAPER[name] for name in PAPER if named(name) == rules), {})
    rows, has_more = [], set(_PAPER_SETS) < set(sets)
    for above, planes in zip(["", *sets], sets, strict=False):
        name = f"{planes}-{blocks}"
        step = stats.difference(same, name, f"{above}-{blocks}").points() if above else ""
        row = [f"`{planes}`", *stats.mean_rate(same, name).cells(), step]
        if has_more:
            among = _among(same, _PAPER_SETS, blocks)
            row += stats.mean_rate(among, name).cells() if planes in _PAPER_SETS else ["", ""]
        is_known = blocks == _PAPER_BLOCK and planes in paper
        rows.append([*row, stats.percent(paper[planes], 2) if is_known else ""])
    interval = stats.interval_head(len({each.seed for each in meetings}))
    heads = ["planes", "mean win rate", interval, "over the set above, points"]
    heads += ["against the paper's sets alone", interval] if has_more else []
    return Table(f"Blocks `{blocks}`: against the other sets", [*heads, "paper"], rows)
