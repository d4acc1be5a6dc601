"""The player that analyses positions, and its searches of many of them in batches.

The player is Gumbel search without noise, whatever its own kind of search. Between parts of a batch
progress is shown.

B positions of a batch, A slots.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from train.checkpoints import exported, pretrained
from train.checkpoints.exported import read_calibration
from train.engine import pool
from train.engine.pool import searching_of
from train.network import MASKED
from train.players.basic import Player
from train.players.names import read_name, read_network_name
from train.players.networks import model_of
from train.players.registry import check_rules, make_evaluating_player
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.search.config import as_player
from train.search.report import SearchReport
from train.search.sequential_halving import halving_schedule
from train.search.tree import ROOT
from wallgo_jax.game import actions
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
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
      calibration: file of `calibrate --json`; None for the one of the model's card.
      simulations: in place of those that the name says.

    Raises:
      UsageError: the player does not search, its budget is time, or it is for other rules.
    """
    read = read_name(name)
    if simulations is not None:
        read = read.with_simulations(simulations)
    searches = read.kind in ("search", "pretrained", "heuristic-search")
    if not searches or read.seconds is not None:
        raise UsageError(f"player {name!r}: allowed, with simulations, not seconds: {_ALLOWED}")
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
            f"review: the board lies in a grid of {game.grid}, and networks take the cells around "
            "it for cells of the board; heuristic-search:wjx analyses any board"
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


_BATCHES = (16, 64, 256)
_TREE_BYTES = 2**30
"""Room for the trees of a batch; more positions take more batches."""
_MOST_PARTS = 20
"""Equal parts of a search, between which progress is shown."""


def search_positions(
    player: Player,
    states: Sequence[State],
    *,
    simulations: int | None = None,
    excluded: Sequence[int | None] | None = None,
    is_only: bool = False,
    on_progress: Callable[[int], None] = lambda simulations: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[SearchReport]:
    """Search positions, none of them after the end of a game.

    Args:
      player: searches.
      states: one board each, on one grid, of the player's rules.
      simulations: of each search; the player's own by default.
      excluded: a public action of each position that its search must not choose, or None.
      is_only: the search must choose these actions instead, and looks at no other.
      on_progress: called with the simulations done so far, summed over positions.
      should_stop: asked before each batch; what is searched by then is returned.
    """
    reports: list[SearchReport] = []
    count = player.search.simulations if simulations is None else simulations
    player = player._replace(search=dataclasses.replace(player.search, simulations=count))
    while (first := len(reports)) < len(states) and not should_stop():
        batch = _batch_size(len(states) - first, count, states[0])
        part = slice(first, first + batch)
        some, barred = states[part], None if excluded is None else excluded[part]

        def on_part(done: int, first: int = first, positions: int = len(some)) -> None:
            on_progress(first * count + positions * done)

        reports += _search_batch(player, some, barred, is_only, batch, on_part)
    return reports


def _batch_size(positions: int, simulations: int, state: State) -> int:
    """Positions of a batch; there are few sizes, because each is compiled."""
    # A node has a float32 and at most a uint32 by slot.
    room = max(_TREE_BYTES // ((simulations + 1) * state.num_slots * 8), 1)
    most = 1 << (room.bit_length() - 1)
    enough = next((size for size in _BATCHES if size >= positions), _BATCHES[-1])
    return min(most, enough)


def _search_batch(
    player: Player,
    states: Sequence[State],
    excluded: Sequence[int | None] | None,
    is_only: bool,
    batch: int,
    on_part: Callable[[int], None],
) -> list[SearchReport]:
    """The reports of some positions, in one batch that is filled up by the first of them."""
    count, variables, how = player.search.simulations, player.variables, searching_of(player)
    filled = [states[i % len(states)] for i in range(batch)]
    stacked: State = jax.tree.map(lambda *x: np.stack(x), *filled)
    allowed = None
    if excluded is not None:
        barred = np.full(batch, NO_ACTION, np.int32)
        barred[: len(states)] = [NO_ACTION if x is None else x for x in excluded]
        allowed = _allow(stacked, jnp.asarray(barred), is_only)
    trees = pool.begin(how, variables, stacked, allowed, nodes=count + 1)
    rows = np.arange(batch, dtype=np.int32)
    schedule = halving_schedule(player.search.max_considered_actions, count)
    num_slots = (trees.tree.logits[:, ROOT] > MASKED).sum(axis=1)
    dues = schedule[np.minimum(num_slots, len(schedule) - 1)]
    size = count // max(part for part in range(1, _MOST_PARTS + 1) if count % part == 0)
    for done in range(0, count, size):
        trees = pool.grow(how, variables, trees, rows, dues[:, done : done + size], np.int32(size))
        jax.block_until_ready(trees.used)
        on_part(done + size)
    report: SearchReport = fetch(pool.report(how, variables, trees, rows))
    report = report.of_player(player, player.rules, count)
    return [report[board] for board in range(len(states))]


@jax.jit
def _allow(states: State, excluded: jax.Array, is_only: bool) -> jax.Array:
    """bool[B, A]: slots other than those of public actions int32[B], or these alone; all where the
    action is NO_ACTION."""
    slots = jax.vmap(actions.slot_of_action)(states, excluded)
    barred = jax.nn.one_hot(slots, states.num_slots, dtype=jnp.bool_)
    return (excluded == NO_ACTION)[:, None] | (barred == is_only)
