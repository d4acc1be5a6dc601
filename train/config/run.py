"""The config of a run: frozen dataclasses, each of which checks its own values.

Importing this loads no JAX, so a config is read, checked and printed at once.
"""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pydantic

from train.arena.config import parse_sprt
from train.data.config import ReplayConfig, SelfPlayConfig
from train.learning.config import LearnerConfig
from train.network.config import NetworkConfig
from train.players.config import HeuristicsConfig
from train.search.config import SearchConfig
from wallgo_jax.formats.rules_text import read_rules
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.planes import check_planes

BEST = "best"
"""Stands for the best checkpoint so far where a player is named."""
SHIPPED = "pretrained:wallzero-4stone"
"""The player that commands take where none is named."""
CONFIG_FILE = "config.json"
"""File of a run directory that holds the run's config."""


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Matches of the newest weights against other players.

    Attributes:
      every: iterations between the short matches of a run; 0 for none [iterations].
      opponents: players of the final matches (`docs/players.md`); empty for a run without matches
        [list of players].
      anchors: players of the short matches; `best` is the strongest checkpoint so far [list of
        players]. The strongest is the one that has won most against the first other anchor.
      games: games of a short match, even [games].
      sprt: `ELO0,ELO1`: ends a short match once a sequential test has decided; empty to play all
        games [Elo points]. The test is asked after each batch (see `train.arena.sprt`).
      final_games: games against each opponent at the end of the run, even [games].
      batch: games played in parallel, even [games].
      simulations: search budget of a move in matches, without exploration noise [simulations].
      opening_plies: random plies that both games of a pair start with [plies].
    """

    every: int = 10
    opponents: tuple[str, ...] = ("random", "greedy")
    anchors: tuple[str, ...] = ("greedy",)
    games: int = 100
    sprt: str = ""
    final_games: int = 400
    batch: int = 100
    simulations: int = 16
    opening_plies: int = 0

    def __post_init__(self) -> None:
        for key in ("games", "final_games", "batch"):
            if getattr(self, key) < 2 or getattr(self, key) % 2:
                raise ValueError(f"{key} must be even, at least 2")
        for key, least in (("every", 0), ("opening_plies", 0), ("simulations", 1)):
            if getattr(self, key) < least:
                raise ValueError(f"{key} must be at least {least}")
        if self.sprt:
            parse_sprt(self.sprt)


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """Choice of the checkpoints that are saved and kept.

    Attributes:
      every: iterations between checkpoints [iterations].
      keep: newest weights that are kept [checkpoints]. What resuming needs is kept for the newest
        two.
      keep_best: further weights kept, those with the best short matches [checkpoints].
      keep_every: weights of multiples of this are kept for ever; 0 for none [iterations].
    """

    every: int = 10
    keep: int = 5
    keep_best: int = 1
    keep_every: int = 0

    def __post_init__(self) -> None:
        for key, least in (("every", 1), ("keep", 1), ("keep_best", 0), ("keep_every", 0)):
            if getattr(self, key) < least:
                raise ValueError(f"{key} must be at least {least}")


@dataclasses.dataclass(frozen=True)
class TrackingConfig:
    """Services that mirror a run's metrics.

    Attributes:
      wandb: project in Weights & Biases, which the extra `wandb` installs; empty for none
        [project].
    """

    wandb: str = ""


def _read_rules(given: Any) -> Any:
    """Rules for a preset's name, JSON or a file; all else is left to the reader of tables."""
    if isinstance(given, int | float | list):
        raise ValueError("rules: must be the name of a preset or a table of rules")
    return read_rules(given) if isinstance(given, str) else given


def _write_rules(rules: Rules) -> str | dict[str, Any]:
    """The name of a preset, or a table of rules: what `_read_rules` takes."""
    name = rules_lib.name_of(rules)
    return name if name in rules_lib.PRESETS else rules.to_dict()


RulesField = Annotated[
    Rules, pydantic.BeforeValidator(_read_rules), pydantic.PlainSerializer(_write_rules)
]
"""Rules; a file, a saved config and the command line may name a preset."""


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """A training run; the defaults are those of `configs/quickstart.toml`.

    Attributes:
      name: directory of the run below the directory of all runs.
      seed: random seed [0 to 2³¹ − 1].
      iterations: length of the run [iterations]. An iteration plays, adds to the replay and learns.
      rules: a preset's name, or a table of rules (`wallgo_jax/RULES.md`) [text or table]. The
        command line also takes a JSON object or a file.
      start_weights: a trained player whose weights the run begins with; empty for random weights
        [player]. It must have the same rules and network; optimizer, replay and schedules begin
        anew.
    """

    # Unknown keys, NaN and infinities are errors, in the tables as well: they take this over.
    __pydantic_config__: ClassVar = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str = "quickstart"
    seed: int = 0
    iterations: int = 50
    rules: RulesField = rules_lib.PRESETS["wallzero-4stone"]
    start_weights: str = ""
    network: NetworkConfig = dataclasses.field(
        default_factory=lambda: NetworkConfig(blocks="W", planes="BTRD", destination_head=True)
    )
    search: SearchConfig = dataclasses.field(
        default_factory=lambda: SearchConfig(player_value_scale=0.3)
    )
    selfplay: SelfPlayConfig = dataclasses.field(
        default_factory=lambda: SelfPlayConfig(
            full_search_prob=0.25, cheap_noise=True, opening_plies=8
        )
    )
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    learner: LearnerConfig = dataclasses.field(default_factory=lambda: LearnerConfig(steps=48))
    evaluation: EvaluationConfig = dataclasses.field(
        default_factory=lambda: EvaluationConfig(
            every=25,
            opponents=("greedy", "wjx"),
            anchors=("wjx",),
            simulations=64,
            opening_plies=4,
        )
    )
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)
    tracking: TrackingConfig = dataclasses.field(default_factory=TrackingConfig)
    heuristics: HeuristicsConfig = dataclasses.field(default_factory=HeuristicsConfig)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", rules_lib.named(self.rules))
        is_plain = self.name.isprintable() and Path(self.name).name == self.name
        if not self.name or not is_plain or self.name.startswith("."):
            raise ValueError(f"name {self.name!r} must be a plain directory name")
        if self.iterations < 1:
            raise ValueError("iterations must be at least 1")
        if not 0 <= self.seed < 2**31:
            raise ValueError("seed must be from 0 to 2147483647")
        try:
            check_planes(self.network.planes)
        except ValueError as error:
            raise ValueError(f"network.{error}") from None
        if self.selfplay.opening_plies >= self.rules.max_plies:
            raise ValueError(
                f"selfplay.opening_plies ({self.selfplay.opening_plies}) must be below "
                f"{self.rules.max_plies}, the most plies of a game by these rules"
            )
        if self.learner.value_mix > 0 and self.network.value == "wdl" and self.rules.players != 2:
            raise ValueError(
                "learner.value_mix must be 0 for network.value 'wdl' and rules of "
                f"{self.rules.players} players: a search knows the value of one of them"
            )
        if self.rules.players != 2 and self.evaluation.opponents:
            raise ValueError(
                "evaluation.opponents: matches are between two players; for rules of "
                f"{self.rules.players} players it must be empty"
            )
