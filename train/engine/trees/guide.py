"""The players that guide a session's search."""

import jax

from train.network import Output
from train.players.basic import Player
from train.players.names import read_name
from train.players.networks import refuse_other_rules
from train.players.registry import make_evaluating_player
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules


def make_guide_for_levels(name: str) -> Player:
    """Make the player whose simulations a level of play says.

    Raises:
      UsageError: there is no such player, it does not search, or its name says how long.
    """
    read = read_name(name)
    if read.has_budget or read.kind == "net":
        raise UsageError(
            f"player {name!r}: name one that searches, without simulations; levels say them"
        )
    return make_evaluating_player(name)


def chances_of_owners(output: Output) -> jax.Array | None:
    """float32[B, H, W, P + 1]: the chances of each cell's final owners, the player to move first,
    nobody last; None without a head for them."""
    return None if output.ownership is None else jax.nn.softmax(output.ownership, axis=-1)


def check_rules(guide: Player, rules: Rules) -> None:
    """Refuse rules that a player has not learned with a UsageError."""
    if guide.learned:
        refuse_other_rules(guide.name, guide.learned, rules, transfer=guide.transfer)
