"""Ids of actions of a board that lies in a larger grid."""

import numpy as np


def to_grid(actions, size: int, grid: int) -> np.ndarray:
    """int[...]: the ids, in a grid, of actions on a board of its own size."""
    actions = np.asarray(actions)
    is_placement = actions >= size**2 * 52
    cell, play = np.where(is_placement, actions - size**2 * 52, actions // 52), actions % 52
    cell = cell // size * grid + cell % size
    return np.where(is_placement, grid**2 * 52 + cell, cell * 52 + play)
