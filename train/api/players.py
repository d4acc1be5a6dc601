"""Players as objects: they act on states, and those with an evaluator search them."""

import dataclasses
import functools
import uuid
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Unpack

import jax
import numpy as np

import wallgo_jax
from train.api.configs import AnyRules, read_rules
from train.api.signatures import valid
from train.api.states import States, actions_of, batch_of, check_rules
from train.checkpoints import pretrained
from train.checkpoints.weights import TrainedNetwork
from train.config import (
    DEFAULT_RULES,
    SHIPPED,
    HeuristicsConfig,
    RunConfig,
    config_from_dict,
    config_to_dict,
)
from train.functions import refuse_functions
from train.network import Output, Variables, channels_of, network_for, observer_for
from train.players import basic, registry
from train.players.names import MOVE_SECONDS, read_name
from train.players.networks import common_rules, load_network
from train.players.searching import network_player
from train.ratings import pool
from train.runtime.errors import UsageError
from train.runtime.fields import Seed
from train.runtime.host import callback_errors, fetch
from train.search.config import SearchConfig, SearchKeys, Simulations, as_player
from train.search.report import SearchReport, make_reporting_search
from train.solver.exact_player import NAME as EXACT
from wallgo_jax.env import WallGo
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.notation import COLOURS
from wallgo_jax.planes import Channel

MoveFunction = Callable[[State, jax.Array], jax.Array]
"""(states [B], key) -> legal slots int32[B]; JAX must be able to trace it."""
_TOKENS: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""What this process knows functions by; an id may come again."""


class PlayerEvaluation(NamedTuple):
    """An evaluation of one board; of a batch, every array has a leading axis [B].

    Attributes:
      policy: float32[A], chances of the slots, or of the public actions; 0 where not legal.
      values: float32[P], expected rewards of the players, -1 to 1, player 0 first.
      owners: float32[H, W, P + 1], chances of each cell's final owners, player 0 first, nobody
        last; None without a head for them.
    """

    policy: np.ndarray
    values: np.ndarray
    owners: np.ndarray | None


class PlayerNetwork(NamedTuple):
    """A player's network as functions that JAX can trace.

    Attributes:
      channels: names of the C planes that it reads, in order, such as `stone Red`.
      weights: its weights.
      observe: game states [B] -> bool[B, H, W, C], Red's planes before Blue's.
      evaluate: (weights, planes) -> `train.Output` [B].
    """

    channels: tuple[str, ...]
    weights: Variables
    observe: Callable[[State], jax.Array]
    evaluate: Callable[[Variables, jax.Array], Output]


class Player:
    """A player of given rules.

    Attributes:
      name: as tables show it.
      rules: that it plays.
      registered: the player as the package's own functions take it.
    """

    def __init__(
        self, registered: basic.Player, rules: Rules, *, identity: Callable[[], str]
    ) -> None:
        """Wrap a player; `identity` is called once, when it is asked for."""
        self.registered, self.rules, self.name = registered, rules, registered.name
        self._identity = functools.cache(identity)

    def __repr__(self) -> str:
        return f"<train.Player {self.name}>"

    @property
    def env(self) -> WallGo:
        """The game that it plays, as an env."""
        return wallgo_jax.make(self.rules)

    def act(self, states: States, *, seed: int = 0) -> int | np.ndarray:
        """Choose a public action for each board.

        Args:
          states: one board or a batch [B].
          seed: of players that draw.

        Returns:
          An int for one board, int32[B] for a batch.

        Raises:
          UsageError: these are no boards, or of rules that a trained player has not learned or a
            solver not solved; or a position is too large for `exact`.
        """
        batch, is_one = self._boards(states)
        player, key = self.registered, jax.random.key(valid(Seed, seed=seed))
        with callback_errors():
            slots = player.act(player.variables, batch, key)
            chosen = np.asarray(fetch(actions_of(batch, slots)))
        return int(chosen[0]) if is_one else chosen

    def search(
        self,
        states: States,
        *,
        simulations: int | None = None,
        seed: int | None = None,
        **options: Unpack[SearchKeys],
    ) -> SearchReport:
        """Search and say what was found.

        Args:
          states: one board or a batch [B] of games that are not over.
          simulations: of each board; by default those of the player's name.
          seed: of the noise of training; None searches without noise.
          options: keys of the config's table `search` that differ from the player's, such as
            `kind="puct"`.

        Raises:
          UsageError: the player has nothing to evaluate positions with, or an option is not
            allowed.
        """
        batch, is_one = self._boards(states)
        player = self.searching
        count = player.simulations if simulations is None else simulations
        count = valid(Simulations, simulations=count)
        if np.asarray(batch.position.terminated).any():
            raise UsageError("states: a game is over; there is nothing to search or evaluate")
        search = make_reporting_search(
            player.evaluate,
            as_player(_changed(player.search, options), max(count, 1)),
            simulations=count,
            explores=seed is not None,
            symmetries=player.symmetries,
            evaluate_heads=player.evaluate_heads,
        )
        report = fetch(search(player.variables, batch, jax.random.key(valid(Seed, seed=seed or 0))))
        report = report.of_player(player, self.rules, count)
        return report[0] if is_one else report

    def evaluate(self, states: States, *, public: bool = False) -> PlayerEvaluation:
        """Show what the network, or the heuristic of a search, says of positions without a search.

        Args:
          states: one board or a batch [B] of games that are not over.
          public: the policy is over public actions, in place of slots.

        Raises:
          UsageError: a game is over, or the player has nothing to evaluate positions with.
        """
        report = self.search(states, simulations=0)
        policy = report.prior
        if public:
            policy = np.zeros((*policy.shape[:-1], self.env.num_actions), np.float32)
            # Slots that are not legal have no chance, so it does not matter which actions they are.
            place = np.where(report.legal, report.actions, 0)
            rows = np.indices(place.shape)[:-1]
            np.add.at(policy, (*rows, place), report.prior)
        return PlayerEvaluation(policy, report.values, report.owners)

    def _boards(self, states: States) -> tuple[State, bool]:
        (batch, is_one), player = batch_of(states, self.rules), self.registered
        has_learned = player.trained is not None and not player.transfer
        if has_learned or player.name == EXACT:
            check_rules(batch, self.rules, self.name, has_learned=has_learned)
        return batch, is_one

    @property
    def identity(self) -> str:
        """The key of its games in a cache: that of all players that play alike."""
        return self._identity()

    @property
    def searching(self) -> basic.Player:
        """The player, if it can evaluate positions.

        Raises:
          UsageError: it cannot.
        """
        if self.registered.evaluate is None:
            raise UsageError(f"player {self.name!r}: cannot evaluate positions")
        return self.registered

    @property
    def network(self) -> PlayerNetwork:
        """Its network as functions: to change planes or weights, and to see every output.

        Raises:
          UsageError: it has none.
        """
        config = self.trained.config.network
        players = self.rules.players
        show = observer_for(config)
        return PlayerNetwork(
            tuple(map(_name_of, channels_of(config, players))),
            self.trained.variables,
            jax.jit(jax.vmap(lambda state: show(state, None))),
            jax.jit(network_for(config, players).evaluate),
        )

    @property
    def trained(self) -> TrainedNetwork:
        """Its network: the config of the run and the weights.

        Raises:
          UsageError: it has none.
        """
        if self.registered.trained is None:
            raise UsageError(f"player {self.name!r}: has no network")
        return self.registered.trained


def _name_of(channel: Channel) -> str:
    """A plane's name with the player's colour in place of its number."""
    shown = str(channel)
    if channel.player is None:
        return shown
    return shown.replace(f" {channel.player}", f" {COLOURS[channel.player]}", 1)


def _changed(search: SearchConfig, options: SearchKeys) -> SearchConfig:
    """Options of a player's search, changed as in the config's table `search`; the number of
    considered actions is the player's."""
    if not options:
        return search
    refuse_functions({}, {"search": options}, where="search")
    considered = options.get("max_considered_actions", search.player_max_considered_actions)
    fields = dataclasses.asdict(search) | {"player_max_considered_actions": considered, **options}
    return config_from_dict({"search": fields}, where="search").search


