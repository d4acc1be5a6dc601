"""The scales of topics that train networks of their own."""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pydantic

from train.config.rule_sets import read_rule_sets
from train.study.scale.checks import check_distinct, check_least, check_network, check_own_keys
from wallgo_jax.game.rules import PRESETS, Rules


@dataclasses.dataclass(frozen=True)
class TrainingsConfig:
    """Trainings of one config's variants, and matches among them.

    Attributes:
      config: keys of the run's config that differ from the quickstart's, as tables.
      seeds: trainings of each variant.
      games: of each two players of a seed.
      simulations: of a move in these games.
      opening_plies: random plies that games start with.
    """

    config: dict[str, Any] = dataclasses.field(default_factory=lambda: {"iterations": 30})
    seeds: int = 3
    games: int = 60
    simulations: int = 32
    opening_plies: int = 4

    def __post_init__(self) -> None:
        topic = type(self).__name__.removesuffix("Config").lower()
        check_least(topic, 1, seeds=self.seeds, simulations=self.simulations)
        check_least(topic, 0, opening_plies=self.opening_plies)
        if self.games < 2 or self.games % 2:
            raise ValueError(f"{topic}: games ({self.games}) must be even, 2 or more")
        check_own_keys(topic, self.config)


@dataclasses.dataclass(frozen=True)
class FeaturesConfig(TrainingsConfig):
    """Plane sets, trained with equal games and settings. The rest is as in `TrainingsConfig`.

    Attributes:
      planes: plane sets.
      blocks: block strings, each with every plane set.
    """

    planes: tuple[str, ...] = ("B", "BT", "BTR", "BTRH", "BTRD")
    blocks: tuple[str, ...] = ("R", "W")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.planes) * len(self.blocks) < 2:
            raise ValueError("features: planes and blocks must give at least two variants")
        check_distinct("features", planes=self.planes, blocks=self.blocks)
        check_network("features", self.config, "planes", "blocks")


@dataclasses.dataclass(frozen=True)
class BlocksConfig(TrainingsConfig):
    """Block strings, trained on equal positions. The rest is as in `TrainingsConfig`.

    Attributes:
      blocks: block strings.
    """

    blocks: tuple[str, ...] = ("RRR", "RTR", "WTW")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.blocks) < 2:
            raise ValueError("blocks: blocks must be at least two block strings")
        check_distinct("blocks", blocks=self.blocks)
        check_network("blocks", self.config, "blocks")


# A search of more visits than slots: those of the first are before any move of the victim.
_ADVERSARY = {"iterations": 30, "search": {"simulations": 32, "max_considered_actions": 8}}


@dataclasses.dataclass(frozen=True)
class AdversaryConfig(TrainingsConfig):
    """Adversaries of frozen victims. The rest is as in `TrainingsConfig`; the rules are the
    victim's, and `games` those of each match of an adversary with its victim.

    Attributes:
      blocks: block strings of the topic `blocks`, whose trainings are victims, seed by seed.
      victims: further victims, networks without a budget, each attacked with every seed.
      victim_simulations: of the victim's moves, in training and in matches.
    """

    config: dict[str, Any] = dataclasses.field(default_factory=lambda: dict(_ADVERSARY))
    blocks: tuple[str, ...] = ("RRR", "RTR")
    victims: tuple[str, ...] = ()
    victim_simulations: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("adversary", 1, victim_simulations=self.victim_simulations)
        if not (self.blocks or self.victims):
            raise ValueError("adversary: name at least one block string or victim")
        if len(set(self.blocks)) < len(self.blocks) or len(set(self.victims)) < len(self.victims):
            raise ValueError("adversary: blocks and victims must each be named once")
        for key, table in (("rules", self.config), ("opponent", self.config.get("selfplay"))):
            if isinstance(table, Mapping) and key in table:
                raise ValueError(f"adversary: config: {key} is set by the study: leave it out")


