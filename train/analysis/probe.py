"""Compares what trunks know of far corridors, by linear probes on their frozen features.

After the ladder experiment of Wu, Wu, Shih, Ju, Wu, "ResTNet: Defense against Adversarial Policies
via Transformer in Computer Go": the trunk stays frozen, only a small head is fitted. A score above
0.5 answers yes, one below -0.5 no; a score between is unknown and counts as incorrect.

N positions, H W cells, F features.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table
from rich.text import Text

from train.analysis.corridors import Corridors, make_corridors
from train.arena.result import wilson_interval
from train.network import Network, Variables
from train.network.build import network_for
from train.registry import load_network
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from wallgo_jax import observation
from wallgo_jax import planes as planes_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

BATCH = 512
SURE = 0.5
"""A score answers the question if its absolute value exceeds this."""
RIDGES = tuple(10.0**power for power in range(-6, 3))
"""Candidate penalties, in units of one standardised feature's sum of squares."""

Features = Callable[[State], jax.Array]
"""states [B] -> float32[B, H, W, F]"""


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


@dataclasses.dataclass(frozen=True)
class ProbeRow:
    """One trunk's answers, all seeds together.

    Attributes:
      name: of the network, or `untrained`.
      blocks: its block string.
      result: over all positions.
      near: over the third of the positions whose wall is nearest to the queried cell.
      far: over the third of the positions whose wall is farthest away.
      near_until: the largest distance that counts as near.
      far_from: the smallest distance that counts as far.
    """

    name: str
    blocks: str
    result: ProbeResult
    near: ProbeResult
    far: ProbeResult
    near_until: int
    far_from: int


def linear_probe(
    train_features: np.ndarray, train_labels: np.ndarray, test_features: np.ndarray
) -> np.ndarray:
    """Scores of a ridge regression to -1 and +1 on standardised features, with an unpenalised bias.

    The penalty is the one of RIDGES with the least squared error on the last fifth of the training
    set; then the whole set is fitted again. Pairs of corridors stand side by side in random order,
    so the last fifth holds whole pairs.

    Args:
      train_features: float[N, F].
      train_labels: bool[N].
      test_features: float[M, F].

    Returns:
      float64[M].
    """
    features, tests = train_features.astype(np.float64), test_features.astype(np.float64)
    targets = np.where(train_labels, 1.0, -1.0)
    kept = len(features) - len(features) // 5
    held_out = _ridge_scores(features[:kept], targets[:kept], features[kept:])  # [ridges, N / 5]
    errors = ((held_out - targets[kept:]) ** 2).sum(axis=1)
    return _ridge_scores(features, targets, tests)[int(errors.argmin())]


def _ridge_scores(features: np.ndarray, targets: np.ndarray, tests: np.ndarray) -> np.ndarray:
    """float64[ridges, M]: the closed form for every penalty, by one eigendecomposition."""
    mean, bias = features.mean(axis=0), targets.mean()
    spread = features.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    features, tests = (features - mean) / spread, (tests - mean) / spread
    values, vectors = np.linalg.eigh(features.T @ features / len(features))
    moments = vectors.T @ (features.T @ (targets - bias)) / len(features)
    weights = moments / (np.maximum(values, 0.0) + np.array(RIDGES)[:, None])  # [ridges, F]
    return weights @ (tests @ vectors).T + bias


def verdict(scores: np.ndarray, labels: np.ndarray) -> ProbeResult:
    """Count float[N] scores against bool[N] labels."""
    signed = np.where(labels, scores, -scores)
    correct, wrong = int((signed > SURE).sum()), int((signed < -SURE).sum())
    return ProbeResult(correct, len(signed) - correct - wrong, wrong, int((signed > 0).sum()))


def probe_trunk(
    features_of: Features, corridors_train: Corridors, corridors_test: Corridors
) -> ProbeResult:
    """Answers of a linear probe on the queried cell's features: connected or parted?"""
    scores = probe_scores(features_of, corridors_train, corridors_test)
    return verdict(scores, corridors_test.is_connected)


