"""The memory that a run needs, by the keys of its config.

B boards, T plies of an iteration, R rows of the replay, N samples.
"""

from typing import Any

import jax
from jax.stages import Traced

from train.arena.match import MatchOptions, match_needs
from train.config import RunConfig
from train.data import replay
from train.data.replay import Trajectory
from train.learning.learner import Learner
from train.loop.replay_programs import HOST, replay_rows
from train.network import Network
from train.players.learned import search_player
from train.runtime.devices import Devices
from train.runtime.memory import (
    Need,
    check_fits,
    device_memory,
    host_memory,
    least_bytes,
    tree_bytes,
)
from wallgo_jax.game.state import Variant


def check_memory(
    config: RunConfig,
    selfplay: Traced,
    variants: Variant,
    learner: Learner,
    network: Network,
    devices: Devices,
) -> None:
    """Refuse a config that needs more memory than a device or this host has.

    Raises:
      UsageError: which keys take how much, and what would fit.
    """
    check_fits(run_needs(config, selfplay, variants, learner, network, devices), device_memory())
    if config.replay.memory == HOST:
        check_fits([_replay_need(config, selfplay)], host_memory())


def run_needs(
    config: RunConfig,
    selfplay: Traced,
    variants: Variant,
    learner: Learner,
    network: Network,
    devices: Devices,
) -> list[Need]:
    """Estimate the memory of one device in the phase of an iteration that needs the most.

    Args:
      config: the run.
      selfplay: an iteration of the most simulations on all boards, traced.
      variants: NumPy arrays [B], what each board plays.
      learner: the run's.
      network: the run's.
      devices: which share boards and samples.
    """
    count, own = devices.count, config.selfplay
    state = jax.eval_shape(learner.init, network.shapes)
    boards = tree_bytes((variants, selfplay.out_info[0])) // count
    replay_need = _replay_need(config, selfplay)
    replay_need = replay_need._replace(bytes=replay_need.bytes // count)
    held = [
        Need("selfplay.boards", own.boards, boards),
        Need("network.width", config.network.width, tree_bytes(state)),
        *([] if config.replay.memory == HOST else [replay_need]),
    ]
    note = f"search.simulations = {config.search.simulations}"
    phases = [
        [Need("selfplay.boards", own.boards, least_bytes(selfplay) // count, note)],
        [_learning_need(config, selfplay, variants, learner, network, count)],
    ]
    if config.evaluation.opponents:
        phases.append(_evaluation_needs(config, network))
    if jax.default_backend() == "cpu":
        # A checkpoint copies the whole state twice, in the memory that holds it already.
        phases.append([replay_need._replace(bytes=2 * replay_need.bytes)])
    return held + max(phases, key=lambda needs: sum(need.bytes for need in needs))


def _replay_need(config: RunConfig, selfplay: Traced) -> Need:
    """The replay of all devices; self-play decides its size where an iteration is larger."""
    row = jax.eval_shape(lambda: replay.init(1, selfplay.out_info[1]))
    size, own = replay_rows(config) * tree_bytes((row.plies, row.outcome)), config.selfplay
    if own.boards * own.plies > config.replay.positions:
        return Need("selfplay.boards", own.boards, size, f"selfplay.plies = {own.plies}")
    return Need("replay.positions", config.replay.positions, size)


def _learning_need(
    config: RunConfig,
    selfplay: Traced,
    variants: Variant,
    learner: Learner,
    network: Network,
    count: int,
) -> Need:
    """A step of learning: samples, features kept for the gradient, gradient."""
    batch = config.learner.batch

    def step(state: Any, plies: Trajectory, variants: Variant, key: jax.Array) -> Any:
        sample = replay.sample(
            replay.init(1, plies), variants, key, size=batch, has_reply=config.network.reply
        )
        return learner.update(state, sample, key)

    state = jax.eval_shape(learner.init, network.shapes)
    plies = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((1, 1, *x.shape[2:]), x.dtype), selfplay.out_info[1]
    )
    traced = jax.jit(step).trace(
        state, plies, jax.tree.map(lambda x: x[:1], variants), jax.random.key(0)
    )
    return Need("learner.batch", batch, least_bytes(traced) // count)


def _evaluation_needs(config: RunConfig, network: Network) -> list[Need]:
    """A final match of the newest weights, against themselves for want of an opponent here."""
    options = config.evaluation
    simulations = options.simulations
    player = search_player(
        config.name,
        network.shapes,
        config.network,
        config.search,
        config.rules,
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
        for need in match_needs(player, player, config.rules, how)
        if need.key in keys
    ]
