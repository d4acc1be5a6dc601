"""The config of a run: frozen dataclasses, each of which checks its own values.

Importing this loads no JAX, so a config is read, checked and printed at once.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from train.config.rule_sets import RuleSet, RulesField, only_set
from train.data.config import ReplayConfig, SelfPlayConfig
from train.learning.config import LearnerConfig, parse_freeze
from train.network.config import NetworkConfig
from train.runtime.fields import MAX_WHOLE, STRICT, AtLeastOne, Count, Real, Seed, Share, Whole
from train.search.config import MAX_SIMULATIONS, SearchConfig
from wallgo_jax.board.geometry import MAX_GRID
from wallgo_jax.game.rules import PRESETS, Rules

_Cost = Annotated[Real, Field(ge=-1, le=0)]
_Scale = Annotated[Real, Field(ge=0.001, le=1000)]


@dataclass(frozen=True, config=STRICT)
class HeuristicConfig:
    """Weights of a cell, seen from the player that is scored, and how players use the scores.

    Attributes:
      formula: `ethen` (larger of the two distances) or `wjx` (their sum). It weighs a cell that
        both sides reach by its distances.
      sure_own: value of a cell that only this side reaches [cells].
      sure_other: value of a cell that only the other side reaches [cells].
      semi_sure_own: value of a cell from which the other side is far [cells].
      semi_sure_other: value of a cell from which this side is far [cells].
      boundary: distance from which a side counts as far [steps].
      guess_weight: factor of the formula [0 to 1].
      stones_block: distances go around stones, as they go around walls.
      top_k: best plies for which `two-ply:NAME` looks at the opponent's best reply [plies].
      temperature: search prior: score that makes a slot e times as likely [cells].
      scale: search value: score whose value is tanh 1 [cells].
    """

    formula: Literal["ethen", "wjx"] = "wjx"
    sure_own: Share = 0.9
    sure_other: _Cost = -0.85
    semi_sure_own: Share = 0.8
    semi_sure_other: _Cost = -0.75
    boundary: Annotated[Whole, Field(ge=1, le=20)] = 6
    guess_weight: Share = 0.9
    stones_block: bool = False
    top_k: AtLeastOne = 5
    temperature: _Scale = 1.0
    scale: _Scale = 10.0

    def __post_init__(self) -> None:
        if self.semi_sure_own > self.sure_own:
            raise ValueError("semi_sure_own must be from 0 to sure_own")
        if self.semi_sure_other < self.sure_other:
            raise ValueError("semi_sure_other must be from sure_other to 0")


@dataclass(frozen=True, config=STRICT)
class HeuristicsConfig:
    """The heuristics that players name.

    Attributes:
      ethen: scores by the larger of the two distances.
      wjx: scores by the sum of the two distances.
    """

    ethen: HeuristicConfig = HeuristicConfig(formula="ethen")
    wjx: HeuristicConfig = HeuristicConfig(formula="wjx")


BEST = "best"
"""Stands for the best checkpoint so far where a player is named."""
DEFAULT_RULES = "wallzero-4stone"
"""The rules where nothing says any."""
SHIPPED = "pretrained:wallzero-4stone"
"""The player that commands take where none is named."""
CONFIG_FILE = "config.json"
"""File of a run directory that holds the run's config."""
OWN_FIELD = "mix"
"""Field of `RunConfig` that is no key: `rules` says the same."""
_Even = Annotated[Whole, Field(ge=2, le=MAX_WHOLE, multiple_of=2)]
_Games = Annotated[Whole, Field(ge=2, le=2**30, multiple_of=2)]


def _check_sprt(text: str) -> str:
    if text:
        # Loaded where a run has a test.
        from train.config.sprt import parse_sprt

        parse_sprt(text)
    return text


def _check_name(name: str) -> str:
    is_plain = name.isprintable() and Path(name).name == name.strip() and not name.startswith(".")
    if not name or not is_plain:
        raise ValueError(f"{name!r} must be a plain directory name")
    return name


@dataclass(frozen=True, config=STRICT)
class EvaluationConfig:
    """Matches of the newest weights against other players.

    Attributes:
      every: iterations between the short matches of a run; 0 for none [iterations].
      opponents: players of the final matches (`docs/players.md`); empty for a run without matches
        [list of players].
      anchors: players of the short matches; `best` is the strongest checkpoint so far [list of
        players]. The strongest is the one that has won most against the first other anchor,
        with these simulations and opening plies.
      games: games of a short match, even [games]. With three or four players at least so many, one
        opponent at all other seats, in every seating.
      sprt: `ELO0,ELO1`: a short match ends once this sequential test has decided; empty to play all
        games [Elo points]. The test is asked after each batch (see `train.arena.sprt`).
      final_games: games against each opponent at the end of the run, even [games].
      batch: games played in parallel, even [games].
      simulations: search budget of a move in matches, which have no exploration noise
        [simulations].
      opening_plies: random plies with which both games of a pair start [plies].
      players_place: the players place all stones before the random plies.
    """

    every: Count = 10
    opponents: tuple[str, ...] = ("random", "greedy")
    anchors: tuple[str, ...] = ("greedy",)
    games: _Games = 100
    sprt: Annotated[str, AfterValidator(_check_sprt)] = ""
    final_games: _Games = 400
    batch: _Even = 100
    simulations: Annotated[Whole, Field(ge=1, le=MAX_SIMULATIONS)] = 16
    opening_plies: Count = 0
    players_place: bool = False


