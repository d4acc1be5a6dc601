"""The last lines of a run: where its results lie and what to do with them."""

import shlex
from pathlib import Path

from train.checkpoints import store
from train.config import RunConfig
from train.loop.run_directory import GAME_FILE, RESULT_FILE
from train.metrics.rows import METRICS_FILE

_OPPONENT = "wjx"


def closing_lines(directory: Path, config: RunConfig, *, table: str = RESULT_FILE) -> list[str]:
    """A line on the results, then a command a line that takes them further.

    Args:
      directory: the run's.
      config: of the run.
      table: file of the figures that the run ended with.
    """
    newest = store.newest_iteration(directory, store.WEIGHTS)
    results = (table, METRICS_FILE, f"{store.WEIGHTS}/{newest}", GAME_FILE)
    there = [name for name in results if (directory / name).exists()]
    run, budget = shlex.quote(str(directory)), config.evaluation.simulations
    model = shlex.quote(str(Path("models") / config.name))
    commands = []
    if config.rules.players == 2:
        player = shlex.quote(f"search:{directory}@{budget}")
        commands.append(f"python -m train match {player} {_OPPONENT}")
    if GAME_FILE in there:
        game = shlex.quote(str(directory / GAME_FILE))
        commands.append(f"python -m wallgo_jax replay {game} --out game.html")
    commands.append(f"python -m train export {run} {model}")
    return [f"results in {directory}: {', '.join(there)}", *(f"  {each}" for each in commands)]
