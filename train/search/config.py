"""Options of the search, in a file without jax, so that reading a config is quick."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict, get_args

from pydantic import Field, model_validator

from train.functions import CustomSearch
from train.runtime.fields import (
    STRICT,
    AtLeastOne,
    Count,
    NotNegative,
    NotNegativeOrOff,
    Positive,
    Real,
    ShareOrOff,
    Whole,
    unless,
)

Kind = Literal["gumbel", "puct"]
Engine = Literal["native", "mctx"]
Opponents = Literal["paranoid", "maxn"]
FirstPlay = Literal["mctx", "minizero", "katago"]
KINDS, ENGINES, OPPONENTS = get_args(Kind), get_args(Engine), get_args(Opponents)
MAX_SIMULATIONS = 100_000
Simulations = Annotated[Whole, Field(ge=0, le=MAX_SIMULATIONS)]
"""Of a player; 0 for its raw policy."""
MOVE_CLASSES = ("placement", "stay", "one_step", "two_steps")
"""Classes of moves: placements of stones, and plays by the steps of the stone."""
_CONSIDERED = ((4, 2), (16, 4), (32, 8), (MAX_SIMULATIONS, 16))
"""The most simulations at which a player considers a number of actions, and that number."""
_MOST_BOOST = 20.0
_Temperature = Annotated[Real, Field(ge=0, le=100)]
_SPREAD = 1e-8
"""The least spread of values where a config says nothing else: mctx's."""
_BOOST = re.compile(rf"({'|'.join(MOVE_CLASSES)})=((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)")
_LEAST_MCTX_C_INIT = 1e-3
"""mctx masks illegal slots at the root alone: below it the weight of the prior must outdo its noise
of 1e-7, which all slots get, for any number of visits and slots."""


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """Options of the search; a kind ignores the options of the other.

    Attributes:
      simulations: search budget of a move [simulations].
      max_considered_actions: gumbel: actions that enter sequential halving at the root [actions].
        It is that of self-play, whose learning wants breadth.
      player_max_considered_actions: gumbel: `max_considered_actions` of players, as in matches; 0
        for a number that depends on their simulations, see `considered_actions` [actions].
      kind: `gumbel` (Gumbel AlphaZero) or `puct` (AlphaZero).
      engine: `native` (this package's tree) or `mctx` (mctx's own functions). Both find the same;
        `native` is faster.
      opponents: with more than two players: `paranoid` (all others play against the player to move
        at the root) or `maxn` (each plays for its own value; native engine, without `rounds`).
      value_scale: gumbel: weight of a value against a prior logit, for each visit [number]. A value
        counts as `value_scale * (visit_offset + most visits of a slot)` logits.
      player_value_scale: gumbel: `value_scale` of players, as in matches; 0 for the same as in
        self-play [number]. There a small one keeps the learned policies soft, and a player may
        trust its values more.
      visit_offset: gumbel: visits that are added to those of the most visited slot, in the weight
        of values [visits].
      rescale_values: gumbel: rescale the values of a node's slots to 0 to 1 before they are
        weighed, as mctx does. Without it they are expected rewards, from -1 to 1.
      least_spread: gumbel: the smallest spread of a node's values (which are from -1 to 1) that is
        rescaled to all of 0 to 1; `epsilon` of mctx [number]. A larger one keeps values that hardly
        differ, as in decided positions, from weighing as much as any others.
      first_play: puct: the value of a slot without visits: `katago` (the node's value, less 0.2
        times the root of the visited slots' share of the prior), `minizero` (the mean of the
        visited slots' values and of a loss) or `mctx` (the least known value; all values are
        spread over 0 to 1).
      c_init: puct: weight of the prior against the value; at least 0.001 for engine `mctx`
        [number].
      c_base: puct: visits of a node after which that weight has grown by log 2 [visits].
      dirichlet_fraction: puct: share of noise in the root's prior in self-play [0 to 1].
      dirichlet_alpha: puct: Dirichlet parameter of each legal slot [number]. The default is 10
        divided by the usual number of legal moves, which is about 60.
      temperature: puct: moves are drawn with chances visits^(1 / temperature); 0 for the most
        visited [number].
      temperature_plies: puct: first plies of a game whose moves are drawn; 0 for all [plies]. After
        them the most visited is played.
      first_simulations: budget at the start of the run, which is doubled in stages of equal length
        up to `simulations`; 0 for no growth [simulations].
      rounds: gumbel, native: make all visits of a round of sequential halving at once, which is a
        few large steps in place of many small ones.
      prior_boost: logits that are added to a class of moves at the root of self-play's searches,
        each as CLASS=LOGITS, such as `["stay=2.0"]` [list of classes]. Classes are `stay`,
        `one_step` and `two_steps` (plays by the steps of the stone) and `placement`. While stones
        are placed every move is a placement, so their logits are divided by 1 + LOGITS instead. A
        policy that never tries a class learns nothing of it; players are not boosted.
      prior_boost_halflife: iterations in which a boost falls to a half, counted from the first
        iteration that the search plays [iterations].
      custom: name of a search that Python passes in place of this one; it cannot be set here
        (`docs/api.md`).
    """

    __pydantic_config__ = STRICT

    simulations: Annotated[Whole, Field(ge=1, le=MAX_SIMULATIONS)] = 16
    max_considered_actions: AtLeastOne = 16
    player_max_considered_actions: Count = 0
    kind: Kind = "gumbel"
    engine: Engine = "native"
    opponents: Opponents = "paranoid"
    value_scale: NotNegative = 0.1
    player_value_scale: NotNegativeOrOff = None
    visit_offset: NotNegative = 50.0
    rescale_values: bool = True
    least_spread: Annotated[Positive | None, *unless(_SPREAD)] = None
    first_play: FirstPlay = "katago"
    c_init: NotNegative = 1.25
    c_base: Positive = 19652.0
    dirichlet_fraction: ShareOrOff = 0.25
    dirichlet_alpha: Annotated[Real, Field(ge=1e-3, le=1e3)] = 0.17
    temperature: Annotated[_Temperature | None, *unless(0.0)] = 1.0
    temperature_plies: Count = 0
    first_simulations: Count = 0
    rounds: bool = False
    prior_boost: tuple[str, ...] = ()
    prior_boost_halflife: Positive = 10.0
    custom: CustomSearch = ""

    @property
    def spread(self) -> float:
        """The least spread of a node's values that counts as all of 0 to 1."""
        return _SPREAD if self.least_spread is None else self.least_spread

    @model_validator(mode="after")
    def _agree(self) -> "SearchConfig":
        for conflict, holds in self._conflicts().items():
            if holds:
                raise ValueError(conflict)
        return self

    def _conflicts(self) -> dict[str, bool]:
        """Combinations of options that are refused, with the reasons."""
        is_mctx, has_rounds = self.engine == "mctx", self.rounds and self.kind == "gumbel"
        is_maxn, has_boosts = self.opponents == "maxn", bool(parse_boosts(self.prior_boost))
        return {
            "opponents must be 'paranoid' for engine 'mctx', whose trees keep one value a node": (
                is_maxn and is_mctx
            ),
            "rounds must be false for opponents 'maxn'": is_maxn and has_rounds,
            "rounds must be false for engine 'mctx'": has_rounds and is_mctx,
            f"c_init must be at least {_LEAST_MCTX_C_INIT} for engine 'mctx', whose noise else "
            "chooses illegal slots": (
                is_mctx and self.kind == "puct" and self.c_init < _LEAST_MCTX_C_INIT
            ),
            "temperature must be 0 or from 0.01 to 100": (self.temperature or 1.0) < 0.01,
            "first_simulations must be at most simulations": (
                self.first_simulations > self.simulations
            ),
            "prior_boost must be empty for a search that Python passes": (
                has_boosts and bool(self.custom)
            ),
        }


