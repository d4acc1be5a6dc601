"""The distance heuristics once more, by plain breadth-first search on the slow referee's
boards, and games of that referee."""

import copy
import random
from collections.abc import Iterator

from tests.support.reference.referee import Board, Cell, Game
from train.config.run import HeuristicConfig
from wallgo_jax.game.rules import Rules


def plain_score_among(board: Board, player: int, config: HeuristicConfig) -> float:
    """More than two sides: a cell counts for the one that is nearer than each other."""
    sides = [reached(board, config, side) for side in range(len(board.stones))]
    total = 0.0
    for cell in board.cells():
        ranked = sorted((steps.get(cell, 1000), side) for side, steps in enumerate(sides))
        (near, side), (next_near, _) = ranked[:2]
        if near < next_near:
            next_steps = None if next_near == 1000 else next_near
            if side == player:
                total += plain_weight(near, next_steps, config)
            else:
                total += plain_weight(next_steps, near, config)
    return total


def plain_score(board: Board, player: int, config: HeuristicConfig) -> float:
    return sum(plain_weights(board, player, config).values())


def plain_weights(board: Board, player: int, config: HeuristicConfig) -> dict[Cell, float]:
    others = [other for other in range(len(board.stones)) if other != player]
    sides = [reached(board, config, player), reached(board, config, *others)]
    return {
        cell: plain_weight(*(steps.get(cell) for steps in sides), config) for cell in board.cells()
    }


def reached(board: Board, config: HeuristicConfig, *players: int) -> dict[Cell, int]:
    """Steps to the cells that the players reach; before they have stones all are far."""
    steps = board.distances(*players, through_stones=not config.stones_block)
    return steps or dict.fromkeys(board.cells(), config.boundary - 1)


def plain_weight(own: int | None, other: int | None, config: HeuristicConfig) -> float:
    far = config.boundary
    if own is None or other is None:
        is_mine, is_theirs = own is not None, other is not None
        return config.sure_own * is_mine + config.sure_other * is_theirs
    if own >= far or other >= far:
        return config.semi_sure_own * (own < far) + config.semi_sure_other * (other < far)
    if own == other:
        return 0.0
    if config.formula == "ethen":
        guess = (other - own) / max(own, other) * 0.9 * config.guess_weight
    else:
        guess = (1 - own / (own + other) * 2) * config.guess_weight
    return sorted((config.semi_sure_other, guess, config.semi_sure_own))[1]


def random_games(rules: Rules, seed: int, *, games: int) -> list[list[int]]:
    """Actions of whole random games."""
    rng, found = random.Random(seed), []
    for _ in range(games):
        game, played = Game(rules.to_dict()), []
        while not game.over:
            played.append(rng.choice(game.legal()))
            game.act(played[-1])
        found.append(played)
    return found


def referee_at(rules: Rules, played: list[int]) -> Game:
    game = Game(rules.to_dict())
    for action in played:
        game.act(action)
    return game


def replies(game: Game) -> Iterator[tuple[int, Game, list[float]]]:
    """Each legal action, the game after it, and what that pays."""
    for action in game.legal():
        after = copy.copy(game)
        after.past, after.walls_left = list(game.past), list(game.walls_left)
        yield action, after, after.act(action)
