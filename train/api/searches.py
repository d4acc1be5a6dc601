"""Searches of the boards that a user has, one or a batch."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from train.api.checks import check_whole, key_of
from train.api.states import States, batch_of
from train.config import config_from_dict
from train.functions import refuse_functions
from train.players.basic import Player
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.search.config import MAX_SIMULATIONS, SearchConfig, as_player
from train.search.report import SearchReport
from train.search.reporting import make_reporting_search
from wallgo_jax.game.rules import Rules


def change_search(search: SearchConfig, options: Mapping[str, Any]) -> SearchConfig:
    """Options of a player's search, changed as in the config's table `search`; the number of
    considered actions is the player's.

    Raises:
      UsageError: there is no such key, or its value is not allowed.
    """
    refuse_functions({}, {"search": options}, where="search")
    considered = options.get("max_considered_actions", search.player_max_considered_actions)
    fields = {
        **dataclasses.asdict(search),
        "player_max_considered_actions": considered,
        **options,
    }
    return config_from_dict({"search": fields}, where="search").search


def search_states(
    player: Player,
    rules: Rules,
    states: States,
    *,
    simulations: int | None = None,
    seed: int | None = None,
) -> SearchReport:
    """Search boards; see `SearchReport`.

    Args:
      player: searches.
      rules: of the boards.
      states: one board or a batch.
      simulations: of each board; by default the player's own.
      seed: of noise; None for none.

    Raises:
      UsageError: a game is over, or no number of simulations is known.
    """
    batch, is_one = batch_of(states, rules)
    count = player.simulations if simulations is None else simulations
    if count is not None:
        check_whole("search", simulations=count)
    if count is None or not 0 <= count <= MAX_SIMULATIONS:
        raise UsageError(f"search: simulations ({count}) must be from 0 to {MAX_SIMULATIONS}")
    if np.asarray(batch.position.terminated).any():
        raise UsageError("states: a game is over; there is nothing to search or evaluate")
    search = make_reporting_search(
        player.evaluate,
        as_player(player.search, max(count, 1)),
        simulations=count,
        explores=seed is not None,
        symmetries=player.symmetries,
        evaluate_heads=player.evaluate_heads,
    )
    key = key_of("search", 0 if seed is None else seed)
    report: SearchReport = dataclasses.replace(
        fetch(search(player.variables, batch, key)),
        player=player.name,
        rules=rules,
        simulations=count,
        calibration=player.calibration,
    )
    return report[0] if is_one else report
