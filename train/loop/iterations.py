"""The loop of a run: open its directory, restore or begin, compile, then play, write, reanalyse,
learn, evaluate, report and save, again and again.

`train run`, `train.start`, `fit` and experiments step this generator.

B boards, S steps of an iteration.
"""

import contextlib
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jax

from train.checkpoints.store import read_run
from train.config import RunConfig
from train.learning.learner import check_finite, split_steps
from train.loop.compiling import compile_run
from train.loop.iteration_row import (
    learning_row,
    seconds_row,
    selfplay_row,
    steps_due,
)
from train.loop.programs import (
    TrainState,
    init,
    iteration_keys,
    learn,
    play,
    reanalyse,
    state_like,
    validate,
    write,
)
from train.loop.reporting import (
    OpenRun,
    about_run,
    check_matches,
    compile_matches,
    evaluated,
    is_due,
    open_files,
    report,
    save,
)
from train.loop.run_directory import (
    RECORDS_FILE,
    check_directory,
    has_checkpoint,
    naming_last_good,
    naming_lost_process,
)
from train.loop.stages import BOOTSTRAP, simulations_of, variables_of
from train.loop.tables import tables_of, tables_of_fit, variants_of
from train.metrics.rows import Row
from train.metrics.writer import check_wandb
from train.runtime.devices import (
    BY_BOARD,
    any_process,
    is_first_process,
    open_connections,
    placed,
    set_gpu_flags,
    shardings_of,
    sync_processes,
)
from train.runtime.display import waiting
from train.runtime.files import locked
from train.runtime.host import fetch

if TYPE_CHECKING:
    from train.loop.recorded import RecordFiles


class Iteration(NamedTuple):
    """Where a run stands: before its first iteration, then after each one.

    Attributes:
      run: its directory and console.
      state: consumed by the next iteration.
      row: of the iteration, as `metrics.jsonl` has it; None before the first one.
    """

    run: OpenRun
    state: TrainState
    row: Row | None


