"""Players by name as opponents of the single-agent environments in `wallgo_jax.adapters`.

from train.opponents import make_opponent, make_wallgo_env

env = make_wallgo_env(["wjx", "pretrained:wallzero-4stone@16"])  # Gymnasium
opponent = make_opponent("wjx", "wallzero-4stone")  # for WallGoGymnax and WallGoEnv
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax

from train.registry import make_player
from wallgo_jax.adapters.opponents import Opponent
from wallgo_jax.env import State
from wallgo_jax.game import actions
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules

if TYPE_CHECKING:
    from wallgo_jax.adapters.gymnasium import WallGoEnv


def make_opponent(name: str, rules: str | Rules) -> Opponent:
    """Make a player of `train.registry` a function (state of one board, key) -> public action.

    JAX can trace the function where it can trace the player: all but those that ask the host.

    Raises:
      UsageError: there is no such player, or it is for other rules.
    """
    player = make_player(name, rules_lib.named(rules))

    def play(state: State, key: jax.Array) -> jax.Array:
        batch = jax.tree.map(lambda leaf: leaf[None], state.game)
        slot = player.act(player.variables, batch, key)[0]
        return _action_of_slot(state.game, slot)

    play.__name__ = player.name
    return play


_action_of_slot = jax.jit(actions.action_of_slot)


def make_wallgo_env(
    opponents: str | Sequence[str], rules: str | Rules = "wallzero-4stone", **options: Any
) -> "WallGoEnv":
    """Make a Gymnasium env against named players; each game draws one for every other seat.

    Args:
      options: as for `wallgo_jax.adapters.gymnasium.WallGoEnv`: seat, grid, planes, render_mode.

    Raises:
      ImportError: without the extra `wallgo-jax[gymnasium]`, naming it.
      UsageError: there is no such player, or it is for other rules.
    """
    from wallgo_jax.adapters.gymnasium import WallGoEnv

    names = [opponents] if isinstance(opponents, str) else opponents
    return WallGoEnv(rules, [make_opponent(name, rules) for name in names], **options)
