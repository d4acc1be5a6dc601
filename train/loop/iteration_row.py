"""The row of metrics of an iteration, from what its functions found, read by the host."""

import numpy as np

from train.config import RunConfig
from train.data.diversity import Mean
from train.data.selfplay import BoardSums
from train.learning.learner import StepMetrics, means_of, validation_figures, warning_of
from train.learning.losses import Losses
from train.loop.programs import FinishedPlies, IterationFigures
from train.loop.stages import simulations_of
from train.loop.tables import rule_set_of_boards
from train.metrics.rows import BY_RULES, Row
from wallgo_jax.notation import COLOURS


def steps_due(config: RunConfig, finished: FinishedPlies) -> int:
    """Number of steps of an iteration that ends with so many finished plies, read by the host.

    It is `learner.steps`, but fewer at the start of a run, where the few finished games are the
    short ones: a ply is not drawn more often in an iteration than new plies are in all. One step is
    taken as soon as each device has a finished game.
    """
    if finished.least == 0:
        return 0
    played = config.selfplay.boards * config.selfplay.plies
    return min(max(config.learner.steps * int(finished.all) // played, 1), config.learner.steps)


def selfplay_row(
    config: RunConfig,
    iteration: int,
    played: IterationFigures,
    finished: FinishedPlies,
    rows: int,
) -> Row:
    """The figures of an iteration's self-play and replay.

    Args:
      config: the run.
      iteration: counted from 0.
      played: figures of its plies.
      finished: plies of the replay that can be sampled.
      rows: R, of the replay.
    """
    figures = selfplay_figures(config, played, iteration)
    steps = steps_due(config, finished)
    return {
        **figures,
        "replay_positions": int(finished.all),
        "steps": steps,
        "reuse": steps * config.learner.batch / figures["positions"],
        **warning_without_games(config, rows, steps=steps, iteration=iteration),
    }


def seconds_row(row: Row, *, played: float, learned: float) -> Row:
    """Seconds of the parts of an iteration, the compiler's left out, and what they come to.

    Args:
      row: its figures, those of games where it played.
      played: seconds until its plies were written.
      learned: seconds from there to its end.
    """
    speeds = {"positions_per_second": row["positions"] / (played + learned)}
    if "games" not in row:
        return {**speeds, "learn_seconds": learned}
    speeds["games_per_second"] = row["games"] / (played + learned)
    return {**speeds, "selfplay_seconds": played, "learn_seconds": learned}


def learning_row(steps: list[StepMetrics], held_out: list[Losses]) -> Row:
    """The figures of what an iteration learned, and a warning where there is one.

    Args:
      steps: metrics of its steps.
      held_out: losses of batches that it has not learned from.
    """
    return {**means_of(steps), **validation_figures(held_out), **warning_of(steps)}


def warning_without_games(config: RunConfig, rows: int, *, steps: int, iteration: int) -> Row:
    """`warning` of a replay of R rows in which no game ends; empty while there is hope."""
    played = (iteration + 1) * config.selfplay.plies
    if steps > 0 or played < rows + config.max_plies:
        return {}
    return {
        "warning": f"nothing to learn from: no game ended in the {rows} plies that are held of "
        "each board; raise replay.positions"
    }


def selfplay_figures(config: RunConfig, played: IterationFigures, iteration: int) -> Row:
    """Figures of an iteration of self-play, for its row of metrics.

    `simulations` are those of a full search, 0 where a teacher plays. A draw counts as an equal
    share of a win for each player. Figures of games are None where no game ended, entropies where
    no policy of their plies is learned.
    """
    sums = played.sums
    seats = sums.seats
    positions = float(sums.positions)
    ended, length, red_wins, draws = (x.sum() for x in played.by_board)
    games = float(ended)
    red_points = float(red_wins + draws / config.rules.players)
    row: Row = {
        "games": games,
        "positions": positions,
        "mean_length": float(length) / games if games else None,
        "red_win_rate": red_points / games if games else None,
        "simulations": simulations_of(config, iteration),
        "full_search_share": float(sums.full) / positions,
        "drawn_share": float(sums.drawn) / positions,
    }
    row |= {name: _mean_of(mean) for name, mean in sums.policies.items()}
    # Shares of the games that are left without repeats, and that have the most frequent opening.
    for name, counts in (("setups", played.setups), ("openings", played.openings)):
        row[f"distinct_{name}"] = _mean_of(Mean(counts.distinct, counts.games))
        row[f"commonest_{name}"] = _mean_of(Mean(counts.mode, counts.games))
    if config.mix:
        row[BY_RULES] = figures_by_rules(config, played.by_board)
    if seats is not None:
        # The learner's against the frozen opponent, draws as in `SeatSums`; by seat, too.
        row["learner_win_rate"] = _mean_of(Mean(seats.points.sum(), seats.games.sum()))
        for colour, *parts in zip(COLOURS, seats.points, seats.games, strict=False):
            row[f"learner_win_rate_{colour.lower()}"] = _mean_of(Mean(*parts))
    return row


def figures_by_rules(config: RunConfig, sums: BoardSums) -> dict[str, dict[str, float | None]]:
    """Figures of an iteration for its row of metrics, by the names of the rule sets, from sums on
    the host; a draw counts as an equal share of a win for each player."""
    figures = {}
    owner = rule_set_of_boards(config)
    for number, each in enumerate(config.rule_sets):
        is_of_set = owner == number
        games, length, red_wins, draws = (float(np.asarray(x)[is_of_set].sum()) for x in sums)
        figures[each.name] = {
            "games": games,
            "positions": float(is_of_set.sum() * config.selfplay.plies),
            "mean_length": length / games if games else None,
            "red_win_rate": (red_wins + draws / config.rules.players) / games if games else None,
            "draw_rate": draws / games if games else None,
        }
    return figures


def _mean_of(mean: Mean) -> float | None:
    return float(mean.total) / float(mean.weight) if mean.weight else None
