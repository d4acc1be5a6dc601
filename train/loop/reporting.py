"""What an open run writes and shows: rows, short matches, checkpoints, how it goes on."""

import contextlib
import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from train.checkpoints.store import save_checkpoint
from train.config import RunConfig, config_to_dict
from train.data import replay
from train.loop.programs import TrainState
from train.loop.run_directory import (
    GAME_FILE,
    RECORDS_FILE,
    begin,
    resume_command,
    tell_changed_rows,
)
from train.metrics.rows import (
    FIT_FORMATS,
    SELFPLAY_FORMATS,
    Row,
    describe_matches,
    elapsed_seconds,
)
from train.metrics.writer import MetricsWriter
from train.runtime.ahead import compile_ahead
from train.runtime.devices import is_first_process
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.host import fetch

_OPPONENT = "wjx"  # of the match that the end of a run proposes


@dataclasses.dataclass(frozen=True)
class OpenRun:
    """A run whose directory is this process's.

    Attributes:
      config: the run.
      directory: the run's.
      display: the console; quiet for all processes but the first.
      writer: of its metrics; None for all processes but the first.
      rows: metrics of earlier starts, as the first process has read them.
    """

    config: RunConfig
    directory: Path
    display: Display
    writer: MetricsWriter | None
    rows: Sequence[Row] = ()

    @property
    def seconds_before(self) -> float:
        """Seconds that earlier starts took."""
        return [0.0, *elapsed_seconds(self.rows)][-1]


@contextlib.contextmanager
def open_files(
    config: RunConfig,
    directory: Path,
    state: TrainState,
    *,
    files: Mapping[str, Any],
    is_quiet: bool,
) -> Iterator[OpenRun]:
    """Make the directory ready to go on from a state, and hold its files and the console open.

    Args:
      config: the run.
      directory: the run's.
      state: that it goes on from.
      files: more of the run's files, JSON-ready by name; the directory never exists without them.
      is_quiet: show nothing on the console.
    """
    done, weights = int(fetch(state.iterations)), fetch(state.learner.weights)
    writer = None
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        if is_first_process():
            begin(directory, config, weights, done=done, files=files)
            writer = MetricsWriter(directory, done=done, config=config_to_dict(config))
            stack.callback(writer.close)
            tell_changed_rows(directory, done, writer.rows_sum)
            rows = writer.kept
        display = Display(
            total=config.iterations,
            done=done,
            figures=FIT_FORMATS if RECORDS_FILE in files else SELFPLAY_FORMATS,
            before=[0.0, *elapsed_seconds(rows)][-1],
            is_quiet=is_quiet or not is_first_process(),
        )
        display.keep(next(filter(None, map(describe_matches, reversed(rows))), ""))
        stack.enter_context(display)
        yield OpenRun(config, directory, display, writer, rows)


def about_run(config: RunConfig, state: TrainState) -> str:
    """A line for the console on the devices and the replay."""
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


def is_due(done: int, every: int) -> bool:
    """Whether something is due that happens once in `every` iterations; 0 stands for never."""
    return every > 0 and done % every == 0


def check_matches(config: RunConfig) -> None:
    """Refuse opponents that cannot play the rules, where a run plays matches.

    Raises:
      UsageError: names the opponent and the reason.
    """
    if config.evaluation.opponents:
        # Loaded where matches are played: the arena, and all kinds of players.
        from train.loop.evaluation import check_opponents

        check_opponents(config)


def compile_matches(config: RunConfig) -> None:
    """Compile a run's matches while it plays and learns."""
    if config.evaluation.opponents:
        from train.loop.evaluation import match_compilers

        compile_ahead(match_compilers(config))


