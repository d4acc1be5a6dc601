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
import functools
import statistics
from collections.abc import Callable, Iterator, Sequence
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
    add_results,
    ask,
    draw_questions,
    load_trunk,
    trunk_features,
)
from train.metrics.intervals import Curve, curves_figure
from train.players.names import read_network_name
from train.players.networks import network_config
from train.runtime.errors import UsageError, usage_errors
from train.runtime.files import plain_data
from wallgo_jax.game.rules import PRESETS, Rules

PAPER = {"residual network": 0.5915, "ResTNet": 0.8001}
"""Accuracy on ladders in Go ("ResTNet: Defense against Adversarial Policies via Transformer in
Computer Go", Wu, Wu, Shih, Ju, Wu)."""
_BINS = 5
_READ_AS = {CELL: "the queried cell", BOARD: "the cell and the board's means and maxima"}
_SHARES = {"correct": "accuracy", "unknown": "unknown_share", "right side of 0": "sign_accuracy"}
"""Heads of columns, each with its property of `ProbeResult`."""


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

    def mean(self, share: str, *, within: tuple[int, int] = (0, 10**9)) -> Estimate:
        """The mean of a property of `ProbeResult` over trainings, or over heads where there is one
        training alone; within a range of distances, first and last."""

        def of(head: Answers) -> ProbeResult:
            return add_results(head[d] for d in head if within[0] <= d <= within[1])

        shares = [[getattr(of(head), share) for head in heads] for heads in self.answers]
        over = [statistics.fmean(each) for each in shares] if len(shares) > 1 else shares[0]
        return stats.over_seeds(over, of(self.answers[0][0]).total)

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
    groups = [*trained_groups(work)]
    for variant in block_variants(work.scale.blocks, scale.untrained):
        groups.append(TrunkGroup(variant.name, [Trunk(UNTRAINED, variant.config.network, None)]))
    groups += controls_of(groups)
    by_read = _ask_all(work, groups)
    bins = bins_of(by_read[BOARD])
    text = (
        "A question is whether a stone is still connected to an enemy, at least "
        f"{scale.min_distance} steps away down the corridors of a maze on `{scale.rules}`; the two "
        "positions of a pair differ in the place of one wall. Half of them are connected. The "
        f"trunk is frozen; a head with one hidden layer and a tanh learns from {scale.questions} "
        f"questions and is asked {scale.held_out}, whose corridors have shapes that it has not "
        "learned from. An output beyond ±0.5 answers; one within is unknown and counts as "
        "incorrect. Every head has questions of its own."
    )
    return Report(
        title="Far corridors",
        text=[text, *pages.paragraphs(__doc__)],
        tables=[*map(_table, by_read.values()), _distance_table(by_read[BOARD], bins)],
        pictures=[_picture(by_read[BOARD], bins, head) for head in ("correct", "unknown")],
        data={
            "paper": PAPER,
            "trunks": [trunk_record(each) for results in by_read.values() for each in results],
        },
    )


def _ask_all(work: Work, groups: Sequence[TrunkGroup]) -> dict[str, list[TrunkAnswers]]:
    """Train and ask heads of each kind on every trunk, or read their answers."""
    scale = work.scale.corridors
    total, done = len(READS) * scale.heads * sum(len(each.trunks) for each in groups), 0

    @functools.cache
    def questions_of(seed: int) -> Questions:
        sizes = {"count_train": scale.questions, "count_test": scale.held_out}
        with usage_errors():
            return draw_questions(
                PRESETS[scale.rules], **sizes, min_distance=scale.min_distance, seed=seed
            )

    with work.task("heads on frozen trunks", total, "heads") as on_progress:

        def ask_trunk(trunk: Trunk, read: str, seed: int) -> Answers:
            nonlocal done
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

            rows = work.cached(f"corridors-{read}-{seed - work.seed}", settings, make)
            done += 1
            on_progress(done)
            return {distance: ProbeResult(*counts) for distance, *counts in rows}

        seeds = range(work.seed, work.seed + scale.heads)
        return {read: ask_groups(groups, read, seeds, ask_trunk) for read in READS}


