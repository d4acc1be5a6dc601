"""The rules that each board of a run's self-play plays; B boards."""

from typing import Any

import jax
import numpy as np

from train.config import RunConfig
from train.game import Rules, Variant, make_variant


def rule_set_of_boards(config: RunConfig) -> np.ndarray:
    """int[B]: the number of each board's rule set.

    Boards are shared in proportion to the weights, at least one each, and dealt in turn, so that
    any run of neighbouring boards, such as a device's, has nearly the same shares.
    """
    boards = config.selfplay.boards
    weights = np.array([each.weight for each in config.rule_sets])
    # One each, the rest by largest remainders.
    exact = np.maximum(weights / weights.sum() * boards, 1.0)
    while exact.sum() > boards + 1e-9:
        spare = exact > 1.0
        exact[spare] *= 1 - (exact.sum() - boards) / exact[spare].sum()
        exact = np.maximum(exact, 1.0)
    counts = np.floor(exact + 1e-9).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: boards - counts.sum()]] += 1
    assert counts.sum() == boards
    place = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner[np.argsort(place, kind="stable")]


def rules_of_board(config: RunConfig, board: int) -> Rules:
    """The rules that a board plays."""
    return config.learned[int(rule_set_of_boards(config)[board])]


def variants_of(config: RunConfig) -> Variant:
    """The rules of each board, NumPy arrays [B]: in one grid, with room for the most stones."""
    # In NumPy: nothing is on a device until each process places its own part.
    variants = [
        make_variant(rules, grid=config.grid_side, stones=config.stones) for rules in config.learned
    ]
    boards = rule_set_of_boards(config)

    def lay_out(*leaves: Any) -> np.ndarray:
        if len(leaves) == 1:
            return np.broadcast_to(np.asarray(leaves[0]), (len(boards), *np.shape(leaves[0])))
        return np.stack(leaves)[boards]

    return jax.tree.map(lay_out, *variants)
