"""A review as tables for the console."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from train.review.game_review import GameReview
from train.review.grades import LIMITS, MARKS
from train.review.siblings import Siblings
from wallgo_jax.notation import COLOURS, LETTERS, format_action


def review_tables(review: GameReview) -> Group:
    """The moves that lost win chance, and the accuracy of each side."""
    has_weak = any(move.grade.name in LIMITS for move in review.moves)
    least = min(LIMITS.values())
    moves = _moves(review) if has_weak else Text(f"No move lost {least:.0%} of win chance or more.")
    return Group(moves, _sides(review))


def _moves(review: GameReview) -> Table:
    table = Table(
        title=Text(f"Moves that lost win chance, by {review.analyst}"),
        caption="win chances of the player who moves, before and after",
        caption_justify="left",
    )
    table.add_column("ply", justify="right")
    table.add_column("move")
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    table.add_column("best")
    grid = review.game.grid
    for move in review.moves:
        if move.grade.name in LIMITS:
            table.add_row(
                str(move.ply),
                format_action(move.action, grid=grid, player=move.mover),
                MARKS[move.grade.name],
                f"{move.before:.0%}",
                f"{move.after:.0%}",
                format_action(move.searched.best.action, grid=grid),
            )
    return table


def _sides(review: GameReview) -> Table:
    table = Table(title="Accuracy")
    table.add_column("player")
    table.add_column("accuracy", justify="right")
    for name, least in LIMITS.items():
        table.add_column(f"{MARKS[name]} ({least:.0%})", justify="right")
    names = review.players or COLOURS[: review.game.rules.players]
    for player, (name, accuracy) in enumerate(zip(names, review.accuracy, strict=True)):
        counts = (str(review.count_of(player, grade)) for grade in LIMITS)
        told = "-" if accuracy is None else f"{accuracy:.1f} %"
        table.add_row(Text(f"{LETTERS[player]} {name}"), told, *counts)
    return table


def siblings_table(found: Siblings) -> Table:
    """The win chance of a step with each of its walls."""
    table = Table(title=Text(found.title))
    table.add_column("wall")
    table.add_column("win chance", justify="right")
    for each in found.each:
        name = f"{each.side} (played)" if each.is_played else each.side
        table.add_row(name, f"{each.chance:.1%}")
    return table
