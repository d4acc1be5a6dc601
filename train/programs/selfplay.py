"""Programs of a run's self-play: the player of each iteration, on all devices.

B boards.
"""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train import registry
from train.config import RunConfig
from train.data.diversity import OpeningVariety, opening_variety
from train.data.openings import Exploration
from train.data.selfplay import (
    Boards,
    SelfPlayMetrics,
    TargetOptions,
    first_boards,
    make_selfplay,
)
from train.network import Network
from train.runtime.ahead import Ahead
from train.runtime.devices import (
    AXIS,
    BY_BOARD,
    EVERYWHERE,
    ROWS_BY_BOARD,
    Devices,
    device_key,
)
from train.runtime.errors import UsageError
from train.search.config import simulations_at
from train.search.evaluator import evaluator_for
from train.search.search import Search, SearchResult, make_search
from wallgo_jax.game.state import State, Variant


class StageKind(enum.Enum):
    """The player of a stage."""

    BOOTSTRAP = "bootstrap"  # a player without weights
    SEARCH = "search"  # the network's search


@dataclasses.dataclass(frozen=True)
class Stage:
    """A part of the schedule of self-play: iterations of one stage share a program.

    Attributes:
      kind: who plays.
      simulations: of a full search by the network; 0 in the bootstrap.
    """

    kind: StageKind
    simulations: int


class SelfPlayFigures(NamedTuple):
    """Figures of an iteration on all devices, float32[]."""

    sums: SelfPlayMetrics
    variety: OpeningVariety


BOOTSTRAP = Stage(StageKind.BOOTSTRAP, 0)


def stage_at(config: RunConfig, iteration: int) -> Stage:
    """The stage that an iteration, counted from 0, belongs to."""
    if iteration < config.selfplay.bootstrap_iterations:
        return BOOTSTRAP
    simulations = simulations_at(config.search, iteration, config.iterations)
    return Stage(StageKind.SEARCH, simulations)


def selfplay_of(config: RunConfig, stage: Stage) -> Callable[..., Any]:
    """Make an iteration of self-play in a stage; jit it with its boards donated."""
    if stage.kind is StageKind.BOOTSTRAP:
        return _bootstrap_selfplay(config)
    return _search_selfplay(config, stage.simulations)


def make_bootstrap(config: RunConfig) -> Search:
    """The player of the first iterations.

    Raises:
      UsageError: there is no such player, it needs weights, or it cannot play the rules.
    """
    try:
        return registry.make_teacher(
            config.selfplay.bootstrap_player, config.rules, heuristics=config.heuristics
        )
    except UsageError as error:
        raise UsageError(f"selfplay.bootstrap_player: {error}") from None


def _bootstrap_selfplay(config: RunConfig) -> Callable[..., Any]:
    search, has_root_value = make_bootstrap(config), config.learner.value_mix > 0
    return make_selfplay(
        _without_value(search) if has_root_value else search,
        plies=config.selfplay.plies,
        targets=TargetOptions(has_root_value=has_root_value),
        exploration=_exploration_of(config),
    )


def _without_value(search: Search) -> Search:
    """A player of the bootstrap, whose values are not learned: its games teach their outcomes."""

    def search_alone(variables: Any, states: State, key: jax.Array) -> SearchResult:
        found = search(variables, states, key)
        return found._replace(value=jnp.full_like(found.value, jnp.nan))

    return search_alone


def _search_selfplay(config: RunConfig, simulations: int) -> Callable[..., Any]:
    options = config.selfplay
    evaluate = evaluator_for(config.network, config.rules)

    def search_of(simulations: int, *, explores: bool) -> Search:
        search = dataclasses.replace(config.search, simulations=simulations, first_simulations=0)
        return make_search(evaluate, search, explores=explores)

    targets = TargetOptions(
        policy_surprise_weight=options.policy_surprise_weight,
        cheap_policy_weight=options.cheap_policy_weight,
        has_root_value=config.learner.value_mix > 0,
    )
    cheap = None
    if options.full_search_prob < 1:
        cheap = search_of(min(options.cheap_simulations, simulations), explores=options.cheap_noise)
    return make_selfplay(
        search_of(simulations, explores=True),
        plies=options.plies,
        cheap=cheap,
        full_search_prob=options.full_search_prob,
        targets=targets,
        exploration=_exploration_of(config),
    )


def _exploration_of(config: RunConfig) -> Exploration:
    names = [field.name for field in dataclasses.fields(Exploration)]
    return Exploration(**{name: getattr(config.selfplay, name) for name in names})


class SelfplayPrograms(NamedTuple):
    """Self-play of each iteration."""

    at: Callable[[int], Ahead]
    """The program of an iteration: (variables, variant, boards, key) -> boards, plies [T, B],
    SelfPlayFigures; it consumes the boards. Where a run has several stages, the first call compiles
    those of all later iterations, so that none of them waits for the compiler."""
    compile: Callable[[int], None]
    """Compiles the programs of an iteration and of all later ones."""


def make_selfplay_programs(
    config: RunConfig, network: Network, variant: Variant, devices: Devices
) -> SelfplayPrograms:
    """Make the programs of all stages; nothing is compiled yet.

    Args:
      variant: [B], on the devices.
    """
    stages = [stage_at(config, iteration) for iteration in range(config.iterations)]
    like = (
        devices.like(network.shapes, EVERYWHERE),
        devices.like(variant, BY_BOARD),
        devices.like(jax.eval_shape(first_boards, variant), BY_BOARD),
        devices.like(jax.eval_shape(jax.random.key, 0), EVERYWHERE),
    )
    programs: dict[Stage, Ahead] = {}

    def program_of(stage: Stage) -> Ahead:
        if stage not in programs:
            programs[stage] = Ahead(_jitted(config, stage, devices))
        return programs[stage]

    def compile_from(iteration: int) -> None:
        for stage in dict.fromkeys(stages[iteration:]):
            program_of(stage).compile(*like)

    def selfplay_at(iteration: int) -> Ahead:
        if len(set(stages)) > 1:
            compile_from(iteration)
        return program_of(stages[iteration])

    return SelfplayPrograms(selfplay_at, compile_from)


def _jitted(config: RunConfig, stage: Stage, devices: Devices) -> Any:
    """Self-play on each device for itself, with one coin for all of them."""
    selfplay = selfplay_of(config, stage)

    def own_selfplay(variables: Any, variant: Variant, boards: Boards, key: jax.Array) -> Any:
        # Split before the devices get keys of their own: all search a ply equally deep.
        key, coin_key = jax.random.split(key)
        boards, plies, metrics = selfplay(variables, variant, boards, device_key(key), coin_key)
        variety = opening_variety(
            variant, plies.position, lambda own: jax.lax.all_gather(own, AXIS)
        )
        return boards, plies, SelfPlayFigures(jax.lax.psum(metrics, AXIS), variety)

    in_specs = (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE)
    per_device = devices.per_device(own_selfplay, in_specs, (BY_BOARD, ROWS_BY_BOARD, EVERYWHERE))
    return jax.jit(per_device, donate_argnums=2)
