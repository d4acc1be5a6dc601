"""The player that analyses positions, by its name and the rules of the games."""

import dataclasses
import functools
from pathlib import Path

from train.checkpoints import exported, pretrained
from train.checkpoints.calibration import read_calibration
from train.players.basic import Player
from train.players.names import read_name, read_network_name
from train.players.networks import model_of
from train.players.registry import check_rules, make_evaluating_player
from train.runtime.errors import UsageError
from train.search.config import as_player
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import Game

DEFAULT_SIMULATIONS = 256
_ALLOWED = "PATH, pretrained:NAME or heuristic-search:ethen|wjx, each with @simulations"


def make_analysis_player(
    name: str,
    rules: Rules,
    *,
    transfer: bool = False,
    calibration: Path | None = None,
    simulations: int | None = None,
) -> Player:
    """Make the player of a name that analyses games.

    It searches with Gumbel, also where the player's own search is PUCT, and weighs values as the
    player does (`search.player_value_scale`).

    Args:
      name: of a player that searches, see `train.players.names`.
      rules: of the games to analyse.
      transfer: let a network analyse rules that it has not learned.
      calibration: file of `experiment calibrate --json`; None for the one of the model's card.
      simulations: in place of those that the name says.

    Raises:
      UsageError: the player does not search, its budget is time, or it is for other rules.
    """
    read = read_name(name)
    if simulations is not None:
        read = read.with_simulations(simulations)
    if read.kind not in ("search", "pretrained", "heuristic-search"):
        raise UsageError(f"player {name!r}: does not search; allowed: {_ALLOWED}")
    if read.seconds is not None:
        raise UsageError(
            f"player {name!r}: an analysis counts simulations, not seconds; write @256"
        )
    player = make_evaluating_player(read.full, transfer=transfer)
    try:
        check_rules(player, rules)
    except UsageError as error:
        raise UsageError(f"{error}; heuristic-search:wjx analyses any") from None
    options = as_player(player.search, read.budget)
    search = dataclasses.replace(options, kind="gumbel", engine="native", rounds=False)
    if calibration is not None:
        player = player._replace(calibration=read_calibration(calibration))
    return player._replace(search=search, rules=rules)


def player_for_game(
    game: Game, name: str, *, transfer: bool = False, calibration: Path | None = None
) -> Player:
    """Make the player that analyses a game; the rest is as in `make_analysis_player`.

    Args:
      game: to analyse.
      name: of a player that searches; an empty one chooses `default_player`.

    Raises:
      UsageError: the game has no move, or its board is not the whole grid.
    """
    if not game.actions:
        raise UsageError("review: the game has no move")
    name = name or f"{default_player(game.rules)}@{DEFAULT_SIMULATIONS}"
    player = make_analysis_player(name, game.rules, transfer=transfer, calibration=calibration)
    if game.grid > game.rules.size and player.variables:
        raise UsageError(
            f"review: the board lies in a grid of {game.grid}, whose rim networks take for cells; "
            "heuristic-search:wjx analyses any"
        )
    return player


@functools.cache
def default_player(rules: Rules) -> str:
    """The name, without simulations, of a model that comes with the package for these rules, else
    of a heuristic."""
    model = pretrained.model_for(rules)
    return "heuristic-search:wjx" if model is None else f"pretrained:{model}"


def card_folder(name: str) -> Path:
    """The folder with the card of an exported or shipped model.

    Raises:
      UsageError: the player has no such folder.
    """
    read = read_network_name(name)
    model = model_of(read)
    if model is not None:
        return pretrained.folder_of(model)
    if not exported.is_model(Path(read.target)):
        raise UsageError(
            f"player {name!r}: has no card; `python -m train export` writes a folder with one"
        )
    return Path(read.target)
