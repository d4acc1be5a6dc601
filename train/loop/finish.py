"""What follows the last iteration of a run of self-play: a game, the final matches, what to do."""

from pathlib import Path

import jax

from train.data import replay
from train.loop.boards import rules_of_board, variants_of
from train.loop.programs import TrainState
from train.loop.reporting import OpenRun, say_next, say_saved
from train.loop.run_directory import GAME_FILE, GAME_TEXT_FILE
from train.runtime.devices import is_first_process
from train.runtime.files import replace_text
from train.runtime.interrupts import interrupts
from train.runtime.showing import sparing
from wallgo_jax import render
from wallgo_jax.formats import records
from wallgo_jax.view.game_replay import replay_actions


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
    game alone."""
    path = run.directory / GAME_FILE
    with sparing(path):
        _write_game(run, state, path)


def _write_game(run: OpenRun, state: TrainState, path: Path) -> None:
    name = run.config.name
    newest = replay.newest_games(state.replay_state, variants_of(run.config), 1)
    if not newest:
        return
    ((board, actions),) = newest
    rules = rules_of_board(run.config, board)
    game, players = replay_actions(rules, actions), (name,) * rules.players
    text = render.game_file(game, players=players)
    records.write(path, [records.of_game(game, players=players)])
    replace_text(run.directory / GAME_TEXT_FILE, text)
