"""Chooses the next pairing of a pool too large for all to play all.

First a skeleton that connects the pool, then, one after the other, the pairing whose games say
most about the ratings. By the normal approximation a pairing of `n` games with expected score `p`
between players whose lead has variance `v` is worth `½ · log(1 + n · p · (1 − p) · v)` nats
(Lindley, "On a Measure of the Information Provided by an Experiment", 1956; Chaloner & Verdinelli,
"Bayesian Experimental Design: A Review", 1995, on D-optimality): games go where players are close
and their distance is uncertain.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from train.arena.elo import ELO, Ratings, expected_score

Pair = tuple[str, str]


def skeleton(runs: Sequence[Sequence[str]], anchors: Sequence[str]) -> list[Pair]:
    """The pairings that are always played; they connect all players.

    Each generation of a run meets the next, each anchor the next, the first generation every
    anchor, the last one the last anchor; the last generations of runs meet one another in turn.

    Args:
      runs: players of each run, oldest first.
      anchors: weakest first.
    """
    filled = [run for run in runs if run]
    found = [pair for line in (*filled, anchors) for pair in _neighbours(line)]
    for run in filled:
        found += [(run[0], anchor) for anchor in anchors]
        found += [(run[-1], anchor) for anchor in anchors[-1:]]
    found += _neighbours([run[-1] for run in filled])
    return list(dict.fromkeys(found))


def _neighbours(line: Sequence[str]) -> list[Pair]:
    return list(itertools.pairwise(line))


def information_gain(ratings: Ratings, games: int) -> np.ndarray:
    """Expected information of further games of each pairing, in nats, [N, N]; −inf on the
    diagonal."""
    cov = ratings.covariance / ELO**2
    own = np.diag(cov)
    variance = np.maximum(own[:, None] + own[None, :] - 2 * cov, 0)
    lead = ratings.elo[:, None] - ratings.elo[None, :]
    # An uncertain lead is nearer to an even one than it looks (MacKay, "The Evidence Framework
    # Applied to Classification Networks", 1992).
    expected = expected_score(lead / np.sqrt(1 + np.pi / 8 * variance))
    gain = 0.5 * np.log1p(games * expected * (1 - expected) * variance)
    np.fill_diagonal(gain, -np.inf)
    return gain


def most_informative(ratings: Ratings, games: int) -> Pair:
    """Choose the pairing with the largest gain, the first of equals in the pool's order."""
    gain = np.round(information_gain(ratings, games), 9)
    i, j = np.unravel_index(int(np.argmax(gain)), gain.shape)
    return ratings.names[int(i)], ratings.names[int(j)]
