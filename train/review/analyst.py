"""The player that analyses positions: what guides its search, its options and its calibration."""

from pathlib import Path
from typing import Any, NamedTuple

from train.checkpoints import exported, pretrained
from train.checkpoints.calibration import Calibration, read_calibration
from train.engine.trees.guide import check_rules
from train.players.basic import EvaluateHeads
from train.players.names import read_name, read_network_name
from train.players.networks import model_of, network_config
from train.players.registry import make_evaluating_player
from train.runtime.errors import UsageError
from train.search.config import SearchConfig, considered_actions
from train.search.evaluator import Evaluator, make_symmetric_evaluator
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import Game

DEFAULT_SIMULATIONS = 256
_ALLOWED = "PATH, pretrained:NAME or heuristic-search:ethen|wjx, each with @simulations"


class Analyst(NamedTuple):
    """A player that searches positions for others to read."""

    name: str
    rules: Rules
    variables: Any
    evaluate: Evaluator  # leaves
    evaluate_root: Evaluator
    search: SearchConfig
    look: EvaluateHeads | None  # None without a head for owners
    calibration: Calibration

    def chance(self, value: Any, *, is_searched: bool = True) -> Any:
        """The win chances of values, as an array of their shape, each of the side whose value it
        is; `is_searched` says whether a search found them."""
        return self.calibration.chance(value, players=self.rules.players, is_searched=is_searched)


def make_analyst(
    name: str,
    rules: Rules,
    *,
    transfer: bool = False,
    calibration: Path | None = None,
    simulations: int | None = None,
) -> Analyst:
    """Make the analyst of a player's name.

    It searches with Gumbel, also where the player's own search is PUCT, and weighs values as the
    player does (`search.player_value_scale`).

    Args:
      name: of a player that searches, see `train.players.names`.
      rules: of the games to analyse.
      transfer: let a network analyse rules that it has not learned.
      calibration: file that `calibrate --json` wrote; None for the one of the model's card.
      simulations: in place of those that the name says.

    Raises:
      UsageError: the player does not search, its budget is time, or it is for other rules.
    """
    read = read_name(name)
    if simulations is not None:
        read = read.with_simulations(simulations)
        name = read.full
    if read.kind not in ("search", "pretrained", "heuristic-search"):
        raise UsageError(f"player {name!r}: does not search; allowed: {_ALLOWED}")
    if read.seconds is not None:
        raise UsageError(
            f"player {name!r}: an analysis counts simulations, not seconds; write @256"
        )
    guide = make_evaluating_player(name, transfer=transfer)
    try:
        check_rules(guide, rules)
    except UsageError as error:
        raise UsageError(f"{error}; heuristic-search:wjx analyses any") from None
    has_owners = read.has_network and network_config(read).network.ownership
    search = SearchConfig(
        simulations=read.budget,
        opponents=guide.search.opponents,
        max_considered_actions=considered_actions(guide.search, read.budget),
        value_scale=guide.search.value_scale,
        visit_offset=guide.search.visit_offset,
        rescale_values=guide.search.rescale_values,
    )
    return Analyst(
        name=guide.name,
        rules=rules,
        variables=guide.variables,
        evaluate=guide.evaluate,
        evaluate_root=make_symmetric_evaluator(guide.evaluate, guide.symmetries),
        search=search,
        look=guide.evaluate_heads if has_owners else None,
        calibration=guide.calibration if calibration is None else read_calibration(calibration),
    )


def analyst_of_game(
    game: Game, name: str, *, transfer: bool = False, calibration: Path | None = None
) -> Analyst:
    """Make the analyst of a game; the rest is as in `make_analyst`.

    Args:
      game: to analyse.
      name: of a player that searches; an empty one chooses `default_analyst`.

    Raises:
      UsageError: the game has no move, or its board is not the whole grid.
    """
    if not game.actions:
        raise UsageError("review: the game has no move")
    name = name or default_analyst(game.rules, simulations=DEFAULT_SIMULATIONS)
    made = make_analyst(name, game.rules, transfer=transfer, calibration=calibration)
    if game.grid > game.rules.size and made.variables:
        raise UsageError(
            f"review: the board lies in a grid of {game.grid}, whose rim networks take for cells; "
            "heuristic-search:wjx analyses any"
        )
    return made


def default_analyst(rules: Rules, *, simulations: int) -> str:
    """The name of a model that comes with the package for these rules, else of a heuristic."""
    model = pretrained.model_for(rules)
    kind = "heuristic-search:wjx" if model is None else f"pretrained:{model}"
    return f"{kind}@{simulations}"


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
