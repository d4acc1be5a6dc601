"""Placements turn by turn with the board's symmetries taken out, and minimax over them.

Symmetries are those of the rules' start: turned by one of them, it has the same stones. A turn is
all placements of one player between two of the other; the boards after the last turn are the
setups. Values are Red's expected score.

G games, D plies or placements, K symmetries, M positions.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.devices import broadcast_boards
from train.runtime.host import fetch
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.game import referee, symmetry
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.game.state import State, initial_state, make_variant
from wallgo_jax.notation import cell_name

Plies = tuple[int, ...]


def start_symmetries(rules: Rules) -> list[int]:
    """The symmetries that leave each player's stones of the start where they are."""
    variant = jax.tree.map(jnp.asarray, make_variant(rules))
    numbers = range(NUM_SYMMETRIES)
    turned = [symmetry.turn_cells(variant.start, jnp.int32(each), variant) for each in numbers]
    alike = (np.sort(turned) == np.sort(variant.start)).reshape(NUM_SYMMETRIES, -1).all(axis=1)
    return np.flatnonzero(alike).tolist()


def turned_actions(rules: Rules, actions: np.ndarray) -> np.ndarray:
    """int32[K, G, D]: actions [G, D] under each symmetry of the start; NO_ACTION stays."""
    variant = jax.tree.map(jnp.asarray, make_variant(rules))
    is_action = actions != NO_ACTION
    filled = jnp.asarray(np.where(is_action, actions, 0))
    turned = [
        fetch(symmetry.turn_action(filled, jnp.int32(number), variant))
        for number in start_symmetries(rules)
    ]
    return np.where(is_action, np.stack(turned), NO_ACTION)


def setup_of(rules: Rules, placed: Sequence[int]) -> Plies:
    """The placements in any order, sorted: player, cell, player, cell, ..."""
    pairs = sorted(zip(rules.order, placed, strict=False))
    return tuple(number for pair in pairs for number in pair)


class Turn(NamedTuple):
    """The positions after a turn of placements."""

    player: int  # who places in it
    cells: np.ndarray  # int32[M, D], placements from the first on
    parent: np.ndarray  # int[M], the position before the turn, in rising order


def turns_of(rules: Rules) -> list[tuple[int, int]]:
    """Player and number of placements of each turn."""
    return [(player, len(list(own))) for player, own in itertools.groupby(rules.order)]


def place(rules: Rules, cells: Any) -> State:
    """The states [M] after placements int32[M, D]; in setup slots are cells."""
    states = broadcast_boards(initial_state(rules), len(cells))
    return jax.lax.scan(
        lambda at, slot: (jax.vmap(referee.play)(at, slot)[0], None), states, cells.T
    )[0]


def place_by_turns(
    rules: Rules, beam: Sequence[int], value: Callable[[np.ndarray], np.ndarray]
) -> list[Turn]:
    """All placements up to the symmetries of the first turn, or a beam of them.

    Args:
      rules: of two players.
      beam: for each turn but the last, the choices of its player that are kept; 0 keeps all.
      value: Red's expected score of positions int32[M, D].
    """
    cells, tree = np.zeros((1, 0), np.int32), []
    for (player, count), width in zip(turns_of(rules), (*beam, 0), strict=True):
        cells, parent = _expand(rules, cells, count)
        kept = np.arange(len(cells)) if tree else representatives(rules, cells)
        if width:
            kept = kept[best_of_each(parent[kept], value(cells[kept]), player, width)]
            kept = np.sort(kept)
        cells, parent = cells[kept], parent[kept]
        tree.append(Turn(player, cells, parent))
    return tree


def _expand(rules: Rules, cells: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions after `count` more stones of one player, and the positions before."""
    is_free = np.ones((len(cells), rules.size**2), bool)
    is_free[:, [row * rules.size + column for row, column, _ in rules.start]] = False
    np.put_along_axis(is_free, cells, False, axis=1)
    free = np.nonzero(is_free)[1].reshape(len(cells), -1).astype(np.int32)
    chosen = np.array(list(itertools.combinations(range(free.shape[1]), count)))
    parent = np.repeat(np.arange(len(cells)), len(chosen))
    return np.concatenate([cells[parent], free[:, chosen].reshape(-1, count)], axis=1), parent


def representatives(rules: Rules, cells: np.ndarray) -> np.ndarray:
    """int[...]: the first of each set of positions [M] that a symmetry turns into one another."""
    turned = turned_actions(rules, cells + first_placement(rules.size))
    copies = np.sort(turned, axis=2).astype(np.int64)
    codes = (copies * rules.size ** (8 * np.arange(copies.shape[2])[::-1])).sum(axis=2)
    return np.flatnonzero(codes[0] == codes.min(axis=0))


def best_of_each(parent: np.ndarray, red: np.ndarray, player: int, width: int) -> np.ndarray:
    """int[...]: the `width` best of the positions [M] after each parent for a player, who places
    last in them, the best first; 0 for all."""
    order = np.lexsort((-red if player == 0 else red, parent))
    rank = np.arange(len(order)) - np.searchsorted(parent[order], parent[order])
    return order[rank < width] if width else order


def back_up(tree: Sequence[Turn], red: np.ndarray) -> list[np.ndarray]:
    """Values of the positions after each turn, given those float[M] after the last one."""
    values = [red]
    for turn in tree[:0:-1]:
        best = best_of_each(turn.parent, values[0], turn.player, 1)
        values.insert(0, values[0][best])
    return values


def best_lines(tree: Sequence[Turn], red: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """int[...]: setups to which the best choices of each turn lead.

    Args:
      tree: its turns.
      red: float[M], values after the last one.
      widths: choices of each turn; 0 for all.
    """
    chosen = np.zeros(1, int)
    for turn, value, width in zip(tree, back_up(tree, red), widths, strict=True):
        under = np.flatnonzero(np.isin(turn.parent, chosen))
        chosen = under[best_of_each(turn.parent[under], value[under], turn.player, width)]
    return np.sort(chosen)


def line_of_each_first(tree: Sequence[Turn], red: np.ndarray) -> np.ndarray:
    """int[...]: the setup that best placements lead to after each choice of the first turn."""
    return best_lines(tree, red, (0,) + (1,) * (len(tree) - 1))


def distinct(rules: Rules, cells: np.ndarray) -> np.ndarray:
    """The setups [K, D] without those that are turned copies of earlier ones."""
    turned = turned_actions(rules, cells + first_placement(rules.size)).swapaxes(0, 1)
    keys = [min(setup_of(rules, copy) for copy in copies) for copies in turned.tolist()]
    return cells[sorted({key: row for row, key in reversed([*enumerate(keys)])}.values())]


def in_words(rules: Rules, cells: np.ndarray) -> str:
    """Placements, the turns parted by commas, as `D3, B4 E5, C6`."""
    names = iter(cell_name(int(cell), grid=rules.size) for cell in cells)
    return ", ".join(" ".join(itertools.islice(names, count)) for _, count in turns_of(rules))
