"""Makes positions with a question about far cells: is this stone still connected to an enemy's?

They carry over to WallGo the circular and ladder positions of Wu, Wu, Shih, Ju, Wu, "ResTNet:
Defense against Adversarial Policies via Transformer in Computer Go". The board is a maze: corridors
along a random spanning tree of the cells, walls on every other inner edge. Then one more wall
closes a corridor:

                        +-- n steps --> | here: parted --> all enemies, `min_distance` or more
    queried stone ------+                                  steps from the queried stone
                        +-- n steps --> | or here: connected --> no enemy

Positions form pairs that differ only in the place of that one wall. Both places are equally far
from the queried cell, outside its window, between cells with equal numbers of exits, and either
part could hold the enemies: only the corridors show the answer.

What is trained on one half of the questions can be tested on the other without having seen a
corridor of its shape: the shape of the way from the queried stone to a wall, wherever and however
turned it lies, decides the half, and both places of a pair have shapes of the same half. Host side;
the labels are the exact flood of the game.
"""

import functools
import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.devices import broadcast_boards
from train.runtime.errors import check_two_players
from train.runtime.files import write_lines
from train.runtime.host import fetch
from wallgo_jax.board import bitboard
from wallgo_jax.board.geometry import HORIZONTAL, VERTICAL
from wallgo_jax.formats import diagram
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_state
from wallgo_jax.notation import cell_name

MIN_SIZE = 5
WINDOW = 2
"""Cells at most this far apart in row and in column are near: a window of 5x5."""
ALL, TRAINING, HELD_OUT = "all", "training", "held-out"
MAX_DRAWS = 4000
"""Mazes in a row without a suitable pair of cuts, after which the search for one fails."""


class Corridors(NamedTuple):
    """N questions with their answers; pair `i` is `2 i` and `2 i + 1`, in random order.

    The states have no history. Walls, plies and turn agree with one another, but the positions need
    not be reachable.
    """

    states: State  # [N]
    cell: np.ndarray  # int[N] the queried cell, with a stone on it
    is_connected: np.ndarray  # bool[N] whether it is connected to an enemy stone
    distance: np.ndarray  # int[N] steps from the queried cell across the wall


def make_corridors(
    rules: Rules,
    *,
    count: int,
    seed: int,
    min_distance: int = 10,
    shapes: str = ALL,
) -> Corridors:
    """Draw distinct positions: half connected, half parted; in each half the queried stones are Red
    and Blue in turn.

    Args:
      rules: for two players, on a board of size 5 or more.
      count: N, an even number.
      seed: the same seed gives the same positions.
      min_distance: least steps from the queried cell to the nearest enemy; the wall is at least
        half as far away.
      shapes: ALL, or the corridors whose shape is in one half alone, TRAINING or HELD_OUT; see
        `half_of`.

    Raises:
      ValueError: wrong arguments, or no such position is found.
    """
    size, built = rules.size, rules.size**2 - 2 * rules.size + 2  # edges off a tree, and the cut
    check_two_players(rules, "corridors")
    if size < MIN_SIZE:
        raise ValueError(f"corridors: size {size} is below {MIN_SIZE}")
    if rules.walls is not None and 2 * rules.walls <= built:
        raise ValueError(
            f"corridors: a maze of size {size} takes {built} walls, more than two players with "
            f"{rules.walls} each build before the end"
        )
    drawn: set[bytes] = set()
    rng = np.random.default_rng(seed)
    pairs: list[_Pair] = []
    while len(pairs) < count // 2:
        pair = _draw_pair(rules, rng, len(pairs) % 2, min_distance, shapes)
        who = pair.stones.tobytes() + bytes((pair.player, pair.cell))
        keys = {who + walls.tobytes() for walls in pair.walls}
        if not keys & drawn:
            drawn |= keys
            pairs.append(pair)
    return _assemble(rules, pairs, rng)


def half_of(shape: Sequence[int]) -> str:
    """TRAINING or HELD_OUT, for ever the same: the half that a corridor's shape belongs to.

    Args:
      shape: as `MazeTree.shape_to` gives it.
    """
    return (TRAINING, HELD_OUT)[hashlib.sha256(bytes(shape)).digest()[0] % 2]


def write_corridors(path: Path, corridors: Corridors) -> None:
    """Write one JSON object a line: `diagram`, `cell` by name, `is_connected` and `distance`.

    Raises:
      UsageError: the file cannot be written.
    """
    leaves, tree = jax.tree.flatten(fetch(corridors.states))
    grid = corridors.states.grid
    rows = [
        {
            "diagram": diagram.draw(jax.tree.unflatten(tree, state)),
            "cell": cell_name(int(cell), grid=grid),
            "is_connected": bool(connected),
            "distance": int(distance),
        }
        for *state, cell, connected, distance in zip(*leaves, *corridors[1:], strict=True)
    ]
    write_lines(path, map(json.dumps, rows))


