"""Asks trunks about far corridors: a small head is trained on their frozen features.

After the ladder experiment of Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against Adversarial Policies
via Transformer in Computer Go". The head learns from corridors of half of the shapes and is asked
about those of the other half. An output above 0.5 answers yes, one below -0.5 no; one between is
unknown and counts as incorrect.

The two positions of a pair show a trunk the same planes but for the place of one wall. A head that
reads the queried cell alone asks whether the trunk brought the answer there; one that reads means
and maxima over the board, too, asks whether it is anywhere.

N positions, H W cells, F features.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.result import wilson_interval
from train.checkpoints.weights import weights_digest
from train.experiments.corridor_positions import HELD_OUT, TRAINING, Corridors, make_corridors
from train.experiments.lib.pages import Table
from train.learning.frozen_head import fit_head, head_scores
from train.network import NetworkConfig, Variables
from train.network.build import channels_of, network_for, observer_for
from train.players.registry import load_network
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

BATCH, MIN_TRAIN, UNTRAINED = 512, 10, "untrained"
SURE = 0.5
"""An output answers the question if its absolute value exceeds this."""

CELL, BOARD = "cell", "board"
READS = (CELL, BOARD)
"""What a head reads: features of the queried cell, or these with means and maxima of the board."""
_WALLS = (0, "horizontal"), (0, "vertical")

Features = Callable[[State, State], jax.Array]
"""(states [B], the same before their last wall) -> float32[B, H, W, F]"""


class ProbeResult(NamedTuple):
    """Counts of the answers."""

    correct: int
    unknown: int
    wrong: int
    sign_correct: int  # scores with the right sign

    @property
    def total(self) -> int:
        """Number of answers, N."""
        return self.correct + self.unknown + self.wrong

    @property
    def accuracy(self) -> float:
        """The share of correct answers; unknown ones count as incorrect."""
        return self.correct / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy (Wilson)."""
        return wilson_interval(self.accuracy, self.total)

    @property
    def sign_accuracy(self) -> float:
        """The share of scores on the right side of 0."""
        return self.sign_correct / self.total if self.total else 0.0

    @property
    def unknown_share(self) -> float:
        """The share of unknown answers."""
        return self.unknown / max(self.total, 1)

    def record(self) -> dict[str, Any]:
        """Counts and shares, JSON-ready."""
        shares = {"accuracy": self.accuracy, "interval_95": list(self.interval)}
        shares["sign_accuracy"] = self.sign_accuracy
        return {**self._asdict(), "total": self.total, **shares}


class Questions(NamedTuple):
    """Corridors of different shapes: those that a head learns from, and those that it is asked."""

    training: Corridors
    held_out: Corridors


class Trunk(NamedTuple):
    """The part of a network below its heads, frozen."""

    name: str
    network: NetworkConfig
    variables: Variables | None  # None: new ones for each seed

    @property
    def digest(self) -> str:
        """A checksum of the weights, empty for untrained ones."""
        return weights_digest(self.variables)


Answers = Mapping[int, ProbeResult]
"""Counts for each distance."""


class ProbeRow(NamedTuple):
    """One trunk's answers, all seeds together."""

    trunk: Trunk
    answers: Answers

    @property
    def result(self) -> ProbeResult:
        """Over all positions."""
        return add_results(self.answers.values())

    @property
    def near(self) -> ProbeResult:
        """Over the third of the positions whose wall is nearest to the queried cell."""
        until, _ = thirds(self.answers)
        return add_results(self.answers[each] for each in self.answers if each <= until)

    @property
    def far(self) -> ProbeResult:
        """Over the third of the positions whose wall is farthest away."""
        _, first = thirds(self.answers)
        return add_results(self.answers[each] for each in self.answers if each >= first)


