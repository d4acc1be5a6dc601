"""The scale of a study: how many games, positions and seeds each topic takes, read from TOML."""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from train.runtime.errors import UsageError, one_line
from train.study.scale.checks import check_counts, check_distinct, check_least, check_players
from train.study.scale.questions import CorridorsConfig, PaddingConfig
from train.study.scale.trainings import (
    AdversaryConfig,
    BlocksConfig,
    FeaturesConfig,
    MixedConfig,
    TransferConfig,
)
from wallgo_jax.game.rules import PRESETS


@dataclasses.dataclass(frozen=True)
class BalanceConfig:
    """Balance and openings: games of players against themselves.

    Attributes:
      players: networks, each for the rules that it has learned.
      simulations: numbers of simulations a move.
      games: of each player at each number.
      opening_depth: plies that the table of openings goes down to.
    """

    players: tuple[str, ...] = ("pretrained:wallzero-4stone", "pretrained:wallzero-empty")
    simulations: tuple[int, ...] = (16, 64)
    games: int = 5000
    opening_depth: int = 6

    def __post_init__(self) -> None:
        check_players("balance", self.players)
        check_counts("balance", simulations=self.simulations)
        check_least("balance", 2, games=self.games, opening_depth=self.opening_depth)


@dataclasses.dataclass(frozen=True)
class SizeConfig:
    """How large the game is.

    Attributes:
      rules: presets.
      random_games: random games of each.
      players: networks whose games against themselves stand for strong play, each of the rules
        that it has learned.
      simulations: of their moves.
      strong_games: of each.
    """

    rules: tuple[str, ...] = (
        "wallzero-4stone",
        "wallzero-empty",
        "hkoi",
        "playwallgo-2p",
        "playwallgo-3p",
        "playwallgo-4p",
    )
    random_games: int = 20_000
    players: tuple[str, ...] = ("pretrained:wallzero-4stone", "pretrained:wallzero-empty")
    simulations: int = 16
    strong_games: int = 5000

    def __post_init__(self) -> None:
        for name in self.rules:
            if name not in PRESETS:
                raise ValueError(
                    f"size: rules has {name!r}; known presets: {', '.join(sorted(PRESETS))}"
                )
        check_players("size", self.players)
        check_least(
            "size",
            2,
            random_games=self.random_games,
            strong_games=self.strong_games,
        )
        check_counts("size", simulations=(self.simulations,))


@dataclasses.dataclass(frozen=True)
class MobilityConfig:
    """Mobility, moves that give up territory for reach, implicit passes.

    Attributes:
      player: a network; its games against itself are looked at.
      simulations: of its moves in those games.
      games: of those.
      searched_games: games whose moves are searched again.
      search_simulations: of those searches.
    """

    player: str = "pretrained:wallzero-4stone"
    simulations: int = 64
    games: int = 1024
    searched_games: int = 64
    search_simulations: int = 256

    def __post_init__(self) -> None:
        check_players("mobility", (self.player,))
        check_least("mobility", 2, games=self.games, searched_games=self.searched_games)
        check_counts(
            "mobility",
            simulations=(self.simulations,),
            search_simulations=(self.search_simulations,),
        )


@dataclasses.dataclass(frozen=True)
class FootingConfig:
    """Equal footing: equal time, many simulations, a player with fewer simulations, a player that
    considers fewer actions.

    Attributes:
      player: a network.
      doublings: numbers of simulations, each matched with the next.
      doubling_games: games of each of these matches.
      opponents: other players, without a budget.
      budgets: budgets of both sides, such as `64`, `2000` or `0.1s`.
      games: of each match with an opponent.
      considering: players without a budget, each matched with itself where it considers
        `most_considered` actions at equal simulations; none by default.
      considered: numbers of actions that these players consider; 0 for what they choose.
      considered_simulations: simulations of both sides.
      most_considered: actions that the other side considers.
      considered_games: games of each of these matches.
      opening_plies: random plies that games start with.
    """

    player: str = "pretrained:wallzero-4stone"
    doublings: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    doubling_games: int = 100
    opponents: tuple[str, ...] = (
        "pretrained:wallzero-4stone-v1",
        "heuristic-search:wjx",
    )
    budgets: tuple[str, ...] = ("64", "0.1s", "2000")
    games: int = 40
    considering: tuple[str, ...] = ()
    considered: tuple[int, ...] = (2, 4, 8)
    considered_simulations: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    most_considered: int = 16
    considered_games: int = 200
    opening_plies: int = 2

    def __post_init__(self) -> None:
        check_players("footing", (self.player, *self.opponents, *self.considering))
        check_distinct("footing", opponents=self.opponents, budgets=self.budgets)
        check_counts(
            "footing",
            doublings=self.doublings,
            considered_simulations=self.considered_simulations,
            most_considered=(self.most_considered,),
        )
        if list(self.doublings) != sorted(set(self.doublings)) or len(self.doublings) < 2:
            raise ValueError("footing: doublings must be two or more rising numbers")
        for name in ("doubling_games", "games", "considered_games"):
            if getattr(self, name) < 2 or getattr(self, name) % 2:
                raise ValueError(f"footing: {name} ({getattr(self, name)}) must be even, 2 or more")
        check_least("footing", 0, opening_plies=self.opening_plies)