@dataclasses.dataclass(frozen=True)
class TransferCase:
    """A training that begins with the weights of another one.

    Attributes:
      name: of the case, plain, for files.
      source: a network; empty to train one, with each seed.
      source_config: keys of that training that differ from the topic's config, as tables.
      config: keys of the training proper that differ from the topic's config, as tables. Its
        network is that of a `source` that is named.
      freeze: what the third training freezes, as `learner.freeze`; empty for no third one.
    """

    # The reader of the scale knows the keys of tables, not those of tables in a list.
    __pydantic_config__: ClassVar = pydantic.ConfigDict(extra="forbid")

    name: str
    source: str = ""
    source_config: dict[str, Any] = dataclasses.field(default_factory=dict)
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    freeze: tuple[str, ...] = ("trunk=5",)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", self.name):
            raise ValueError(f"transfer: name {self.name!r} must be plain letters, digits, -+._")
        for table in (self.source_config, self.config):
            check_own_keys("transfer", table)


def _transfer_cases() -> tuple[TransferCase, ...]:
    empty = "wallzero-empty"
    told = {key: value for key, value in PRESETS[empty].to_dict().items() if value is not None}
    five = told | {"size": 5}
    return (
        TransferCase("5x5-to-7x7", source_config={"rules": five}, config={"rules": empty}),
        TransferCase(
            "4stone-to-empty", source="pretrained:wallzero-4stone", config={"rules": empty}
        ),
    )


@dataclasses.dataclass(frozen=True)
class TransferConfig(TrainingsConfig):
    """Warm starts against training from nothing. The rest is as in `TrainingsConfig`.

    Attributes:
      cases: what is trained from what.
      opponent: a player that needs no weights, against which the curves are drawn.
      points: places of a curve, the last one included.
      curve_games: games of each of its matches.
    """

    cases: tuple[TransferCase, ...] = dataclasses.field(default_factory=_transfer_cases)
    opponent: str = "wjx"
    points: int = 5
    curve_games: int = 60
    config: dict[str, Any] = dataclasses.field(default_factory=lambda: {"iterations": 15})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("transfer", 2, points=self.points)
        if self.curve_games < 2 or self.curve_games % 2:
            raise ValueError(f"transfer: curve_games ({self.curve_games}) must be even, 2 or more")
        names = [case.name for case in self.cases]
        if not names or len(set(names)) < len(names):
            raise ValueError("transfer: cases must be at least one, each of another name")


_FIVE, _SIX = (
    {"size": size, "stones": stones, "order": [0, 1] * stones} for size, stones in ((5, 2), (6, 3))
)
_MIXED = (
    "wallzero-4stone",
    "wallzero-empty",
    "hkoi",
    "playwallgo-2p",
    {"name": "5x5", "rules": _FIVE},
    {"name": "6x6", "rules": _SIX},
)
_EIGHT = {"size": 8, "stones": 4, "order": [0, 1, 1, 0, 0, 1, 1, 0]}


@dataclasses.dataclass(frozen=True)
class MixedConfig(TrainingsConfig):
    """One network for several rule sets, beside a specialist of each. The rest is as in
    `TrainingsConfig`; `games` are those of each match.

    Attributes:
      rules: the rule sets, as a run's key `rules` lists them.
      minutes: of self-play and learning of each specialist, turned into iterations by the pace that
        each training has in turns with the first specialist's. The mixed network is trained as long
        as one of them, and as long as all of them together.
      unseen: a table of rules that no training has.
      opponents: players that need no weights, met with the unseen rules.
    """

    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    seeds: int = 1
    games: int = 200
    simulations: int = 64
    opening_plies: int = 2
    rules: tuple[Any, ...] = _MIXED
    minutes: float = 2.0
    unseen: dict[str, Any] = dataclasses.field(default_factory=lambda: dict(_EIGHT))
    opponents: tuple[str, ...] = ("random", "greedy", "wjx")

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("rules", "iterations", "grid"):
            if key in self.config:
                raise ValueError(f"mixed: config.{key} is set by the study: leave it out")
        if len(self.rules) < 2:
            raise ValueError("mixed: rules must be at least two rule sets")
        try:
            rule_sets, unseen = read_rule_sets(self.rules), Rules.from_dict(self.unseen)
        except ValueError as error:
            raise ValueError(f"mixed: {error}") from None
        if {each.rules.players for each in rule_sets} | {unseen.players} != {2}:
            raise ValueError("mixed: rules and unseen must be for two players")
        if unseen in [each.rules for each in rule_sets]:
            raise ValueError("mixed: unseen must be none of rules")
        check_distinct("mixed", opponents=self.opponents)
        if not 0 < self.minutes < math.inf:
            raise ValueError(f"mixed: minutes ({self.minutes}) must be above 0")
