"""Far corridors: what heads trained on frozen trunks know of them, by distance."""

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from train.analysis.probe import (
    BOARD,
    CELL,
    READS,
    UNTRAINED,
    Answers,
    ProbeResult,
    Questions,
    Trunk,
    add_answers,
    add_results,
    ask,
    draw_questions,
    load_trunk,
    trunk_features,
)
from train.players.names import read_network_name
from train.players.networks import network_config
from train.runtime.errors import UsageError
from train.study.frame.report import Picture, Report, Table, percent, percent_range
from train.study.frame.seeds import Estimate, estimate
from train.study.frame.variants import runs_of, train_all
from train.study.frame.work import Work
from train.study.scale.questions import CorridorsConfig
from train.study.trainings.blocks import block_variants
from wallgo_jax.game.rules import PRESETS

PAPER = {"residual network": 0.5915, "ResTNet": 0.8001}
"""Accuracy on ladders in Go ("ResTNet: Defense against Adversarial Policies via Transformer in
Computer Go", Wu, Wu, Shih, Ju, Wu)."""
_BINS = 5
_READ_AS = {CELL: "the queried cell", BOARD: "the cell and the board's means and maxima"}


class Group(NamedTuple):
    """Trainings of one trunk."""

    name: str
    trunks: list[Trunk]  # one a training; a single one where its weights are new

    @property
    def is_trained(self) -> bool:
        """Whether its weights are learned."""
        return self.trunks[0].variables is not None


class Asked(NamedTuple):
    """A group's answers to heads of one kind."""

    group: Group
    read: str
    answers: list[list[Answers]]  # a list of heads for each training, or for each new weights

    def mean(self, rate: Callable[[Answers], float]) -> Estimate:
        """The mean of a share over trainings, or over heads where there is one training alone."""
        shares = [[rate(each) for each in heads] for heads in self.answers]
        over = [statistics.fmean(each) for each in shares] if len(shares) > 1 else shares[0]
        return estimate(over, 0)  # at least two, so that nothing is counted but them

    @property
    def unit(self) -> str:
        """What its intervals are over."""
        trainings, heads = len(self.answers), len(self.answers[0])
        if not self.group.is_trained:
            return _count(trainings, "new weights", "new weights")
        if trainings > 1:
            return _count(trainings, "training", "trainings")
        return f"{_count(heads, 'head', 'heads')} of one training"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def report(work: Work) -> Report:
    """Train heads on every trunk and ask them."""
    scale = work.scale.corridors
    groups = [*_trained(work, scale), *_untrained(work, scale)]
    groups += _controls(groups)
    asked = ask_all(work, groups)
    bins = bins_of(add_answers(asked[0].answers[0]))
    return Report(
        title="Far corridors",
        text=_text(scale, asked),
        tables=[
            *(_table([each for each in asked if each.read == read], read) for read in READS),
            _distance_table([each for each in asked if each.read == BOARD], bins),
        ],
        pictures=[_picture(asked), _distance_picture(asked, bins)],
        data={
            "paper": PAPER,
            "trunks": [_record(each) for each in asked],
        },
    )


def _trained(work: Work, scale: CorridorsConfig) -> Iterator[Group]:
    """The named networks and the trainings of the topic `blocks`."""
    players = PRESETS[scale.rules].players
    by_config: dict[str, list[Trunk]] = {}
    known: dict[str, str] = {}  # names by their weights
    for name in scale.trunks:
        read = read_network_name(name)
        if read.has_budget:
            raise UsageError(f"study corridors: {name!r}: name a network without simulations")
        key = repr(dataclasses.replace(network_config(read), name="trunk", seed=0))
        trunk = load_trunk(name, players=players)
        if known.setdefault(trunk.digest, name) != name:
            twice = f"{known[trunk.digest]} and {name}"
            raise UsageError(f"study corridors: {twice} are the same weights: name one of them")
        by_config.setdefault(key, []).append(trunk)
    for trunks in by_config.values():
        yield Group(trunks[0].name, trunks)
    variants = block_variants(work.scale.blocks, scale.blocks)
    for blocks, runs in train_all(work, variants, seeds=work.scale.blocks.seeds).items():
        trunks = [load_trunk(str(runs_of(work) / run.run), players=players) for run in runs]
        yield Group(blocks, trunks)


def _untrained(work: Work, scale: CorridorsConfig) -> Iterator[Group]:
    for variant in block_variants(work.scale.blocks, scale.untrained):
        yield Group(variant.name, [Trunk(UNTRAINED, variant.config.network, None)])


def _controls(groups: Sequence[Group]) -> list[Group]:
    """New weights for each network that is asked trained alone."""
    found: list[Group] = []
    for group in groups:
        network = group.trunks[0].network
        if not any(
            network == other.trunks[0].network
            for other in (*groups, *found)
            if not other.is_trained
        ):
            found.append(Group(network.blocks, [Trunk(UNTRAINED, network, None)]))
    return found


