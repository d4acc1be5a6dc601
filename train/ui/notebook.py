"""The function that opens a board in a notebook or a script."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from train.players.registry import check_rules, make_level_player
from train.runtime.errors import require, usage_errors
from train.ui.machine import DEFAULT_LEVEL, Machine, seats_of_person
from wallgo_jax.game.rules import PRESETS, Rules, named

if TYPE_CHECKING:
    from train.ui.widget import PlayWidget

_DEFAULT_RULES = PRESETS["wallzero-4stone"]


def play(
    rules: Rules | Mapping[str, object] | str | None = None,
    *,
    player: str = "",
    level: str = DEFAULT_LEVEL,
    colour: str = "Red",
) -> "PlayWidget":
    """Show a board to play on in a notebook, against the machine.

    The board also takes moves from Python: `board.play("C3")`.

    Args:
      rules: by default those that the player has learned, else `wallzero-4stone`.
      player: the machine: a player that searches, by name, without simulations; by default the one
        that comes with the rules.
      level: of the machine, such as `club`; `person` for no machine.
      colour: yours.

    Raises:
      UsageError: the rules, player, level or colour is not allowed, or anywidget is missing.
    """
    require("play", "notebooks", "anywidget")
    from train.ui.widget import PlayWidget

    guide = make_level_player(player) if player else None
    if rules is None:
        rules = guide.learned[0] if guide and guide.learned else _DEFAULT_RULES
    elif not isinstance(rules, Rules):
        with usage_errors():
            rules = Rules.from_dict(rules) if isinstance(rules, Mapping) else named(rules)
    if guide is not None:
        check_rules(guide, rules)
    seats = seats_of_person(rules, level=level, colour=colour)
    return PlayWidget(rules, machine_for(player), seats)


@functools.cache
def machine_for(player: str) -> Machine:
    """The machine of a name; boards share it, so that it is compiled once."""
    return Machine(player)
