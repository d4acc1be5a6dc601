"""A whole game as one animated SVG picture: stones glide, walls appear, territory changes.

Time runs in frames of equal length: frame 0 shows the start, frame k performs ply k and then rests;
the last one is held. Every moving part has its own animation over the whole time, so a page may
also stop the clock and set it. A viewer that plays no animations shows the end of the game.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from wallgo_jax.board.geometry import side_delta
from wallgo_jax.drawing import board
from wallgo_jax.drawing.layout import FOOT, Layout, layout_of
from wallgo_jax.drawing.svg import document, element, number
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.game.state import NOT_PLACED
from wallgo_jax.notation import decode_play
from wallgo_jax.view import captions
from wallgo_jax.view.game_replay import Game
from wallgo_jax.view.snapshot import NOBODY, LastPly, Snapshot, take_snapshot
from wallgo_jax.view.walks import open_paths

GLIDE = 0.4
"""Share of a frame in which a stone glides."""
BUILD = 0.5
"""Share of a frame after which the wall stands and all else that the ply changes shows."""
SETTLED = 0.9
"""Share of a frame at which a page stops the clock."""

T = TypeVar("T")


class Clock(NamedTuple):
    """The time of an animation, in seconds."""

    frames: int
    seconds: float
    hold: float

    @property
    def total(self) -> float:
        """The length of the animation."""
        return self.frames * self.seconds + self.hold

    def share(self, frame: int, part: float) -> float:
        """Return a moment within a frame as a share of the whole time."""
        return (frame + part) * self.seconds / self.total


def draw(
    game: Game, theme: Theme, *, seconds: float = 0.9, hold: float = 4.0, loop: bool = True
) -> str:
    """Draw the game as an animated SVG document.

    Args:
      seconds: how long a ply takes.
      hold: how much longer the last position stays.
      loop: whether the animation begins again at its end; else it stops there.
    """
    snapshots = [take_snapshot(state) for state in game.states]
    clock = Clock(len(snapshots), seconds, hold)
    return draw_snapshots(game, snapshots, theme, clock, loop=loop, caption=True)


def draw_snapshots(
    game: Game,
    snapshots: Sequence[Snapshot],
    theme: Theme,
    clock: Clock,
    *,
    loop: bool,
    caption: bool,
    over: Sequence[str] = (),
) -> str:
    """Draw like `draw`, from snapshots and a clock that the caller has made.

    Args:
      caption: whether the picture says below who moves and what each player holds, and in its
        title how the game ended.
      over: more elements, above the stones.
    """
    layout = layout_of(snapshots[-1])
    timeline = Timeline(clock, loop)
    height = layout.side + (FOOT if caption else 0)
    parts = [
        board.ground(layout, theme, height),
        *_territory(snapshots, layout, theme, timeline),
        *_last_plies(board.last_origin, snapshots, layout, theme, timeline),
        *_walls(snapshots, layout, theme, timeline),
        *_stones(game, snapshots, layout, theme, timeline),
        *_last_plies(board.last_target, snapshots, layout, theme, timeline),
        *over,
        *(_footer(snapshots, layout, theme, timeline) if caption else []),
    ]
    end = f": {captions.status(snapshots[-1])}" if caption else ""
    label = f"A game of {len(game.actions)} plies{end}"
    return document(layout.side, height, *parts, label=label)


class Timeline(NamedTuple):
    """Writes the SVG elements that change attributes over time."""

    clock: Clock
    loop: bool

    def steps(self, attribute: str, values: Sequence[str]) -> str:
        """Animate an attribute that jumps: one value a frame, from the moment its ply is done."""
        times, kept = [0.0], [values[0]]
        for frame in range(1, len(values)):
            if values[frame] != kept[-1]:
                times.append(self.clock.share(frame, BUILD))
                kept.append(values[frame])
        if len(kept) == 1:
            return ""
        return self._animate("animate", times, kept, attributeName=attribute, calcMode="discrete")

    def path(self, times: Sequence[float], places: Sequence[tuple[float, float]]) -> str:
        """Animate a straight walk from place to place, at these shares of the time."""
        values = [f"{number(x)} {number(y)}" for x, y in places]
        return self._animate(
            "animateTransform", times, values, attributeName="transform", type="translate"
        )

    def _animate(
        self, tag: str, times: Sequence[float], values: Sequence[str], **attributes: str
    ) -> str:
        end = {"repeatCount": "indefinite"} if self.loop else {"fill": "freeze"}
        return element(
            tag,
            values=";".join(values),
            keyTimes=";".join(f"{time:.5f}".rstrip("0").rstrip(".") for time in times),
            dur=f"{self.clock.total:g}s",
            **attributes,
            **end,
        )


def _runs(values: Sequence[T]) -> list[tuple[int, int, T]]:
    """Return the runs of equal values, as (first frame, frame after the last, value)."""
    starts = [i for i in range(len(values)) if i == 0 or values[i] != values[i - 1]]
    return [
        (start, end, values[start])
        for start, end in zip(starts, [*starts[1:], len(values)], strict=True)
    ]


def _during(content: str, first: int, end: int, timeline: Timeline) -> str:
    """Show some content in frames `first` to `end - 1` alone."""
    frames = timeline.clock.frames
    if (first, end) == (0, frames):
        return content
    shown = ["1" if first <= frame < end else "0" for frame in range(frames)]
    return element("g", timeline.steps("opacity", shown), content, opacity=shown[-1])


def _territory(
    snapshots: Sequence[Snapshot], layout: Layout, theme: Theme, timeline: Timeline
) -> list[str]:
    drawn = []
    for cell in snapshots[-1].cells:
        owners = [snapshot.owner[cell] for snapshot in snapshots]
        for player in sorted({*owners} - {NOBODY}):
            shown = ["1" if owner == player else "0" for owner in owners]
            change = timeline.steps("opacity", shown)
            drawn.append(board.owned_tile(layout, cell, player, theme, change, opacity=shown[-1]))
    return drawn


def _walls(
    snapshots: Sequence[Snapshot], layout: Layout, theme: Theme, timeline: Timeline
) -> list[str]:
    drawn = []
    for each in snapshots[-1].walls:
        shown = ["1" if each in snapshot.walls else "0" for snapshot in snapshots]
        grow = timeline.steps("opacity", shown)
        drawn.append(board.wall((each.orientation, each.cell), each.builder, layout, theme, grow))
    return drawn


def _stones(
    game: Game, snapshots: Sequence[Snapshot], layout: Layout, theme: Theme, timeline: Timeline
) -> list[str]:
    drawn = []
    for player, cells in enumerate(snapshots[-1].stones):
        for index, last in enumerate(cells):
            if last == NOT_PLACED:
                continue
            here = [snapshot.stones[player][index] for snapshot in snapshots]
            x, y = layout.centre(last)
            shown = ["0" if cell == NOT_PLACED else "1" for cell in here]
            drawn.append(
                element(
                    "g",
                    timeline.steps("opacity", shown),
                    _walk(game, snapshots, here, layout, timeline),
                    board.stone(player, theme),
                    transform=f"translate({number(x)} {number(y)})",
                )
            )
    return drawn


def _walk(
    game: Game,
    snapshots: Sequence[Snapshot],
    here: Sequence[int],
    layout: Layout,
    timeline: Timeline,
) -> str:
    """Animate one stone from cell to cell; it walks round corners."""
    first = next(cell for cell in here if cell != NOT_PLACED)
    times, cells = [0.0], [first]
    for frame in range(1, len(here)):
        if NOT_PLACED in here[frame - 1 : frame + 1] or here[frame] == here[frame - 1]:
            continue
        way = _way(snapshots[frame - 1], game.actions[frame - 1])
        times += [timeline.clock.share(frame, GLIDE * i / (len(way) - 1)) for i in range(len(way))]
        cells += way
    if len(cells) == 1:
        return ""
    return timeline.path([*times, 1.0], [layout.centre(cell) for cell in [*cells, cells[-1]]])


def _way(snapshot: Snapshot, action: int) -> list[int]:
    """Return the cells that a play's stone passes, from the first to the last."""
    play = decode_play(action)
    way = [play.cell]
    for side in open_paths(snapshot, play)[0]:
        way.append(way[-1] + side_delta(side, snapshot.grid))
    return way


def _last_plies(
    draw_mark: Callable[[LastPly, Layout, Theme], list[str]],
    snapshots: Sequence[Snapshot],
    layout: Layout,
    theme: Theme,
    timeline: Timeline,
) -> list[str]:
    """Show in each frame a mark of its own ply."""
    drawn = []
    for frame, snapshot in enumerate(snapshots):
        marks = draw_mark(snapshot.last, layout, theme) if snapshot.last else []
        drawn += [_during("".join(marks), frame, frame + 1, timeline)] if marks else []
    return drawn


def _footer(
    snapshots: Sequence[Snapshot], layout: Layout, theme: Theme, timeline: Timeline
) -> list[str]:
    tallies = ["".join(board.tally(snapshot, layout, theme)) for snapshot in snapshots]
    drawn = [_during(text, first, end, timeline) for first, end, text in _runs(tallies)]
    for frame, snapshot in enumerate(snapshots):
        line = board.footer_line(captions.step_text(snapshot), layout, theme)
        drawn.append(_during(line, frame, frame + 1, timeline))
    return drawn