def ask_all(work: Work, groups: Sequence[Group]) -> list[Asked]:
    """Train and ask the heads of each group, those that read the cell first; kept ones are read."""
    scale, drawn = work.scale.corridors, {}

    def questions_of(seed: int) -> Questions:
        if seed not in drawn:
            try:
                drawn[seed] = draw_questions(
                    PRESETS[scale.rules],
                    count_train=scale.questions,
                    count_test=scale.held_out,
                    min_distance=scale.min_distance,
                    seed=work.scale.seed + seed,
                )
            except ValueError as error:
                raise UsageError(f"study {error}") from None
        return drawn[seed]

    total = len(READS) * scale.heads * sum(len(group.trunks) for group in groups)
    found, done = [], 0
    with work.task("heads on frozen trunks", total, "heads") as on_progress:
        for read in READS:
            for group in groups:
                answers = []
                for trunk in group.trunks:
                    heads = []
                    for seed in range(scale.heads):
                        heads.append(_ask(work, trunk, questions_of, read=read, seed=seed))
                        done += 1
                        on_progress(done)
                    answers.append(heads)
                if not group.is_trained:
                    answers = [[each] for each in answers[0]]
                found.append(Asked(group, read, answers))
    return found


def _ask(
    work: Work, trunk: Trunk, questions_of: Callable[[int], Questions], *, read: str, seed: int
) -> Answers:
    scale = work.scale.corridors
    settings = {
        "network": dataclasses.asdict(trunk.network),
        "weights": trunk.digest,
        "rules": scale.rules,
        "questions": [scale.questions, scale.held_out, scale.min_distance],
        "read": read,
        "seed": work.scale.seed + seed,
    }

    def make() -> list[list[int]]:
        features_of = trunk_features(trunk, work.scale.seed + seed)
        answers = ask(features_of, questions_of(seed), read=read, seed=work.scale.seed + seed)
        return [[distance, *result] for distance, result in answers.items()]

    kept = work.pieces.keep(f"corridors-{read}-{seed}", settings, make)
    return {distance: ProbeResult(*counts) for distance, *counts in kept}


def bins_of(answers: Answers) -> list[tuple[int, int]]:
    """Ranges of distances, first and last, that hold about equally many positions."""
    ordered = np.repeat([*answers], [result.total for result in answers.values()])
    lasts = [int(part[-1]) for part in np.array_split(np.sort(ordered), _BINS)]
    lasts = sorted(set(lasts))
    firsts = [int(ordered.min()), *(last + 1 for last in lasts[:-1])]
    return list(zip(firsts, lasts, strict=True))


def _within(answers: Answers, first: int, last: int) -> ProbeResult:
    return add_results(answers[each] for each in answers if first <= each <= last)


def _accuracy(answers: Answers) -> float:
    return add_results(answers.values()).accuracy


def _unknown(answers: Answers) -> float:
    result = add_results(answers.values())
    return result.unknown / result.total


def _sign(answers: Answers) -> float:
    return add_results(answers.values()).sign_accuracy


def _table(found: Sequence[Asked], read: str) -> Table:
    rows = []
    for each in found:
        network = each.group.trunks[0].network
        cells = [_name(each.group), f"`{network.blocks}`", f"`{network.planes}`", each.unit]
        for rate in (_accuracy, _unknown, _sign):
            mean = each.mean(rate)
            cells += [f"{percent(mean.mean)} ({percent_range(mean.low, mean.high)})"]
        rows.append(tuple(cells))
    rows += [
        (f"paper's {name}, on ladders", "", "", "", percent(share, 2), "", "")
        for name, share in PAPER.items()
    ]
    heads = (
        "trunk",
        "blocks",
        "planes",
        "95 % over",
        "correct",
        "unknown",
        "right side of 0",
    )
    return Table(f"Heads that read {_READ_AS[read]}", heads, tuple(rows))


def _distance_table(found: Sequence[Asked], bins: Sequence[tuple[int, int]]) -> Table:
    rows = []
    for each in found:
        cells = [_name(each.group)]
        for first, last in bins:
            correct, unknown = (_mean_within(each, of, first, last) for of in _SHARES)
            cells.append(
                f"{percent(correct.mean)} ({percent_range(correct.low, correct.high)}), "
                f"{percent(unknown.mean)}"
            )
        rows.append(tuple(cells))
    heads = ("trunk", *(f"{first} to {last} steps" for first, last in bins))
    title = f"Correct and unknown by steps to the wall, heads that read {_READ_AS[BOARD]}"
    return Table(title, heads, tuple(rows))


_SHARES: tuple[Callable[[ProbeResult], float], ...] = (
    lambda result: result.accuracy,
    lambda result: result.unknown / max(result.total, 1),
)


def _mean_within(
    each: Asked, share: Callable[[ProbeResult], float], first: int, last: int
) -> Estimate:
    return each.mean(lambda answers: share(_within(answers, first, last)))


def _name(group: Group) -> str:
    return f"`{group.name}`" if group.is_trained else f"`{group.name}`, new weights"


