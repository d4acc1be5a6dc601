"""Names and scores moves by the win chance that they lose."""

import math
from collections.abc import Iterable
from typing import NamedTuple

BEST, GOOD, INACCURACY, MISTAKE, BLUNDER = "best", "good", "inaccuracy", "mistake", "blunder"
FORCED = "forced"
LIMITS = {INACCURACY: 0.05, MISTAKE: 0.10, BLUNDER: 0.20}
"""Least loss of win chance of a move of each name; one that loses less is good."""
MARKS = {INACCURACY: "?!", MISTAKE: "?", BLUNDER: "??"}
"""The signs of annotated games."""


class Grade(NamedTuple):
    """A move's name, loss and accuracy."""

    name: str
    loss: float  # of win chance, from 0 to 1
    accuracy: float  # in per cent


def grade_move(before: float, after: float, *, is_best: bool, is_forced: bool) -> Grade:
    """Grade a move.

    Its accuracy is 100 % without a loss, about 64 for a loss of 0.1: the curve of Lichess ("Lichess
    Accuracy metric"), which was fitted to games of chess.

    Args:
      before: the mover's win chance, if it plays the best move.
      after: its win chance after the move.
      is_best: it is the move that the analysis would have played; it loses nothing, whatever a
        search one ply later says.
      is_forced: there was no other move.
    """
    loss = 0.0 if is_best or is_forced else max(0.0, before - after)
    name = FORCED if is_forced else BEST if is_best else GOOD
    for each, least in LIMITS.items():
        name = each if loss >= least else name
    accuracy = 103.1668 * math.exp(-4.354 * loss) - 3.1669
    return Grade(name, loss, min(100.0, max(0.0, accuracy)))


def side_accuracy(grades: Iterable[Grade]) -> float | None:
    """The mean accuracy of a side's moves in per cent, forced ones left out; None without any."""
    scores = [grade.accuracy for grade in grades if grade.name != FORCED]
    return sum(scores) / len(scores) if scores else None