def make_player(
    player: "AnyPlayer",
    rules: AnyRules | None = None,
    *,
    transfer: bool = False,
    heuristics: HeuristicsConfig | None = None,
    move_seconds: float = MOVE_SECONDS,
) -> Player:
    """Make a player of a name (docs/players.md), of a run or of a function.

    Args:
      player: its name; a run, of which it has the newest weights; a function (states [B], key) ->
        slots int32[B]; or a player, as it is.
      rules: to play, as a preset's name, a dict, a file or `Rules`; by default those that a trained
        player has learned, else `wallzero-4stone`.
      transfer: let networks play rules that they have not learned.
      heuristics: weights of `ethen` and `wjx`; None for those of the package.
      move_seconds: seconds that a program (`external:COMMAND`) may take for a move.

    Raises:
      UsageError: there is no such player, or it is for other rules.
    """
    given = _newest_of(player, rules)
    if isinstance(given, Player):
        if rules is not None and read_rules(rules) != given.rules:
            raise UsageError(f"player {given.name!r}: was made for other rules")
        return given
    played = rules_for([given], rules)
    if not isinstance(given, str):
        return Player(_player_of_function(given), played, identity=lambda: _token_of(given))
    weighed = heuristics or HeuristicsConfig()
    registered = registry.make_player(
        given, played, heuristics=weighed, transfer=transfer, move_seconds=move_seconds
    )

    def identity() -> str:
        how = pool.how_it_plays(registered.name, weighed)
        return pool.identity(registered.name, registered, how)

    return Player(registered, played, identity=identity)


