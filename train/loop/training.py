"""Trains to the end, as the command does: iterates, stops when asked to, finishes."""

import contextlib
from collections.abc import Callable, Generator
from pathlib import Path

from train.config import RunConfig
from train.data import replay
from train.loop.iterations import Iteration, iterations
from train.loop.programs import TrainState
from train.loop.reporting import OpenRun, save, say_next, say_saved
from train.loop.run_directory import GAME_FILE, GAME_TEXT_FILE, naming_last_good
from train.loop.tables import rules_of_board, variants_of
from train.runtime.devices import any_process, is_first_process
from train.runtime.files import replace_text
from train.runtime.interrupts import interrupts
from train.runtime.showing import sparing
from wallgo_jax import render
from wallgo_jax.formats import records
from wallgo_jax.view.game_replay import replay_actions

_ANSWER = "this iteration is finished and saved first"


def train(config: RunConfig, runs: Path, *, resume: bool, profile: Path | None = None) -> bool:
    """Train to the end of the budget, evaluate, print the table.

    Args:
      config: the run.
      runs: directory of all runs.
      resume: go on from the newest whole checkpoint instead of starting.
      profile: directory for a trace of two iterations; None for none.

    Returns:
      Whether the run reached its end; False when it was interrupted and saved.

    Raises:
      UsageError: as `iterations`.
    """
    steps = iterations(config, runs / config.name, resume=resume)
    if profile is not None:
        from train.runtime.profiling import profiled

        def on_end(now: Iteration, shares: str) -> None:
            now.run.display.say(f"trace of two iterations in {profile}: {shares}")

        steps = profiled(steps, profile, on_end)
    return to_end(steps, lambda last: finish(last.run, last.state))


def to_end(steps: Generator[Iteration, None, None], finish: Callable[[Iteration], bool]) -> bool:
    """Run all iterations that are left, then finish; a signal ends it with the iteration saved.

    Returns:
      What `finish` returns, which gets the last iteration; False after a signal.
    """
    with contextlib.closing(steps):
        with interrupts("nothing is lost"):
            now = next(steps)
        show = now.run.display.note
        with interrupts(_ANSWER, show=show, has_work=True) as is_interrupted:
            for now in steps:
                # What fails here is no error of the generator, which names its own.
                with naming_last_good(now.run.directory):
                    # All processes ask at this point, so all stop after the same iteration.
                    stops = any_process(is_interrupted())
                    if stops:
                        save(now.run, now.state, now.row)
                if stops:
                    say_saved(now.run, now.state)
                    return False
        return finish(now)


def finish(run: OpenRun, state: TrainState) -> bool:
    """A game of self-play, then, by the first process, the final matches and what to do next.

    Returns:
      Whether the matches were played to their end; the run is saved all the same.
    """
    write_game(run, state)
    if not is_first_process():
        return True
    if run.config.evaluation.opponents:
        from train.loop.evaluation import final_matches

        try:
            with interrupts("the run is saved"):
                final_matches(run.config, state.learner.weights, run.directory, run.display)
        except KeyboardInterrupt:
            say_saved(run, state)
            return False
    say_next(run)
    return True


def write_game(run: OpenRun, state: TrainState) -> None:
    """A game of self-play, as a record for commands and as text for people; an error costs the
    game alone. The first process writes it; all must call this, since parts of the replay may lie
    with each."""
    config = run.config
    path = run.directory / GAME_FILE
    with sparing(path):
        newest = replay.newest_games(state.replay_state, variants_of(config), 1)
        for board, actions in newest if is_first_process() else []:
            rules = rules_of_board(config, board)
            game = replay_actions(rules, actions)
            players = (config.name,) * rules.players
            text = render.game_file(game, players=players)
            records.write(path, [records.of_game(game, players=players)])
            replace_text(run.directory / GAME_TEXT_FILE, text)