def iterations(
    config: RunConfig,
    directory: Path,
    *,
    resume: bool = False,
    records: "RecordFiles | None" = None,
    is_quiet: bool = False,
) -> Generator[Iteration, None, None]:
    """Open a run, yield it, and yield again after each iteration that is left, which is reported
    and, where that is due or its weights have a win rate, saved. Close it to leave the directory.

    A run that is refused, or does not fit into the memory, leaves nothing behind.

    Args:
      config: the run.
      directory: the run's.
      resume: go on from the newest whole checkpoint instead of starting.
      records: games that are learned in place of self-play.
      is_quiet: show nothing on the console.

    Raises:
      UsageError: the run exists already, or cannot be resumed with this config; another process is
        at it; its directory cannot be made; players, weights or games that it names do not exist
        or do not fit; it needs more memory than there is; a loss or gradient is NaN or infinite,
        which names the last good checkpoint. An error of matches comes once the iteration is saved.
    """
    set_gpu_flags(deterministic=config.deterministic)
    with contextlib.ExitStack() as stack:
        stack.enter_context(naming_lost_process(directory))
        open_connections()
        is_quiet = is_quiet or not is_first_process()
        if is_first_process():
            stack.enter_context(locked(directory))
        check_directory(directory, config, resume=resume)
        check_wandb(config.tracking.wandb)

        # What the functions read of the config, and the arrays that no iteration changes.
        games = opponent = theirs = variant = start = None
        if records is None:
            check_matches(config)
            if config.selfplay.opponent:
                # Loaded where a run has one, as are first weights and recorded games.
                from train.loop.opponent_weights import load_opponent, place_opponent

                opponent = load_opponent(config, directory, resume=resume)
                tables = tables_of(config, opponent=opponent)
                theirs = place_opponent(opponent, tables)
            else:
                tables = tables_of(config)
            variant = tables.learn.place.devices.place(variants_of(config), BY_BOARD)
        else:
            from train.loop.recorded import read_games

            games = read_games(config, records, directory, resume=resume)
            tables = tables_of_fit(config)

        # The first state, once all is compiled and fits into the memory.
        like = state_like(tables, variant)
        if config.start_weights or config.init_from:
            from train.loop.first_weights import start_of

            start = start_of(config, directory, resume=resume)
        kept = read_run(directory, like) if resume and has_checkpoint(directory) else None
        done = 0 if kept is None else int(kept.iterations)
        compile_seconds = 0.0
        if done < config.iterations:
            with waiting(f"{config.name}: compiling, a minute or more", is_quiet=is_quiet):
                compile_seconds = compile_run(
                    config, tables, like, variant, theirs, games, done=done
                )
        if kept is None:
            state = init(tables, variant, config.seed, start.variables if start else None)
        else:
            state = placed(kept, shardings_of(like))
        if games is None and done < config.iterations and is_first_process():
            compile_matches(config)
        sync_processes("every process has its first state")

        files = {} if games is None else {RECORDS_FILE: games.summary}
        files |= {} if start is None else start.files
        run = stack.enter_context(
            open_files(config, directory, state, files=files, is_quiet=is_quiet)
        )
        run.display.say(about_run(config, state) if games is None else str(games))
        if start is not None:
            start.show(run.display)
        if opponent is not None and is_first_process():
            from train.loop.opponent_weights import keep_opponent

            keep_opponent(directory, opponent)
        yield Iteration(run, state, None)

        # The compiler's seconds are of this start.
        began = time.monotonic() - compile_seconds - run.seconds_before
        stack.enter_context(naming_last_good(directory))
        for iteration in range(done, config.iterations):
            started = time.perf_counter()
            learner, boards, replay = state.learner, state.boards, state.replay_state
            with jax.transfer_guard_device_to_host("disallow"):
                keys = iteration_keys(tables.learn, config.seed, iteration)
                if games is None:
                    simulations = simulations_of(config, iteration)
                    variables = variables_of(config, learner.weights, iteration, theirs)
                    boards, plies, played = play(
                        tables.play, simulations, variables, variant, boards, keys.play
                    )
                    replay, finished = write(tables.learn.place, replay, plies)
                    surprise = None
                    if config.replay.reanalyse and simulations != BOOTSTRAP:
                        replay, surprise = reanalyse(
                            tables.play,
                            config.replay.reanalyse,
                            config.replay.reanalyse_simulations,
                            variables,
                            variant,
                            replay,
                            keys.reanalyse,
                        )
                    played, finished, surprise = fetch((played, finished, surprise))
                    steps = steps_due(config, finished)
                    row = selfplay_row(config, iteration, played, finished, tables.rows)
                    if surprise is not None:
                        row["reanalyse_surprise"] = float(surprise)
                    source = replay
                    is_validated = finished.newest > 0
                else:
                    steps = config.learner.steps
                    row = {"positions": steps * config.learner.batch}
                    source = games.positions
                    is_validated = False
                played_at = time.perf_counter()

                held_out = []
                if is_validated and is_due(iteration + 1, config.learner.validation_every):
                    weights = learner.weights
                    held_out = [validate(tables.learn, weights, source, variant, keys.learn)]
                seen = []
                if steps > 0:
                    learner, seen = learn(tables.learn, learner, source, variant, keys.learn, steps)
                if games is not None:
                    held_out = games.losses(tables.learn, learner.weights)
                seen, held_out = fetch((seen, held_out))
            ended = time.perf_counter()
            seen = split_steps(seen)[:steps]
            check_finite(seen, learner, iteration)
            state = TrainState(learner, boards, replay, state.iterations + 1)

            row = {"iteration": iteration + 1, **row, **learning_row(seen, held_out)}
            row |= seconds_row(row, played=played_at - started, learned=ended - played_at)
            row |= {"compile_seconds": compile_seconds, "elapsed_seconds": time.monotonic() - began}
            compile_seconds = 0.0
            row |= evaluated(run, state, row)
            # Only weights on disk can be the best ones.
            is_rated = any_process("win_rate" in row)
            row = report(run, state, row | {"elapsed_seconds": time.monotonic() - began})
            is_over = iteration + 1 == config.iterations
            if is_over or is_rated or is_due(iteration + 1, config.checkpoint.every):
                save(run, state, row)
            waited = time.monotonic()
            yield Iteration(run, state, row)
            began += time.monotonic() - waited  # what the caller did is no part of the run