def evaluated(run: OpenRun, state: TrainState, row: Row) -> Row:
    """Play the short matches that are due after an iteration, by the first process.

    Returns:
      What they add to the iteration's row, empty where none is due.

    Raises:
      Exception: any error of a match, once the iteration is reported and saved.
    """
    config, done = run.config, row["iteration"]
    has_match = is_due(done, config.evaluation.every) and done < config.iterations
    if not (has_match and config.evaluation.opponents and is_first_process()):
        return {}
    from train.loop.evaluation import short_matches

    try:
        return short_matches(config, state.learner.weights, done, run.directory, run.display)
    except Exception as error:
        if jax.process_count() > 1:  # the others wait elsewhere, and a save needs all
            raise
        save(run, state, report(run, state, row))
        if isinstance(error, UsageError):
            raise _saved(run, error, done) from None
        say_saved(run, state)
        raise


def report(run: OpenRun, state: TrainState, row: Row) -> Row:
    """Write and show a row; returns it as it is written, with its times.

    Raises:
      UsageError: it cannot be written; the iteration is saved first where there is room for that.
    """
    try:
        row = row if run.writer is None else run.writer.write(row)
    except UsageError as error:
        if jax.process_count() > 1 or not run.directory.is_dir():
            raise
        try:
            save(run, state, row)
        except UsageError:
            raise error from None
        raise _saved(run, error, row["iteration"]) from None
    done, matches = row["iteration"], describe_matches(row)
    if matches:
        run.display.keep(matches)
    run.display.show(done, row, after=seconds_of_final_matches(run.config, row))
    if "warning" in row:
        run.display.say(f"iteration {done}: {row['warning']}")
    return row


def seconds_of_final_matches(config: RunConfig, row: Row) -> float:
    """Seconds of the matches at a run's end, at the simulations a second and the plies a game of an
    iteration's self-play; 0 where it searched nothing or ended no game.

    Half of the plies are searched: those of the opponent mostly cost little.
    """
    if not (row.get("simulations") and row.get("mean_length")):
        return 0.0
    options = config.evaluation
    full = row["full_search_share"]
    cheap = min(config.selfplay.cheap_simulations, row["simulations"])
    simulations = full * row["simulations"] + (1 - full) * cheap
    speed = row["positions"] * simulations / row["selfplay_seconds"]
    games = options.final_games * len(options.opponents) * len(config.rule_sets)
    return games * row["mean_length"] / config.rules.players * options.simulations / speed


def _saved(run: OpenRun, error: UsageError, done: int) -> UsageError:
    """An error of an iteration that is saved all the same, with how to go on."""
    command = resume_command(run.directory)
    return UsageError(f"{error}; iteration {done} is saved; to continue: {command}")


def save(run: OpenRun, state: TrainState, row: Row | None) -> None:
    """Save a checkpoint of a state and, if it played a match, its win rate, as its row has it."""
    # Read by all processes, since parts may lie with others; saved by the first.
    weights, whole = fetch((state.learner.weights, state))
    if run.writer is not None:
        save_checkpoint(
            run.directory,
            int(whole.iterations),
            weights,
            whole,
            config_to_dict(run.config),
            win_rate=(row or {}).get("win_rate"),
            rows_sum=run.writer.rows_sum,
        )


def say_saved(run: OpenRun, state: TrainState) -> None:
    """Say how an interrupted run goes on."""
    done, command = int(fetch(state.iterations)), resume_command(run.directory)
    run.display.say(f"saved after iteration {done}; to continue: {command}", has_command=True)


def say_next(run: OpenRun) -> None:
    """Say where the results lie, and the commands of a match, of a replay and of an export."""
    directory, game = run.directory, run.directory / GAME_FILE
    where, model = shlex.quote(str(directory)), shlex.quote(str(Path("models") / run.config.name))
    lines = [f"results: {directory} · match: python -m train match {where} {_OPPONENT}"]
    if game.exists():
        record = shlex.quote(str(game))
        lines.append(f"replay: python -m wallgo_jax replay {record} --out game.html")
    for line in (*lines, f"export: python -m train export {where} {model}"):
        run.display.say(line, has_command=True)
