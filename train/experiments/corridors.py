"""Far corridors: heads are trained on frozen trunks and asked, by distance, what the trunks know.

A question is whether a stone is still connected to an enemy, far down the corridors of a maze; the
two positions of a pair differ in the place of one wall, and one of them is connected. The trunk is
frozen; a head with one hidden layer and a tanh learns from some questions and is asked others,
whose corridors have shapes that it has not learned from. An output beyond ±0.5 answers; one within
is unknown and counts as incorrect. Every head has questions of its own.

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
import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from train.checkpoints.weights import weights_digest
from train.experiments.blocks import block_variants
from train.experiments.lib import stats, trainings
from train.experiments.lib.pages import Picture, Report
from train.experiments.lib.stats import Estimate
from train.experiments.lib.work import Work, check_network
from train.experiments.probe import (
    BOARD,
    CELL,
    READS,
    Answers,
    ProbeResult,
    add_results,
    ask,
    draw_questions,
    trunk_features,
)
from train.metrics.intervals import Curve, curves_figure
from train.network import NetworkConfig, Variables
from train.players.networks import load_network
from train.runtime.display import Table
from train.runtime.errors import UsageError, check_two_players, usage_errors
from train.runtime.files import plain_data
from wallgo_jax.game.rules import PRESETS, Rules

PAPER = {"residual network": 0.5915, "ResTNet": 0.8001}
"""Accuracy on ladders in Go ("ResTNet: Defense against Adversarial Policies via Transformer in
Computer Go", Wu, Wu, Shih, Ju, Wu)."""
_BINS = 5
_READ_AS = {CELL: "the queried cell", BOARD: "the cell and the board's means and maxima"}
_SHARES = {"correct": "correct", "unknown": "unknown", "right side of 0": "sign_correct"}
"""Heads of columns, each with its entry of `ProbeResult`."""


class Trunk(NamedTuple):
    """A network below its heads, frozen."""

    name: str
    network: NetworkConfig
    weights: tuple[Variables, ...] = ()  # of each training; none for new ones for each seed

    @property
    def label(self) -> str:
        """Its name in tables."""
        return f"`{self.name}`" if self.weights else f"`{self.name}`, new weights"


class TrunkAnswers(NamedTuple):
    """A trunk's answers to heads of one kind."""

    trunk: Trunk
    read: str
    answers: list[list[Answers]]  # a list of heads for each training, or for each new weights

    def mean(self, entry: str, *, within: tuple[int, int] = (0, 10**9)) -> Estimate:
        """The mean share of an entry of `ProbeResult` over trainings, or over heads where there is
        one training alone; within a range of distances, first and last."""

        def of(head: Answers) -> ProbeResult:
            return add_results(head[d] for d in head if within[0] <= d <= within[1])

        shares = [[of(head).share(entry) for head in heads] for heads in self.answers]
        over = [statistics.fmean(each) for each in shares] if len(shares) > 1 else shares[0]
        return stats.over_seeds(over, sum(of(self.answers[0][0])[:3]))

    @property
    def unit(self) -> str:
        """The unit of its intervals."""
        trainings, heads = len(self.answers), len(self.answers[0])
        if not self.trunk.weights:
            return f"{trainings} new weights"
        if trainings > 1:
            return f"{trainings} trainings"
        return f"{heads} head{'' if heads == 1 else 's'} of one training"

    def record(self) -> dict[str, Any]:
        """JSON-ready figures."""
        return {
            "trunk": self.trunk.name,
            "is_trained": bool(self.trunk.weights),
            "network": dataclasses.asdict(self.trunk.network),
            "read": self.read,
            "unit": self.unit,
            "answers": plain_data(self.answers),
            "correct": plain_data(self.mean("correct")),
            "unknown": plain_data(self.mean("unknown")),
            "right_side": plain_data(self.mean("sign_correct")),
        }


def report(work: Work) -> Report:
    """Train heads on every trunk and ask them."""
    scale = work.scale.corridors
    trunks = trained_trunks(work)
    for variant in block_variants(work.scale.blocks, scale.untrained):
        trunks.append(Trunk(variant.name, variant.config.network))
    trunks += controls_of(trunks)
    questions = (scale.questions, scale.held_out, scale.min_distance)
    done = itertools.count(1)
    total = len(READS) * scale.heads * sum(max(1, len(trunk.weights)) for trunk in trunks)
    with work.task("heads on frozen trunks", total, "heads") as on_progress:

        def cached(
            trunk: Trunk, variables: Variables | None, read: str, seed: int, make: Any
        ) -> Any:
            settings = {
                "network": dataclasses.asdict(trunk.network),
                "weights": weights_digest(variables),
                "rules": scale.rules,
                "questions": [*questions],
                "read": read,
                "seed": seed,
            }
            rows = work.cached(f"corridors-{read}-{seed - work.seed}", settings, make)
            on_progress(next(done))
            return rows

        seeds = range(work.seed, work.seed + scale.heads)
        by_read = ask_trunks(trunks, READS, PRESETS[scale.rules], questions, seeds, cached)
    bins = bins_of(by_read[BOARD])
    return Report(
        title="Far corridors",
        tables=[*map(_table, by_read.values()), _distance_table(by_read[BOARD], bins)],
        pictures=[_picture(by_read[BOARD], bins, head) for head in ("correct", "unknown")],
        data={
            "paper": PAPER,
            "trunks": [each.record() for results in by_read.values() for each in results],
        },
    )


def ask_trunks(
    trunks: Sequence[Trunk],
    reads: Sequence[str],
    rules: Rules,
    questions: tuple[int, int, int],
    seeds: Sequence[int],
    cached: Callable[..., Any] = lambda *known, make: make(),
) -> dict[str, list[TrunkAnswers]]:
    """Train and ask a head of each seed on every trunk; all trunks get the same questions.

    Args:
      trunks: those without weights get new ones of each seed, each of which is one training.
      reads: what heads read, of READS.
      rules: of the positions.
      questions: numbers that a head learns from and is asked, and the least distance.
      seeds: each draws the questions, the heads' first weights, and new weights.
      cached: keeps rows of answers: (trunk, weights, read, seed, make) -> rows.
    """

    @functools.cache
    def questions_of(seed: int) -> Any:
        sizes = dict(zip(("count_train", "count_test", "min_distance"), questions, strict=True))
        with usage_errors():
            return draw_questions(rules, **sizes, seed=seed)

    def answer(trunk: Trunk, variables: Variables | None, read: str, seed: int) -> Answers:
        def make() -> list[list[int]]:
            features = trunk_features(trunk.network, variables, seed)
            answers = ask(features, questions_of(seed), read=read, seed=seed)
            return [[distance, *result] for distance, result in answers.items()]

        rows = cached(trunk, variables, read, seed, make=make)
        return {distance: ProbeResult(*counts) for distance, *counts in rows}

    results: dict[str, list[TrunkAnswers]] = {read: [] for read in reads}
    for read, trunk in itertools.product(reads, trunks):
        answers = [[answer(trunk, each, read, seed) for seed in seeds] for each in trunk.weights]
        answers = answers or [[answer(trunk, None, read, seed)] for seed in seeds]
        results[read].append(TrunkAnswers(trunk, read, answers))
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
    """Ask the networks of trained players, then new weights for each shape of trunk; the options
    are those of `ask_trunks`.

    Raises:
      UsageError: a network cannot be read or asked.
    """
    trunks = [_load_trunk(player) for player in players]
    questions = (count_train, count_test, min_distance)
    return ask_trunks([*trunks, *controls_of(trunks)], [read], rules, questions, seeds)[read]


def probe_tables(results: Sequence[TrunkAnswers], *, caption: str = "") -> tuple[Table, Table]:
    """The answers of all trunks, and those by steps to the wall."""
    return _table(results)._replace(caption=caption), _distance_table(results, bins_of(results))


def trained_trunks(work: Work) -> list[Trunk]:
    """The named networks and the trainings of the experiment `blocks`."""
    scale = work.scale.corridors
    groups: dict[str, list[Trunk]] = {}
    known: dict[str, str] = {}  # names by their weights
    for name in scale.trunks:
        check_network(name)
        trunk, config = _load_trunk(name), load_network(name).config
        if (other := known.setdefault(weights_digest(*trunk.weights), name)) != name:
            twice = f"{other} and {name} are the same weights"
            raise UsageError(f"corridors: {twice}: name one of them")
        groups.setdefault(repr(dataclasses.replace(config, name="trunk", seed=0)), []).append(trunk)
    variants = block_variants(work.scale.blocks, scale.blocks)
    for blocks, runs in trainings.train_all(work, variants, seeds=work.scale.blocks.seeds).items():
        loaded = (_load_trunk(str(work.runs / run.run)) for run in runs)
        groups[blocks] = [trunk._replace(name=blocks) for trunk in loaded]
    return [
        each[0]._replace(weights=tuple(trunk.weights[0] for trunk in each))
        for each in groups.values()
    ]


def _load_trunk(player: str) -> Trunk:
    config, variables, name, *_ = load_network(player)
    check_two_players(config.rules, player)
    return Trunk(name, config.network, (variables,))


def controls_of(trunks: Sequence[Trunk]) -> list[Trunk]:
    """New weights for each network that is asked trained alone."""
    networks = dict.fromkeys(trunk.network for trunk in trunks if trunk.weights)
    new = [trunk.network for trunk in trunks if not trunk.weights]
    return [Trunk(network.blocks, network) for network in networks if network not in new]


def bins_of(results: Sequence[TrunkAnswers]) -> list[tuple[int, int]]:
    """Ranges of distances, first and last, that hold about equally many of the positions."""
    counts = [(d, sum(each[:3])) for head in results[0].answers[0] for d, each in head.items()]
    ordered = np.sort(np.repeat(*np.array(counts).T))
    lasts = sorted({int(part[-1]) for part in np.array_split(ordered, _BINS)})
    firsts = [int(ordered[0]), *(last + 1 for last in lasts[:-1])]
    return list(zip(firsts, lasts, strict=True))


def _table(results: Sequence[TrunkAnswers]) -> Table:
    rows = []
    for each in results:
        network = each.trunk.network
        row = [each.trunk.label, f"`{network.blocks}`", f"`{network.planes}`", each.unit]
        rows.append([*row, *("{} ({})".format(*each.mean(of).cells()) for of in _SHARES.values())])
    for name, share in PAPER.items():
        rows.append([f"paper's {name}, on ladders", "", "", "", stats.percent(share, 2), "", ""])
    heads = ("trunk", "blocks", "planes", "95 % over", *_SHARES)
    return Table(f"Heads that read {_READ_AS[results[0].read]}", heads, rows)


def _distance_table(results: Sequence[TrunkAnswers], bins: Sequence[tuple[int, int]]) -> Table:
    rows = []
    for each in results:
        cells = [
            "{} ({}), ".format(*each.mean("correct", within=ends).cells())
            + stats.percent(each.mean("unknown", within=ends).mean)
            for ends in bins
        ]
        rows.append([each.trunk.label, *cells])
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
        name, is_new = each.trunk.name, not each.trunk.weights
        curves.append(Curve("" if is_new else name, points, is_control=is_new))
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