def draw_questions(
    rules: Rules, *, count_train: int, count_test: int, min_distance: int, seed: int
) -> Questions:
    """Draw balanced questions for a head; each seed draws others.

    Raises:
      ValueError: see `make_corridors`, or a head cannot learn from so few.
    """
    if count_train < MIN_TRAIN:
        raise ValueError(f"probe: count_train ({count_train}) must be at least {MIN_TRAIN}")
    draw = functools.partial(make_corridors, rules, min_distance=min_distance)
    return Questions(
        draw(count=count_train, seed=2 * seed, shapes=TRAINING),
        draw(count=count_test, seed=2 * seed + 1, shapes=HELD_OUT),
    )


def ask(features_of: Features, questions: Questions, *, read: str, seed: int) -> Answers:
    """Train a head on a trunk's features and count its answers to the held-out questions.

    Args:
      features_of: the trunk.
      questions: of both kinds.
      read: what the head reads, one of READS.
      seed: of the head.
    """
    known, asked = (read_features(features_of, each, read=read) for each in questions)
    head = fit_head(known, questions.training.is_connected, seed=seed)
    scores, labels = fetch(head_scores(head, asked)), questions.held_out.is_connected
    answers = {}
    for distance in np.unique(questions.held_out.distance):
        there = questions.held_out.distance == distance
        answers[int(distance)] = verdict(scores[there], labels[there])
    return answers


def verdict(scores: np.ndarray, labels: np.ndarray) -> ProbeResult:
    """Count float[N] outputs against bool[N] labels."""
    signed = np.where(labels, scores, -scores)
    correct, wrong = int((signed > SURE).sum()), int((signed < -SURE).sum())
    return ProbeResult(correct, len(signed) - correct - wrong, wrong, int((signed > 0).sum()))


def add_results(results: Iterable[ProbeResult]) -> ProbeResult:
    """The counts of all."""
    none = ProbeResult(0, 0, 0, 0)
    return ProbeResult(*(sum(counts) for counts in zip(none, *results, strict=True)))


def add_answers(answers: Iterable[Answers]) -> Answers:
    """The counts of all, by distance."""
    by_distance: dict[int, list[ProbeResult]] = {}
    for each in answers:
        for distance, result in each.items():
            by_distance.setdefault(distance, []).append(result)
    return {distance: add_results(by_distance[distance]) for distance in sorted(by_distance)}


