"""The scales of topics that ask trained networks: `corridors` and `padding`."""

import dataclasses

from train.study.scale.checks import check_counts, check_least, check_players
from wallgo_jax.game.rules import PRESETS


@dataclasses.dataclass(frozen=True)
class CorridorsConfig:
    """What frozen trunks know of far corridors.

    Attributes:
      trunks: trained networks without a budget; those whose configs differ in name and seed alone
        are trainings of one trunk.
      blocks: block strings of the topic `blocks`, whose trainings are asked, too.
      untrained: block strings, asked with new weights; the rest of their network is as in the topic
        `blocks`. A network that is asked trained is asked with new weights, too.
      rules: preset of the positions, for two players.
      questions: positions that a head learns from.
      held_out: positions that it is asked about.
      min_distance: least steps from the queried stone to an enemy.
      heads: heads of each training, each with questions of its own; new weights likewise.
    """

    trunks: tuple[str, ...] = ("pretrained:wallzero-4stone", "pretrained:wallzero-empty")
    blocks: tuple[str, ...] = ("RRR", "RTR", "WTW")
    untrained: tuple[str, ...] = ("R", "RRT", "T", "W")
    rules: str = "wallzero-4stone"
    questions: int = 8000
    held_out: int = 4000
    min_distance: int = 10
    heads: int = 3

    def __post_init__(self) -> None:
        if not self.trunks + self.blocks + self.untrained:
            raise ValueError("corridors: name at least one trunk or block string")
        for key in ("trunks", "blocks", "untrained"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                raise ValueError(f"corridors: {key} must each be named once")
        known = sorted(name for name, rules in PRESETS.items() if rules.players == 2)
        if self.rules not in known:
            raise ValueError(f"corridors: rules is {self.rules!r}, not one of {', '.join(known)}")
        for name in ("questions", "held_out"):
            number = getattr(self, name)
            if number < 10 or number % 2:
                raise ValueError(f"corridors: {name} ({number}) must be even, 10 or more")
        for name, least in (("min_distance", 1), ("heads", 2)):
            if getattr(self, name) < least:
                raise ValueError(
                    f"corridors: {name} ({getattr(self, name)}) must be at least {least}"
                )


@dataclasses.dataclass(frozen=True)
class PaddingConfig:
    """Small boards inside a large grid, by the plane of playable cells or by walls alone.

    Attributes:
      players: networks of two players; those without the plane of playable cells see walls alone.
      size: side of the small board.
      stones: a player, on the small board.
      grid: side of the large grid.
      games: random games whose positions are shown, and games that are played.
      simulations: of a move.
    """

    players: tuple[str, ...] = ("pretrained:wallzero-4stone", "pretrained:wallzero-empty")
    size: int = 5
    stones: int = 2
    grid: int = 7
    games: int = 200
    simulations: int = 64

    def __post_init__(self) -> None:
        check_players("padding", self.players)
        check_least("padding", 2, games=self.games)
        check_counts("padding", simulations=(self.simulations,))
        if not 3 <= self.size < self.grid <= 9:
            raise ValueError(
                f"padding: size ({self.size}) must be from 3 to below grid ({self.grid}), which is "
                "at most 9"
            )
        if not 1 <= self.stones <= 4:
            raise ValueError(f"padding: stones ({self.stones}) must be from 1 to 4")
