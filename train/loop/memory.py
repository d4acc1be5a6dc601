"""Memory that a run needs: what lies between its functions, and what each of them takes."""

from typing import Any

import jax

from train.config import RunConfig
from train.runtime.devices import Devices
from train.runtime.memory import (
    MemoryEstimate,
    check_fits,
    device_memory,
    host_memory,
    tree_bytes,
)
from wallgo_jax.game.state import initial_state

HOST = "host"
"""The `replay.memory` that is not the devices'."""
_ACTION_BYTES = 4


def check_held(config: RunConfig, like: Any, plies: int, devices: Devices) -> None:
    """Refuse a run whose arrays alone need more memory than a device or this host has; nothing is
    traced. The arguments are those of `held_by`."""
    matches = [_matches(config, devices)] if config.evaluation.opponents else []
    check_fits(held_by(config, like, plies), device_memory(), programs=matches)
    if config.replay.memory == HOST:
        check_fits([_replay(config, like)], host_memory())


def check_programs(
    config: RunConfig, like: Any, plies: int, *, play: int, write: int, learn: int
) -> None:
    """Refuse a run whose arrays and largest function need more memory than a device has: bytes on
    one device of self-play, of adding to the replay and of learning, in addition to the arrays of
    `held_by`."""
    keys = ("selfplay.boards", "search.simulations", "network.width")
    programs = [
        MemoryEstimate("self-play", play, keys),
        MemoryEstimate("adding to the replay", write, ("selfplay.boards",)),
        MemoryEstimate("learning", learn, ("learner.batch", "network.width")),
    ]
    if jax.default_backend() == "cpu" and config.replay.memory != HOST:
        # Saving takes two copies, and the host's memory is the device's.
        copies = 2 * tree_bytes(like.replay_state)
        programs.append(MemoryEstimate("a checkpoint", copies, ("replay.positions",)))
    check_fits(held_by(config, like, plies), device_memory(), programs=programs)


def held_by(config: RunConfig, like: Any, plies: int) -> list[MemoryEstimate]:
    """The arrays of a device between two functions.

    Args:
      config: the run.
      like: shapes of its `TrainState`, and where they lie.
      plies: bytes of the plies of an iteration on one device.
    """
    network = ("network.width", "another size of the network")
    needs = [
        MemoryEstimate("the boards of self-play", tree_bytes(like.boards), ("selfplay.boards",)),
        MemoryEstimate("the plies of an iteration", plies, ("selfplay.boards", "selfplay.plies")),
        MemoryEstimate("weights and optimizer", tree_bytes(like.learner), network),
    ]
    return needs if config.replay.memory == HOST else [*needs, _replay(config, like)]


def _replay(config: RunConfig, like: Any) -> MemoryEstimate:
    """An iteration of self-play decides the replay's size where it is larger."""
    options = config.selfplay
    is_least = options.boards * options.plies > config.replay.positions
    keys = ("selfplay.boards", "selfplay.plies") if is_least else ("replay.positions",)
    return MemoryEstimate("the replay", tree_bytes(like.replay_state), keys)


def _matches(config: RunConfig, devices: Devices) -> MemoryEstimate:
    """Records of all games of the longest match, and its boards. What its program takes is checked
    when it is compiled."""
    options = config.evaluation
    games = max(options.games, options.final_games)
    rules = max(config.learned, key=lambda rules: rules.size)
    state = tree_bytes(jax.eval_shape(lambda: initial_state(rules)))
    record = state + _ACTION_BYTES * rules.max_plies
    boards = min(options.batch, games)
    keys = ("evaluation.final_games", "evaluation.games", "evaluation.batch")
    return MemoryEstimate("matches", (games * record + boards * state) // devices.count, keys)