def make_players(
    players: "Sequence[AnyPlayer]", rules: AnyRules | None = None, **options: Any
) -> list[Player]:
    """Make players of common rules, the same one for the same name.

    Args:
      players: as `make_player` takes them.
      rules: by default those that one of them has learned.
      options: those of `make_player`.

    Raises:
      UsageError: as `make_player`, or they have learned different rules.
    """
    players = [_newest_of(player, rules) for player in players]
    played, named = rules_for(players, rules), dict[str, Player]()
    for name in players:
        if isinstance(name, str) and name not in named:
            named[name] = make_player(name, played, **options)
    return [
        named[player] if isinstance(player, str) else make_player(player, played)
        for player in players
    ]


def rules_for(
    players: "Sequence[AnyPlayer]",
    rules: AnyRules | None = None,
    *,
    default: AnyRules = DEFAULT_RULES,
    are_networks: bool = False,
) -> Rules:
    """The rules that are said, or else those of players, or else a default.

    Args:
      players: those of names may be trained ones.
      rules: as `read_rules` takes them; None, or an empty text, where none are said.
      default: for players that have no rules.
      are_networks: the names are of networks, see `train.players.networks.common_rules`.

    Raises:
      UsageError: what is wrong with them, or two players have learned different ones.
    """
    if rules is not None and rules != "":
        return read_rules(rules)
    for player in players:
        player = _newest_of(player, None)
        if isinstance(player, Player):
            return player.rules
    names = [player for player in players if isinstance(player, str)]
    learned = common_rules(names, are_networks=are_networks)
    return learned or read_rules(default)


def shipped_like(player: str, rules: AnyRules | None = None) -> str:
    """The name of the player that ships for some rules, else of the one for four stones, with the
    budget of a player: search, time or none."""
    model = pretrained.model_for(rules_for([player], rules))
    shipped = SHIPPED if model is None else f"pretrained:{model}"
    name = read_name(player)
    return f"net:{shipped}" if name.kind == "net" else f"{shipped}{name.budget_text}"


class HasNewest(Protocol):
    """A run, which gives its newest weights as a player."""

    def player(self, simulations: int | None = None, *, rules: AnyRules | None = None) -> Player:
        """The newest weights as a player."""
        ...


AnyPlayer = str | Player | HasNewest | MoveFunction
"""A player by name, one that is made, a run, or a function (states [B], key) -> slots int32[B]."""


def network_of(player: AnyPlayer) -> TrainedNetwork:
    """The config and the weights of a trained player, by name, as it is, or of a run.

    Raises:
      UsageError: it has none.
    """
    if isinstance(player, str | Path):
        return load_network(str(player))
    return make_player(player).trained


def _newest_of(player: AnyPlayer, rules: AnyRules | None) -> str | Player | MoveFunction:
    """A run's newest weights as a player; any other player as it is."""
    newest: Any = getattr(player, "player", None)
    return newest(rules=rules) if callable(newest) else player  # type: ignore[return-value]


def player_of_weights(
    name: str, weights: Variables, config: RunConfig, rules: Rules, *, simulations: int
) -> Player:
    """A player of a network's weights by rules that it learns; without simulations it plays the raw
    policy."""
    player = network_player(
        f"{name}@{simulations}" if simulations else f"net:{name}",
        weights,
        config,
        rules,
        simulations=simulations,
    )
    # As the run's checkpoints are known by, so that equal weights are the same player.
    called = f"search:weights@{simulations}" if simulations else "net:weights"
    decides = ("network", "search") if simulations else ("network",)

    def identity() -> str:
        fields = config_to_dict(config)
        return pool.identity(called, player, {key: fields[key] for key in decides})

    return Player(player, rules, identity=identity)


def _token_of(act: MoveFunction) -> str:
    """The key of a function's games, which no other function has, here or in another process."""
    token = f"python:{getattr(act, '__name__', 'player')}:{uuid.uuid4().hex}"
    try:
        return _TOKENS.setdefault(act, token)
    except TypeError:  # it takes no weak reference, or is not hashable
        return token


def _player_of_function(act: MoveFunction) -> basic.Player:
    if not callable(act):
        kind = type(act).__name__
        raise UsageError(f"player: must be a name, a run, a player or callable, not a {kind}")
    name = getattr(act, "__name__", "player")

    @jax.jit
    def play(variables: Any, states: State, key: jax.Array) -> jax.Array:
        del variables
        slots, boards = act(states, key), states.position.ply.shape
        kind = getattr(slots, "dtype", None)
        if kind is None or kind.kind not in "iu" or slots.shape != boards:
            found = type(slots).__name__ if kind is None else f"{kind}{list(slots.shape)}"
            raise UsageError(f"player {name!r}: gave {found}, not slots int32{list(boards)}")
        return jax.numpy.asarray(slots, jax.numpy.int32)

    return basic.Player(name, (), play)
