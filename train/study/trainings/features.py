"""Ablation of plane sets: equal games and settings, a round robin, each set's mean win rate."""

from collections.abc import Sequence
from typing import Any

from train.arena.match_programs import check_opening
from train.config import RunConfig, config_from_dict, config_to_dict
from train.runtime.errors import UsageError
from train.study.frame.report import Picture, Report, Table, percent, percent_range, points_range
from train.study.frame.seeds import count_of, interval_kind, interval_unit
from train.study.frame.variants import (
    Meeting,
    Variant,
    difference,
    mean_rate,
    round_robin,
    train_all,
)
from train.study.frame.weights import named_weights
from train.study.frame.work import Work
from train.study.scale.trainings import FeaturesConfig, TrainingsConfig
from wallgo_jax.game.rules import PRESETS, named

PAPER = {
    "wallzero-4stone": {"B": 0.1045, "BT": 0.2865, "BTR": 0.7888, "BTRH": 0.8202},
    "wallzero-empty": {"B": 0.1065, "BT": 0.2705, "BTR": 0.7943, "BTRH": 0.8287},
}
"""Mean win rates against the other three sets ("WallZero", Chen, Arjonilla, Wu, Wu, slide "Feature
Design Evaluation")."""
PAPER_SETS = ("B", "BT", "BTR", "BTRH")
_PAPER_BLOCK = "R"


def report(work: Work) -> Report:
    """Train every plane set with every block string, and let all of them meet."""
    scale = work.scale.features
    base = base_config(scale, where="study features: config")
    known_by = named_weights(base) or None
    variants = [
        Variant(
            f"{planes}-{blocks}",
            _with_network(base, planes=planes, blocks=blocks),
            made_by=known_by,
        )
        for blocks in scale.blocks
        for planes in scale.planes
    ]
    trained = train_all(work, variants, seeds=scale.seeds)
    meetings = round_robin(
        work,
        variants,
        trained,
        games=scale.games,
        simulations={variant.name: scale.simulations for variant in variants},
        opening_plies=scale.opening_plies,
    )
    tables = [_mean_table(scale, meetings, blocks, base) for blocks in scale.blocks]
    if len(scale.blocks) > 1:
        tables.append(_all_table(scale, variants, meetings))
    games = {name: [run.games for run in runs] for name, runs in trained.items()}
    return Report(
        title="Ablation of plane sets",
        text=_text(scale, meetings, base),
        tables=tables,
        pictures=[_picture(scale, meetings)],
        data={
            "meetings": [meeting._asdict() for meeting in meetings],
            "games": games,
            "seconds": {name: [run.seconds for run in runs] for name, runs in trained.items()},
            "paper": PAPER,
        },
    )


def base_config(scale: TrainingsConfig, *, where: str) -> RunConfig:
    """The run's config that all variants share.

    Raises:
      UsageError: a key or a value is not allowed.
    """
    fields: dict[str, Any] = config_to_dict(RunConfig())
    for key, value in scale.config.items():
        inner = fields.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            fields[key] = {**inner, **value}
        else:
            fields[key] = value
    return config_for_matches(fields, scale, where=where)


def config_for_matches(fields: Any, scale: TrainingsConfig, *, where: str) -> RunConfig:
    """A run's config whose players can meet as the scale says.

    Raises:
      UsageError: a key or a value is not allowed.
    """
    config = config_from_dict(fields, where=where)
    if config.rules.players != 2:
        raise UsageError(f"{where}: rules must be for two players, who meet in matches")
    try:
        check_opening(config.rules, scale.opening_plies)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return config


def _with_network(config: RunConfig, **changes: Any) -> RunConfig:
    fields = config_to_dict(config)
    fields["network"] |= changes
    return config_from_dict(fields, where="study features")


def _among(meetings: list[Meeting], blocks: str) -> list[Meeting]:
    """The meetings of variants that both have these blocks."""
    return [
        each
        for each in meetings
        if each.first.endswith(f"-{blocks}") and each.second.endswith(f"-{blocks}")
    ]