def _text(scale: CorridorsConfig, asked: Sequence[Asked]) -> list[str]:
    lines = [
        "A question is whether a stone is still connected to an enemy, at least "
        f"{scale.min_distance} steps away down the corridors of a maze on `{scale.rules}`; the two "
        "positions of a pair differ in the place of one wall. Half of them are connected. The "
        f"trunk is frozen; a head with one hidden layer and a tanh learns from {scale.questions} "
        f"questions and is asked {scale.held_out}, whose corridors have shapes that it has not "
        "learned from. An output beyond ±0.5 answers; one within is unknown and counts as "
        "incorrect. Every head has questions of its own.",
        "Planes other than walls, such as territory and distances, show the position before that "
        "wall, so nothing but the place of the wall tells a pair apart. Heads that read the "
        "queried cell ask whether the trunk brought the answer there; those that read means and "
        "maxima of the board, too, whether it is anywhere.",
        "Intervals are Student's: over trainings, or where a trunk has one training alone, over "
        "heads, which does not tell how far another training would differ.",
        "The paper asks larger networks, trained for GPU-days, about ladders in Go: 59.15 % "
        "correct for a residual network, 80.01 % for ResTNet.",
    ]
    new = {
        (each.read, each.group.trunks[0].network): each.mean(_sign)
        for each in asked
        if not each.group.is_trained
    }
    for each in asked:
        if each.group.is_trained:
            mean, other = each.mean(_sign), new[each.read, each.group.trunks[0].network]
            is_apart = mean.low > other.high or mean.high < other.low
            than = ("better than" if mean.mean > other.mean else "worse than") if is_apart else "as"
            lines.append(
                f"Where heads read {_READ_AS[each.read]}, `{each.group.name}` is {than} new weights"
                f"{'' if is_apart else ', within the intervals'}: {percent(mean.mean)} against "
                f"{percent(other.mean)} on the right side of 0."
            )
    return lines


def _record(each: Asked) -> dict[str, Any]:
    network = each.group.trunks[0].network
    return {
        "trunk": each.group.name,
        "is_trained": each.group.is_trained,
        "network": dataclasses.asdict(network),
        "read": each.read,
        "unit": each.unit,
        "correct": each.mean(_accuracy)._asdict(),
        "unknown": each.mean(_unknown)._asdict(),
        "right_side": each.mean(_sign)._asdict(),
        "answers": [
            [{distance: result._asdict() for distance, result in head.items()} for head in heads]
            for heads in each.answers
        ],
    }


def _picture(asked: Sequence[Asked]) -> Picture:
    from train.metrics.intervals import Interval, intervals_figure

    rows = [
        Interval(f"{_name(each.group)}, {each.read}".replace("`", ""), *each.mean(_accuracy)[:3])
        for each in asked
    ]
    rows += [
        Interval(f"paper's {name}, ladders", share, share, share) for name, share in PAPER.items()
    ]
    figure = intervals_figure(
        rows,
        title="Answers about far corridors",
        x_label="correct answers, unknown ones count as incorrect; dashed: random ones",
        middle=0.5,
        is_share=True,
    )
    return Picture("corridors", "95 % intervals: over trainings, or heads of one training", figure)


def _distance_picture(asked: Sequence[Asked], bins: Sequence[tuple[int, int]]) -> Picture:
    """Correct and unknown answers by steps to the wall, of heads that read the board."""
    from train.metrics.plot_style import COLOURS, DASHED, GREY, INK, MARKS, new_figure, set_style

    figure = new_figure(size=(10, 4.6), dpi=120)
    found = [each for each in asked if each.read == BOARD]
    places = list(range(len(bins)))
    for side, (share, title) in enumerate(zip(_SHARES, ("correct", "unknown"), strict=True)):
        axes = figure.add_subplot(1, 2, side + 1)
        set_style(axes)
        axes.set_title(title, loc="left", fontsize=11, color=INK)
        axes.set_xlabel("steps from the queried stone to the wall", color=INK)
        colours = iter([(COLOURS[i % 6], MARKS[i % 6]) for i in range(len(found))])
        for each in found:
            means = [_mean_within(each, share, *ends) for ends in bins]
            middle = [mean.mean for mean in means]
            if not each.group.is_trained:
                axes.plot(places, middle, color=GREY, linewidth=1, linestyle=":")
                continue
            colour, mark = next(colours)
            low, high = [mean.low for mean in means], [mean.high for mean in means]
            axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
            label = each.group.name
            axes.plot(places, middle, color=colour, marker=mark, markersize=5, label=label)
        if side:
            axes.plot([], [], color=GREY, linewidth=1, linestyle=":", label="new weights")
            axes.legend(frameon=False, fontsize=8)
        if share is _SHARES[0]:
            axes.axhline(0.5, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
        axes.set_xticks(places, [f"{first} to {last}" for first, last in bins])
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    return Picture(
        "corridors-distance",
        "heads that read the board; bands: 95 % intervals; dashed: random answers",
        figure,
    )
