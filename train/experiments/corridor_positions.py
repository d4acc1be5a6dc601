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

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.experiments.lib.mazes import (
    MazeBoard,
    MazeTree,
    draw_maze,
    make_board,
    shape_of,
    walk,
)
from train.runtime.devices import broadcast_boards
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
    _check(rules, count=count, min_distance=min_distance)
    drawn: set[bytes] = set()
    rng = np.random.default_rng(seed)
    pairs: list[_Pair] = []
    while len(pairs) < count // 2:
        player = len(pairs) % 2
        pair = _draw_pair(rules, rng, player=player, min_distance=min_distance, shapes=shapes)
        keys = {_key(pair.stones, walls, pair.player, pair.cell) for walls in pair.walls}
        if not keys & drawn:
            drawn |= keys
            pairs.append(pair)
    return _assemble(rules, pairs, rng)


def half_of(shape: Sequence[int]) -> str:
    """TRAINING or HELD_OUT, for ever the same: the half that a corridor's shape belongs to.

    Args:
      shape: as `train.experiments.lib.mazes.shape_of` gives it.
    """
    return (TRAINING, HELD_OUT)[hashlib.sha256(bytes(shape)).digest()[0] % 2]


def write_corridors(path: Path, corridors: Corridors) -> None:
    """Write one JSON object a line: `diagram`, `cell` by name, `is_connected` and `distance`.

    Raises:
      UsageError: the file cannot be written.
    """
    leaves, tree = jax.tree.flatten(fetch(corridors.states))
    grid = corridors.states.grid
    lines = []
    for *state, cell, connected, distance in zip(*leaves, *corridors[1:], strict=True):
        row = {
            "diagram": diagram.draw(jax.tree.unflatten(tree, state)),
            "cell": cell_name(int(cell), grid=grid),
            "is_connected": bool(connected),
            "distance": int(distance),
        }
        lines.append(json.dumps(row))
    write_lines(path, lines)


def _check(rules: Rules, *, count: int, min_distance: int) -> None:
    built = _num_walls(rules.size)
    wrong = {
        f"the rules are for {rules.players} players on size {rules.size}, not for 2 on size "
        f"{MIN_SIZE} or more": rules.players != 2 or rules.size < MIN_SIZE,
        f"count is {count}, not an even number from 2 on": count < 2 or count % 2 != 0,
        f"min_distance is {min_distance}, not at least 1": min_distance < 1,
        f"a maze of size {rules.size} takes {built} walls, more than two players with "
        f"{rules.walls} each build before the end": (
            rules.walls is not None and 2 * rules.walls <= built
        ),
    }
    for complaint, is_wrong in wrong.items():
        if is_wrong:
            raise ValueError(f"corridors: {complaint}")


def _num_walls(size: int) -> int:
    """Number of inner edges outside a spanning tree, plus the cut."""
    return 2 * size * (size - 1) - (size**2 - 1) + 1


class _Pair(NamedTuple):
    """Two positions that differ in the place of one wall."""

    stones: np.ndarray  # int8[P, S]
    walls: np.ndarray  # uint32[2, P, 2, W]: parted, connected
    built: tuple[int, int]  # walls by player
    player: int
    cell: int
    distance: int


def _draw_pair(
    rules: Rules, rng: np.random.Generator, *, player: int, min_distance: int, shapes: str
) -> _Pair:
    """Draw a pair in which the queried stone belongs to `player`."""
    board = make_board(rules.size)
    for _ in range(MAX_DRAWS):
        links = draw_maze(board, rng)
        tree = walk(links, int(rng.integers(len(links))))
        cuts = _choose_cuts(
            board, tree, rng, stones=rules.stones, min_distance=min_distance, shapes=shapes
        )
        if cuts is None:
            continue
        friends, enemy = _choose_stones(tree, cuts[0], rng, rules.stones, min_distance=min_distance)
        stones = np.array([friends, enemy] if player == 0 else [enemy, friends], np.int8)
        if all(_can_step(links, cells, stones, tree, cuts) for cells in stones.tolist()):
            return _build(rules, rng, stones, links, tree, cuts)
    raise ValueError(
        f"corridors: found no position of size {rules.size} with {rules.stones} stones a player "
        f"and enemies {min_distance} or more steps away; lower min_distance"
    )


def _choose_cuts(
    board: MazeBoard,
    tree: MazeTree,
    rng: np.random.Generator,
    *,
    stones: int,
    min_distance: int,
    shapes: str,
) -> tuple[int, int] | None:
    """Two similar edges, either of which could shut off all enemies and one own stone, down
    corridors of the shapes that are asked for."""
    room = tree.add_up([int(depth >= min_distance) for depth in tree.depth])
    is_far = ~board.is_near[tree.order[0]]
    by_kind: dict[tuple[int, ...], list[int]] = {}
    for cell in tree.order[1:]:
        before = tree.parent[cell]
        if 2 * tree.depth[cell] < min_distance or not (is_far[cell] and is_far[before]):
            continue
        if shapes in (ALL, half_of(shape_of(tree, cell))):
            kind = (tree.depth[cell], tree.degree[before], tree.degree[cell])
            by_kind.setdefault(kind, []).append(cell)
    choices = [
        (cut, other)
        for cells in by_kind.values()
        for cut in cells
        for other in cells
        if cut != other and min(room[cut], room[other]) > stones
    ]
    return choices[rng.integers(len(choices))] if choices else None