def read_features(features_of: Features, corridors: Corridors, *, read: str) -> np.ndarray:
    """What a head reads of each question, computed BATCH positions at a time: float32[N, F] of the
    queried cell, or float32[N, 3 F] with means and maxima over the board."""
    count, grid = len(corridors.cell), corridors.states.grid
    shown = corridors.states, before_last_wall(corridors.states)
    # The first positions again fill the last batch, so that one program serves all batches.
    rows = np.arange(-(-count // BATCH) * BATCH) % count
    parts = []
    for places in rows.reshape(-1, BATCH):
        features = features_of(*jax.tree.map(lambda leaf, at=places: leaf[at], shown))
        read_off = [features[np.arange(BATCH), *np.divmod(corridors.cell[places], grid)]]
        if read == BOARD:
            read_off += [features.mean(axis=(1, 2)), features.max(axis=(1, 2))]
        parts.append(jnp.concatenate(read_off, axis=-1))
    return np.concatenate(fetch(parts))[:count]


def before_last_wall(states: State) -> State:
    """The states of corridors without the wall in which the two of each pair differ."""
    variant, position = states
    pairs = position.walls.reshape(-1, 2, *position.walls.shape[1:])
    return State(variant, position._replace(walls=jnp.repeat(pairs[:, 0] & pairs[:, 1], 2, axis=0)))


def load_trunk(player: str, *, players: int) -> Trunk:
    """The trunk of a trained player, for positions of so many players.

    Raises:
      UsageError: it has no network, or one for another number of players.
    """
    config, variables, name, *_ = load_network(player)
    if config.rules.players != players:
        raise UsageError(
            f"{player}: its network is for {config.rules.players} players, the rules are for "
            f"{players}"
        )
    return Trunk(name, config.network, variables)


def trunk_features(trunk: Trunk, seed: int) -> Features:
    """The frozen trunk as a function of states; a new one of this seed, where it is untrained.

    It sees the walls as they are. All other planes are those before the last wall: floods made some
    of them, and would tell what it cut off.
    """
    config = trunk.network
    variables = trunk.variables
    if variables is None:
        variables = network_for(config, 2).init(jax.random.key(seed))
    return functools.partial(_observe_features, variables, config=config)


@functools.partial(jax.jit, static_argnames="config")
def _observe_features(
    variables: Variables, states: State, earlier: State, *, config: NetworkConfig
) -> jax.Array:
    shown = shown_planes(states, earlier, config)
    return network_for(config, 2).features(variables, shown).astype(jnp.float32)


def shown_planes(states: State, earlier: State, config: NetworkConfig) -> jax.Array:
    """bool[B, H, W, C]: what a trunk sees of states, see `trunk_features`."""
    observe = jax.vmap(observer_for(config))
    is_wall = np.array([(each.age, each.kind) in _WALLS for each in channels_of(config, 2)])
    return jnp.where(is_wall[None, None, None], observe(states, None), observe(earlier, None))


def probe_runs(
    players: Sequence[str],
    rules: Rules,
    *,
    count_train: int,
    count_test: int,
    seeds: Sequence[int] = (0, 1, 2),
    min_distance: int,
    read: str = BOARD,
) -> list[ProbeRow]:
    """Ask the networks of trained players, a row each, and new weights for each shape of trunk;
    every trunk gets the same questions.

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
    trunks: list[Trunk] = []
    for player in players:
        trunk = load_trunk(player, players=rules.players)
        is_new = all(trunk.network != other.network for other in trunks)
        trunks += [trunk, Trunk(UNTRAINED, trunk.network, None)] if is_new else [trunk]
    answers: list[list[Answers]] = [[] for _ in trunks]
    sizes = {"count_train": count_train, "count_test": count_test, "min_distance": min_distance}
    for seed in seeds:
        questions = draw_questions(rules, **sizes, seed=seed)
        for trunk, of_trunk in zip(trunks, answers, strict=True):
            of_trunk.append(ask(trunk_features(trunk, seed), questions, read=read, seed=seed))
    return [ProbeRow(trunk, add_answers(each)) for trunk, each in zip(trunks, answers, strict=True)]


def thirds(answers: Answers) -> tuple[int, int]:
    """The largest distance of the nearest third, the smallest of the farthest."""
    ordered = np.repeat([*answers], [result.total for result in answers.values()])
    third = len(ordered) // 3
    return int(ordered[third]), int(ordered[-third - 1])


def probe_table(rows: Sequence[ProbeRow], *, caption: str = "") -> Table:
    """A column for each trunk."""
    near_until, far_from = thirds(rows[0].answers)
    figures = {
        "planes": [row.trunk.network.planes for row in rows],
        "positions": [str(row.result.total) for row in rows],
        "correct, unknown, wrong": [", ".join(map(str, row.result[:3])) for row in rows],
        "accuracy": [f"{row.result.accuracy:.2%}" for row in rows],
        "95 % interval": ["{:.1%} to {:.1%}".format(*row.result.interval) for row in rows],
        f"near third, to step {near_until}": [f"{row.near.accuracy:.2%}" for row in rows],
        f"far third, from step {far_from}": [f"{row.far.accuracy:.2%}" for row in rows],
        "accuracy of the sign alone": [f"{row.result.sign_accuracy:.2%}" for row in rows],
    }
    heads = ["", *(f"{row.trunk.network.blocks}, {row.trunk.name}" for row in rows)]
    title = f"connected to an enemy down a corridor? {caption}".rstrip()
    return Table(title, heads, [[name, *cells] for name, cells in figures.items()])


def probe_record(rows: Sequence[ProbeRow]) -> dict[str, Any]:
    """The table as JSON-ready figures."""
    records = []
    for row in rows:
        near_until, far_from = thirds(row.answers)
        network = row.trunk.network
        record = {"name": row.trunk.name, "blocks": network.blocks, "planes": network.planes}
        record |= {"near_until": near_until, "far_from": far_from, **row.result.record()}
        records.append(record | {"near": row.near.record(), "far": row.far.record()})
    return {"rows": records}
