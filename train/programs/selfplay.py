"""Programs of a run's self-play: the player of each iteration, on all devices.

B boards.
"""

import dataclasses
import enum
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced

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
    toss_coins,
)
from train.data.sides import by_budget
from train.network import Network, cast_weights
from train.programs.boards import BoardSums, sum_by_board
from train.programs.numbers import Numbers, numbers_of, unchecked, with_numbers
from train.registry import FrozenOpponent
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
from train.runtime.host import fetch
from train.runtime.numbers import is_off
from train.search.config import boosts_at, first_iterations, simulations_at
from train.search.engine import Budget
from train.search.evaluator import WithOpponentVariables, evaluator_for
from train.search.search import (
    PriorBoost,
    Search,
    SearchResult,
    cast_own_weights,
    make_budgeted_search,
    make_search,
)
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
    """Figures of an iteration on all devices, float32[] where nothing else is said."""

    sums: SelfPlayMetrics
    variety: OpeningVariety
    by_board: BoardSums | None  # float32[B]; None where the run has one rule set


EXACT = "exact"
"""The kind of player that is made for one rule set."""
BOOTSTRAP = Stage(StageKind.BOOTSTRAP, 0)


def stage_at(config: RunConfig, iteration: int) -> Stage:
    """The stage that an iteration, counted from 0, belongs to."""
    if iteration < config.selfplay.bootstrap_iterations:
        return BOOTSTRAP
    simulations = simulations_at(config.search, iteration, config.iterations)
    return Stage(StageKind.SEARCH, simulations)


def stages_from(config: RunConfig, iteration: int) -> tuple[Stage, ...]:
    """The stages of an iteration, counted from 0, and of all later ones of the run, in order."""
    starts = {iteration, config.selfplay.bootstrap_iterations}
    starts |= {*first_iterations(config.search, config.iterations)}
    later = sorted(start for start in starts if iteration <= start < config.iterations)
    return tuple(dict.fromkeys(stage_at(config, start) for start in later))


def boosted(config: RunConfig, variables: Any, iteration: int) -> Any:
    """The variables as an iteration's self-play takes them: with the boosts of the prior, where the
    run has some."""
    if not config.search.prior_boost:
        return variables
    played = max(0, iteration - config.selfplay.bootstrap_iterations)
    # An array, so that one program serves all iterations.
    return PriorBoost(variables, np.array(boosts_at(config.search, played), np.float32))


def load_opponent(config: RunConfig, *, kept: Path | None = None) -> FrozenOpponent | None:
    """The frozen opponent of a run's self-play, None where it has none.

    Args:
      config: the run.
      kept: as in `make_frozen_opponent`.

    Raises:
      UsageError: there is no such player, it has no weights, or it plays other rules.
    """
    if not config.selfplay.opponent:
        return None
    try:
        return registry.make_frozen_opponent(config.selfplay.opponent, config.rules, kept=kept)
    except UsageError as error:
        raise UsageError(f"selfplay.opponent: {error}") from None


def inputs_of(config: RunConfig, variables: Any, iteration: int, opponent: Any) -> Any:
    """What an iteration's self-play takes as variables: those of the learner, boosted where the
    run boosts, beside the variables of a frozen opponent where it has one."""
    own = boosted(config, variables, iteration)
    return own if opponent is None else WithOpponentVariables(own, opponent)


def selfplay_of(
    config: RunConfig, stage: Stage, opponent: FrozenOpponent | None = None
) -> Callable[..., Any]:
    """Make an iteration of self-play in a stage; jit it with its boards donated.

    Args:
      opponent: that of the run, which must have one if the config says so.
    """
    if (opponent is None) != (not config.selfplay.opponent):
        raise ValueError("selfplay.opponent is loaded by the caller: see load_opponent")
    if stage.kind is StageKind.BOOTSTRAP:
        return _bootstrap_selfplay(config, opponent)
    return _search_selfplay(config, stage.simulations, opponent)


