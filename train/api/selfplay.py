"""Self-play on its own: finished games of a player against itself, as arrays and as records.

N games, T plies of the longest, P players, A slots.
"""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.api.common.tables import callback_errors, check_whole, key_of, progress_bar, to_dataframe
from train.api.configs import read_rules
from train.api.players import Act, Player, make_player
from train.runtime.errors import UsageError
from train.runtime.files import writing
from train.runtime.host import fetch
from train.search.config import MAX_SIMULATIONS, as_player
from train.search.search import make_search
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game import actions, referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_state
from wallgo_jax.view.game_replay import Game, replay_actions

MAX_GAMES = 2**16
_PLIES = 8  # between two looks at whether all games are over


@dataclasses.dataclass(frozen=True, repr=False)
class SelfPlay:
    """Finished games.

    Attributes:
      player: name of the player in every seat.
      rules: of the games.
      actions: int32[N, T] public actions, NO_ACTION behind the end.
      movers: int8[N, T], the player of each ply, -1 behind the end.
      lengths: int32[N], plies.
      rewards: float32[N, P].
      policies: float32[N, T, A] over slots, what the search would teach; zeros behind the end. None
        where only moves were asked for.
      values: float32[N, T], the search's, for the player to move; None likewise.
    """

    player: str
    rules: Rules
    actions: np.ndarray
    movers: np.ndarray
    lengths: np.ndarray
    rewards: np.ndarray
    policies: np.ndarray | None
    values: np.ndarray | None

    def __repr__(self) -> str:
        plies = self.lengths.mean()
        return f"<{len(self)} games of {self.player} against itself, {plies:.1f} plies each>"

    def __len__(self) -> int:
        """N."""
        return len(self.lengths)

    def game(self, number: int) -> Game:
        """One game, from 0, with all its positions."""
        return replay_actions(self.rules, self._actions(number))

    @functools.cached_property
    def games(self) -> tuple[Game, ...]:
        """All games with all their positions."""
        return tuple(self.game(number) for number in range(len(self)))

    def records(self) -> list[Record]:
        """The games as records, with the values of the plies where there are some."""
        seats = (self.player,) * self.rules.players
        return [
            Record(
                rules=self.rules,
                actions=tuple(self._actions(number)),
                players=seats,
                result=tuple(float(share) for share in self.rewards[number]),
                values=None
                if self.values is None
                else tuple(float(v) for v in self.values[number, : self.lengths[number]]),
            )
            for number in range(len(self))
        ]

    def write(self, path: str | Path) -> None:
        """Write the records, a JSON object a line; compressed where the file ends in .gz.

        Raises:
          UsageError: it cannot be written.
        """
        with writing(Path(path)):
            records.write(Path(path), self.records())

    def to_dataframe(self) -> Any:
        """A table of pandas with a line for each game."""
        return to_dataframe(
            [
                {"game": number, "plies": int(self.lengths[number])}
                | {f"reward_{p}": float(r) for p, r in enumerate(self.rewards[number])}
                for number in range(len(self))
            ]
        )

    def _actions(self, number: int) -> list[int]:
        return self.actions[number, : self.lengths[number]].tolist()


@callback_errors()
def selfplay(
    player: str | Player | Act,
    *,
    games: int = 64,
    rules: Rules | Mapping[str, Any] | str | None = None,
    explores: bool = False,
    simulations: int | None = None,
    opening_plies: int = 0,
    seed: int = 0,
    progress: bool = False,
) -> SelfPlay:
    """Let a player play against itself, all games at once, to their ends.

    Args:
      player: in every seat.
      games: N.
      rules: as in `make_player`.
      explores: search with the noise and the value scale of training, and give back policies and
        values; the player must be one that searches.
      simulations: of a search, only where `explores`; by default those of the player's name.
      opening_plies: random plies that each game begins with.
      seed: random seed.
      progress: show a bar.

    Raises:
      UsageError: a player, the rules or a number is not allowed.
    """
    made = make_player(player, None if rules is None else read_rules(rules))
    check_whole("selfplay", games=games, opening_plies=opening_plies)
    if not 1 <= games <= MAX_GAMES:
        raise UsageError(f"selfplay: games ({games}) must be from 1 to {MAX_GAMES}")
    if opening_plies < 0:
        raise UsageError(f"selfplay: opening_plies ({opening_plies}) must not be negative")
    if simulations is not None and not explores:
        raise UsageError(
            "selfplay: simulations are of a search that explores: say explores=True, or the number "
            "in the player's name"
        )
    key = key_of("selfplay", seed)
    choose, variables = _chooser(made, simulations) if explores else _acting(made)
    play = _make_plies(choose, opening_plies)
    start = initial_state(made.rules)
    states: State = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], games, axis=0), start)
    rewards = jnp.zeros((games, made.rules.players), jnp.float32)
    parts: list[Any] = []
    with progress_bar(f"self-play of {made.name}", games, is_shown=progress) as on_progress:
        for first in range(0, made.rules.max_plies + _PLIES, _PLIES):
            keys = jax.random.split(jax.random.fold_in(key, first), _PLIES)
            states, rewards, plies = play(variables, states, rewards, jnp.int32(first), keys)
            parts.append(fetch(plies))
            over = int(fetch(states.position.terminated).sum())
            on_progress(over)
            if over == games:
                break
    return _result(made, parts, fetch(rewards))