# Mazes: random spanning trees of the board's cells with long corridors.


@functools.cache
def _neighbours(size: int) -> list[list[int]]:
    """For each cell, the cells above, left, right and below."""
    steps = ((-1, 0), (0, -1), (0, 1), (1, 0))
    return [
        [
            (row + down) * size + column + right
            for down, right in steps
            if 0 <= row + down < size and 0 <= column + right < size
        ]
        for row, column in np.ndindex(size, size)
    ]


class MazeTree(NamedTuple):
    """A maze from the queried cell outwards. The far cell of an edge names the edge."""

    links: list[list[int]]  # for each cell, the neighbours that it is open to
    order: list[int]  # cells, each after its parent
    parent: list[int]
    depth: list[int]

    def beyond(self, cell: int) -> list[int]:
        """The cells that a wall before this cell shuts off."""
        inside = {cell}
        for each in self.order:
            if self.parent[each] in inside:
                inside.add(each)
        return sorted(inside)

    def count_beyond(self, min_distance: int) -> list[int]:
        """For each cell, how many cells that a wall before it shuts off are so far away."""
        total = [int(depth >= min_distance) for depth in self.depth]
        for cell in reversed(self.order[1:]):
            total[self.parent[cell]] += total[cell]
        return total

    def shape_to(self, cell: int, size: int) -> tuple[int, ...]:
        """The turns on the way to a cell: 0 straight on, 1 and 3 to the sides.

        Ways that a shift, a turn or a mirror image of the board carries into each other have the
        same shape.
        """
        way = [cell]
        while way[-1] != self.order[0]:
            way.append(self.parent[way[-1]])
        # Quarter turns from the step to the right: its next one leads down a row.
        quarters = {1: 0, size: 1, -1: 2, -size: 3}
        steps = [quarters[later - before] for before, later in itertools.pairwise(way[::-1])]
        turns = tuple((later - before) % 4 for before, later in itertools.pairwise(steps))
        return min(turns, tuple(-turn % 4 for turn in turns))


def draw_maze(size: int, rng: np.random.Generator) -> MazeTree:
    """A maze by a random depth-first search, whose trees have long corridors, from a random cell
    in breadth-first order."""
    count = size * size
    waiting = [
        [near for _, near in sorted(zip(ranks, around, strict=False))]
        for ranks, around in zip(rng.random((count, 4)).tolist(), _neighbours(size), strict=True)
    ]
    links: list[list[int]] = [[] for _ in range(count)]
    path = [int(rng.integers(count))]
    visited = {path[0]}
    while path:
        cell = path[-1]
        if not waiting[cell]:
            path.pop()
        elif (near := waiting[cell].pop()) not in visited:
            visited.add(near)
            links[cell].append(near)
            links[near].append(cell)
            path.append(near)
    root = int(rng.integers(count))
    order, parent, depth = [root], [root] * count, [0] * count
    for cell in order:
        for near in links[cell]:
            if near != parent[cell]:
                parent[near], depth[near] = cell, depth[cell] + 1
                order.append(near)
    return MazeTree(links, order, parent, depth)


# Pairs of positions in a maze.


class _Pair(NamedTuple):
    """Two positions that differ in the place of one wall."""

    stones: np.ndarray  # int8[P, S]
    walls: np.ndarray  # uint32[2, P, 2, W]: parted, connected
    built: tuple[int, int]  # walls by player
    player: int
    cell: int
    distance: int


def _draw_pair(
    rules: Rules, rng: np.random.Generator, player: int, min_distance: int, shapes: str
) -> _Pair:
    """Draw a pair in which the queried stone belongs to `player`."""
    for _ in range(MAX_DRAWS):
        tree = draw_maze(rules.size, rng)
        choices = _cuts(rules, tree, min_distance, shapes)
        if not choices:
            continue
        cuts = choices[rng.integers(len(choices))]
        stones = _choose_stones(tree, cuts[0], rng, rules.stones, min_distance)
        taken = {*itertools.chain(*stones)} | {(cut, tree.parent[cut]) for cut in cuts}
        taken |= {(tree.parent[cut], cut) for cut in cuts}
        # Either player has a free neighbour with either cut, and so a legal turn under all rules.
        if all(
            any(not taken & {near, (cell, near)} for cell in cells for near in tree.links[cell])
            for cells in stones
        ):
            return _build(rules, rng, np.array(stones[:: -1 if player else 1], np.int8), tree, cuts)
    raise ValueError(
        f"corridors: found no position of size {rules.size} with {rules.stones} stones a player "
        f"and enemies {min_distance} or more steps away; lower min_distance"
    )