def probe_scores(
    features_of: Features, corridors_train: Corridors, corridors_test: Corridors
) -> np.ndarray:
    """float64[M]: the probe's score for each test position."""
    return linear_probe(
        queried_features(features_of, corridors_train),
        corridors_train.is_connected,
        queried_features(features_of, corridors_test),
    )


def queried_features(features_of: Features, corridors: Corridors) -> np.ndarray:
    """float32[N, F]: the features at the queried cell, computed BATCH positions at a time."""
    count, grid = len(corridors.cell), corridors.states.grid
    # The first positions again fill the last batch, so that one program serves all batches.
    rows = np.arange(-(-count // BATCH) * BATCH) % count
    parts = []
    for places in rows.reshape(-1, BATCH):
        features = features_of(jax.tree.map(lambda leaf, at=places: leaf[at], corridors.states))
        parts.append(features[np.arange(BATCH), *np.divmod(corridors.cell[places], grid)])
    return np.concatenate(fetch(parts))[:count]


def trunk_features(
    network: Network, variables: Variables, *, planes: str, has_playable: bool
) -> Features:
    """The frozen trunk as a function of states.

    Raises:
      UsageError: the planes show territory, which answers the question.
    """
    _refuse_territory(planes)
    return functools.partial(
        _observe_features,
        variables,
        features=network.features,
        planes=planes,
        has_playable=has_playable,
    )


def _refuse_territory(planes: str) -> None:
    if "T" in planes:
        allowed = [each for each in planes_lib.PLANE_SETS if "T" not in each]
        raise UsageError(
            f"probe: the planes {planes} show territory, which holds the answer; "
            f"a network of planes {' or '.join(allowed)} can be probed"
        )


@functools.partial(jax.jit, static_argnames=("features", "planes", "has_playable"))
def _observe_features(
    variables: Variables,
    states: State,
    *,
    features: Callable[[Variables, jax.Array], jax.Array],
    planes: str,
    has_playable: bool,
) -> jax.Array:
    observe = functools.partial(observation.observe, planes=planes, has_playable=has_playable)
    return features(variables, jax.vmap(observe)(states)).astype(jnp.float32)


def probe_runs(
    players: Sequence[str],
    rules: Rules,
    *,
    count_train: int = 8000,
    count_test: int = 4000,
    seeds: Sequence[int] = (0, 1, 2),
    min_distance: int = 10,
    untrained: bool = True,
) -> list[ProbeRow]:
    """Probe the networks of trained players, a row each; every trunk gets the same questions.

    Args:
      players: their names, see `train.registry.names`.
      rules: of the positions, see `train.analysis.corridors`.
      count_train: training positions of a probe, for each seed.
      count_test: test positions, for each seed; none of them is a training position.
      seeds: each seed draws both sets and the weights of the untrained trunks.
      min_distance: least steps to the nearest enemy.
      untrained: add a row with new weights for each shape of trunk.

    Raises:
      UsageError: a network cannot be read or probed, or there is no player or no seed.
      ValueError: see `make_corridors`.
    """
    if not players or not seeds:
        raise UsageError("probe: name at least one trained player and one seed")
    trunks = _load_trunks(players, rules, untrained=untrained)
    scores: list[list[np.ndarray]] = [[] for _ in trunks]
    labels, distances = [], []
    for seed in seeds:
        draw = functools.partial(make_corridors, rules, min_distance=min_distance)
        train = draw(count=count_train, seed=2 * seed)
        test = draw(count=count_test, seed=2 * seed + 1, exclude=train)
        for trunk, column in zip(trunks, scores, strict=True):
            column.append(probe_scores(trunk.features_for(seed), train, test))
        labels.append(test.is_connected)
        distances.append(test.distance)
    answers, steps = np.concatenate(labels), np.concatenate(distances)
    return [
        _summarise(trunk, np.concatenate(column), answers, steps)
        for trunk, column in zip(trunks, scores, strict=True)
    ]


class _Trunk(NamedTuple):
    name: str
    blocks: str
    features_for: Callable[[int], Features]  # by seed


def _load_trunks(players: Sequence[str], rules: Rules, *, untrained: bool) -> list[_Trunk]:
    """The players' trunks in order; after each new shape, one with untrained weights."""
    trunks: list[_Trunk] = []
    kinds = set()
    for player in players:
        config, variables, name, *_ = load_network(player)
        blocks, planes = config.network.blocks, config.network.planes
        try:
            _refuse_territory(planes)
        except UsageError as error:
            raise UsageError(f"{player}: {error}") from None
        if config.rules.players != rules.players:
            raise UsageError(
                f"{player}: its network is for {config.rules.players} players, the rules are for "
                f"{rules.players}"
            )
        network = network_for(config.network, rules.players)
        make = functools.partial(trunk_features, network, planes=planes, has_playable=False)
        trained = make(variables)
        trunks.append(_Trunk(name, blocks, lambda seed, trained=trained: trained))
        kind = blocks, config.network.width, planes
        if untrained and kind not in kinds:
            kinds.add(kind)
            trunks.append(_Trunk("untrained", blocks, _untrained_features(make, network)))
    return trunks


def _untrained_features(
    make: Callable[[Variables], Features], network: Network
) -> Callable[[int], Features]:
    return lambda seed: make(network.init(jax.random.key(seed)))


def _summarise(
    trunk: _Trunk, scores: np.ndarray, labels: np.ndarray, distances: np.ndarray
) -> ProbeRow:
    near_until, far_from = _thirds(distances)
    near, far = distances <= near_until, distances >= far_from
    return ProbeRow(
        name=trunk.name,
        blocks=trunk.blocks,
        result=verdict(scores, labels),
        near=verdict(scores[near], labels[near]),
        far=verdict(scores[far], labels[far]),
        near_until=near_until,
        far_from=far_from,
    )


def _thirds(distances: np.ndarray) -> tuple[int, int]:
    """The largest distance of the nearest third, the smallest of the farthest."""
    ordered = np.sort(distances)
    third = len(ordered) // 3
    return int(ordered[third]), int(ordered[-third - 1])


def probe_table(rows: Sequence[ProbeRow], *, caption: str = "") -> Table:
    """A column for each trunk."""
    table = Table(
        title=Text("connected to an enemy down a corridor?"),
        caption=caption or None,
        caption_justify="left",
    )
    table.add_column("")
    for row in rows:
        table.add_column(Text(f"{row.blocks}\n{row.name}"), justify="right")
    for name, figure in _FIGURES:
        label = name.format(near_until=rows[0].near_until, far_from=rows[0].far_from)
        table.add_row(label, *(figure(row) for row in rows))
    return table


def _counts(row: ProbeRow) -> str:
    return f"{row.result.correct}, {row.result.unknown}, {row.result.wrong}"


def _interval(row: ProbeRow) -> str:
    low, high = row.result.interval
    return f"{low:.1%} to {high:.1%}"


_FIGURES: tuple[tuple[str, Callable[[ProbeRow], str]], ...] = (
    ("positions", lambda row: str(row.result.total)),
    ("correct, unknown, wrong", _counts),
    ("accuracy", lambda row: f"{row.result.accuracy:.2%}"),
    ("95 % interval", _interval),
    ("near third, to step {near_until}", lambda row: f"{row.near.accuracy:.2%}"),
    ("far third, from step {far_from}", lambda row: f"{row.far.accuracy:.2%}"),
    ("accuracy of the sign alone", lambda row: f"{row.result.sign_accuracy:.2%}"),
)


def probe_record(rows: Sequence[ProbeRow]) -> dict[str, Any]:
    """The table as JSON-ready figures."""
    return {
        "rows": [
            {
                "name": row.name,
                "blocks": row.blocks,
                "near_until": row.near_until,
                "far_from": row.far_from,
                **_result_record(row.result),
                "near": _result_record(row.near),
                "far": _result_record(row.far),
            }
            for row in rows
        ]
    }


def _result_record(result: ProbeResult) -> dict[str, Any]:
    return {
        **result._asdict(),
        "total": result.total,
        "accuracy": result.accuracy,
        "interval_95": list(result.interval),
        "sign_accuracy": result.sign_accuracy,
    }
