"""The planes of an observation by name: which channels a plane set has, and in which order.

Plane sets are named as in WallZero (Chen, Arjonilla, Wu, Wu), "WallZero Feature Designs": B board,
T territory, R reachability, H four past positions. The others are not WallZero's. D shows distances
in turns, L longer ones, W those round walls alone, as if no stone stood in the way. V names the
variant for a network that plays several: all ones or all zeros over the board.
Nothing here needs JAX, so that a config can be checked without it.
"""

from typing import NamedTuple

_WALLZEROS = ("B", "BT", "BTR", "BTRH")
_DISTANCES = ("D", "DL", "W", "DW", "DLW")
_WITH_DISTANCES = tuple(f"{planes}{more}" for more in _DISTANCES for planes in ("BTR", "BTRH"))
_WITHOUT_VARIANT = (*_WALLZEROS, *_WITH_DISTANCES)
PLANE_SETS = (*_WITHOUT_VARIANT, *(f"{planes}V" for planes in _WITHOUT_VARIANT))
DEFAULT_PLANES = "BTRH"
HISTORY_LENGTH = 4
"""Past positions that H shows; a position's trail holds as many plies."""
DISTANCE_TURNS = (2, 3, 4)
"""Turns of which D shows the cells within reach, a plane for each player; R shows one turn."""
LONGER_TURNS = (5, 6, 7)
"""Turns of which L shows the cells within reach: with those of R and D the whole distance."""
NEARER_TURNS = 7
"""Turns up to which D and W compare who reaches a cell first."""
WALLS_LEFT_STEPS = (0, 2, 5, 10)
"""Planes of V that tell walls left: one for "more than this many", for each player."""


class Channel(NamedTuple):
    """One plane: what it shows, of which player, how many plies ago."""

    kind: str
    player: int | None = None
    age: int = 0

    def __str__(self) -> str:
        owner = "" if self.player is None else f" {self.player}"
        return f"{self.kind}{owner}" + (f" -{self.age}" if self.age else "")


def channels(planes: str, players: int, *, has_playable: bool = False) -> tuple[Channel, ...]:
    """The channels of a plane set, in order.

    For two players: 8 (B), 11 (BT), 13 (BTR) or 49 (BTRH), 8 more with D, 6 with L, 8 with W, 12
    with V, and one more where playable cells show.

    Raises:
      ValueError: for an unknown plane set.
    """
    check_planes(planes)
    who = range(players)
    table = _board_channels(players, 0)
    table += [Channel("turn", player) for player in who]
    if "T" in planes:
        table += _territory_channels(players, 0)
    if "R" in planes:
        table += [Channel("reach", player) for player in who]
    if "D" in planes:
        kinds = [*(f"reach{turns}" for turns in DISTANCE_TURNS), "nearer"]
        table += [Channel(kind, player) for kind in kinds for player in who]
    if "L" in planes:
        table += [Channel(f"reach{turns}", player) for turns in LONGER_TURNS for player in who]
    if "W" in planes:
        kinds = [*(f"walk{turns}" for turns in DISTANCE_TURNS), "walk_nearer"]
        table += [Channel(kind, player) for kind in kinds for player in who]
    if "H" in planes:
        for age in range(1, HISTORY_LENGTH + 1):
            table += _board_channels(players, age) + _territory_channels(players, age)
    if "V" in planes:
        table += [Channel(kind) for kind in ("stay_needs_room", "limited_walls")]
        table += [
            Channel(f"walls_left_over_{step}", player)
            for step in WALLS_LEFT_STEPS
            for player in who
        ]
        table += [Channel(kind) for kind in ("tie_region", "tie_mover_loses")]
    if has_playable:
        table.append(Channel("playable"))
    return tuple(table)


def orders_by_side(table: tuple[Channel, ...], players: int) -> tuple[tuple[int, ...], ...]:
    """For each player, the channels in the order in which it comes first.

    Planes show player 0 first. `planes[..., orders[player]]` renumbers the players in order of
    turn, so that `player` is 0, the one after it 1.
    """
    return tuple(
        tuple(
            table.index(c if c.player is None else c._replace(player=(c.player + side) % players))
            for c in table
        )
        for side in range(players)
    )


def check_planes(planes: str) -> None:
    """Refuse an unknown plane set with a ValueError."""
    if planes not in PLANE_SETS:
        allowed = ", ".join(_WITHOUT_VARIANT)
        raise ValueError(f"planes: {planes!r} is not one of {allowed}, or one of these and V")


def _board_channels(players: int, age: int) -> list[Channel]:
    kinds = ("stone", "horizontal", "vertical")
    return [Channel(kind, player, age) for kind in kinds for player in range(players)]


def _territory_channels(players: int, age: int) -> list[Channel]:
    owned = [Channel("territory", player, age) for player in range(players)]
    return [*owned, Channel("neutral", None, age)]
