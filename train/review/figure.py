"""Draws the win chances over a reviewed game, with the moves that lost some."""

from typing import Any

from train.metrics.plot_style import COLOURS, DASHED, GREY, INK, new_plot
from train.review.game_review import GameReview
from train.review.grades import MARKS
from wallgo_jax.notation import COLOURS as PLAYERS


def review_figure(review: GameReview) -> Any:
    """A figure of matplotlib: each player's win chance in each position; inaccuracies, mistakes and
    blunders have the signs of annotated games."""
    figure, axes = new_plot(
        title=f"Win chances by {review.analyst}", x_label="ply", y_label="win chance"
    )
    chances = review.chances
    for player in range(chances.shape[1]):
        axes.plot(chances[:, player], color=_LINES[player], linewidth=1.8, label=PLAYERS[player])
    for move in review.moves:
        sign = MARKS.get(move.grade.name)
        if sign:
            at = (move.ply, chances[move.ply, move.mover])
            axes.plot(*at, color=_LINES[move.mover], marker="o", markersize=5)
            axes.annotate(sign, at, xytext=(0, 6), textcoords="offset points", color=INK)
    axes.axhline(1 / chances.shape[1], color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=9, labelcolor=INK, frameon=False)
    return figure


_LINES = (COLOURS[1], COLOURS[0], *COLOURS[2:])  # Red's is red, Blue's is blue
