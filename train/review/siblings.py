"""One step with each of the walls that could have followed it, compared on the board.

After WallZero, "Strategy 1: Reachability Control": the same step with different walls leads to
different reach, so to different win chances.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from train.review.analyst import Analyst
from train.review.game_review import move_text
from train.review.positions import search_positions
from train.runtime.errors import UsageError
from wallgo_jax.game.state import State
from wallgo_jax.notation import COLOURS, SIDE_WORDS, cell_name, decode_play, placement_of, target_of
from wallgo_jax.view.game_replay import Game, replay_actions
from wallgo_jax.view.snapshot import take_snapshot


class Sibling(NamedTuple):
    """The position after the step with one wall, or before the step."""

    action: int | None  # None before the step
    state: State
    chance: float  # to win, of the player who makes the step
    is_played: bool

    @property
    def side(self) -> str:
        """The side of the wall as a word, `before` without one."""
        return "before" if self.action is None else SIDE_WORDS[decode_play(self.action).side]


class Siblings(NamedTuple):
    """A step of a game and its walls; the first entry is the position before the step."""

    ply: int  # from 1
    mover: int
    step: str  # `E5 to E3`
    each: tuple[Sibling, ...]

    @property
    def title(self) -> str:
        """The step in words."""
        walls = len(self.each) - 1
        return (
            f"Ply {self.ply}: {COLOURS[self.mover]} {self.step}, {walls} wall{'s'[: walls != 1]}; "
            "its win chances"
        )


def compare_siblings(
    analyst: Analyst,
    game: Game,
    ply: int,
    *,
    on_progress: Callable[[int], None] = lambda simulations: None,
) -> Siblings:
    """Search the position before a ply, and those after its step with each legal wall.

    With more than two players a search tells the chance of the one to move alone, so each wall is
    searched by itself from the position before it.

    Args:
      analyst: made for the game's rules.
      game: has the ply.
      ply: from 1.
      on_progress: as in `search_positions`.

    Raises:
      UsageError: the game has no such ply, or a stone is placed there.
    """
    if not 1 <= ply <= len(game.actions):
        raise UsageError(f"review: --siblings {ply}: the game has plies 1 to {len(game.actions)}")
    played, mover, before = game.actions[ply - 1], game.movers[ply - 1], game.states[ply - 1]
    if placement_of(played, grid=game.grid) is not None:
        raise UsageError(f"review: --siblings {ply}: a stone is placed there, without a wall")
    play = decode_play(played)
    first = played - play.side
    legal = take_snapshot(before).legal
    walls = [action for action in range(first, first + len(SIDE_WORDS)) if action in legal]
    ends = [_replay_with(game, ply, action) for action in walls]
    states = [before, *(end.states[-1] for end in ends)]
    live = [(action, end) for action, end in zip(walls, ends, strict=True) if not end.is_over]
    if game.rules.players == 2:
        after = [before, *(end.states[-1] for _, end in live)]
        searched = search_positions(analyst, after, on_progress=on_progress)
        found = iter(each.value[mover] for each in searched)
    else:
        only = [None, *(action for action, _ in live)]
        searched = search_positions(
            analyst, [before] * len(only), excluded=only, is_only=True, on_progress=on_progress
        )
        found = iter(each.best.value for each in searched)
    values = [next(found)]
    values += [end.rewards[mover] if end.is_over else next(found) for end in ends]
    chances = analyst.chance(values).tolist()
    target = target_of(play, grid=game.grid)
    assert target is not None
    origin = cell_name(play.cell, grid=game.grid)
    each = (
        Sibling(action, state, chance, action == played)
        for action, state, chance in zip([None, *walls], states, chances, strict=True)
    )
    step = f"{origin} to {cell_name(target, grid=game.grid)}"
    return Siblings(ply, mover, step, tuple(each))


def _replay_with(game: Game, ply: int, action: int) -> Game:
    """The game up to a ply, with another action there."""
    return replay_actions(game.rules, [*game.actions[: ply - 1], action], grid=game.grid)


def siblings_record(found: Siblings, grid: int) -> dict[str, Any]:
    """The comparison as JSON-ready figures."""
    return {
        "ply": found.ply,
        "mover": found.mover,
        "step": found.step,
        "win_chance_before": round(found.each[0].chance, 4),
        "walls": [
            {
                "move": move_text(each.action, grid),
                "side": each.side,
                "win_chance": round(each.chance, 4),
                "is_played": each.is_played,
            }
            for each in found.each
            if each.action is not None
        ],
    }
