"""Training by self-play: each iteration plays, writes to the replay and learns."""

import contextlib
import functools
import time
from pathlib import Path

import jax

from train.config import RunConfig
from train.data import replay
from train.data.diversity import Mean
from train.data.replay import ReplayState
from train.learning.learner import (
    check_finite,
    means_of,
    split_steps,
    validation_figures,
    warning_of,
)
from train.loop.evaluation import check_opponents, final_matches, short_matches
from train.loop.run_directory import GAME_FILE, GAME_TEXT_FILE
from train.loop.run_loop import (
    OpenRun,
    Procedure,
    is_due,
    opened,
    run_to_end,
    say_next,
    say_saved,
)
from train.loop.selfplay import (
    figures_by_rules,
    make_bootstrap,
    rules_of_board,
    stage_at,
    variants_of,
)
from train.loop.start import load_opponent
from train.loop.train_step import (
    IterationFigures,
    RunPrograms,
    TrainState,
    make_run_programs,
    steps_due,
)
from train.metrics.rows import BY_RULES, SELFPLAY_FORMATS, Row
from train.runtime.devices import is_first_process
from train.runtime.display import Display
from train.runtime.files import replace_text
from train.runtime.host import fetch
from train.runtime.interrupts import interrupts
from train.runtime.showing import sparing
from wallgo_jax import render
from wallgo_jax.formats import records
from wallgo_jax.notation import COLOURS
from wallgo_jax.view.game_replay import replay_actions


def train(config: RunConfig, runs: Path, *, resume: bool) -> bool:
    """Train to the end of the budget, evaluate, print the table.

    Args:
      config: the run.
      runs: directory of all runs.
      resume: go on from the newest whole checkpoint instead of starting.

    Returns:
      Whether the run reached its end; False when it was interrupted and saved.

    Raises:
      UsageError: as `opened`; an opponent does not exist; the run needs more memory than there is.
    """
    return run_to_end(open_run(config, runs / config.name, resume=resume))


def open_run(
    config: RunConfig, directory: Path, *, resume: bool, is_quiet: bool = False
) -> contextlib.AbstractContextManager[OpenRun]:
    """Open a run of self-play; arguments are those of `opened`, errors those of `train`."""

    def make() -> Procedure:
        check_opponents(config)
        make_bootstrap(config)  # Refused now, not at the first iteration.
        opponent = load_opponent(config, directory, resume=resume)
        programs = make_run_programs(config, opponent=opponent)
        return Procedure(
            programs=programs,
            iterate=lambda state, iteration: run_iteration(programs, state, iteration),
            finish=lambda run, state, row: finish(run, state),
            about=functools.partial(_about, config),
            figures=SELFPLAY_FORMATS,
            evaluate=functools.partial(_evaluate, config, directory),
            opponent=opponent,
        )

    return opened(config, directory, make, resume=resume, is_quiet=is_quiet)


def run_iteration(
    programs: RunPrograms, state: TrainState, iteration: int
) -> tuple[TrainState, Row]:
    """Play, write to the replay, learn.

    Args:
      programs: of the run.
      state: consumed.
      iteration: counted from 0; its keys come from it and the seed alone.

    Returns:
      The next state and the iteration's row of metrics. Its times leave out the compiler's if
      `programs.compile` was called before.
    """
    config, started = programs.config, time.perf_counter()
    with jax.transfer_guard_device_to_host("disallow"):
        keys, learner = programs.keys(iteration), state.learner
        boards, plies, played = programs.play(iteration, learner.player, state.boards, keys.play)
        replay_state, finished = programs.replay.write(state.replay_state, plies)
        played, finished = fetch((played, finished))
        between, seen, due = time.perf_counter(), [], steps_due(config, finished)
        held_out = []
        if is_due(iteration + 1, config.learner.validation_every) and finished.newest > 0:
            held_out = [programs.validate(learner.player, replay_state, keys.learn)]
        if due > 0:
            learner, seen = programs.learn(learner, replay_state, keys.learn, due)
        seen, held_out = fetch((seen, held_out))
        steps = split_steps(seen)[:due]
    ended = time.perf_counter()
    check_finite(steps, learner, iteration)
    figures = selfplay_figures(config, played, iteration)
    positions = figures["positions"]
    row = {
        "iteration": iteration + 1,
        **figures,
        "games_per_second": figures["games"] / (ended - started),
        "positions_per_second": positions / (ended - started),
        "selfplay_seconds": between - started,
        "learn_seconds": ended - between,
        "replay_positions": int(finished.all),
        "steps": due,
        "reuse": len(steps) * config.learner.batch / positions,
        **means_of(steps),
        **validation_figures(held_out),
        **(_replay_warning(config, replay_state, due, iteration) or warning_of(steps)),
    }
    return TrainState(learner, boards, replay_state, state.iterations + 1), row


