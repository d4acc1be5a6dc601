"""Options of self-play and replay."""

import dataclasses
from typing import Annotated, Literal

from pydantic import Field, model_validator

from train.runtime.fields import (
    STRICT,
    AtLeastOne,
    Count,
    Positive,
    Real,
    Share,
    ShareOrOff,
    Whole,
    unless,
)
from train.search.config import MAX_SIMULATIONS

_Temperature = Annotated[Real, Field(ge=0, le=100)]
_Chance = Annotated[Real, Field(gt=0, le=1)]


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """Amount of self-play in an iteration, and depth of its searches.

    Attributes:
      boards: boards played in parallel [boards].
      plies: plies that each board plays in an iteration [plies].
      full_search_prob: playout cap randomisation: chance that a ply is searched with
        `search.simulations`; all boards share the draw (the built-in quickstart has 0.25) [0 to 1].
        The other plies get `cheap_simulations` without noise, and their policies are not learned;
        `cheap_noise` and `cheap_policy_weight` change that. This is after Wu, "Accelerating
        Self-Play Learning in Go" (2019), section 3.1, with one coin for the boards of all devices:
        the batch stays full, and no device waits for one that has drawn more full searches.
      cheap_simulations: budget of all other plies [simulations]. It is at most that of a full
        search.
      cheap_policy_weight: weight with which the policies of the other plies are learned, compared
        with 1 for full searches; 0 to leave them out [0 to 1]. All plies teach the value.
      policy_surprise_weight: share of the policy weight that is given out by how much search and
        network differ (their divergence) [0 to 1]. This is after Wu, "Other Methods Implemented in
        KataGo", section Policy Surprise Weighting. KataGo uses 0.5 and weights whole samples, this
        weights policies only.
      cheap_noise: the other plies keep the noise of self-play at the root.
      setup_prob: chance that the raw policy places all stones of a game [0 to 1].
      opening_prob: chance that plies are drawn from the raw policy after a game's setup [0 to 1].
      opening_plies: the largest number of such plies [plies]. Each of these games draws its own
        number, from 1 to this, all equally likely. Drawn plies teach the value, not the policy, so
        what is drawn in most games is hardly learned. This is after Wu, "Accelerating Self-Play
        Learning in Go" (2019), appendix D (Game Randomization and Termination). KataGo's number is
        exponential with a mean of 0.04 a cell, which is 2 on a 7×7 board; it is bounded here,
        because a game is short.
      random_opening_prob: chance that a game draws these plies from all legal plies with equal
        chances, in place of the raw policy [0 to 1]. KataGo instead branches 5 % of its games, to
        the best of 3 to 10 random plies.
      temperature: the other plies are drawn with chances policy^(1 / temperature), by the search's
        policy; 0 to play the search's choice [number]. What is learned stays the same. This is
        after Wu, as above: KataGo begins at 0.8 and falls to 0.2.
      final_temperature: temperature that it falls to over a game [number]. It is at most the
        temperature, unless that is 0.
      temperature_halflife: plies in which the temperature falls half of the way [plies]. KataGo
        takes the width of the board.
      bootstrap_iterations: first iterations, which `bootstrap_player` plays in place of the search
        [iterations].
      bootstrap_player: a player without weights, or a search with weights that come with the
        package or that `export` wrote into a folder; the folder must not change [player]. Its moves
        are learned, or its search's policies if it searches: a stronger network teaches a weaker
        one.
      opponent: a trained player that plays all seats but one of each game and does not learn; empty
        for the learner in all seats [player]. Its own searches have the budget that its name says.
        The learner's search follows its raw policy where it is to move, and only the learner's
        plies teach the policy.
    """

    __pydantic_config__ = STRICT

    boards: AtLeastOne = 256
    plies: AtLeastOne = 32
    full_search_prob: Annotated[_Chance | None, *unless(1.0)] = None
    cheap_simulations: AtLeastOne = 4
    cheap_policy_weight: ShareOrOff = None
    policy_surprise_weight: ShareOrOff = None
    cheap_noise: bool = False
    setup_prob: ShareOrOff = None
    opening_prob: Share = 1.0
    opening_plies: Count = 0
    random_opening_prob: ShareOrOff = None
    temperature: Annotated[_Temperature | None, *unless(0.0)] = None
    final_temperature: Annotated[Real, Field(ge=0.01, le=100)] = 0.2
    temperature_halflife: Positive = 7.0
    bootstrap_iterations: Count = 0
    bootstrap_player: str = "greedy"
    opponent: str = ""

    @model_validator(mode="after")
    def _agree(self) -> "SelfPlayConfig":
        if self.random_opening_prob and not self.opening_plies and not self.setup_prob:
            raise ValueError(
                "random_opening_prob must be 0 where opening_plies and setup_prob are 0"
            )
        last = self.final_temperature
        if self.temperature is not None and self.temperature < last:
            raise ValueError(f"temperature must be 0 or at least final_temperature ({last:g})")
        return self


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """Number of positions that are kept to learn from, where they lie, and what is searched again.

    Attributes:
      positions: capacity of the replay, rounded up to whole iterations [positions].
      memory: where the replay is stored and sampled: `device` or `host`. `host` is for devices with
        too little memory; the CPU then samples.
      reanalyse: plies of each board of the replay that are searched again in each iteration, by the
        weights that have just played; 0 for none [plies]. They are drawn from all that is held. The
        new policies replace the old ones and are learned with weight 1, those of cheap and drawn
        plies, too; so do the values where `learner.value_mix` learns them. This is after
        Schrittwieser et al., "Mastering Atari, Go, Chess and Shogi by Planning with a Learned
        Model" (2020), appendix H (Reanalyze).
      reanalyse_simulations: budget of these searches, which explore as those of self-play
        [simulations].
    """

    __pydantic_config__ = STRICT

    positions: AtLeastOne = 200_000
    memory: Literal["device", "host"] = "device"
    reanalyse: Count = 0
    reanalyse_simulations: Annotated[Whole, Field(ge=1, le=MAX_SIMULATIONS)] = 64
