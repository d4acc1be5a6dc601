"""A whole game searched and graded: what stood before each move, and what the move lost.

T plies, P players, H W cells.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Group
from rich.text import Text

from train.players.basic import Player
from train.review.player import search_positions
from train.runtime.display import Table
from train.search.evaluator import Calibration
from train.search.report import Candidate, SearchReport, canonical_move, report_finished_game
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import name_of
from wallgo_jax.notation import COLOURS, LETTERS, format_action
from wallgo_jax.view.game_replay import Game
from wallgo_jax.view.snapshot import Snapshot, take_snapshot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEST, GOOD, INACCURACY, MISTAKE, BLUNDER = "best", "good", "inaccuracy", "mistake", "blunder"
FORCED = "forced"
LIMITS = {INACCURACY: 0.05, MISTAKE: 0.10, BLUNDER: 0.20}
"""Least loss of win chance of a move of each name; one that loses less is good."""
MARKS = {INACCURACY: "?!", MISTAKE: "?", BLUNDER: "??"}
"""The signs of annotated games."""


class Grade(NamedTuple):
    """A move's name, loss and accuracy."""

    name: str
    loss: float  # of win chance, from 0 to 1
    accuracy: float  # in per cent


def grade_move(before: float, after: float, *, is_best: bool, is_forced: bool) -> Grade:
    """Grade a move.

    Its accuracy is 100 % without a loss, about 64 for a loss of 0.1: the curve of Lichess ("Lichess
    Accuracy metric"), which was fitted to games of chess.

    Args:
      before: the mover's win chance, if it plays the best move.
      after: its win chance after the move.
      is_best: it is the move that the analysis would have played; it loses nothing, whatever a
        search one ply later says.
      is_forced: there was no other move.
    """
    loss = 0.0 if is_best or is_forced else max(0.0, before - after)
    name = FORCED if is_forced else BEST if is_best else GOOD
    for each, least in LIMITS.items():
        name = each if loss >= least else name
    accuracy = 103.1668 * math.exp(-4.354 * loss) - 3.1669
    return Grade(name, loss, min(100.0, max(0.0, accuracy)))


def side_accuracy(grades: Iterable[Grade]) -> float | None:
    """The mean accuracy of a side's moves in per cent, forced ones left out; None without any."""
    scores = [grade.accuracy for grade in grades if grade.name != FORCED]
    return sum(scores) / len(scores) if scores else None


CANDIDATES = 6
_SHARES = ("prior", "policy", "value", "win_chance")