def _mean_table(
    scale: FeaturesConfig, meetings: list[Meeting], blocks: str, base: RunConfig
) -> Table:
    own = _among(meetings, blocks)
    paper = next((PAPER[name] for name in PAPER if named(name) == base.rules), {})
    alike = _of_planes(own, blocks, PAPER_SETS) if set(PAPER_SETS) < set(scale.planes) else []
    rows = []
    for place, planes in enumerate(scale.planes):
        name = f"{planes}-{blocks}"
        mean = mean_rate(own, name)
        step = ""
        if place:
            gap = difference(own, name, f"{scale.planes[place - 1]}-{blocks}")
            step = f"{100 * gap.mean:+.1f}{points_range(gap.low, gap.high)}"
        cells = [f"`{planes}`", percent(mean.mean), percent_range(mean.low, mean.high), step]
        if alike:
            among = mean_rate(alike, name) if planes in PAPER_SETS else None
            cells += ["", ""]
            if among is not None:
                cells[-2:] = [percent(among.mean), percent_range(among.low, among.high)]
        told = percent(paper[planes], 2) if blocks == _PAPER_BLOCK and planes in paper else ""
        rows.append((*cells, told))
    interval = f"95 % {interval_unit(scale.seeds)}"
    heads = ["planes", "mean win rate", interval, "over the set above, points"]
    if alike:
        heads += ["against the paper's sets alone", interval]
    title = f"Blocks `{blocks}`: against the other sets"
    return Table(title, (*heads, "paper"), tuple(rows))


def _of_planes(meetings: list[Meeting], blocks: str, planes: Sequence[str]) -> list[Meeting]:
    """The meetings in which both have one of these plane sets."""
    names = {f"{each}-{blocks}" for each in planes}
    return [each for each in meetings if {each.first, each.second} <= names]


def _all_table(scale: FeaturesConfig, variants: list[Variant], meetings: list[Meeting]) -> Table:
    rows = []
    for variant in variants:
        mean = mean_rate(meetings, variant.name)
        rows.append(
            (
                f"`{variant.config.network.planes}`",
                f"`{variant.config.network.blocks}`",
                percent(mean.mean),
                percent_range(mean.low, mean.high),
            )
        )
    heads = ("planes", "blocks", "mean win rate", f"95 % {interval_unit(scale.seeds)}")
    return Table("All variants against all others", heads, tuple(rows))


def _text(scale: FeaturesConfig, meetings: list[Meeting], base: RunConfig) -> list[str]:
    preset = next((name for name in PRESETS if named(name) == base.rules), "rules of one's own")
    lines = [
        f"Each set was trained with {count_of(scale.seeds)} on `{preset}` for {base.iterations} "
        "iterations with the same games and settings; players of one seed met, "
        f"{scale.games} games a pair at {scale.simulations} simulations from "
        f"{scale.opening_plies} random plies. Intervals are {interval_kind(scale.seeds)}.",
        "The paper trains WallZero's network for days on GPUs; its figures are win rates against "
        "the other three sets; ours are against all other sets of the table and, where it has "
        "more, against the paper's alone.",
    ]
    for blocks in scale.blocks:
        own = _among(meetings, blocks)
        for lower, higher in (("B", "BT"), ("BT", "BTR"), ("BTR", "BTRH")):
            if {lower, higher} <= set(scale.planes) and scale.seeds > 1:
                gap = difference(own, f"{higher}-{blocks}", f"{lower}-{blocks}")
                word = "agrees" if gap.low > 0 else "does not" if gap.high < 0 else "is open"
                lines.append(
                    f"Blocks `{blocks}`: that `{higher}` is stronger than `{lower}`, as in the "
                    f"paper, {word} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f} points)."
                )
    return lines


def _picture(scale: FeaturesConfig, meetings: list[Meeting]) -> Picture:
    from train.metrics.intervals import Interval, intervals_figure

    rows = []
    for blocks in scale.blocks:
        own = _among(meetings, blocks)
        for planes in scale.planes:
            mean = mean_rate(own, f"{planes}-{blocks}")
            rows.append(Interval(f"{planes}, {blocks}", mean.mean, mean.low, mean.high))
    figure = intervals_figure(
        rows,
        title="Plane sets against the others with the same blocks",
        x_label=f"mean win rate, 95 % intervals {interval_unit(scale.seeds)}",
        middle=0.5,
        is_share=True,
    )
    return Picture("plane_sets", count_of(scale.seeds), figure)