def make_bootstrap(config: RunConfig) -> Search:
    """The player of the first iterations.

    Raises:
      UsageError: there is no such player, it needs weights, or it cannot play the rules.
    """
    name = config.selfplay.bootstrap_player
    try:
        # All but the exact player are the same for all rules.
        found = [
            registry.make_teacher(name, rules, heuristics=config.heuristics)
            for rules in config.learned
        ]
        if config.mix and registry.read_name(name).kind == EXACT:
            raise UsageError(f"player {name!r}: solves one rule set, not several at once")
    except UsageError as error:
        raise UsageError(f"selfplay.bootstrap_player: {error}") from None
    return found[0]


def _bootstrap_selfplay(config: RunConfig, opponent: FrozenOpponent | None) -> Callable[..., Any]:
    search, has_root_value = make_bootstrap(config), not is_off(config.learner.value_mix)
    return make_selfplay(
        _without_value(search) if has_root_value else search,
        plies=config.selfplay.plies,
        targets=TargetOptions(has_root_value=has_root_value),
        exploration=_exploration_of(config),
        opponent=None if opponent is None else opponent.search,
    )


def _without_value(search: Search) -> Search:
    """A player of the bootstrap, whose values are not learned: its games teach their outcomes."""

    def search_alone(variables: Any, states: State, key: jax.Array) -> SearchResult:
        found = search(variables, states, key)
        return found._replace(value=jnp.full_like(found.value, jnp.nan))

    return search_alone


def _search_selfplay(
    config: RunConfig, simulations: int, opponent: FrozenOpponent | None
) -> Callable[..., Any]:
    options = config.selfplay
    evaluate = evaluator_for(config.network, config.rules)
    model = None if opponent is None else opponent.evaluate
    search_config = unchecked(config.search, simulations=simulations, first_simulations=0)
    how: Any = {"has_boosts": bool(config.search.prior_boost), "model": model}
    if not is_off(options.full_search_prob, 1):
        cheap = min(options.cheap_simulations, simulations)
        budgets = Budget(simulations, True), Budget(cheap, options.cheap_noise)
        search = by_budget(make_budgeted_search(evaluate, search_config, budgets, **how))
    else:
        search = make_search(evaluate, search_config, explores=True, **how)
    targets = TargetOptions(
        policy_surprise_weight=options.policy_surprise_weight,
        cheap_policy_weight=options.cheap_policy_weight,
        has_root_value=not is_off(config.learner.value_mix),
    )
    selfplay = make_selfplay(
        search,
        plies=options.plies,
        full_search_prob=options.full_search_prob,
        targets=targets,
        exploration=_exploration_of(config),
        opponent=None if opponent is None else opponent.search,
    )

    def cast_and_play(variables: Any, *rest: Any) -> Any:
        return selfplay(cast_own_weights(variables, config.network), *rest)

    return cast_and_play


def _exploration_of(config: RunConfig) -> Exploration:
    names = [field.name for field in dataclasses.fields(Exploration)]
    return Exploration(**{name: getattr(config.selfplay, name) for name in names})


class SelfplayPrograms(NamedTuple):
    """Self-play of each iteration."""

    at: Callable[[int], Callable[..., Any]]
    """The program of an iteration: (numbers, variables, variant, boards, key) -> boards, plies
    [T, B], SelfPlayFigures; it consumes the boards. Where a run has several stages, the first call
    compiles those of all later iterations, so that none of them waits for the compiler."""
    trace: Callable[[int], Traced]
    """Traces the program of an iteration; the devices need not be there."""
    compile: Callable[[int], int]
    """Compiles the programs of an iteration and of all later ones. Returns the bytes that the
    largest takes on one device in addition to its arguments."""