class ReviewedMove(NamedTuple):
    """One move of a game, from the side of the player who made it."""

    ply: int  # from 1
    mover: int
    action: int
    before: float  # win chance with the best move
    after: float  # win chance after this move
    grade: Grade
    report: SearchReport  # the position before it

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The moves that a review shows, the best first."""
        return self.report.candidates[:CANDIDATES]


@dataclasses.dataclass(frozen=True, repr=False)
class GameReview:
    """A game with what a search says of each move."""

    game: Game
    players: tuple[str, ...] | None  # names in the order of play
    player: str  # name of the player that searched
    simulations: int  # of each search
    calibration: Calibration  # that turned values into win chances
    moves: tuple[ReviewedMove, ...]  # T
    values: np.ndarray  # float[T + 1, P], expected reward of each player in each position
    chances: np.ndarray  # float[T + 1, P], win chances
    owners: tuple[np.ndarray, ...] | None
    """For each position, float32[H, W, P + 1], chances of the final owners, nobody last; None
    without a head for them."""
    snapshots: tuple[Snapshot, ...]  # T + 1 positions
    reports: tuple[SearchReport, ...]  # T + 1, what the search says of them

    def __repr__(self) -> str:
        scores = ", ".join("-" if each is None else f"{each:.0f} %" for each in self.accuracy)
        return f"<review of {len(self.moves)} plies by {self.player}: accuracy {scores}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names, else their colours."""
        return self.players or COLOURS[: self.game.rules.players]

    @property
    def accuracy(self) -> tuple[float | None, ...]:
        """The accuracy of each player in per cent."""
        movers = range(self.game.rules.players)
        return tuple(side_accuracy(m.grade for m in self.moves if m.mover == p) for p in movers)

    def count_of(self, player: int, name: str) -> int:
        """The number of a player's moves that have the name of a grade, such as BLUNDER."""
        return sum(move.mover == player and move.grade.name == name for move in self.moves)

    def territory(self, ply: int) -> list[int] | None:
        """The cells that each player owns; None while stones are placed, when walls part
        nothing."""
        snapshot = self.snapshots[ply]
        return None if snapshot.in_setup else list(snapshot.territory)

    def expected_territory(self, ply: int) -> list[float] | None:
        """The cells that each player is expected to own at the end."""
        if self.owners is None:
            return None
        return self.owners[ply].sum(axis=(0, 1))[:-1].astype(float).round(2).tolist()

    @property
    def record(self) -> Record:
        """The game's record with the value of each ply, which the replay page draws: the expected
        reward of its mover that its win chance means."""
        seats = self.game.rules.players
        values = [
            round((seats * float(self.chances[ply, mover]) - 1) / (seats - 1), 4)
            for ply, mover in enumerate(self.game.movers)
        ]
        return records.of_game(self.game, players=self.players, values=values)

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each move."""
        grid = self.game.grid
        return [
            {
                "ply": move.ply,
                "player": move.mover,
                "move": format_action(move.action, grid=grid),
                "grade": move.grade.name,
                "before": move.before,
                "after": move.after,
                "best": move.report.best,
            }
            for move in self.moves
        ]

    def to_dict(self) -> dict[str, Any]:
        """The review as JSON-ready figures; `docs/reviews.md` says what they are."""
        game = self.game
        return {
            "player": self.player,
            "simulations": self.simulations,
            "calibration": self.calibration._asdict(),
            "losses": LIMITS,
            "variant": name_of(game.rules),
            "rules": game.rules.to_dict(),
            "grid": game.grid,
            "players": self.players,
            "result": list(game.rewards) if game.is_over else None,
            "accuracy": [None if each is None else round(each, 1) for each in self.accuracy],
            "counts": [
                {name: self.count_of(player, name) for name in LIMITS}
                for player in range(game.rules.players)
            ],
            "positions": [self._position(ply) for ply in range(len(game.states))],
            "moves": [self._move(move) for move in self.moves],
        }

    def _position(self, ply: int) -> dict[str, Any]:
        values, owners = self.values[ply].round(4).tolist(), None
        if self.owners is not None:
            cells = self.owners[ply].reshape(self.game.grid**2, -1)
            owners = cells.astype(float).round(3).tolist()
        return {
            "ply": ply,
            "evaluation": values[0] if len(values) == 2 else values,
            "win_chance": self.chances[ply].round(4).tolist(),
            "territory": self.territory(ply),
            "expected_territory": self.expected_territory(ply),
            "owner": owners,
        }

    def _move(self, move: ReviewedMove) -> dict[str, Any]:
        grid, best = self.game.grid, int(move.report.action)
        return {
            "ply": move.ply,
            "mover": move.mover,
            "move": canonical_move(move.action, grid=grid),
            "win_chance_before": round(move.before, 4),
            "win_chance_after": round(move.after, 4),
            "loss": round(move.grade.loss, 4),
            "grade": move.grade.name,
            "accuracy": round(move.grade.accuracy, 1),
            "best": canonical_move(best, grid=grid),
            "candidates": [
                {"move": each.move, "visits": each.visits, "line": list(each.moves)}
                | {name: round(getattr(each, name), 4) for name in _SHARES}
                for each in move.candidates
            ],
        }

    def table(self) -> Group:
        """The moves that lost win chance, and the accuracy of each side, for the console."""
        moves = [
            [
                str(move.ply),
                f"{LETTERS[move.mover]} {format_action(move.action, grid=self.game.grid)}",
                MARKS[move.grade.name],
                f"{move.before:.0%}",
                f"{move.after:.0%}",
                move.report.best,
            ]
            for move in self.moves
            if move.grade.name in LIMITS
        ]
        sides = [
            [
                f"{LETTERS[player]} {name}",
                "-" if accuracy is None else f"{accuracy:.1f} %",
                *(str(self.count_of(player, grade)) for grade in LIMITS),
            ]
            for player, (name, accuracy) in enumerate(zip(self.names, self.accuracy, strict=True))
        ]
        weak_moves = Table(
            f"Moves that lost win chance, by {self.player}",
            ("ply", "move", "", "before", "after", "best"),
            moves,
            "win chances of the player who moves, before and after",
        )
        losses = (f"{MARKS[name]} ({least:.0%})" for name, least in LIMITS.items())
        accuracy = Table("Accuracy", ("player", "accuracy", *losses), sides)
        none = Text(f"No move lost {min(LIMITS.values()):.0%} of win chance or more.")
        return Group(weak_moves if moves else none, accuracy)

    def figure(self) -> "Figure":
        """A figure of matplotlib: each player's win chance in each position; inaccuracies, mistakes
        and blunders have the signs of annotated games."""
        from train.metrics import figure as style

        title, players = f"Win chances by {self.player}", self.chances.shape[1]
        figure, axes = style.new_plot(title=title, x_label="ply", y_label="win chance")
        # Red's line is red, Blue's is blue.
        colours = style.COLOURS[1], style.COLOURS[0], *style.COLOURS[2:]
        for player in range(players):
            line = {"color": colours[player], "linewidth": 1.8, "label": COLOURS[player]}
            axes.plot(self.chances[:, player], **line)
        for move in self.moves:
            if move.grade.name in MARKS:
                at = (move.ply, self.chances[move.ply, move.mover])
                axes.plot(*at, color=colours[move.mover], marker="o", markersize=5)
                offset = {"xytext": (0, 6), "textcoords": "offset points"}
                axes.annotate(MARKS[move.grade.name], at, color=style.INK, **offset)
        axes.axhline(1 / players, color=style.GREY, linewidth=1, linestyle=style.DASHED, zorder=1)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(fontsize=9, labelcolor=style.INK, frameon=False)
        return figure


def review_game(
    player: Player,
    game: Game,
    *,
    players: Sequence[str] | None = None,
    on_progress: Callable[[int], None] = lambda simulations: None,
) -> GameReview:
    """Search every position of a game in one batch, and grade its moves.

    Args:
      player: searches; made for the game's rules.
      game: a finished game, or one that goes on.
      players: their names.
      on_progress: called with the simulations done so far, summed over positions. With more than
        two players every simulation counts half, since the moves are searched by themselves, too.
    """
    live = [state for state in game.states if not state.position.terminated]
    is_pair, total = game.rules.players == 2, len(live) * player.search.simulations
    searched = search_positions(
        player, live, on_progress=lambda done: on_progress(done if is_pair else done // 2)
    )
    reports, snapshots = [*searched], tuple(take_snapshot(state) for state in game.states)
    if game.is_over:
        reports.append(report_finished_game(game.states[-1], tuple(game.rewards)))
    values = np.array([report.best_values for report in reports], np.float64)
    chances = np.array([report.win_chances for report in reports])
    owners = tuple(report.owners for report in reports)
    afters = [float(chances[ply + 1, mover]) for ply, mover in enumerate(game.movers)]
    if not is_pair:
        # A search gives the chance of the player to move alone, so the move is searched by itself
        # from the position before it.
        alone = search_positions(
            player,
            live[: len(game.actions)],
            excluded=game.actions,
            is_only=True,
            on_progress=lambda done: on_progress((total + done) // 2),
        )
        played = [report.candidates[0].win_chance for report in alone]
        afters = played[:-1] + afters[-1:] if game.is_over else played
    moves = []
    for ply, (action, mover) in enumerate(zip(game.actions, game.movers, strict=True)):
        before, after, report = float(chances[ply, mover]), afters[ply], searched[ply]
        is_best, is_forced = action == report.action, len(snapshots[ply].legal) == 1
        grade = grade_move(before, after, is_best=is_best, is_forced=is_forced)
        moves.append(ReviewedMove(ply + 1, mover, action, before, after, grade, report))
    return GameReview(
        game=game,
        players=None if players is None else tuple(players),
        player=player.name,
        simulations=player.search.simulations,
        calibration=player.calibration,
        moves=tuple(moves),
        values=values,
        chances=chances,
        owners=None if any(each is None for each in owners) else owners,  # type: ignore[arg-type]
        snapshots=snapshots,
        reports=tuple(reports),
    )
