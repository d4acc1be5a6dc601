"""One step with each of the walls that could have followed it, compared on the board.

After WallZero, "Strategy 1: Reachability Control": the same step with different walls leads to
different reach, so to different win chances.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from train.players.basic import Player
from train.review.player import search_positions
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.search.report import canonical_move
from wallgo_jax.game.state import State
from wallgo_jax.notation import COLOURS, SIDE_WORDS, cell_name, decode_play, placement_of, target_of
from wallgo_jax.view.game_replay import Game, play_action
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

    def table(self) -> Table:
        """The win chance of the step with each of its walls."""
        named = [(f"{each.side}{' (played)' * each.is_played}", each.chance) for each in self.each]
        rows = [[name, f"{chance:.1%}"] for name, chance in named]
        return Table(self.title, ("wall", "win chance"), rows)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-ready figures."""
        walls = [
            {
                "move": canonical_move(each.action, grid=each.state.grid),
                "side": each.side,
                "win_chance": round(each.chance, 4),
                "is_played": each.is_played,
            }
            for each in self.each
            if each.action is not None
        ]
        before = round(self.each[0].chance, 4)
        about = {"ply": self.ply, "mover": self.mover, "step": self.step}
        return about | {"win_chance_before": before, "walls": walls}


def compare_siblings(
    player: Player,
    game: Game,
    ply: int,
    *,
    on_progress: Callable[[int], None] = lambda simulations: None,
) -> Siblings:
    """Search the position before a ply, and those after its step with each legal wall.

    With more than two players a search gives only the chance of the player to move, so each wall is
    searched by itself from the position before it.

    Raises:
      UsageError: the game has no such ply, or a stone is placed there.
    """
    if not 1 <= ply <= len(game.actions):
        raise UsageError(f"review: --siblings {ply}: the game has plies 1 to {len(game.actions)}")
    played, mover, before = game.actions[ply - 1], game.movers[ply - 1], game.states[ply - 1]
    if placement_of(played, grid=game.grid) is not None:
        raise UsageError(f"review: --siblings {ply}: a stone is placed there, without a wall")
    play = decode_play(played)
    first, legal = played - play.side, take_snapshot(before).legal
    walls = [action for action in range(first, first + len(SIDE_WORDS)) if action in legal]
    ends: dict[int | None, tuple[State, tuple[float, ...]]] = {None: (before, ())}
    ends |= {action: play_action(before, action) for action in walls}
    live = {a: state for a, (state, _) in ends.items() if not state.position.terminated}
    is_pair = game.rules.players == 2
    reports = search_positions(
        player,
        [*live.values()] if is_pair else [before] * len(live),
        excluded=None if is_pair else [*live],
        is_only=True,
        on_progress=on_progress,
    )
    searched, each = dict(zip(live, reports, strict=True)), []
    for action, (state, rewards) in ends.items():
        is_over = action not in searched
        value = rewards[mover] if is_over else searched[action].best_values[mover]
        chance = player.calibration.chance(value, players=game.rules.players)
        each.append(Sibling(action, state, float(chance), action == played))
    target = target_of(play, grid=game.grid)
    assert target is not None
    cells = (cell_name(cell, grid=game.grid) for cell in (play.cell, target))
    return Siblings(ply, mover, " to ".join(cells), tuple(each))