def ask_groups(
    groups: Sequence[TrunkGroup],
    read: str,
    seeds: Sequence[int],
    ask_trunk: Callable[[Trunk, str, int], Answers],
) -> list[TrunkAnswers]:
    """Train and ask a head of each seed on every trunk; new weights are one training a seed."""
    results = []
    for group in groups:
        answers = [[ask_trunk(trunk, read, seed) for seed in seeds] for trunk in group.trunks]
        if not group.is_trained:
            answers = [[head] for head in answers[0]]
        results.append(TrunkAnswers(group, read, answers))
    return results


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
    sizes = {"count_train": count_train, "count_test": count_test, "min_distance": min_distance}
    questions_of = functools.cache(lambda seed: draw_questions(rules, **sizes, seed=seed))

    def ask_trunk(trunk: Trunk, read: str, seed: int) -> Answers:
        return ask(trunk_features(trunk, seed), questions_of(seed), read=read, seed=seed)

    return ask_groups([*groups, *controls_of(groups)], read, seeds, ask_trunk)


def probe_tables(results: Sequence[TrunkAnswers], *, caption: str = "") -> tuple[Table, Table]:
    """The answers of all trunks, and those by steps to the wall."""
    return _table(results)._replace(caption=caption), _distance_table(results, bins_of(results))


def trunk_record(each: TrunkAnswers) -> dict[str, Any]:
    """A trunk's answers as JSON-ready figures."""
    return {
        "trunk": each.group.name,
        "is_trained": each.group.is_trained,
        "network": dataclasses.asdict(each.group.trunks[0].network),
        "read": each.read,
        "unit": each.unit,
        "answers": plain_data(each.answers),
        "correct": plain_data(each.mean("accuracy")),
        "unknown": plain_data(each.mean("unknown_share")),
        "right_side": plain_data(each.mean("sign_accuracy")),
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
        names = [str(work.runs / run.run) for run in runs]
        yield TrunkGroup(blocks, [load_trunk(name, players=players) for name in names])


def controls_of(groups: Sequence[TrunkGroup]) -> list[TrunkGroup]:
    """New weights for each network that is asked trained alone."""
    networks = dict.fromkeys(each.trunks[0].network for each in groups if each.is_trained)
    new = [each.trunks[0].network for each in groups if not each.is_trained]
    return [
        TrunkGroup(network.blocks, [Trunk(UNTRAINED, network, None)])
        for network in networks
        if network not in new
    ]


def bins_of(results: Sequence[TrunkAnswers]) -> list[tuple[int, int]]:
    """Ranges of distances, first and last, that hold about equally many of the positions."""
    counts = [
        (distance, result.total)
        for head in results[0].answers[0]
        for distance, result in head.items()
    ]
    ordered = np.sort(np.repeat(*np.array(counts).T))
    lasts = sorted({int(part[-1]) for part in np.array_split(ordered, _BINS)})
    firsts = [int(ordered[0]), *(last + 1 for last in lasts[:-1])]
    return list(zip(firsts, lasts, strict=True))


def _table(results: Sequence[TrunkAnswers]) -> Table:
    rows = []
    for each in results:
        network = each.group.trunks[0].network
        row = [each.group.label, f"`{network.blocks}`", f"`{network.planes}`", each.unit]
        rows.append([*row, *("{} ({})".format(*each.mean(of).cells()) for of in _SHARES.values())])
    for name, share in PAPER.items():
        rows.append([f"paper's {name}, on ladders", "", "", "", stats.percent(share, 2), "", ""])
    heads = ("trunk", "blocks", "planes", "95 % over", *_SHARES)
    return Table(f"Heads that read {_READ_AS[results[0].read]}", heads, rows)


def _distance_table(results: Sequence[TrunkAnswers], bins: Sequence[tuple[int, int]]) -> Table:
    rows = []
    for each in results:
        cells = [
            "{} ({}), ".format(*each.mean("accuracy", within=ends).cells())
            + stats.percent(each.mean("unknown_share", within=ends).mean)
            for ends in bins
        ]
        rows.append([each.group.label, *cells])
    heads = ["trunk", *(f"{first} to {last} steps" for first, last in bins)]
    read = _READ_AS[results[0].read]
    return Table(f"Correct and unknown by steps to the wall, heads that read {read}", heads, rows)


def _picture(
    results: Sequence[TrunkAnswers], bins: Sequence[tuple[int, int]], head: str
) -> Picture:
    """A share by steps to the wall, of heads that read the board."""
    curves = []
    for each in results:
        points = {sum(ends) / 2: each.mean(_SHARES[head], within=ends) for ends in bins}
        name = each.group.name if each.group.is_trained else ""
        curves.append(Curve(name, points, is_control=not each.group.is_trained))
    figure = curves_figure(
        curves,
        title=f"Answers about far corridors: {head}",
        x_label="steps from the queried stone to the wall",
        y_label=head,
        is_share=True,
        level=0.5 if head == "correct" else None,  # of random answers
    )
    caption = "heads that read the board; bands: 95 % intervals; dotted: new weights"
    return Picture(f"corridors-{head}", caption, figure)