def _cuts(rules: Rules, tree: MazeTree, min_distance: int, shapes: str) -> list[tuple[int, int]]:
    """The pairs of similar edges, either of which could shut off all enemies and one own stone,
    down corridors of the shapes that are asked for."""
    room, size = tree.count_beyond(min_distance), rules.size
    rows, columns = np.divmod(np.arange(size * size), size)
    near = np.maximum(abs(rows - rows[tree.order[0]]), abs(columns - columns[tree.order[0]]))
    by_kind: dict[tuple[int, ...], list[int]] = {}
    for cell in tree.order[1:]:
        before, depth = tree.parent[cell], tree.depth[cell]
        if 2 * depth < min_distance or min(near[cell], near[before]) <= WINDOW:
            continue
        if shapes in (ALL, half_of(tree.shape_to(cell, size))):
            kind = (depth, len(tree.links[before]), len(tree.links[cell]))
            by_kind.setdefault(kind, []).append(cell)
    return [
        pair
        for cells in by_kind.values()
        for pair in itertools.permutations(cells, 2)
        if min(room[cut] for cut in pair) > rules.stones
    ]


def _choose_stones(
    tree: MazeTree, cut: int, rng: np.random.Generator, stones: int, min_distance: int
) -> tuple[list[int], list[int]]:
    """The cells of the player's stones, the queried one among them, and of the enemy's.

    All enemies and one of the player's stones stand beyond the cut, so that the game continues when
    a wall closes it.
    """
    beyond, queried = tree.beyond(cut), tree.order[0]
    deep = [cell for cell in beyond if tree.depth[cell] >= min_distance]
    enemy = rng.permutation(deep)[:stones].tolist()
    with_them = rng.permutation([cell for cell in beyond if cell not in enemy])[:1].tolist()
    taken = {queried, *enemy, *with_them}
    free = rng.permutation([cell for cell in tree.order if cell not in taken]).tolist()
    return rng.permutation([queried, *with_them, *free][:stones]).tolist(), enemy


def _build(
    rules: Rules,
    rng: np.random.Generator,
    stones: np.ndarray,
    tree: MazeTree,
    cuts: tuple[int, int],
) -> _Pair:
    """Build the walls of the maze, half of them by each player at random; if their number is odd,
    the player who does not move next built one more."""
    around = enumerate(_neighbours(rules.size))
    edges = [(low, high) for low, near in around for high in near if high > low]
    edges = [(low, high) for low, high in edges if high not in tree.links[low]]
    first = int(rng.integers(2))
    builders = rng.permutation((np.arange(len(edges) + 1) + first) % 2).tolist()
    built = (builders.count(0), builders.count(1))
    player = first if built[0] == built[1] else int(np.argmin(built))
    walls = np.zeros((2, 2, 2, bitboard.num_words(rules.size)), np.uint32)
    for place, cut in enumerate(cuts):
        last = (min(tree.parent[cut], cut), max(tree.parent[cut], cut))
        for (low, high), builder in zip([*edges, last], builders, strict=True):
            kind = VERTICAL if high == low + 1 else HORIZONTAL
            walls[place, builder, kind, low // 32] |= np.uint32(1 << low % 32)
    return _Pair(stones, walls, built, player, tree.order[0], tree.depth[cuts[0]])


def _assemble(rules: Rules, pairs: list[_Pair], rng: np.random.Generator) -> Corridors:
    """The positions as one batch, with the referee's labels."""
    first = rng.integers(2, size=len(pairs))
    version = np.stack([first, 1 - first], axis=1).ravel()  # [N] index into a pair's walls
    stones, walls, built, player, cell, distance = (
        np.repeat(np.array(column), 2, axis=0) for column in zip(*pairs, strict=True)
    )
    variant, blank = broadcast_boards(initial_state(rules), len(version))
    position = blank._replace(
        stones=jnp.asarray(stones),
        walls=jnp.asarray(walls[np.arange(len(version)), version]),
        walls_left=blank.walls_left - jnp.asarray(built, jnp.int16),
        player=jnp.asarray(player, jnp.int8),
        ply=jnp.asarray(len(rules.order) + built.sum(axis=1), jnp.int16),
    )
    is_connected, is_over = fetch(_label(State(variant, position), jnp.asarray(cell)))
    assert (is_connected == version).all(), "the referee's flood contradicts the maze"
    states = State(variant, position._replace(terminated=jnp.asarray(is_over)))
    return Corridors(states, cell, is_connected, distance)


@jax.jit
def _label(states: State, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
    """bool[N] whether the stone on each cell is connected to an enemy stone, bool[N] whether the
    game is over."""

    def label(state: State, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
        terrain = terrain_lib.read_terrain(*state)
        red, blue = reached = terrain_lib.regions(terrain)
        is_red = bitboard.contains(terrain.stones[0], cell) != 0
        is_connected = bitboard.contains(bitboard.where(is_red, blue, red), cell) != 0
        return is_connected, terrain_lib.is_separated(terrain, reached)

    return jax.vmap(label)(states, cell)