@dataclasses.dataclass(frozen=True)
class StudyConfig:
    """How much each topic does. The defaults are those of configs/study/cpu.toml.

    Attributes:
      seed: decides openings and noise.
      features: ablation of plane sets.
      blocks: strength by blocks.
      size: how large the game is.
      balance: balance and openings.
      mobility: reachability control and passing.
      footing: equal footing.
      transfer: warm starts.
      padding: small boards inside a large grid.
      corridors: what frozen trunks know of far corridors.
      adversary: adversaries of frozen victims.
      mixed: one network for several rule sets, beside specialists.
    """

    seed: int = 0
    features: FeaturesConfig = dataclasses.field(default_factory=FeaturesConfig)
    blocks: BlocksConfig = dataclasses.field(default_factory=BlocksConfig)
    size: SizeConfig = dataclasses.field(default_factory=SizeConfig)
    balance: BalanceConfig = dataclasses.field(default_factory=BalanceConfig)
    mobility: MobilityConfig = dataclasses.field(default_factory=MobilityConfig)
    footing: FootingConfig = dataclasses.field(default_factory=FootingConfig)
    transfer: TransferConfig = dataclasses.field(default_factory=TransferConfig)
    padding: PaddingConfig = dataclasses.field(default_factory=PaddingConfig)
    corridors: CorridorsConfig = dataclasses.field(default_factory=CorridorsConfig)
    adversary: AdversaryConfig = dataclasses.field(default_factory=AdversaryConfig)
    mixed: MixedConfig = dataclasses.field(default_factory=MixedConfig)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed ({self.seed}) must be from 0 to {2**31 - 1}")


_ADAPTER = pydantic.TypeAdapter(StudyConfig)


def read_scale(path: Path | None) -> StudyConfig:
    """The scale that a TOML file says, or the default.

    Raises:
      UsageError: the file cannot be read, or a key or value is not allowed.
    """
    if path is None:
        return StudyConfig()
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise UsageError(f"study {path}: no such file") from None
    except OSError as error:
        raise UsageError(f"study {path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"study {path}: not TOML: {one_line(str(error))}") from None
    return scale_from_dict(fields, where=f"study {path}")


def scale_from_dict(fields: Mapping[str, Any], *, where: str) -> StudyConfig:
    """A scale from nested tables; the message of a `UsageError` begins with `where`."""
    _check_keys(fields, StudyConfig, where=where)
    try:
        return _ADAPTER.validate_python(dict(fields))
    except pydantic.ValidationError as error:
        raise UsageError(one_line(f"{where}: {_describe(error)}")) from None


def _describe(failed: pydantic.ValidationError) -> str:
    """The first error of a validation."""
    first = failed.errors()[0]
    if first["type"] == "value_error":
        return first["msg"].removeprefix("Value error, ")
    keys = ".".join(str(part) for part in first["loc"])
    return f"{keys}: {first['msg']} (got {first['input']!r})"


def _check_keys(fields: Mapping[str, Any], kind: Any, *, where: str, inside: str = "") -> None:
    known = {field.name: field for field in dataclasses.fields(kind)}
    for key, value in fields.items():
        if key not in known:
            raise UsageError(f"{where}: unknown key {inside}{key}; known: {', '.join(known)}")
        part = known[key].default_factory
        if dataclasses.is_dataclass(part) and isinstance(value, Mapping):
            _check_keys(value, part, where=where, inside=f"{inside}{key}.")
