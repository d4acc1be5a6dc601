"""The page of a review: the replay page with grades, best moves, expected owners and territory, and
one step with each of the walls that could have followed it.

After WallZero, "Strategy 1: Reachability Control": the same step with different walls leads to
different reach, so to different win chances.
"""

import dataclasses
from collections.abc import Callable, Mapping
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from train.players.basic import Player
from train.review.game_review import LIMITS, MARKS, GameReview, ReviewedMove
from train.review.player import search_positions
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.runtime.files import replace_text
from train.runtime.results import Result
from train.search.report import canonical_move
from wallgo_jax import render
from wallgo_jax.drawing import board, curve, overlay
from wallgo_jax.drawing import page as page_lib
from wallgo_jax.drawing.curve import Line
from wallgo_jax.drawing.layout import TILE, layout_of
from wallgo_jax.drawing.page import Extras, script_json
from wallgo_jax.drawing.svg import element
from wallgo_jax.drawing.theme import AUTO, of_variables
from wallgo_jax.formats.option_names import argument
from wallgo_jax.game.state import State
from wallgo_jax.notation import (
    COLOURS,
    LETTERS,
    SIDE_WORDS,
    cell_name,
    decode_play,
    placement_of,
    target_of,
)
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
    plies = [
        number
        for number, action in enumerate(game.actions, start=1)
        if placement_of(action, grid=game.grid) is None
    ]
    if ply not in plies:
        last = len(game.actions)
        raise UsageError(
            f"review: {argument('siblings', ply)}: is not one of plies 1 to {last} with a wall"
        )
    played, mover, before = game.actions[ply - 1], game.movers[ply - 1], game.states[ply - 1]
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


_SHOWN_CANDIDATES = 4
_MARK = 9.0
"""Distance of an owner's mark from the corner of its cell."""


def draw_review(review: GameReview, *, theme: str = AUTO, siblings: Siblings | None = None) -> str:
    """Draw a review as one HTML page that needs nothing else.

    Args:
      review: of a game.
      theme: `light`, `dark`, or `auto` for the system's setting.
      siblings: a step to show with each of its walls.
    """
    files = resources.files("train.review")
    script = files.joinpath("page.js").read_text(encoding="utf-8")
    words = {"colours": COLOURS, "marks": MARKS, "sides": SIDE_WORDS, "shown": _SHOWN_CANDIDATES}
    extras = Extras(
        over=[*_best_arrows(review), *_owner_marks(review)],
        notes=[_note(move, review.game.rules.players) for move in review.moves],
        panel=_panel(review, siblings),
        style=files.joinpath("page.css").read_text(encoding="utf-8"),
        script=f"const REVIEW = {script_json(review.to_dict() | words)};\n{script}",
    )
    return page_lib.draw(
        review.game,
        theme=theme,
        players=review.players,
        chances=review.chances.tolist(),
        extras=extras,
    )


def _best_arrows(review: GameReview) -> list[str]:
    """The best move of each position, hidden until the page shows that position."""
    theme = of_variables()
    return [
        element(
            "g",
            *overlay.arrows(
                review.snapshots[ply], theme, {int(move.report.action): 1.0}, percents=False
            ),
            class_="best",
            data_ply=ply,
            style="display: none",
        )
        for ply, move in enumerate(review.moves)
    ]


def _owner_marks(review: GameReview) -> list[str]:
    """A mark in the corner of each cell, to which the page gives owner and size."""
    if review.owners is None:
        return []
    layout, marks = layout_of(review.snapshots[0]), []
    for cell in review.snapshots[0].cells:
        x, y = layout.corner(cell)
        at = f"translate({x + TILE - _MARK:g} {y + TILE - _MARK:g})"
        marks.append(element("g", element("path", class_="owner", data_cell=cell), transform=at))
    return [element("g", *marks, id="owners", pointer_events="none")]


def _note(move: ReviewedMove, players: int) -> str:
    """A move's mark and the win chance after it: with two players always the first one's."""
    mark = MARKS.get(move.grade.name, "")
    title = escape(move.grade.name)
    shown = f'<em class="mark" title="{title}">{mark}</em>' if mark else ""
    chance, player = (
        (1 - move.after, 0) if players == 2 and move.mover else (move.after, move.mover)
    )
    return f"{shown}<small>{LETTERS[player]} {100 * chance:.0f} %</small>"


