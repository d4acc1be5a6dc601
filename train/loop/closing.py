"""The last lines of a run: where its results lie and what to do with them."""

import shlex
from pathlib import Path

from train.config import RunConfig
from train.loop.run_directory import GAME_FILE

_OPPONENT = "wjx"


def closing_lines(directory: Path, config: RunConfig) -> list[str]:
    """Three lines at the most, each with a command: a match, a game to look at, the weights.

    Args:
      directory: the run's.
      config: of the run.
    """
    run, results = shlex.quote(str(directory)), f"results: {directory}"
    model = shlex.quote(str(Path("models") / config.name))
    lines = [f"match: python -m train match {run} {_OPPONENT}"]
    if (directory / GAME_FILE).exists():
        game = shlex.quote(str(directory / GAME_FILE))
        lines.append(f"review: python -m wallgo_jax replay {game} --out game.html")
    lines.append(f"export: python -m train export {run} {model}")
    return [f"{results} · {lines[0]}", *lines[1:]]
