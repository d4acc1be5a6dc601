"""Chooses the next pairing in a pool too large for all to meet all.

First meetings that connect the pool, then, one after the other, the one whose games say most about
the ratings. By the normal approximation a pairing of `n` games with expected score `p` between
players whose lead has variance `v` is worth `½ · log(1 + n · p · (1 − p) · v)` nats (Lindley, "On a
Measure of the Information Provided by an Experiment", 1956; Chaloner & Verdinelli, "Bayesian
Experimental Design: A Review", 1995, on D-optimality): games go where players are close and their
distance is uncertain. At a table with win chances `p` and the covariance `C` of the players'
log-odds they are worth `½ · log det(1 + n · (diag p − p pᵀ) · C)`.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from train.arena.elo import ELO, Ratings, choice_information, expected_score

Pairing = tuple[str, ...]


def skeleton(runs: Sequence[Sequence[str]], anchors: Sequence[str]) -> list[Pairing]:
    """The pairings that are always played; they connect all players.

    Each generation of a run meets the next, each anchor the next, the first generation every
    anchor, the last one the last anchor; the last generations of runs meet one another in turn.

    Args:
      runs: players of each run, oldest first.
      anchors: weakest first.
    """
    filled = [run for run in runs if run]
    pairs: list[Pairing] = []
    for line in (*filled, anchors):
        pairs += itertools.pairwise(line)
    for run in filled:
        pairs += [(run[0], anchor) for anchor in anchors]
        pairs += [(run[-1], anchor) for anchor in anchors[-1:]]
    pairs += itertools.pairwise([run[-1] for run in filled])
    return list(dict.fromkeys(pairs))


def chain(names: Sequence[str], seats: int) -> list[Pairing]:
    """Tables of neighbours that connect all players, each sharing a player with the next."""
    starts = range(0, max(1, len(names) - 1), seats - 1)
    last = len(names) - seats
    return list(dict.fromkeys(tuple(names[min(s, last) : min(s, last) + seats]) for s in starts))


def information_gain(ratings: Ratings, games: int) -> np.ndarray:
    """Expected information of further games of each pairing, in nats, [N, N]; −inf on the
    diagonal."""
    cov = ratings.covariance / ELO**2
    diagonal = np.diag(cov)
    variance = np.maximum(diagonal[:, None] + diagonal[None, :] - 2 * cov, 0)
    lead = ratings.elo[:, None] - ratings.elo[None, :]
    # An uncertain lead is nearer to an even one than it looks (MacKay, "The Evidence Framework
    # Applied to Classification Networks", 1992).
    expected = expected_score(lead / np.sqrt(1 + np.pi / 8 * variance))
    gain = 0.5 * np.log1p(games * expected * (1 - expected) * variance)
    np.fill_diagonal(gain, -np.inf)
    return gain


def most_informative(ratings: Ratings, seats: int, games: int) -> Pairing:
    """Choose the pairing, or the table of more seats, with the largest gain, the first of equals in
    the pool's order."""
    if seats == 2:
        gain = np.round(information_gain(ratings, games), 9)
        chosen = np.unravel_index(int(np.argmax(gain)), gain.shape)
        return tuple(ratings.names[int(player)] for player in chosen)
    tables = np.array(list(itertools.combinations(range(len(ratings.names)), seats)))
    chances = softmax(ratings.elo[tables] / ELO, axis=1)
    covariance = ratings.covariance[tables[:, :, None], tables[:, None, :]] / ELO**2
    grown = np.eye(seats) + games * choice_information(chances) @ covariance
    gain = np.round(np.linalg.slogdet(grown)[1], 9)
    return tuple(ratings.names[player] for player in tables[int(np.argmax(gain))])
