"""A slow referee of WallGo in plain Python, written from the rules and not from the engine.

Cells are (row, column) pairs and a wall is the pair of cells that it parts, so that nothing here
can share a mistake with bitboards. Rules come as the `rules` object of a record.
"""

import dataclasses
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Cell = tuple[int, int]
Edge = frozenset[Cell]
Turn = tuple[int, Cell, Edge | None]
"""Index of a stone among its player's, the cell where it ends or is placed, the wall built."""

UP, RIGHT, DOWN, LEFT = (-1, 0), (0, 1), (1, 0), (0, -1)
SIDES = (UP, RIGHT, DOWN, LEFT)
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))
DIAGONALS = ((-1, -1), (-1, 1), (1, -1), (1, 1))
MOVES = ((0, 0), *STEPS, *((2 * row, 2 * column) for row, column in STEPS), *DIAGONALS)


def neighbour(cell: Cell, side: Cell) -> Cell:
    """The cell over a side, on the board or not."""
    return cell[0] + side[0], cell[1] + side[1]


def edge(cell: Cell, side: Cell) -> Edge:
    """The edge on a side of a cell."""
    return frozenset((cell, neighbour(cell, side)))


@dataclasses.dataclass
class Board:
    """Stones, in order of their index, by player; walls with their builder."""

    size: int
    stones: list[list[Cell]]
    walls: dict[Edge, int]

    def copy(self) -> "Board":
        """The same board, to be changed on its own."""
        return Board(self.size, [list(own) for own in self.stones], dict(self.walls))

    def cells(self) -> list[Cell]:
        """All cells, in the order of their numbers."""
        return [(row, column) for row in range(self.size) for column in range(self.size)]

    def has(self, cell: Cell) -> bool:
        """Whether the cell lies on the board."""
        return 0 <= cell[0] < self.size and 0 <= cell[1] < self.size

    def is_open(self, cell: Cell, side: Cell) -> bool:
        """Whether a side of a cell is neither the border nor walled."""
        return self.has(neighbour(cell, side)) and edge(cell, side) not in self.walls

    def occupied(self) -> set[Cell]:
        """The cells with a stone."""
        return {cell for own in self.stones for cell in own}

    def steps(self, cell: Cell, occupied: set[Cell]) -> Iterator[Cell]:
        """The cells that one step from the cell reaches."""
        for side in SIDES:
            if self.is_open(cell, side) and neighbour(cell, side) not in occupied:
                yield neighbour(cell, side)

    def ends(self, stone: Cell, *, stay_needs_room: bool) -> set[Cell]:
        """The cells where a move of 0, 1 or 2 steps can end; two steps may lead out and back."""
        others = self.occupied() - {stone}
        once = set(self.steps(stone, others))
        twice = {cell for middle in once for cell in self.steps(middle, others)}
        return once | twice if stay_needs_room else once | twice | {stone}

    def spread(self, cells: Iterable[Cell], occupied: set[Cell]) -> dict[Cell, int]:
        """Steps to the cells that some cells reach, round walls and occupied cells."""
        found = dict.fromkeys(cells, 0)
        waiting = list(found)
        for here in waiting:  # grows while it is read
            for there in self.steps(here, occupied):
                if there not in found:
                    found[there] = found[here] + 1
                    waiting.append(there)
        return found

    def distances(self, *players: int, through_stones: bool = False) -> dict[Cell, int]:
        """Steps to the cells that the players' stones reach, round walls and, unless they go
        through them, round all stones."""
        stones = [cell for player in players for cell in self.stones[player]]
        return self.spread(stones, set() if through_stones else self.occupied())

    def regions(self) -> list[set[Cell]]:
        """The connected parts of the board; stones do not part it, walls do."""
        found: list[set[Cell]] = []
        for cell in self.cells():
            if not any(cell in region for region in found):
                found.append({*self.spread([cell], set())})
        return found

    def owners(self, region: set[Cell]) -> set[int]:
        """The players with a stone in the region."""
        return {player for player, own in enumerate(self.stones) if region & set(own)}

    def is_separated(self) -> bool:
        """Whether no region holds stones of two players."""
        return all(len(self.owners(region)) < 2 for region in self.regions())

    def owned_regions(self) -> list[list[set[Cell]]]:
        """For each player, the regions whose stones are all its own."""
        owned: list[list[set[Cell]]] = [[] for _ in self.stones]
        for region in self.regions():
            owners = self.owners(region)
            if len(owners) == 1:
                owned[owners.pop()].append(region)
        return owned

    def territory_cells(self) -> list[set[Cell]]:
        """For each player, its territory."""
        return [set().union(*regions) for regions in self.owned_regions()]