def make_selfplay_programs(
    config: RunConfig,
    network: Network,
    variant: Variant,
    devices: Devices,
    opponent: FrozenOpponent | None = None,
) -> SelfplayPrograms:
    """Make the programs of all stages; nothing is compiled yet.

    Args:
      config: the run; of the numbers that are arguments it says only which there are.
      variant: [B], what each board plays, or its shapes.
      opponent: the frozen one, whose variables are put onto the devices once.
    """
    has_stages = len(stages_from(config, 0)) > 1
    theirs, first = None, functools.partial(first_boards, has_opponent=opponent is not None)
    if opponent is not None:
        theirs = cast_weights(opponent.trained.variables, opponent.trained.config.network)
    like = (
        devices.like(numbers_of(config), EVERYWHERE),
        devices.like(inputs_of(config, network.shapes, 0, theirs), EVERYWHERE),
        devices.like(variant, BY_BOARD),
        devices.like(jax.eval_shape(first, variant), BY_BOARD),
        devices.like(jax.eval_shape(jax.random.key, 0), EVERYWHERE),
    )
    programs: dict[Stage, Ahead] = {}

    def program_of(stage: Stage) -> Ahead:
        if stage not in programs:
            programs[stage] = Ahead(_jitted(config, stage, devices, opponent))
        return programs[stage]

    def compile_from(iteration: int) -> int:
        stages = [program_of(stage) for stage in stages_from(config, iteration)]
        for program in stages:
            program.compile(*like)
        return max(program.bytes for program in stages)

    def selfplay_at(iteration: int) -> Callable[..., Any]:
        if has_stages:
            compile_from(iteration)
        program = program_of(stage_at(config, iteration))
        if not config.search.prior_boost and theirs is None:
            return program
        placed = place_theirs()
        return lambda numbers, variables, *rest: program(
            numbers, inputs_of(config, variables, iteration, placed), *rest
        )

    @functools.cache
    def place_theirs() -> Any:
        return devices.place(theirs, jax.tree.map(lambda x: EVERYWHERE, theirs))

    def trace_at(iteration: int) -> Traced:
        return program_of(stage_at(config, iteration)).trace(*like)

    return SelfplayPrograms(selfplay_at, trace_at, compile_from)


def count_full_plies(config: RunConfig, key: jax.Array) -> int:
    """Number of plies of an iteration that are searched in full once the bootstrap is over.

    Args:
      config: the run.
      key: of the iteration's self-play, which is not consumed.
    """
    options = config.selfplay
    if options.full_search_prob == 1:
        return options.plies
    _, coin_key = _split_coins(key)
    coins = toss_coins(coin_key, plies=options.plies, full_search_prob=options.full_search_prob)
    return int(fetch(coins).sum())


def _split_coins(key: jax.Array) -> jax.Array:
    """The key of all else in an iteration's self-play, and that of its coins."""
    return jax.random.split(key)


def _jitted(
    config: RunConfig,
    stage: Stage,
    devices: Devices,
    opponent: FrozenOpponent | None,
) -> Any:
    """Self-play on each device for itself, with one coin for all of them."""

    def own_selfplay(
        numbers: Numbers, variables: Any, variant: Variant, boards: Boards, key: jax.Array
    ) -> Any:
        selfplay = selfplay_of(with_numbers(config, numbers), stage, opponent)
        # Split before the devices get keys of their own: all search a ply equally deep.
        key, coin_key = _split_coins(key)
        boards, plies, metrics = selfplay(variables, variant, boards, device_key(key), coin_key)
        variety = opening_variety(
            variant, plies.position, lambda own: jax.lax.all_gather(own, AXIS)
        )
        by_board = sum_by_board(plies) if config.mix else None
        return boards, plies, SelfPlayFigures(jax.lax.psum(metrics, AXIS), variety, by_board)

    in_specs = (EVERYWHERE, EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE)
    each: Any = BY_BOARD if config.mix else None
    specs: tuple[Any, ...] = (EVERYWHERE, EVERYWHERE, each)
    figures = SelfPlayFigures(*specs)
    per_device = devices.per_device(own_selfplay, in_specs, (BY_BOARD, ROWS_BY_BOARD, figures))
    return jax.jit(per_device, donate_argnums=3)
