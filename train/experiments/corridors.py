"""Far corridors: heads are trained on frozen trunks and asked, by distance, what the trunks know.

Planes other than walls, such as territory and distances, show the position before the last wall, so
only the place of that wall distinguishes a pair. Heads that read the queried cell ask whether
the trunk brought the answer there; those that read means and maxima of the board, too, whether it
is anywhere.

Intervals are Student's: over trainings, or where a trunk has one training alone, over heads, which
does not say how far another training would differ.

The paper asks larger networks, trained for GPU-days, about ladders in Go: 59.15 % correct for a
residual network, 80.01 % for ResTNet.
"""

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from train.experiments.blocks import block_variants
from train.experiments.lib import pages, stats, trainings
from train.experiments.lib.pages import Picture, Report, Table
from train.experiments.lib.stats import Estimate
from train.experiments.lib.work import Work, check_without_budget
from train.experiments.probe import (
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
from train.experiments.scales import CorridorsScale
from train.metrics.intervals import Curve, curves_figure
from train.players.names import read_network_name
from train.players.networks import network_config
from train.runtime.errors import UsageError
from train.runtime.files import plain_data
from wallgo_jax.game.rules import PRESETS, Rules

PAPER = {"residual network": 0.5915, "ResTNet": 0.8001}
"""Accuracy on ladders in Go ("ResTNet: Defense against Adversarial Policies via Transformer in
Computer Go", Wu, Wu, Shih, Ju, Wu)."""
_BINS = 5
_READ_AS = {CELL: "the queried cell", BOARD: "the cell and the board's means and maxima"}
Share = Callable[[ProbeResult], float]
_CORRECT: Share = attrgetter("accuracy")
_UNKNOWN: Share = attrgetter("unknown_share")
_SIGN: Share = attrgetter("sign_accuracy")


class TrunkGroup(NamedTuple):
    """Trainings of one trunk."""

    name: str
    trunks: list[Trunk]  # one a training; a single one where its weights are new

    @property
    def is_trained(self) -> bool:
        """Whether its weights are learned."""
        return self.trunks[0].variables is not None

    @property
    def label(self) -> str:
        """Its name in tables."""
        return f"`{self.name}`" if self.is_trained else f"`{self.name}`, new weights"


class TrunkAnswers(NamedTuple):
    """A group's answers to heads of one kind."""

    group: TrunkGroup
    read: str
    answers: list[list[Answers]]  # a list of heads for each training, or for each new weights

    def mean(self, share: Share, *, within: tuple[int, int] = (0, 10**9)) -> Estimate:
        """The mean of a share over trainings, or over heads where there is one training alone;
        within a range of distances, first and last."""

        def of(head: Answers) -> ProbeResult:
            return add_results(head[d] for d in head if within[0] <= d <= within[1])

        counts = [[of(head) for head in heads] for heads in self.answers]
        shares = [statistics.fmean(map(share, each)) for each in counts]
        over = shares if len(shares) > 1 else [*map(share, counts[0])]
        return stats.over_seeds(over, counts[0][0].total)

    @property
    def unit(self) -> str:
        """The unit of its intervals."""
        trainings, heads = len(self.answers), len(self.answers[0])
        if not self.group.is_trained:
            return f"{trainings} new weights"
        if trainings > 1:
            return f"{trainings} trainings"
        return f"{heads} head{'' if heads == 1 else 's'} of one training"


def report(work: Work) -> Report:
    """Train heads on every trunk and ask them."""
    scale = work.scale.corridors
    groups = [*trained_groups(work), *_untrained(work)]
    groups += controls_of(groups)
    results = _ask_all(work, groups)
    bins = bins_of(add_answers(results[0].answers[0]))
    by_board = [each for each in results if each.read == BOARD]
    tables = [_table([each for each in results if each.read == read], read) for read in READS]
    pictures = [_picture(results)]
    pictures += [_distance_picture(by_board, bins, *each) for each in _SHOWN]
    return Report(
        title="Far corridors",
        text=_text(scale, results),
        tables=[*tables, _distance_table(by_board, bins, BOARD)],
        pictures=pictures,
        data={"paper": PAPER, "trunks": [trunk_record(each) for each in results]},
    )


def probe_runs(
    players: Sequence[str],
    rules: Rules,
    *,
    count_train: int,
    count_test: int,
    seeds: Sequence[int] = (0, 1, 2),
    min_distance: int,
    read: str = BOARD,
) -> list[TrunkAnswers]:
    """Ask the networks of trained players, then new weights for each shape of trunk; every trunk
    gets the same questions.

    Args:
      players: their names, see `train.players.names`.
      rules: of the positions, see `train.experiments.corridor_positions`.
      count_train: questions that a head learns from, for each seed.
      count_test: questions that it is asked, for each seed.
      seeds: each seed draws both sets, the heads' first weights, and the untrained trunks.
      min_distance: least steps to the nearest enemy.
      read: what a head reads, one of READS.

    Raises:
      UsageError: a network cannot be read or asked, there is no player or no seed, or one twice.
      ValueError: see `make_corridors`.
    """
    if not players or not seeds:
        raise UsageError("probe: name at least one trained player and one seed")
    if len({*seeds}) < len(seeds):  # the same answers, counted twice, would narrow the interval
        raise UsageError(f"probe: seeds {', '.join(map(str, seeds))}: a seed is named twice")
    trunks = [load_trunk(player, players=rules.players) for player in players]
    groups = [TrunkGroup(trunk.name, [trunk]) for trunk in trunks]
    groups += controls_of(groups)
    answers: list[list[Answers]] = [[] for _ in groups]
    sizes = {"count_train": count_train, "count_test": count_test, "min_distance": min_distance}
    for seed in seeds:
        questions = draw_questions(rules, **sizes, seed=seed)
        for group, of_group in zip(groups, answers, strict=True):
            features = trunk_features(group.trunks[0], seed)
            of_group.append(ask(features, questions, read=read, seed=seed))
    return [
        TrunkAnswers(group, read, [each] if group.is_trained else [[head] for head in each])
        for group, each in zip(groups, answers, strict=True)
    ]


def probe_tables(results: Sequence[TrunkAnswers], *, caption: str = "") -> tuple[Table, Table]:
    """The answers of all trunks, and those by steps to the wall."""
    bins = bins_of(add_answers(results[0].answers[0]))
    read = results[0].read
    return _table(results, read)._replace(caption=caption), _distance_table(results, bins, read)


def trunk_record(each: TrunkAnswers) -> dict[str, Any]:
    """A trunk's answers as JSON-ready figures."""
    shares = {"correct": _CORRECT, "unknown": _UNKNOWN, "right_side": _SIGN}
    return {
        "trunk": each.group.name,
        "is_trained": each.group.is_trained,
        "network": dataclasses.asdict(each.group.trunks[0].network),
        "read": each.read,
        "unit": each.unit,
        "answers": plain_data(each.answers),
        **{name: plain_data(each.mean(share)) for name, share in shares.items()},
    }


def trained_groups(work: Work) -> Iterator[TrunkGroup]:
    """The named networks and the trainings of the experiment `blocks`."""
    scale = work.scale.corridors
    players = PRESETS[scale.rules].players
    by_config: dict[str, list[Trunk]] = {}
    known: dict[str, str] = {}  # names by their weights
    for name in scale.trunks:
        check_without_budget(name)
        config = network_config(read_network_name(name))
        trunk = load_trunk(name, players=players)
        if known.setdefault(trunk.digest, name) != name:
            twice = f"{known[trunk.digest]} and {name}"
            raise UsageError(f"corridors: {twice} are the same weights: name one of them")
        key = repr(dataclasses.replace(config, name="trunk", seed=0))
        by_config.setdefault(key, []).append(trunk)
    for trunks in by_config.values():
        yield TrunkGroup(trunks[0].name, trunks)
    variants = block_variants(work.scale.blocks, scale.blocks)
    for blocks, runs in trainings.train_all(work, variants, seeds=work.scale.blocks.seeds).items():
        yield TrunkGroup(
            blocks, [load_trunk(str(work.runs / run.run), players=players) for run in runs]
        )


def _untrained(work: Work) -> Iterator[TrunkGroup]:
    for variant in block_variants(work.scale.blocks, work.scale.corridors.untrained):
        yield TrunkGroup(variant.name, [Trunk(UNTRAINED, variant.config.network, None)])


def controls_of(groups: Sequence[TrunkGroup]) -> list[TrunkGroup]:
    """New weights for each network that is asked trained alone."""
    controls: list[TrunkGroup] = []
    for group in groups:
        network = group.trunks[0].network
        new = [each for each in (*groups, *controls) if not each.is_trained]
        if all(network != each.trunks[0].network for each in new):
            controls.append(TrunkGroup(network.blocks, [Trunk(UNTRAINED, network, None)]))
    return controls


def _ask_all(work: Work, groups: Sequence[TrunkGroup]) -> list[TrunkAnswers]:
    """Train and ask the heads of each group, those that read the cell first."""
    scale, drawn = work.scale.corridors, {}

    def questions_of(seed: int) -> Questions:
        if seed not in drawn:
            try:
                drawn[seed] = draw_questions(
                    PRESETS[scale.rules],
                    count_train=scale.questions,
                    count_test=scale.held_out,
                    min_distance=scale.min_distance,
                    seed=seed,
                )
            except ValueError as error:
                raise UsageError(str(error)) from None
        return drawn[seed]

    total = len(READS) * scale.heads * sum(len(group.trunks) for group in groups)
    results, done = [], 0
    with work.task("heads on frozen trunks", total, "heads") as on_progress:
        for read in READS:
            for group in groups:
                answers: list[list[Answers]] = []
                for trunk in group.trunks:
                    answers.append([])
                    for head in range(scale.heads):
                        answers[-1].append(_ask(work, trunk, questions_of, read=read, head=head))
                        done += 1
                        on_progress(done)
                if not group.is_trained:
                    answers = [[each] for each in answers[0]]
                results.append(TrunkAnswers(group, read, answers))
    return results


def _ask(
    work: Work, trunk: Trunk, questions_of: Callable[[int], Questions], *, read: str, head: int
) -> Answers:
    scale, seed = work.scale.corridors, work.seed + head
    settings = {
        "network": dataclasses.asdict(trunk.network),
        "weights": trunk.digest,
        "rules": scale.rules,
        "questions": [scale.questions, scale.held_out, scale.min_distance],
        "read": read,
        "seed": seed,
    }

    def make() -> list[list[int]]:
        answers = ask(trunk_features(trunk, seed), questions_of(seed), read=read, seed=seed)
        return [[distance, *result] for distance, result in answers.items()]

    rows = work.cache.cached(f"corridors-{read}-{head}", settings, make)
    return {distance: ProbeResult(*counts) for distance, *counts in rows}


def bins_of(answers: Answers) -> list[tuple[int, int]]:
    """Ranges of distances, first and last, that hold about equally many positions."""
    ordered = np.repeat([*answers], [result.total for result in answers.values()])
    lasts = sorted({int(part[-1]) for part in np.array_split(np.sort(ordered), _BINS)})
    firsts = [int(ordered.min()), *(last + 1 for last in lasts[:-1])]
    return list(zip(firsts, lasts, strict=True))


def _with_ends(mean: Estimate) -> str:
    return "{} ({})".format(*mean.cells())


def _table(results: Sequence[TrunkAnswers], read: str) -> Table:
    rows = []
    for each in results:
        network = each.group.trunks[0].network
        means = [_with_ends(each.mean(share)) for share in (_CORRECT, _UNKNOWN, _SIGN)]
        rows.append(
            [each.group.label, f"`{network.blocks}`", f"`{network.planes}`", each.unit, *means]
        )
    rows += [
        [f"paper's {name}, on ladders", "", "", "", stats.percent(share, 2), "", ""]
        for name, share in PAPER.items()
    ]
    heads = ["trunk", "blocks", "planes", "95 % over", "correct", "unknown", "right side of 0"]
    return Table(f"Heads that read {_READ_AS[read]}", heads, rows)


def _distance_table(
    results: Sequence[TrunkAnswers], bins: Sequence[tuple[int, int]], read: str
) -> Table:
    rows = []
    for each in results:
        cells = [
            f"{_with_ends(each.mean(_CORRECT, within=ends))}, "
            f"{stats.percent(each.mean(_UNKNOWN, within=ends).mean)}"
            for ends in bins
        ]
        rows.append([each.group.label, *cells])
    heads = ["trunk", *(f"{first} to {last} steps" for first, last in bins)]
    title = f"Correct and unknown by steps to the wall, heads that read {_READ_AS[read]}"
    return Table(title, heads, rows)


def _text(scale: CorridorsScale, results: Sequence[TrunkAnswers]) -> list[str]:
    lines = [
        "A question is whether a stone is still connected to an enemy, at least "
        f"{scale.min_distance} steps away down the corridors of a maze on `{scale.rules}`; the two "
        "positions of a pair differ in the place of one wall. Half of them are connected. The "
        f"trunk is frozen; a head with one hidden layer and a tanh learns from {scale.questions} "
        f"questions and is asked {scale.held_out}, whose corridors have shapes that it has not "
        "learned from. An output beyond ±0.5 answers; one within is unknown and counts as "
        "incorrect. Every head has questions of its own.",
        *pages.paragraphs(__doc__),
    ]
    new = {
        (each.read, each.group.trunks[0].network): each.mean(_SIGN)
        for each in results
        if not each.group.is_trained
    }
    for each in results:
        if each.group.is_trained:
            mean, other = each.mean(_SIGN), new[each.read, each.group.trunks[0].network]
            is_apart = mean.low > other.high or mean.high < other.low
            than = ("better than" if mean.mean > other.mean else "worse than") if is_apart else "as"
            shares = " against ".join(stats.percent(each.mean) for each in (mean, other))
            lines.append(
                f"Where heads read {_READ_AS[each.read]}, `{each.group.name}` is {than} new weights"
                f"{'' if is_apart else ', within the intervals'}: {shares} on the right side of 0."
            )
    return lines


def _picture(results: Sequence[TrunkAnswers]) -> Picture:
    rates = {f"{each.group.label}, {each.read}": each.mean(_CORRECT) for each in results}
    for name, share in PAPER.items():
        rates[f"paper's {name}, ladders"] = Estimate(share, share, share, 0)
    figure = pages.rates_figure(
        rates,
        title="Answers about far corridors",
        x_label="correct answers, unknown ones count as incorrect; dashed: random ones",
    )
    return Picture("corridors", "95 % intervals: over trainings, or heads of one training", figure)


_SHOWN: tuple[tuple[str, Share, float | None], ...] = (
    ("correct", _CORRECT, 0.5),
    ("unknown", _UNKNOWN, None),
)
"""Shares that are drawn by distance, each with the level of random answers."""


def _distance_picture(
    results: Sequence[TrunkAnswers],
    bins: Sequence[tuple[int, int]],
    name: str,
    share: Share,
    level: Any,
) -> Picture:
    """A share by steps to the wall, of heads that read the board."""
    curves = []
    for each in results:
        points = {sum(ends) / 2: each.mean(share, within=ends) for ends in bins}
        name_of = each.group.name if each.group.is_trained else ""
        curves.append(Curve(name_of, points, is_control=not each.group.is_trained))
    figure = curves_figure(
        curves,
        title=f"Answers about far corridors: {name}",
        x_label="steps from the queried stone to the wall",
        y_label=name,
        is_share=True,
        level=level,
    )
    caption = "heads that read the board; bands: 95 % intervals; dotted: new weights"
    return Picture(f"corridors-{name}", caption, figure)