class Game:
    """One game. Ids of actions are those of a `grid` x `grid` grid with the board at its top left.

    Attributes:
      board: the position.
      past: the earlier positions, oldest first.
      player: the player to move.
      over: whether the game has ended.
    """

    def __init__(self, rules: Mapping[str, Any], *, grid: int | None = None) -> None:
        self.rules = rules
        self.grid = rules["size"] if grid is None else grid
        self.players: int = rules["players"]
        self.board = Board(rules["size"], [[] for _ in range(self.players)], {})
        for row, column, player in rules["start"]:
            self.board.stones[player].append((row, column))
        self.walls_left = [rules["walls"]] * self.players
        self.past: list[Board] = []
        self.over = False
        self._turns: dict[int, Turn] | None = None
        if rules["order"]:
            self.player = rules["order"][0]
        else:
            self._pass_turn_from(0)

    def in_setup(self) -> bool:
        """Whether stones are still being placed."""
        return len(self.past) < len(self.rules["order"])

    def turns(self) -> dict[int, Turn]:
        """The turn of every legal action of the player to move."""
        if self._turns is None:
            found = self._placements() if self.in_setup() else self._plays(self.player)
            self._turns = {} if self.over else dict(found)
        return self._turns

    def legal(self) -> list[int]:
        """The legal public actions, ascending."""
        return sorted(self.turns())

    def territory(self) -> list[int]:
        """Cells of each player's territory."""
        return [len(cells) for cells in self.board.territory_cells()]

    def largest(self) -> list[int]:
        """Cells of each player's largest region."""
        return [max(map(len, own), default=0) for own in self.board.owned_regions()]

    def reach(self, player: int) -> list[int]:
        """The cells where a move of the player can end, walls to build aside; ascending."""
        needs_room = self.rules["stay_needs_room"]
        ends = [
            self.board.ends(stone, stay_needs_room=needs_room)
            for stone in self.board.stones[player]
        ]
        return sorted(self.number(cell) for cell in set().union(*ends))

    def act(self, action: int) -> list[float]:
        """Play an action of the player to move, legal or not, and return the rewards."""
        if self.over:
            return [0.0] * self.players
        if action not in self.turns():
            self.over = True
            return [-share for share in self._share(self.player)]
        mover = self.player
        was_setup = self.in_setup()
        stone, end, wall = self.turns()[action]
        self.past.append(self.board)
        self.board = self.board.copy()
        self.board.stones[mover][stone : stone + 1] = [end]
        if wall is not None:
            self.board.walls[wall] = mover
        self._turns = None
        if not was_setup and self.walls_left[mover] is not None:
            self.walls_left[mover] -= 1
        if self.in_setup():
            self.player = self.rules["order"][len(self.past)]
            return [0.0] * self.players
        self._pass_turn_from(0 if was_setup else mover + 1)
        self.over = self.over or self.board.is_separated()
        return self._payoff(mover) if self.over else [0.0] * self.players

    def number(self, cell: Cell) -> int:
        """The flat index of a cell."""
        return cell[0] * self.grid + cell[1]

    def _placements(self) -> Iterator[tuple[int, Turn]]:
        occupied, placed = self.board.occupied(), len(self.board.stones[self.player])
        for cell in self.board.cells():
            if cell not in occupied:
                yield self.grid**2 * 52 + self.number(cell), (placed, cell, None)

    def _plays(self, player: int) -> Iterator[tuple[int, Turn]]:
        if self.walls_left[player] == 0:
            return
        for index, stone in enumerate(self.board.stones[player]):
            for end in self.board.ends(stone, stay_needs_room=self.rules["stay_needs_room"]):
                move = MOVES.index((end[0] - stone[0], end[1] - stone[1]))
                for wall, side in enumerate(SIDES):
                    if self.board.is_open(end, side):
                        action = self.number(stone) * 52 + move * 4 + wall
                        yield action, (index, end, edge(end, side))

    def _pass_turn_from(self, seat: int) -> None:
        """Give the turn to the first player from the seat on who has one; if none has, it ends."""
        seats = [(seat + ahead) % self.players for ahead in range(self.players)]
        able = [player for player in seats if any(True for _ in self._plays(player))]
        self.player = able[0] if able else seats[0]
        self.over = not able

    def _payoff(self, last_mover: int) -> list[float]:
        territory, largest = self.territory(), self.largest()
        level = [p for p in range(self.players) if territory[p] == max(territory)]
        for rule in self.rules["tie"]:
            if rule == "region":
                most = max(largest[player] for player in level)
                level = [player for player in level if largest[player] == most]
            elif rule == "mover_loses" and len(level) > 1:
                level = [player for player in level if player != last_mover]
        return self._share(level[0]) if len(level) == 1 else [0.0] * self.players

    def _share(self, winner: int) -> list[float]:
        others = -1.0 / (self.players - 1)
        return [1.0 if player == winner else others for player in range(self.players)]


TIES = ((), ("region",), ("mover_loses",), ("region", "mover_loses"), ("mover_loses", "region"))


def random_rules(
    rng: random.Random,
    *,
    sizes: Sequence[int],
    players: int,
    stones: int,
    ties: Sequence[Sequence[str]] = TIES,
) -> dict[str, Any]:
    """A random rule set: some stones placed beforehand, the others in a random order."""
    size = rng.choice([size for size in sizes if size**2 >= players * stones])
    owners = [player for player in range(players) for _ in range(stones)]
    rng.shuffle(owners)
    placed = rng.choice((len(owners), rng.randint(0, len(owners))))
    cells = rng.sample(Board(size, [], {}).cells(), len(owners) - placed)
    is_full = len(cells) == size**2  # nobody would have a first turn if staying needed room
    return {
        "size": size,
        "players": players,
        "stones": stones,
        "start": [[*cell, owner] for cell, owner in zip(cells, owners[placed:], strict=True)],
        "order": owners[:placed],
        "walls": rng.choice((None, rng.randint(1, 2 * size))),
        "stay_needs_room": rng.random() < 0.5 and not is_full,
        "tie": list(rng.choice(ties)),
    }
