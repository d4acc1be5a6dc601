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
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.experiments.corridor_positions import HELD_OUT, TRAINING, Corridors, make_corridors
from train.learning.frozen_head import fit_head, head_scores
from train.network import NetworkConfig, Variables, channels_of, network_for, observer_for
from train.runtime.host import fetch, in_batches
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

BATCH = 512
SURE = 0.5
"""An output answers the question if its absolute value exceeds this."""
CELL, BOARD = "cell", "board"
READS = (CELL, BOARD)
"""A head's input: features of the queried cell, or these with means and maxima of the board."""
_WALLS = (0, "horizontal"), (0, "vertical")

Features = Callable[[State, State], jax.Array]
"""(states [B], the same before their last wall) -> float32[B, H, W, F]"""


class ProbeResult(NamedTuple):
    """Counts of the answers; unknown ones count as incorrect."""

    correct: int
    unknown: int
    wrong: int
    sign_correct: int  # scores with the right sign

    def share(self, entry: str) -> float:
        """The share of an entry among all answers."""
        return getattr(self, entry) / max(sum(self[:3]), 1)


class Questions(NamedTuple):
    """Corridors of different shapes: those that a head learns from, and those that it is asked."""

    training: Corridors
    held_out: Corridors


Answers = Mapping[int, ProbeResult]
"""Counts for each distance."""


def draw_questions(
    rules: Rules, *, count_train: int, count_test: int, min_distance: int, seed: int
) -> Questions:
    """Draw balanced questions for a head; each seed draws others.

    Raises:
      ValueError: see `make_corridors`.
    """
    draw = functools.partial(make_corridors, rules, min_distance=min_distance)
    return Questions(
        draw(count=count_train, seed=2 * seed, shapes=TRAINING),
        draw(count=count_test, seed=2 * seed + 1, shapes=HELD_OUT),
    )


def ask(features_of: Features, questions: Questions, *, read: str, seed: int) -> Answers:
    """Train a head of a seed on a trunk's features, of which it reads one of READS, and count its
    answers to the held-out questions."""
    known, held_out = (read_features(features_of, each, read=read) for each in questions)
    head = fit_head(known, questions.training.is_connected, seed=seed)
    scores, asked = fetch(head_scores(head, held_out)), questions.held_out
    places = {int(distance): asked.distance == distance for distance in np.unique(asked.distance)}
    return {
        distance: verdict(scores[place], asked.is_connected[place])
        for distance, place in places.items()
    }


def verdict(scores: np.ndarray, labels: np.ndarray) -> ProbeResult:
    """Count float[N] outputs against bool[N] labels."""
    signed = np.where(labels, scores, -scores)
    correct, wrong = int((signed > SURE).sum()), int((signed < -SURE).sum())
    return ProbeResult(correct, len(signed) - correct - wrong, wrong, int((signed > 0).sum()))


def add_results(results: Iterable[ProbeResult]) -> ProbeResult:
    """The counts of all."""
    return ProbeResult(*np.sum([(0, 0, 0, 0), *results], axis=0).tolist())


def read_features(features_of: Features, corridors: Corridors, *, read: str) -> np.ndarray:
    """A head's input for each question, computed BATCH positions at a time: float32[N, F] of the
    queried cell, or float32[N, 3 F] with means and maxima over the board."""

    def read_off(shown: tuple[State, State, np.ndarray]) -> tuple[jax.Array]:
        states, earlier, cell = shown
        features = features_of(states, earlier)
        inputs = [features[np.arange(len(cell)), *np.divmod(cell, states.grid)]]
        if read == BOARD:
            inputs += [features.mean(axis=(1, 2)), features.max(axis=(1, 2))]
        return (jnp.concatenate(inputs, axis=-1),)

    shown = corridors.states, before_last_wall(corridors.states), corridors.cell
    return in_batches(read_off, shown, BATCH)[0]


def before_last_wall(states: State) -> State:
    """The states of corridors without the wall in which the two of each pair differ."""
    variant, position = states
    pairs = position.walls.reshape(-1, 2, *position.walls.shape[1:])
    return State(variant, position._replace(walls=jnp.repeat(pairs[:, 0] & pairs[:, 1], 2, axis=0)))


def trunk_features(network: NetworkConfig, variables: Variables | None, seed: int) -> Features:
    """A frozen trunk as a function of states; a new one of this seed where there are no weights.

    It sees the walls as they are. All other planes are those before the last wall: floods made some
    of them, and would tell what it cut off.
    """
    if variables is None:
        variables = network_for(network, 2).init(jax.random.key(seed))
    return functools.partial(_features, variables, config=network)


@functools.partial(jax.jit, static_argnames="config")
def _features(
    variables: Variables, states: State, earlier: State, *, config: NetworkConfig
) -> jax.Array:
    shown = shown_planes(states, earlier, config)
    return network_for(config, 2).features(variables, shown).astype(jnp.float32)


def shown_planes(states: State, earlier: State, config: NetworkConfig) -> jax.Array:
    """bool[B, H, W, C]: what a trunk sees of states, see `trunk_features`."""
    observe = jax.vmap(observer_for(config))
    is_wall = np.array([(each.age, each.kind) in _WALLS for each in channels_of(config, 2)])
    return jnp.where(is_wall[None, None, None], observe(states, None), observe(earlier, None))
