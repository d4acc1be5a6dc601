"""The rules of a game as plain data, checked when they are made; the published sets by name."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from wallgo_jax.board.geometry import MAX_GRID, MIN_GRID, SIDE_OFFSETS

REGION = "region"
MOVER_LOSES = "mover_loses"
TIE_RULES = (REGION, MOVER_LOSES)
MIN_PLAYERS, MAX_PLAYERS = 2, 4
MAX_STONES = 4
MAX_WALLS = 1000


@dataclasses.dataclass(frozen=True)
class Rules:
    """One set of rules. The fields are the keys of `rules` in record files.

    Lists are accepted and kept as tuples.

    Attributes:
      size: side length of the square board, 3 to 9.
      players: number of players, 2 to 4; player 0 is Red.
      stones: stones per player, 1 to 4.
      start: stones on the board at the beginning, as (row, column, player), zero-based from the
        top left; their order here is the order of a player's stone indices.
      order: the player of each placement, in turn; empty when `start` holds every stone.
      walls: walls each player may build, None for no limit.
      stay_needs_room: whether a stone may stay (and build) only if it could step out and back.
      tie: tie-breaks after territory, in order: `region` keeps the largest single region,
        `mover_loses` drops whoever made the last move.

    Raises:
      ValueError: in one line, which field is wrong and what is allowed.
    """

    size: int = 7
    players: int = 2
    stones: int = 4
    start: tuple[tuple[int, int, int], ...] = ()
    order: tuple[int, ...] = (0, 1, 1, 0, 0, 1, 1, 0)
    walls: int | None = None
    stay_needs_room: bool = False
    tie: tuple[str, ...] = (REGION,)

    def __post_init__(self) -> None:
        _check_range("size", self.size, MIN_GRID, MAX_GRID)
        _check_range("players", self.players, MIN_PLAYERS, MAX_PLAYERS)
        _check_range("stones", self.stones, 1, MAX_STONES)
        if self.walls is not None:
            _check_range("walls", self.walls, 1, MAX_WALLS)
        if not isinstance(self.stay_needs_room, bool):
            raise ValueError(
                f"rules: stay_needs_room is {self.stay_needs_room!r}, not true or false"
            )
        _check_sequence("start", self.start)
        for stone in self.start:
            _check_sequence("start", stone)
        _check_sequence("order", self.order)
        _check_sequence("tie", self.tie)
        object.__setattr__(self, "start", tuple(tuple(stone) for stone in self.start))
        object.__setattr__(self, "order", tuple(self.order))
        object.__setattr__(self, "tie", tuple(self.tie))
        self._check_start()
        self._check_order()
        self._check_tie()
        first_player(self)

    def _check_start(self) -> None:
        cells = set()
        for stone in self.start:
            if len(stone) != 3:
                raise ValueError(f"rules: start has {list(stone)}, not [row, column, player]")
            row, column, player = stone
            _check_range("start: row", row, 0, self.size - 1)
            _check_range("start: column", column, 0, self.size - 1)
            _check_range("start: player", player, 0, self.players - 1)
            if (row, column) in cells:
                raise ValueError(f"rules: start puts two stones on row {row}, column {column}")
            cells.add((row, column))

    def _check_order(self) -> None:
        if self.players * self.stones > self.size**2:
            raise ValueError(
                f"rules: {self.players} players with {self.stones} stones each do not fit on "
                f"{self.size}x{self.size} cells"
            )
        for player in self.order:
            _check_range("order: player", player, 0, self.players - 1)
        for player in range(self.players):
            placed = sum(stone[2] == player for stone in self.start)
            total = placed + self.order.count(player)
            if total != self.stones:
                raise ValueError(
                    f"rules: start and order give player {player} {total} stones, not "
                    f"{self.stones}; name the player of each placement in order"
                )

    def _check_tie(self) -> None:
        for rule in self.tie:
            if rule not in TIE_RULES:
                raise ValueError(f"rules: tie has {rule!r}, not one of {', '.join(TIE_RULES)}")
        if len(set(self.tie)) != len(self.tie):
            raise ValueError(f"rules: tie names a rule twice: {list(self.tie)}")

    @property
    def max_plies(self) -> int:
        """The most plies of a game: every play builds a wall on one of the inner edges."""
        return len(self.order) + 2 * self.size * (self.size - 1)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Rules":
        """Make rules from a record's `rules` object; an unknown key is refused by name."""
        known = [field.name for field in dataclasses.fields(cls)]
        for key in fields:
            if key not in known:
                raise ValueError(f"rules: unknown key {key!r}; known keys: {', '.join(known)}")
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as JSON-ready data, with lists for tuples."""
        fields = dataclasses.asdict(self)
        fields["start"] = [list(stone) for stone in self.start]
        fields["order"] = list(self.order)
        fields["tie"] = list(self.tie)
        return fields


def first_player(rules: Rules) -> int:
    """Return the player of the first ply.

    The first placement decides, or, where `start` holds every stone, the first player who has a
    legal turn on the board without walls.

    Raises:
      ValueError: nobody has a legal turn.
    """
    if rules.order:
        return rules.order[0]
    if not rules.stay_needs_room:
        return 0
    taken = {(row, column) for row, column, _ in rules.start}
    cells = {(row, column) for row in range(rules.size) for column in range(rules.size)}
    movers = [
        player
        for row, column, player in rules.start
        for down, across in SIDE_OFFSETS
        if (row + down, column + across) in cells - taken
    ]
    if not movers:
        raise ValueError(
            "rules: start fills the board, and stay_needs_room then leaves nobody a turn"
        )
    return min(movers)


def _check_range(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"rules: {name} is {value!r}, not a whole number from {low} to {high}")


def _check_sequence(name: str, value: Any) -> None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"rules: {name} is {value!r}, not a list")


_DEVILS_PLAN_START = ((5, 1, 0), (1, 5, 0), (1, 1, 1), (5, 5, 1))
_PLAY_WALL_GO = {"walls": 20, "stay_needs_room": True, "tie": ()}

PRESETS: dict[str, Rules] = {
    # WallZero (Chen, Arjonilla, Wu, Wu), slides "Rules of WallGo in Two-player".
    "wallzero-4stone": Rules(start=_DEVILS_PLAN_START, order=(0, 1, 1, 0)),
    "wallzero-empty": Rules(),
    # Hong Kong Olympiad in Informatics, AI Competition 2025, "Wall Go - Small details".
    "hkoi": Rules(tie=(REGION, MOVER_LOSES)),
    # Play Wall Go, "Complete Rules".
    "playwallgo-2p": Rules(order=(0, 1) * 4, **_PLAY_WALL_GO),
    "playwallgo-3p": Rules(players=3, stones=2, order=(0, 1, 2) * 2, **_PLAY_WALL_GO),
    "playwallgo-4p": Rules(players=4, stones=2, order=(0, 1, 2, 3) * 2, **_PLAY_WALL_GO),
}


def named(name_or_rules: "str | Mapping[str, Any] | Rules") -> Rules:
    """Return the rules of a preset's name, or of a dict of their fields; rules pass through.

    Raises:
      ValueError: for an unknown name or field, with those there are, or a value that is not
        allowed.
    """
    if isinstance(name_or_rules, Rules):
        return name_or_rules
    if isinstance(name_or_rules, Mapping):
        return Rules.from_dict(name_or_rules)
    if not isinstance(name_or_rules, str):
        raise ValueError(
            f"rules: {name_or_rules!r} is neither wallgo_jax.Rules, a dict of their fields, nor "
            f"the name of a preset; known presets: {', '.join(PRESETS)}"
        )
    if name_or_rules not in PRESETS:
        raise ValueError(
            f"rules: unknown preset {name_or_rules!r}; known presets: {', '.join(PRESETS)}"
        )
    return PRESETS[name_or_rules]


def name_of(rules: Rules) -> str:
    """Return the preset's name, or `custom`."""
    return next((name for name, preset in PRESETS.items() if preset == rules), "custom")
