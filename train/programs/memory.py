"""Memory that a run needs, estimated from its traced programs before anything lies on a device."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.stages import Traced

from train.arena.match import MatchOptions, match_needs
from train.arena.match_programs import MAX_GAMES
from train.config import RunConfig
from train.data import replay
from train.data.replay import Trajectory
from train.learning.learner import Learner
from train.network import Network, NetworkConfig
from train.players.learned import search_player
from train.programs.replay import HOST, replay_rows
from train.registry import FrozenOpponent
from train.runtime.devices import Devices
from train.runtime.errors import UsageError
from train.runtime.memory import (
    Need,
    check_fits,
    check_sizes,
    device_memory,
    host_memory,
    least_bytes,
    tree_bytes,
)
from train.search.config import MAX_SIMULATIONS
from wallgo_jax.board.geometry import NUM_SIDES
from wallgo_jax.game.actions import num_slots
from wallgo_jax.game.state import Variant

_FLOAT = 4
"""Bytes of a number."""


def check_sizes_of_run(config: RunConfig) -> None:
    """Refuse sizes that cannot even be traced."""
    check_sizes(
        selfplay_boards=config.selfplay.boards,
        selfplay_plies=config.selfplay.plies,
        learner_batch=config.learner.batch,
        learner_steps=config.learner.steps,
    )
    for key in ("games", "final_games"):
        games = getattr(config.evaluation, key)
        if games > MAX_GAMES:
            raise UsageError(
                f"evaluation.{key} = {games} is too large; at most {MAX_GAMES} can be kept"
            )
    for table in (config.search, config.evaluation):
        if table.simulations > MAX_SIMULATIONS:
            key = "search" if table is config.search else "evaluation"
            raise UsageError(
                f"{key}.simulations ({table.simulations}) must be at most {MAX_SIMULATIONS}"
            )


class RunParts(NamedTuple):
    """The parts of a run that decide its memory; none of them is on a device.

    T plies of an iteration, B boards.
    """

    config: RunConfig
    devices: Devices  # share boards and samples
    network: Network
    learner: Learner
    variants: Variant  # NumPy arrays [B], what each board plays
    plies: Trajectory
    """Shapes of the plies [T, B] of an iteration."""
    selfplay: Callable[[], Traced]
    """Traces an iteration of the most simulations on all boards, the first time it is called."""
    opponent: FrozenOpponent | None  # of self-play


def check_memory_of_run(parts: RunParts) -> None:
    """Refuse a config that needs more memory than a device or this host has.

    Programs are traced only for a config that could.

    Raises:
      UsageError: which keys take how much, and what would fit.
    """
    memory = device_memory()
    if memory is not None and most_bytes(parts) * memory.devices > memory.bytes:
        check_fits(run_needs(parts), memory)
    if parts.config.replay.memory == HOST:
        check_fits([_replay_need(parts)], host_memory())


def most_bytes(parts: RunParts) -> int:
    """Bound the memory of a run from its sizes alone; several times what it takes."""
    config, grid = parts.config, parts.config.grid_side
    own, options, opponent = config.selfplay, config.evaluation, parts.opponent
    cells, slots = grid**2, num_slots(config.stones, grid=grid)

    def evaluation_of(network: NetworkConfig, shapes: Any) -> float:
        # An array of weights stands for a layer, whose features are at most the widest ones of a
        # block and of the heads.
        features = max(network.mlp_ratio, 4) * network.width + network.heads * cells
        features += network.destination_width + (1 + NUM_SIDES) * network.destination_rank
        return _FLOAT * len(jax.tree.leaves(shapes)) * cells * features

    evaluation = evaluation_of(config.network, parts.network.shapes)
    if opponent is not None:
        # The learner's leaves ask both networks.
        theirs = opponent.trained
        evaluation += evaluation_of(theirs.config.network, theirs.variables)
    node = _FLOAT * (8 * slots + 16 * cells)

    def searched(boards: int, simulations: int) -> float:
        return boards * (evaluation + (simulations + 1) * node)

    ply = _FLOAT * (slots + 8 * cells)
    plies = own.boards * own.plies
    return int(
        searched(own.boards, config.search.simulations)
        + (0 if opponent is None else searched(own.boards, opponent.simulations))
        + searched(options.batch, options.simulations)
        + ply * (3 * plies + 3 * max(plies, config.replay.positions))
        + max(options.games, options.final_games) * ply
        + 4 * config.learner.batch * (evaluation + ply)
        + 8 * tree_bytes(parts.network.shapes)
    )


def run_needs(parts: RunParts) -> list[Need]:
    """Estimate the memory of one device in the phase of an iteration that needs the most."""
    config, count, own = parts.config, parts.devices.count, parts.config.selfplay
    selfplay = parts.selfplay()
    boards = tree_bytes((parts.variants, selfplay.out_info[0])) // count
    replay_need = _replay_need(parts)
    replay_need = replay_need._replace(bytes=replay_need.bytes // count)
    held = [
        Need("selfplay.boards", own.boards, boards),
        Need("network.width", config.network.width, tree_bytes(_learner_state(parts))),
        *([] if config.replay.memory == HOST else [replay_need]),
    ]
    note = f"search.simulations = {config.search.simulations}"
    phases = [
        [Need("selfplay.boards", own.boards, least_bytes(selfplay) // count, note)],
        [_learning_need(parts)],
    ]
    if config.evaluation.opponents:
        phases.append(_evaluation_needs(config, parts.network))
    if jax.default_backend() == "cpu":
        # A checkpoint copies the whole state twice, in the memory that holds it already.
        phases.append([replay_need._replace(bytes=2 * replay_need.bytes)])
    return held + max(phases, key=lambda needs: sum(need.bytes for need in needs))


def _learner_state(parts: RunParts) -> Any:
    return jax.eval_shape(parts.learner.init, parts.network.shapes)


def _replay_need(parts: RunParts) -> Need:
    """The replay of all devices; self-play decides its size where an iteration is larger."""
    config, plies = parts.config, parts.plies
    row = jax.eval_shape(lambda: replay.init(1, plies))
    size, own = replay_rows(config) * tree_bytes((row.plies, row.outcome)), config.selfplay
    if own.boards * own.plies > config.replay.positions:
        return Need("selfplay.boards", own.boards, size, f"selfplay.plies = {own.plies}")
    return Need("replay.positions", config.replay.positions, size)


def _learning_need(parts: RunParts) -> Need:
    """A step of learning: samples, features kept for the gradient, gradient."""
    config = parts.config
    batch = config.learner.batch

    def step(state: Any, plies: Trajectory, variants: Variant, key: jax.Array) -> Any:
        sample = replay.sample(
            replay.init(1, plies), variants, key, size=batch, has_reply=config.network.reply
        )
        return parts.learner.update(state, sample, key)

    plies = jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, 1, *x.shape[2:]), x.dtype), parts.plies)
    variant = jax.tree.map(lambda x: x[:1], parts.variants)
    traced = jax.jit(step).trace(_learner_state(parts), plies, variant, jax.random.key(0))
    return Need("learner.batch", batch, least_bytes(traced) // parts.devices.count)


def _evaluation_needs(config: RunConfig, network: Network) -> list[Need]:
    """A final match of the newest weights against themselves, for no opponent is made yet."""
    options = config.evaluation
    simulations = options.simulations
    # Matches of the other rule sets need less.
    rules = max(config.learned, key=lambda rules: num_slots(rules.stones, grid=rules.size))
    player = search_player(
        config.name,
        network.shapes,
        config.network,
        config.search,
        rules,
        simulations=simulations,
    )
    how = MatchOptions(
        games=max(options.games, options.final_games),
        batch=options.batch,
        opening_plies=options.opening_plies,
    )
    note = f"evaluation.simulations = {simulations}"
    keys = {"games": ("evaluation.final_games", ""), "batch": ("evaluation.batch", note)}
    return [
        Need(keys[need.key][0], need.value, need.bytes, keys[need.key][1])
        for need in match_needs(player, player, rules, how)
        if need.key in keys
    ]