def selfplay_figures(config: RunConfig, played: IterationFigures, iteration: int) -> Row:
    """Figures of an iteration of self-play, for its row of metrics.

    `simulations` are those of a full search, 0 where the bootstrap plays. A draw counts as an equal
    share of a win for each player. Figures of games are None where no game ended, entropies where
    no policy of their plies is learned.
    """
    sums, seats, positions = played.sums, played.sums.seats, float(played.sums.positions)
    ended, length, red_wins, draws = (x.sum() for x in played.by_board)
    games, red_points = float(ended), float(red_wins + draws / config.rules.players)
    row: Row = {
        "games": games,
        "positions": positions,
        "mean_length": float(length) / games if games else None,
        "red_win_rate": red_points / games if games else None,
        "simulations": stage_at(config, iteration),
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


def _mean_of(mean: Mean) -> float | None:
    return float(mean.total) / float(mean.weight) if mean.weight else None


def _replay_warning(
    config: RunConfig, replay_state: ReplayState, due: int, iteration: int
) -> dict[str, str]:
    """`warning` of a replay in which no game ends; empty while there is hope."""
    held = replay_state.plies.terminated.shape[0]
    played = (iteration + 1) * config.selfplay.plies
    if due > 0 or played < held + config.max_plies:
        return {}
    return {
        "warning": f"nothing to learn from: no game ended in the {held} plies that are held of "
        "each board; raise replay.positions"
    }


def _about(config: RunConfig, state: TrainState) -> str:
    """A line on the devices and the replay."""
    rows, boards = state.replay_state.plies.terminated.shape
    size = replay.position_bytes(state.replay_state)
    positions = config.selfplay.boards * config.selfplay.plies
    reuse = config.learner.steps * config.learner.batch / positions
    where = f"{jax.device_count()} × {jax.devices()[0].device_kind}"
    return (
        f"{config.name} on {where}: replay of {rows * boards} positions, {size} bytes each, "
        f"{rows * boards * size / 2**20:.0f} MiB on the {config.replay.memory}; "
        f"{reuse:.1f} samples learned for each new position"
    )


def _evaluate(
    config: RunConfig, directory: Path, state: TrainState, done: int, display: Display
) -> Row:
    """Short matches by the first process, where they are due; else nothing."""
    has_match = is_due(done, config.evaluation.every) and done < config.iterations
    if not (has_match and config.evaluation.opponents and is_first_process()):
        return {}
    return short_matches(config, state.learner.player, done, directory, display)


def finish(run: OpenRun, state: TrainState) -> bool:
    """A game, the final matches and what to do next, by the first process.

    Returns:
      Whether the matches were played to their end; the run is saved all the same.
    """
    if not is_first_process():
        return True
    if jax.process_count() == 1:
        write_game(run, state)
    if run.config.evaluation.opponents:
        try:
            with interrupts("the run is saved"):
                final_matches(run.config, state.learner.player, run.directory, run.display)
        except KeyboardInterrupt:
            say_saved(run, state)
            return False
    say_next(run)
    return True


def write_game(run: OpenRun, state: TrainState) -> None:
    """A game of self-play, as a record for commands and as text for people; an error costs the
    game alone."""
    name, path = run.config.name, run.directory / GAME_FILE
    with sparing(path):
        newest = replay.newest_games(state.replay_state, variants_of(run.config), 1)
        if not newest:
            return
        ((board, actions),) = newest
        rules = rules_of_board(run.config, board)
        game, players = replay_actions(rules, actions), (name,) * rules.players
        text = render.game_file(game, players=players)
        records.write(path, [records.of_game(game, players=players)])
        replace_text(run.directory / GAME_TEXT_FILE, text)