def _choose_stones(
    tree: MazeTree, cut: int, rng: np.random.Generator, stones: int, *, min_distance: int
) -> tuple[list[int], list[int]]:
    """The cells of the player's stones, the queried one among them, and of the enemy's.

    All enemies and one of the player's stones stand beyond the cut, so that the game continues when
    a wall closes it.
    """
    beyond = tree.beyond(cut)
    deep = [cell for cell in beyond if tree.depth[cell] >= min_distance]
    enemy = rng.permutation(deep)[:stones].tolist()
    queried = tree.order[0]
    with_them = rng.permutation([cell for cell in beyond if cell not in enemy])[:1].tolist()
    taken = {queried, *enemy, *with_them}
    free = rng.permutation([cell for cell in tree.order if cell not in taken]).tolist()
    friends = [queried, *with_them, *free][:stones]
    return rng.permutation(friends).tolist(), enemy


def _can_step(
    links: list[list[int]],
    cells: list[int],
    stones: np.ndarray,
    tree: MazeTree,
    cuts: tuple[int, int],
) -> bool:
    """Whether one of a player's stones has a free neighbour with either cut, and so a legal turn
    under all rules."""
    taken = set(stones.ravel().tolist())
    cut_edges = [{cut, tree.parent[cut]} for cut in cuts]
    return any(
        near not in taken and {cell, near} not in cut_edges
        for cell in cells
        for near in links[cell]
    )


def _build(
    rules: Rules,
    rng: np.random.Generator,
    stones: np.ndarray,
    links: list[list[int]],
    tree: MazeTree,
    cuts: tuple[int, int],
) -> _Pair:
    """Build the walls of the maze, half of them by each player at random; if their number is odd,
    the player who does not move next built one more."""
    edges = [edge for edge in make_board(rules.size).edges if edge[1] not in links[edge[0]]]
    first = int(rng.integers(2))
    builders = rng.permutation((np.arange(len(edges) + 1) + first) % 2).tolist()
    built = (builders.count(0), builders.count(1))
    player = first if built[0] == built[1] else int(np.argmin(built))
    last_edges = [tuple(sorted((tree.parent[cut], cut))) for cut in cuts]
    walls = np.stack([_pack_walls([*edges, last], builders, rules.size) for last in last_edges])
    return _Pair(stones, walls, built, player, tree.order[0], tree.depth[cuts[0]])


def _pack_walls(edges: list[tuple[int, ...]], builders: list[int], size: int) -> np.ndarray:
    """uint32[P, 2, W] as a position holds them."""
    sets = [[0, 0], [0, 0]]
    for (low, high), builder in zip(edges, builders, strict=True):
        sets[builder][VERTICAL if high == low + 1 else HORIZONTAL] |= 1 << low
    words = range(bitboard.num_words(size))
    return np.array(
        [
            [[bits >> 32 * word & 0xFFFFFFFF for word in words] for bits in of_player]
            for of_player in sets
        ],
        np.uint32,
    )


def _key(stones: np.ndarray, walls: np.ndarray, player: int, cell: int) -> bytes:
    return stones.tobytes() + walls.tobytes() + bytes((player, cell))


def _assemble(rules: Rules, pairs: list[_Pair], rng: np.random.Generator) -> Corridors:
    """The positions as one batch, with the referee's labels."""
    count = 2 * len(pairs)
    first = rng.integers(2, size=len(pairs))
    version = np.stack([first, 1 - first], axis=1).ravel()  # [N] index into a pair's walls
    pair_of = np.arange(count) // 2
    built = np.array([pair.built for pair in pairs])[pair_of]
    cell = np.array([pair.cell for pair in pairs])[pair_of]
    fresh = initial_state(rules)
    variant, blank = broadcast_boards(fresh, count)
    position = blank._replace(
        stones=jnp.asarray(np.stack([pair.stones for pair in pairs])[pair_of]),
        walls=jnp.asarray(np.stack([pair.walls for pair in pairs])[pair_of, version]),
        walls_left=blank.walls_left - jnp.asarray(built, jnp.int16),
        player=jnp.asarray(np.array([pair.player for pair in pairs], np.int8)[pair_of]),
        ply=jnp.asarray(len(rules.order) + built.sum(axis=1), jnp.int16),
    )
    labels = _label(State(variant, position), jnp.asarray(cell))
    is_connected, is_over = fetch(labels)
    assert (is_connected == version).all(), "the referee's flood contradicts the maze"
    states = State(variant, position._replace(terminated=jnp.asarray(is_over)))
    distance = np.array([pair.distance for pair in pairs])[pair_of]
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