@dataclass(frozen=True, config=STRICT)
class CheckpointConfig:
    """Choice of the checkpoints that are saved and kept.

    Attributes:
      every: iterations between checkpoints [iterations]. Weights that played a short match are
        saved, too.
      keep: newest weights that are kept [checkpoints]. What resuming needs is kept for the newest
        two.
      keep_best: further weights kept, those with the best short matches [checkpoints].
      keep_every: weights of multiples of this are kept for ever; 0 for none [iterations].
    """

    every: AtLeastOne = 10
    keep: AtLeastOne = 5
    keep_best: Count = 1
    keep_every: Count = 0


@dataclass(frozen=True, config=STRICT)
class TrackingConfig:
    """Services that mirror a run's metrics.

    Attributes:
      wandb: project in Weights & Biases, which the extra `wandb` installs; empty for none
        [project].
    """

    wandb: str = ""


@dataclass(frozen=True, config=STRICT)
class RunConfig:
    """A training run; the defaults are those of `configs/quickstart.toml`.

    Attributes:
      name: name of the run's directory, below the directory of all runs.
      seed: random seed [0 to 2³¹ − 1].
      iterations: length of the run [iterations]. An iteration plays, adds to the replay and learns.
      rules: a preset's name, a table of rules (`wallgo_jax/RULES.md`), or a list of rule sets with
        weights, which are learned together [text, table or list]. The command line also takes a
        JSON object, a file, or a list such as `hkoi=2,wallzero-empty`.
      grid: side of the grid in which all boards lie; 0 for the side of the largest board [cells].
      start_weights: a trained player with whose weights the run starts; empty for random weights
        [player]. It must have the same rules and network; optimizer, replay and schedules begin
        anew.
      init_from: a trained player from which the run copies the weights whose names and shapes fit;
        empty for none [player]. Rules, board size, planes, blocks and heads may differ; planes that
        are new begin at zero weight, blocks as identities, heads fresh. It stands alone, without
        `start_weights`.
      deterministic: on a GPU, use only operations that give the same results in every run, so that
        a resumed run equals an uninterrupted one bit for bit; they are slower. CPUs need no such
        choice.
    """

    name: Annotated[str, AfterValidator(_check_name)] = "quickstart"
    seed: Seed = 0
    iterations: AtLeastOne = 24
    rules: RulesField = PRESETS["wallzero-4stone"]
    grid: Annotated[Whole, Field(ge=0, le=MAX_GRID)] = 0
    start_weights: str = ""
    init_from: str = ""
    deterministic: bool = False
    network: NetworkConfig = dataclasses.field(
        default_factory=lambda: NetworkConfig(blocks="W", planes="BTRD", destination_head=True)
    )
    search: SearchConfig = dataclasses.field(
        default_factory=lambda: SearchConfig(player_value_scale=0.3)
    )
    selfplay: SelfPlayConfig = dataclasses.field(
        default_factory=lambda: SelfPlayConfig(
            full_search_prob=0.25,
            cheap_noise=True,
            setup_prob=0.3,
            opening_prob=0.25,
            opening_plies=8,
        )
    )
    replay: ReplayConfig = dataclasses.field(default_factory=lambda: ReplayConfig(positions=32_768))
    learner: LearnerConfig = dataclasses.field(
        default_factory=lambda: LearnerConfig(steps=64, validation_every=4)
    )
    evaluation: EvaluationConfig = dataclasses.field(
        default_factory=lambda: EvaluationConfig(
            every=12,
            opponents=("wjx",),
            anchors=("wjx",),
            final_games=100,
            simulations=64,
            opening_plies=4,
            players_place=True,
        )
    )
    checkpoint: CheckpointConfig = dataclasses.field(default_factory=CheckpointConfig)
    tracking: TrackingConfig = dataclasses.field(default_factory=TrackingConfig)
    heuristics: HeuristicsConfig = dataclasses.field(default_factory=HeuristicsConfig)
    mix: tuple[RuleSet, ...] = ()
    """All rule sets where `rules` lists several, of which `rules` then keeps the first; else ().
    It is no key of a file."""

    @property
    def rule_sets(self) -> tuple[RuleSet, ...]:
        """What the run learns, at least one."""
        return self.mix or (only_set(self.rules),)

    @property
    def learned(self) -> tuple[Rules, ...]:
        """The rules of each rule set."""
        return tuple(each.rules for each in self.mix) or (self.rules,)

    @property
    def grid_side(self) -> int:
        """Side of the grid of all boards of self-play."""
        return self.grid or max(rules.size for rules in self.learned)

    @property
    def stones(self) -> int:
        """S: the most stones a player of a rule set, for which every board has room."""
        return max(rules.stones for rules in self.learned)

    @property
    def max_plies(self) -> int:
        """The most plies of a game by any of the rule sets."""
        return max(rules.max_plies for rules in self.learned)

    def alone(self, rules: Rules) -> "RunConfig":
        """The same run with these rules alone, on a grid of their own, as its matches take it.

        What is learned from later plies is left out: `learner.td_steps` may be longer than a game
        by these rules.
        """
        learner = dataclasses.replace(self.learner, td_steps=0)
        return dataclasses.replace(self, rules=rules, mix=(), grid=0, learner=learner)

    def __post_init__(self) -> None:
        if isinstance(self.rules, tuple):  # a list of rule sets, which only a new config has
            object.__setattr__(self, "mix", self.rules if len(self.rules) > 1 else ())
            object.__setattr__(self, "rules", self.rules[0].rules)
        for conflict in self._conflicts():
            raise ValueError(conflict)

    def _conflicts(self) -> Iterator[str]:
        """What is wrong between keys, and what is allowed."""
        if self.mix and self.mix[0].rules != self.rules:
            yield "rules are not the first of the run's rule sets; give the whole list"
        if self.start_weights and self.init_from:
            yield (
                "init_from must be empty where start_weights is set: one takes what fits, the "
                "other all"
            )
        least = min(rules.max_plies for rules in self.learned)
        for path, plies, most in (
            ("selfplay.opening_plies", self.selfplay.opening_plies, least),
            ("evaluation.opening_plies", self.evaluation.opening_plies, least),
            ("learner.td_steps", self.learner.td_steps, self.max_plies),
        ):
            if plies >= most:
                yield f"{path} ({plies}) must be below {most}, the most plies of a game"
        steps, freeze = self.learner.steps, parse_freeze(self.learner.freeze)
        lengths = {f"learner.freeze '{group}={count}'": count for group, count in freeze.items()}
        for name, count in {"iterations": self.iterations, **lengths}.items():
            if count * steps > MAX_WHOLE:
                most = f"must be at most {MAX_WHOLE}"
                yield f"learner.steps ({steps}) times {name} ({count}) {most}"
        yield from self._board_conflicts()
        if self.replay.reanalyse:
            yield from self._reanalyse_conflicts()
        if self.selfplay.opponent:
            yield from self._opponent_conflicts()
        if self.rules.players != 2:
            where = f"with rules of {self.rules.players} players: a search knows the value of"
            if self.learner.value_mix and self.network.value == "wdl":
                yield f"learner.value_mix must be 0 for network.value 'wdl' {where} one of them"
            if self.learner.td_steps > 0:
                yield f"learner.td_steps must be 0 {where} the player to move alone"
            if self.evaluation.sprt:
                yield "evaluation.sprt must be empty: it is a test of two players"

    def _reanalyse_conflicts(self) -> Iterator[str]:
        """What cannot be searched again."""
        held = -(-self.replay.positions // self.selfplay.boards)
        if self.replay.reanalyse > held:
            yield (
                f"replay.reanalyse ({self.replay.reanalyse}) must be at most {held}, the plies of "
                "each board that replay.positions holds"
            )
        if self.replay.memory == "host":
            yield "replay.reanalyse must be 0 where replay.memory is 'host'"
        if self.selfplay.opponent:
            yield "replay.reanalyse must be 0 where selfplay.opponent plays"

    def _board_conflicts(self) -> Iterator[str]:
        """Boards of self-play that cannot lie in one batch, or that a network would not tell
        apart."""
        for each in self.rule_sets:
            size = each.rules.size
            if self.grid and self.grid < size:
                yield (
                    f"grid {self.grid} is smaller than the {size}x{size} board of {each.name}; 0 "
                    "takes the largest board's"
                )
        smaller = [each for each in self.rule_sets if each.rules.size < self.grid_side]
        if smaller and not self.network.playable:
            yield (
                f"network.playable must be true: the board of {smaller[0].name} is smaller than "
                f"the grid of {self.grid_side}, and no other plane shows its cells"
            )
        if self.selfplay.boards < len(self.rule_sets):
            yield (
                f"selfplay.boards ({self.selfplay.boards}) must be at least {len(self.rule_sets)}, "
                "a board for each rule set"
            )
        if len({rules.stones for rules in self.learned}) > 1 and self.network.reply:
            yield (
                "network.reply must be false where rule sets differ in stones a player: the head "
                "is not told which stones the next player lacks"
            )

    def _opponent_conflicts(self) -> Iterator[str]:
        """Searches that model no opponent, and boards that give it seats unevenly."""
        if self.search.engine != "native" or self.search.custom:
            yield (
                "selfplay.opponent needs search.engine 'native' and no search.custom: no other "
                "search models an opponent"
            )
        if self.mix:
            yield "selfplay.opponent must be empty for several rule sets"
        players = self.rules.players
        if self.selfplay.boards % players:
            yield (
                f"selfplay.boards ({self.selfplay.boards}) must be a multiple of {players} with "
                "selfplay.opponent, so that the learner has each seat equally often"
            )