def _panel(review: GameReview, siblings: Siblings | None) -> str:
    heads = ("move", "chance to win", "visits")
    candidates = "".join(f'<th scope="col">{name}</th>' for name in heads)
    parts = [
        '<h2 id="verdict">start</h2><p id="why"></p>',
        f"<h3>best moves now, by {review.simulations} simulations</h3>",
        f'<div id="candidates"><table><thead><tr>{candidates}</tr></thead>',
        "<tbody></tbody></table></div>",
        '<p id="line"></p>',
        '<p><label><input type="checkbox" id="show-best" checked> best move</label> ',
        ""
        if review.owners is None
        else '<label><input type="checkbox" id="show-owners"> expected owners</label>',
        "</p>",
        _territory(review),
        _summary(review),
    ]
    return "".join(parts) + ("" if siblings is None else _siblings(siblings))


def _summary(review: GameReview) -> str:
    heads = "".join(f'<th scope="col" title="{name}">{MARKS[name]}</th>' for name in LIMITS)
    rows = ""
    for player, (name, accuracy) in enumerate(zip(review.names, review.accuracy, strict=True)):
        disc = f'<b class="disc p{player}">{LETTERS[player]}</b>'
        counts = "".join(f"<td>{review.count_of(player, grade)}</td>" for grade in LIMITS)
        score = "–" if accuracy is None else f"{accuracy:.0f} %"
        rows += f'<tr><th scope="row">{disc} {escape(name)}</th><td>{score}</td>{counts}</tr>'
    losses = ", ".join(f"{MARKS[name]} {100 * least:.0f} %" for name, least in LIMITS.items())
    calibrated = "" if review.calibration.simulations is None else ", calibrated"
    return (
        f"<h3>accuracy</h3><table><tr><td></td><td></td>{heads}</tr>{rows}</table>"
        f'<p class="small">{losses} of win chance lost, or more. Searched by '
        f"{escape(review.player)}{calibrated}.</p>"
    )


def _territory(review: GameReview) -> str:
    players = range(review.game.rules.players)
    plies = range(len(review.snapshots))
    owned = [review.territory(ply) for ply in plies]
    lines = [
        Line(player, [None if row is None else row[player] for row in owned]) for player in players
    ]
    caption = "cells owned"
    expected = [review.expected_territory(ply) for ply in plies]
    if review.owners is not None:
        lines += [
            Line(player, [None if row is None else row[player] for row in expected], True)
            for player in players
        ]
        caption += ", pale: expected at the end"
    cells = len(review.snapshots[0].cells)
    drawn = curve.lines(lines, of_variables(), top=cells, label="territory over the game")
    return (
        f'<h3>territory</h3><div class="chart">{drawn}</div>'
        f'<p class="small">{caption}; {curve.legend(len(players))}</p>'
    )


def _siblings(siblings: Siblings) -> str:
    boards = ""
    for each in siblings.each:
        drawn = board.draw(take_snapshot(each.state), of_variables(), caption=False)
        name = "before" if each.action is None else each.side
        played = " (played)" if each.is_played else ""
        boards += (
            f"<figure>{drawn}<figcaption>{name}{played} <b>{100 * each.chance:.1f} %</b>"
            "</figcaption></figure>"
        )
    return f'<h3>{escape(siblings.title)}</h3><div id="siblings">{boards}</div>'


@dataclasses.dataclass(frozen=True, repr=False)
class Review(Result, GameReview):
    """A review that draws itself as a page, and so in a notebook.

    Attributes:
      siblings: a step beside each of its walls, where that was asked for.
      is_interrupted: a signal ended it, which drops a review.
    """

    siblings: Siblings | None = None
    is_interrupted: bool = False
    written: Mapping[Path, str] = dataclasses.field(default_factory=dict)

    def page(self, *, theme: str = "auto") -> str:
        """The review as one HTML page, `light`, `dark` or `auto`."""
        return draw_review(self, theme=theme, siblings=self.siblings)

    def write(self, path: str | Path, *, theme: str = "auto") -> None:
        """Write the page.

        Raises:
          UsageError: it cannot be written.
        """
        replace_text(Path(path), self.page(theme=theme))

    def shown(self) -> list[Any]:
        """What `review` prints, as tables of rich."""
        return [self.table(), *([self.siblings.table()] if self.siblings else [])]

    def summary(self) -> dict[str, Any]:
        """What `review --json` writes."""
        return self.to_dict() | ({"siblings": self.siblings.to_dict()} if self.siblings else {})

    def _repr_html_(self) -> str:
        return render.in_frame(self.page(theme="light"))
