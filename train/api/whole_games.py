"""Self-play on its own: finished games of a player against itself, as arrays and as records."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import jax
import numpy as np
from pydantic import Field

from train.api.configs import AnyRules
from train.api.players import AnyPlayer, Player, make_player
from train.api.signatures import valid
from train.data.record_searches import Searcher, add_searches
from train.data.whole_games import make_whole_games
from train.players.basic import make_move_search
from train.runtime.display import to_dataframe
from train.runtime.errors import UsageError
from train.runtime.fields import Count, Seed, Whole
from train.runtime.files import writing
from train.runtime.host import callback_errors
from train.runtime.interrupts import Shown, follow
from train.search.config import SearchConfig, Simulations, as_player
from train.search.search import Search, make_search
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import Game, replay_actions

if TYPE_CHECKING:
    import pandas


MAX_GAMES = 2**16
_PLIES = 8  # between two looks at whether all games are over


@dataclasses.dataclass(frozen=True, repr=False)
class SelfPlay:
    """Finished games: N of them, T plies of the longest, P players, A slots.

    Attributes:
      player: name of the player in every seat.
      rules: of the games.
      actions: int32[N, T] public actions, -1 behind the end.
      movers: int8[N, T], the player of each ply, -1 behind the end.
      lengths: int32[N], plies.
      rewards: float32[N, P].
      policies: float32[N, T, A] over slots, what the search would teach, in the precision that
        self-play keeps; zeros behind the end. None where only moves were asked for.
      values: float32[N, T], the search's, for the player to move; None likewise.
      searched: the games as records that say what a search said; None where that was not asked.
    """

    player: str
    rules: Rules
    actions: np.ndarray
    movers: np.ndarray
    lengths: np.ndarray
    rewards: np.ndarray
    policies: np.ndarray | None
    values: np.ndarray | None
    searched: tuple[Record, ...] | None = None

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
        """The games as records, with the values of the plies and the searches where there are
        some."""
        if self.searched is not None:
            return list(self.searched)
        seats = (self.player,) * self.rules.players
        kept = [None] * len(self) if self.values is None else self.values
        return [
            Record(
                rules=self.rules,
                actions=tuple(self._actions(number)),
                players=seats,
                result=tuple(self.rewards[number].tolist()),
                values=None if values is None else tuple(values[: self.lengths[number]].tolist()),
            )
            for number, values in enumerate(kept)
        ]

    def write(self, path: str | Path) -> None:
        """Write the records, a JSON object a line; compressed where the file ends in .gz.

        Raises:
          UsageError: it cannot be written.
        """
        with writing(Path(path)):
            records.write(Path(path), self.records())

    def to_dataframe(self) -> "pandas.DataFrame":
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
    player: AnyPlayer,
    *,
    games: int = 64,
    rules: AnyRules | None = None,
    explores: bool = False,
    simulations: int | None = None,
    opening_plies: int = 0,
    searches: bool = False,
    seed: int = 0,
    progress: Shown = False,
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
      searches: search each position once more, as the games were played, and keep in the records
        what the search says: the best actions with their shares and visits, and the value.
      seed: random seed.
      progress: show a bar.

    Raises:
      UsageError: a player, the rules or a number is not allowed.
    """
    player = make_player(player, rules)
    valid(Annotated[Whole, Field(ge=1, le=MAX_GAMES)], games=games)
    valid(Count, opening_plies=opening_plies)
    if simulations is not None and not explores:
        raise UsageError(
            "selfplay: simulations needs explores=True; without it, write the number into the "
            "player's name"
        )
    key = jax.random.key(valid(Seed, seed=seed))
    search = make_move_search(player.registered.act)
    if explores:
        search = _exploring(player, simulations)
    asked = search if explores else player.registered.report
    if searches and (asked is None or player.registered.simulations == 0):
        raise UsageError(f"selfplay: searches: {player.name} does not search")
    play = make_whole_games(
        search, player.rules, games=games, opening_plies=opening_plies, has_policies=explores
    )
    with follow(progress, f"self-play of {player.name}", games) as work:
        played = play(player.registered.variables, key, work)
    found = SelfPlay(player.name, player.rules, *played)
    if not searches or asked is None:
        return found
    searchers = {player.name: Searcher(asked, player.registered.variables)}
    with follow(progress, "searches", int(found.lengths.sum())) as work:
        searched = add_searches(found.records(), searchers, seed=seed, on_progress=work)
    return dataclasses.replace(found, searched=tuple(searched))


def _exploring(player: Player, simulations: int | None) -> Search:
    """A player's search with the noise and the value scale of training."""
    searching = player.searching
    count = searching.simulations if simulations is None else simulations
    count = valid(Annotated[Simulations, Field(ge=1)], simulations=count)
    # The player has a match's options, but these games are to be learned from.
    trained = searching.trained
    learning = SearchConfig() if trained is None else trained.config.search
    options = dataclasses.replace(
        as_player(searching.search, count),
        value_scale=learning.value_scale,
        max_considered_actions=learning.max_considered_actions,
    )
    return make_search(searching.evaluate, options, explores=True)