class SearchKeys(TypedDict, total=False):
    """Keys of the table `search` that a call of Python may change; `SearchConfig` describes
    them."""

    max_considered_actions: int
    player_max_considered_actions: int
    kind: Kind
    engine: Engine
    opponents: Opponents
    value_scale: float
    player_value_scale: float | None
    visit_offset: float
    rescale_values: bool
    least_spread: float | None
    first_play: FirstPlay
    c_init: float
    c_base: float
    dirichlet_fraction: float | None
    dirichlet_alpha: float
    temperature: float | None
    temperature_plies: int
    first_simulations: int
    rounds: bool
    prior_boost: tuple[str, ...]
    prior_boost_halflife: float


def parse_boosts(words: Sequence[str]) -> dict[str, float]:
    """The boost of each class, from words CLASS=LOGITS.

    Raises:
      ValueError: a word is not of that form, or names a class again.
    """
    boosts: dict[str, float] = {}
    for word in words:
        read = _BOOST.fullmatch(word)
        name, logits = (read[1], float(read[2])) if read else ("", 0.0)
        if name in boosts or not 0 < logits <= _MOST_BOOST:
            raise ValueError(
                f"prior_boost {word!r} is not CLASS=LOGITS with one of {', '.join(MOVE_CLASSES)}, "
                f"each once, and logits above 0, at most {_MOST_BOOST:g}"
            )
        boosts[name] = logits
    return boosts


def boosts_at(config: SearchConfig, iteration: int) -> tuple[float, ...]:
    """The boost of each of MOVE_CLASSES, a number of iterations after the first of the search."""
    boosts = parse_boosts(config.prior_boost)
    left = 0.5 ** (iteration / config.prior_boost_halflife)
    return tuple(left * boosts.get(name, 0.0) for name in MOVE_CLASSES)


def considered_actions(config: SearchConfig, simulations: int) -> int:
    """Number of actions that a player with this many simulations considers at the root.

    Few simulations find more when they look deeper at fewer actions (`docs/results.md`, What a
    player considers).
    """
    if config.player_max_considered_actions:
        return config.player_max_considered_actions
    return next(actions for most, actions in _CONSIDERED if simulations <= most)


def as_player(config: SearchConfig, simulations: int) -> SearchConfig:
    """The options of a player of a run: this many simulations at every ply, its own number of
    considered actions and its own scale."""
    return dataclasses.replace(
        config,
        simulations=simulations,
        max_considered_actions=considered_actions(config, simulations),
        first_simulations=0,
        value_scale=config.player_value_scale or config.value_scale,
        player_value_scale=None,
        prior_boost=(),
    )


def stages(config: SearchConfig) -> tuple[int, ...]:
    """Simulations a move in each stage of a run, doubled from stage to stage up to the last.

    Progressive simulation as in Wu et al., "MiniZero: Comparative Analysis of AlphaZero and MuZero
    on Go, Othello, and Atari Games" (2023), with few values, because each is compiled on its own.
    """
    count, grown = config.first_simulations or config.simulations, []
    while count < config.simulations:
        grown.append(count)
        count *= 2
    return (*grown, config.simulations)


def simulations_at(config: SearchConfig, iteration: int, iterations: int) -> int:
    """Simulations a move in an iteration of a run whose stages are of equal length."""
    grown = stages(config)
    return grown[min(iteration * len(grown) // iterations, len(grown) - 1)]
