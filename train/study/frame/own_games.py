"""Games that a network plays against itself for a study, kept round by round.

G games, P players.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from train.data.record_dataset import Examples, RecordedGames, make_examples
from train.players.basic import Player
from train.players.names import read_network_name
from train.players.registry import make_player, network_config
from train.ratings.pool import identity
from train.review.own_games import own_rounds
from train.review.player import make_analysis_player
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.study.frame.work import Work
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules

ROUND = 256
"""Games that are played side by side and kept together."""


class OwnGames(NamedTuple):
    """Finished games of one player against itself, from the rules' start."""

    rules: Rules
    recorded: RecordedGames

    @property
    def plies(self) -> np.ndarray:
        """int[G]: the length of each game."""
        return np.array([len(record.actions) for record in self.recorded.records])

    @property
    def rewards(self) -> np.ndarray:
        """float[G, P]: the rewards, from -1 to 1."""
        return np.array([record.result for record in self.recorded.records])

    def examples(self) -> Examples:
        """Every position before a ply, on the host."""
        return fetch(make_examples(self.recorded))


def analyst_of(name: str, simulations: int) -> Player:
    """The player of a name as its own games are played, with the rules that it has learned.

    Raises:
      UsageError: it is no network, or names a budget.
    """
    read = read_network_name(name)
    if read.has_budget:
        raise UsageError(f"study: player {name!r}: name a network without simulations")
    return make_analysis_player(read.full, network_config(read).rules, simulations=simulations)


def check_two_players(topic: str, name: str) -> None:
    """Refuse a network whose rules have more players, and no single loser, with a UsageError."""
    players = network_config(read_network_name(name)).rules.players
    if players != 2:
        raise UsageError(f"study {topic}: {name} has learned rules for {players} players, not 2")


def own_games(work: Work, name: str, *, simulations: int, games: int) -> OwnGames:
    """Play games of a network against itself, or read those that are kept.

    They are played as self-play searches each ply in full: with Gumbel noise, from the rules' start
    without random plies.

    Args:
      work: the topic's.
      name: of the network.
      simulations: of each move.
      games: at least 1.

    Raises:
      UsageError: the player is no network, or a file is damaged.
    """
    analyst = analyst_of(name, simulations)
    options: dict[str, Any] = dataclasses.asdict(analyst.search)
    known_by = _identity(analyst, options)
    found: list[Record] = []
    with work.task(f"{name}@{simulations} against itself", games, "games") as on_progress:
        for first in range(0, games, ROUND):
            count = min(ROUND, games - first)
            settings = {
                "player": known_by,
                "rules": analyst.rules.to_dict(),
                "seed": work.scale.seed,
                "first": first,
                "games": count,
            }

            def play(first: int = first, count: int = count) -> list[list[Any]]:
                seed = int(np.random.SeedSequence([work.scale.seed, first]).generate_state(1)[0])
                rounds = own_rounds(
                    analyst,
                    games=count,
                    boards=count,
                    simulations=simulations,
                    opening_plies=0,
                    seed=seed % 2**31,
                    on_progress=lambda over: on_progress(first + over),
                )
                records = next(iter(rounds)).records
                return [[list(record.actions), list(record.result or ())] for record in records]

            kept = work.pieces.keep(f"games-{simulations}", settings, play)
            found += [
                Record(rules=analyst.rules, actions=tuple(actions), result=tuple(result))
                for actions, result in kept
            ]
            on_progress(len(found))
    places = tuple(f"own game {number}" for number in range(1, len(found) + 1))
    return OwnGames(analyst.rules, RecordedGames(tuple(found), places))


def _identity(analyst: Player, options: dict[str, Any]) -> str:
    """A checksum of the weights and of how they are searched."""
    player = make_player(analyst.name, analyst.rules)
    return identity(analyst.name, player, options)
