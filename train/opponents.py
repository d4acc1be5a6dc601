"""Players by name as opponents of the single-agent environments in `wallgo_jax.adapters`.

from train.opponents import make_opponent, make_wallgo_env

env = make_wallgo_env(["wjx", "pretrained:wallzero-4stone@16"])  # Gymnasium
opponent = make_opponent("wjx")  # for WallGoGymnax and WallGoEnv
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax

from train.players.networks import common_rules
from train.players.registry import make_player
from wallgo_jax.adapters.opponents import Opponent
from wallgo_jax.env import State
from wallgo_jax.game import actions
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules

if TYPE_CHECKING:
    from wallgo_jax.adapters.gymnasium import WallGoEnv


DEFAULT_RULES = "wallzero-4stone"


def make_opponent(name: str, rules: str | Rules | None = None) -> Opponent:
    """Make a named player a function (state of one board, key) -> public action.

    JAX can trace the function, and `jax.vmap` it.

    Args:
      rules: None means those that the player has learned, else `DEFAULT_RULES`.

    Raises:
      UsageError: there is no such player, or it is for other rules.
    """
    player = make_player(name, _rules_for([name], rules))

    def play(state: State, key: jax.Array) -> jax.Array:
        batch = jax.tree.map(lambda leaf: leaf[None], state.game)
        slot = player.act(player.variables, batch, key)[0]
        return _action_of_slot(state.game, slot)

    play.__name__ = player.name
    return play


def _rules_for(names: Sequence[str], rules: str | Rules | None) -> Rules:
    return rules_lib.named(rules or common_rules(names) or DEFAULT_RULES)


_action_of_slot = jax.jit(actions.action_of_slot)


def make_wallgo_env(
    opponents: str | Sequence[str], rules: str | Rules | None = None, **options: Any
) -> "WallGoEnv":
    """Make a Gymnasium env against named players; each game draws one for every other seat.

    Args:
      rules: None means those that trained opponents have learned, else `DEFAULT_RULES`.
      options: as for `wallgo_jax.adapters.gymnasium.WallGoEnv`: seat, grid, planes, render_mode.

    Raises:
      ImportError: without the extra `wallgo-jax[gymnasium]`, naming it.
      UsageError: there is no such player, or it is for other rules.
    """
    from wallgo_jax.adapters.gymnasium import WallGoEnv

    names = [opponents] if isinstance(opponents, str) else opponents
    played = _rules_for(names, rules)
    return WallGoEnv(played, [make_opponent(name, played) for name in names], **options)