def _result(player: Player, parts: list[Any], rewards: np.ndarray) -> SelfPlay:
    """The games of pieces of plies [T, N]."""
    joined = jax.tree.map(lambda *x: np.moveaxis(np.concatenate(x), 0, 1), *parts)
    played, policies, values = joined["action"], joined.get("policy"), joined.get("value")
    lengths = (played != NO_ACTION).sum(axis=1).astype(np.int32)
    longest = int(lengths.max())
    return SelfPlay(
        player=player.name,
        rules=player.rules,
        actions=played[:, :longest],
        movers=joined["mover"][:, :longest],
        lengths=lengths,
        rewards=rewards,
        policies=None if policies is None else policies[:, :longest],
        values=None if values is None else values[:, :longest],
    )


def _acting(player: Player) -> tuple[Any, Any]:
    act = player.registered.act

    def choose(variables: Any, states: State, key: jax.Array) -> dict[str, jax.Array]:
        return {"slot": act(variables, states, key)}

    return choose, player.registered.variables


def _chooser(player: Player, simulations: int | None) -> tuple[Any, Any]:
    guide = player.guide
    count = guide.simulations if simulations is None else simulations
    if count is None or count == 0:
        raise UsageError("selfplay: say the simulations of a search that explores")
    check_whole("selfplay", simulations=count)
    if not 1 <= count <= MAX_SIMULATIONS:
        raise UsageError(f"selfplay: simulations ({count}) must be from 1 to {MAX_SIMULATIONS}")
    # The guide has a player's options, but these games are to be learned from.
    own = guide.search if guide.evaluate_heads is None else player.trained.config.search
    options = dataclasses.replace(
        as_player(guide.search, count),
        value_scale=own.value_scale,
        max_considered_actions=own.max_considered_actions,
    )
    search = make_search(guide.evaluate, options, explores=True)

    def choose(variables: Any, states: State, key: jax.Array) -> dict[str, jax.Array]:
        found = search(variables, states, key)
        return {"slot": found.slot, "policy": found.policy, "value": found.value}

    return choose, guide.variables


def _make_plies(choose: Any, opening_plies: int) -> Any:
    """(variables, states [N], rewards, plies before, keys [T]) -> states, rewards, plies [T, N]."""

    @jax.jit
    def play(
        variables: Any, states: State, rewards: jax.Array, before: jax.Array, keys: jax.Array
    ) -> Any:
        def ply(carry: Any, given: Any) -> Any:
            states, rewards = carry
            key, number = given
            over = states.position.terminated
            found = choose(variables, states, key)
            legal = jax.vmap(actions.legal_slots)(states)
            drawn = jax.random.categorical(jax.random.fold_in(key, 1), jnp.where(legal, 0.0, -1e9))
            slot = jnp.where(number < opening_plies, drawn, found["slot"]).astype(jnp.int32)
            after, paid = jax.vmap(referee.play)(states, slot)
            after = jax.tree.map(
                lambda old, new: jnp.where(over.reshape(-1, *[1] * (new.ndim - 1)), old, new),
                states,
                after,
            )
            made = {name: found[name] for name in ("policy", "value") if name in found}
            made = jax.tree.map(
                lambda x: jnp.where(over.reshape(-1, *[1] * (x.ndim - 1)), 0, x), made
            )
            public = jax.vmap(actions.action_of_slot)(states, slot)
            made["action"] = jnp.where(over, NO_ACTION, public).astype(jnp.int32)
            made["mover"] = jnp.where(over, -1, states.position.player).astype(jnp.int8)
            return (after, rewards + jnp.where(over[:, None], 0.0, paid)), made

        numbers = before + jnp.arange(len(keys))
        (states, rewards), plies = jax.lax.scan(ply, (states, rewards), (keys, numbers))
        return states, rewards, plies

    return play
