"""Memory that a run needs: what lies between its programs, and what each program takes."""

import jax

from train.arena.match_programs import MAX_GAMES
from train.config import RunConfig
from train.programs.replay import HOST
from train.programs.state import RunState
from train.runtime.devices import Devices
from train.runtime.errors import UsageError
from train.runtime.memory import (
    Need,
    check_fits,
    check_sizes,
    device_memory,
    host_memory,
    tree_bytes,
)
from train.search.config import MAX_SIMULATIONS
from wallgo_jax.game.state import initial_state

SELFPLAY_KEYS = ("selfplay.boards", "search.simulations", "network.width")
LEARNER_KEYS = ("learner.batch", "network.width")
_ACTION_BYTES = 4


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


def held_needs(config: RunConfig, like: RunState, plies: int) -> list[Need]:
    """The arrays of a device between two programs.

    Args:
      config: the run.
      like: shapes of its state, and how they lie on the devices.
      plies: bytes of the plies of an iteration on one device.
    """
    needs = [
        Need("the boards of self-play", tree_bytes(like.boards), ("selfplay.boards",)),
        Need("the plies of an iteration", plies, ("selfplay.boards", "selfplay.plies")),
        Need(
            "weights and optimizer",
            tree_bytes(like.learner),
            ("network.width", "another size of the network"),
        ),
    ]
    if config.replay.memory != HOST:
        needs.append(_replay_need(config, like))
    return needs


def check_held(config: RunConfig, like: RunState, plies: int, devices: Devices) -> None:
    """Refuse a run whose arrays alone need more memory than a device or this host has; nothing is
    traced. The arguments are those of `held_needs`."""
    matches = [_matches_need(config, devices)] if config.evaluation.opponents else []
    check_fits(held_needs(config, like, plies), device_memory(), programs=matches)
    if config.replay.memory == HOST:
        check_fits([_replay_need(config, like)], host_memory())


def checkpoint_need(config: RunConfig, like: RunState) -> Need | None:
    """What saving takes where the host's memory is the device's: two copies of the state."""
    if jax.default_backend() != "cpu" or config.replay.memory == HOST:
        return None
    return Need("a checkpoint", 2 * tree_bytes(like.replay_state), ("replay.positions",))


def _replay_need(config: RunConfig, like: RunState) -> Need:
    """An iteration of self-play decides the replay's size where it is larger."""
    own = config.selfplay
    is_least = own.boards * own.plies > config.replay.positions
    keys = ("selfplay.boards", "selfplay.plies") if is_least else ("replay.positions",)
    return Need("the replay", tree_bytes(like.replay_state), keys)


def _matches_need(config: RunConfig, devices: Devices) -> Need:
    """Records of all games of the longest match, and its boards. What its program takes is checked
    when it is compiled."""
    options = config.evaluation
    games = max(options.games, options.final_games)
    rules = max(config.learned, key=lambda rules: rules.size)
    state = tree_bytes(jax.eval_shape(lambda: initial_state(rules)))
    record = state + _ACTION_BYTES * rules.max_plies
    boards = min(options.batch, games)
    keys = ("evaluation.final_games", "evaluation.games", "evaluation.batch")
    return Need("matches", (games * record + boards * state) // devices.count, keys)
