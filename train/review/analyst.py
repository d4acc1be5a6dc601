"""The player that analyses positions: its evaluator, weights, search options and calibration."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.checkpoints import exported, pretrained
from train.network import NetworkConfig
from train.network.build import network_for, observer_for
from train.players.config import HeuristicsConfig
from train.players.heuristics import make_heuristic_evaluator
from train.registry.names import PlayerName, read_name, read_network_name
from train.registry.networks import model_of, network_of, tell_apart
from train.registry.players import heuristic_of
from train.review import chances
from train.review.chances import Calibration
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from train.search.evaluator import Evaluator, evaluator_for
from train.search.root_symmetries import make_symmetric_evaluator
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

Owners = Callable[[Any, State], jax.Array]
"""(variables, states [B]) -> float32[B, N, P + 1]: chances of each cell's final owners, player 0
first, nobody last; N cells, P players."""
_ALLOWED = "PATH, pretrained:NAME or heuristic-search:ethen|wjx, each with @simulations"


class Analyst(NamedTuple):
    """A player that searches positions for others to read."""

    name: str
    rules: Rules
    variables: Any
    evaluate: Evaluator  # leaves
    evaluate_root: Evaluator
    search: SearchConfig
    owners: Owners | None  # None without a head for them
    calibration: Calibration


def make_analyst(
    name: str,
    rules: Rules,
    *,
    transfer: bool = False,
    calibration: Path | None = None,
    simulations: int | None = None,
) -> Analyst:
    """Make the analyst of a player's name.

    Args:
      name: of a player that searches, see `train.registry.names`.
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
    made = _heuristic_analyst(read, rules) if not read.has_network else None
    made = made or _network_analyst(read, rules, transfer=transfer)
    if calibration is not None:
        made = made._replace(calibration=read_calibration(calibration))
    return made


def default_analyst(rules: Rules, *, simulations: int) -> str:
    """The name of a model that comes with the package for these rules, else of a heuristic."""
    shipped = (name for name in pretrained.models() if pretrained.read_config(name).rules == rules)
    model = next(shipped, None)
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


def read_calibration(path: Path) -> Calibration:
    """Read the file that `calibrate --json` wrote.

    Raises:
      UsageError: it cannot be read, or holds no calibration.
    """
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: no JSON") from None
    found = fields.get(chances.CARD_KEY) if isinstance(fields, dict) else None
    return chances.from_dict(found, where=str(path))


def _heuristic_analyst(name: PlayerName, rules: Rules) -> Analyst:
    weights = heuristic_of(name, name.target, HeuristicsConfig())
    evaluate = _heuristic_evaluator(weights)
    search = SearchConfig(simulations=name.budget)
    return Analyst(name.full, rules, (), evaluate, evaluate, search, None, Calibration())


_heuristic_evaluator = functools.cache(make_heuristic_evaluator)


def _network_analyst(name: PlayerName, rules: Rules, *, transfer: bool) -> Analyst:
    trained = network_of(name)
    learned = trained.config.rules
    if learned.players != rules.players:
        raise UsageError(
            f"player {name.text!r}: learned games of {learned.players} players, this one has "
            f"{rules.players}; heuristic-search:wjx analyses any"
        )
    if learned != rules and not transfer:
        told, asked = tell_apart(learned, rules)
        raise UsageError(
            f"player {name.text!r}: learned {told}, this is {asked}; --transfer lets it analyse "
            "the game all the same, heuristic-search:wjx analyses any"
        )
    network, options = trained.config.network, trained.config.search
    evaluate = evaluator_for(network, rules)
    search = SearchConfig(
        simulations=name.budget,
        max_considered_actions=options.max_considered_actions,
        value_scale=options.value_scale,
        visit_offset=options.visit_offset,
        rescale_values=options.rescale_values,
    )
    card = trained.about.get(chances.CARD_KEY)
    return Analyst(
        name=name.full,
        rules=rules,
        variables=trained.variables,
        evaluate=evaluate,
        evaluate_root=make_symmetric_evaluator(evaluate, name.symmetries),
        search=search,
        owners=_owners(network, rules.players) if network.ownership else None,
        calibration=Calibration()
        if card is None
        else chances.from_dict(card, where=trained.source),
    )


@functools.cache
def _owners(config: NetworkConfig, players: int) -> Owners:
    network, observe = network_for(config, players), observer_for(config)

    @jax.jit
    def owners(variables: Any, states: State) -> jax.Array:
        planes = jax.vmap(lambda state: observe(state, None))(states)
        logits = network.evaluate(variables, planes).ownership
        assert logits is not None
        shares = jax.nn.softmax(logits, axis=-1).reshape(len(logits), -1, players + 1)
        # The head numbers players from the one to move on.
        mover = states.position.player.astype(jnp.int32)[:, None, None]
        place = (jnp.arange(players) - mover) % players
        absolute = jnp.take_along_axis(shares[..., :players], place, axis=-1)
        return jnp.concatenate([absolute, shares[..., players:]], axis=-1)

    return owners
