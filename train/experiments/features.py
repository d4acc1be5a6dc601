"""Are more planes stronger? Plane sets trained with equal games and settings; players of one seed
meet in a round robin.

The paper trains WallZero's network for days on GPUs; its figures are win rates against the other
three sets; ours are against all other sets of the table and, where it has more, against the paper's
alone.
"""

from collections.abc import Sequence

from train.config import RunConfig
from train.experiments.lib import pages, stats, trainings
from train.experiments.lib.pages import Report, Table
from train.experiments.lib.stats import MatchCounts
from train.experiments.lib.work import Work
from train.experiments.scales import FeaturesScale
from wallgo_jax.game.rules import PRESETS, named

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
    networks = [{"planes": p, "blocks": blocks} for blocks in scale.blocks for p in scale.planes]
    variants = [
        trainings.variant(_name(**network), base, {"network": network}, where=where)
        for network in networks
    ]
    trained = trainings.train_all(work, variants, seeds=scale.seeds)
    meetings = trainings.round_robin(work, variants, trained, scale)
    tables = [_table(scale, meetings, blocks, base) for blocks in scale.blocks]
    interval = stats.interval_head(scale.seeds)
    rates = {(n["planes"], n["blocks"]): stats.mean_rate(meetings, _name(**n)) for n in networks}
    if len(scale.blocks) > 1:
        heads = ("planes", "blocks", "mean win rate", interval)
        rows = [[f"`{key[0]}`", f"`{key[1]}`", *rate.cells()] for key, rate in rates.items()]
        tables.append(Table("All variants against all others", heads, rows))
    among = {
        f"{p}, {blocks}": stats.mean_rate(_among(meetings, scale.planes, blocks), _name(p, blocks))
        for p, blocks in rates
    }
    figure = pages.rates_figure(
        among,
        title="Plane sets against the others with the same blocks",
        x_label=f"mean win rate, {interval.replace('95 %', '95 % intervals')}",
    )
    preset = next((name for name in PRESETS if named(name) == base.rules), "other rules")
    summary = (
        f"Each set was trained with {stats.count_of(scale.seeds)} on `{preset}` for "
        f"{base.iterations} iterations; {scale.games} games a pair at {scale.simulations} "
        f"simulations from {scale.opening_plies} random plies. "
        f"Intervals are {stats.interval_kind(scale.seeds)}."
    )
    return Report(
        title="Ablation of plane sets",
        text=[*pages.paragraphs(__doc__), summary],
        tables=tables,
        pictures=[pages.Picture("plane_sets", stats.count_of(scale.seeds), figure)],
        data={"meetings": meetings, "trainings": trained, "paper": PAPER},
    )


def _name(planes: str, blocks: str) -> str:
    return f"{planes}-{blocks}"


def _among(meetings: Sequence[MatchCounts], sets: Sequence[str], blocks: str) -> list[MatchCounts]:
    """The meetings of variants that both have one of these plane sets and these blocks."""
    names = {_name(planes, blocks) for planes in sets}
    return [each for each in meetings if {each.first, each.second} <= names]


def _table(
    scale: FeaturesScale, meetings: Sequence[MatchCounts], blocks: str, base: RunConfig
) -> Table:
    same = _among(meetings, scale.planes, blocks)
    paper = next((PAPER[name] for name in PAPER if named(name) == base.rules), {})
    has_more = set(_PAPER_SETS) < set(scale.planes)
    rows = []
    for place, planes in enumerate(scale.planes):
        name, step = _name(planes, blocks), ""
        if place:
            step = stats.difference(same, name, _name(scale.planes[place - 1], blocks)).points()
        row = [f"`{planes}`", *stats.mean_rate(same, name).cells(), step]
        if has_more:
            among = _among(same, _PAPER_SETS, blocks)
            row += stats.mean_rate(among, name).cells() if planes in _PAPER_SETS else ["", ""]
        is_known = blocks == _PAPER_BLOCK and planes in paper
        rows.append([*row, stats.percent(paper[planes], 2) if is_known else ""])
    interval = stats.interval_head(scale.seeds)
    heads = ["planes", "mean win rate", interval, "over the set above, points"]
    heads += ["against the paper's sets alone", interval] if has_more else []
    return Table(f"Blocks `{blocks}`: against the other sets", [*heads, "paper"], rows)
