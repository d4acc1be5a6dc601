"""Random games of the slow referee, with a record of each ply."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.reference.referee import TIES, Board, Game, random_rules


class Ply(NamedTuple):
    """A game before a ply; P lists are by player."""

    board: Board
    player: int
    over: bool
    legal: list[int]
    territory: list[int]
    largest: list[int]
    reach: list[list[int]]


class Record(NamedTuple):
    """One game: `plies` has one entry more than `actions`, the last position."""

    rules: Mapping[str, Any]
    grid: int
    actions: list[int]
    plies: list[Ply]
    rewards: list[list[float]]

    def plies_played(self) -> int:
        """Actions but for an illegal one at the end."""
        return len(self.actions) - sum(
            action not in ply.legal for action, ply in zip(self.actions, self.plies, strict=False)
        )


def look(game: Game) -> Ply:
    """The game as it stands now."""
    owned = game.board.owned_regions()
    return Ply(
        board=game.board,
        player=game.player,
        over=game.over,
        legal=game.legal(),
        territory=[sum(map(len, regions)) for regions in owned],
        largest=[max(map(len, regions), default=0) for regions in owned],
        reach=[game.reach(player) for player in range(game.players)],
    )


def random_game(
    rng: random.Random, rules: Mapping[str, Any], *, grid: int, illegal: float = 0.0
) -> Record:
    """Play uniformly to the end; `illegal` is the chance, at each ply, of an illegal id."""
    game = Game(rules, grid=grid)
    record = Record(rules, grid, [], [look(game)], [])
    while not game.over:
        action = rng.choice(game.legal())
        if rng.random() < illegal:
            action = rng.choice(sorted({*range(-2, grid**2 * 53 + 2)} - {*game.legal()}))
        record.actions.append(action)
        record.rewards.append(game.act(action))
        record.plies.append(look(game))
    return record


def record(rules: Mapping[str, Any], actions: Sequence[int], *, grid: int) -> Record:
    """The record of given actions."""
    game = Game(rules, grid=grid)
    plies, rewards = [look(game)], []
    for action in actions:
        rewards.append(game.act(action))
        plies.append(look(game))
    return Record(rules, grid, list(actions), plies, rewards)


def random_games(
    seed: int,
    count: int,
    *,
    grid: int,
    sizes: Sequence[int],
    players: int,
    stones: int,
    ties: Sequence[Sequence[str]] = TIES,
) -> list[Record]:
    """Games, each over its own random rule set; some end by an illegal action."""
    rng = random.Random(seed)
    games = []
    for _ in range(count):
        rules = random_rules(rng, sizes=sizes, players=players, stones=stones, ties=ties)
        games.append(random_game(rng, rules, grid=grid, illegal=rng.choice((0.0, 0.0, 0.02))))
    return games


def is_decided_by_tie_order(game: Record) -> bool:
    """Whether the same plies would pay otherwise with the tie rules in reverse."""
    other = Game({**game.rules, "tie": game.rules["tie"][::-1]}, grid=game.grid)
    return [other.act(action) for action in game.actions] != game.rewards
