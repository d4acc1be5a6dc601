"""Supervised learning: a network learns the games of record files, no self-play."""

from pathlib import Path

from train.config import RunConfig
from train.loop.iterations import Iteration, iterations
from train.loop.recorded import RecordFiles, read_summary
from train.loop.reporting import say_next
from train.loop.run_directory import resume_command
from train.loop.training import to_end
from train.runtime.display import Table
from train.runtime.files import write_json
from train.runtime.showing import sparing

VALIDATION_FILE = "validation.json"


def fit(config: RunConfig, records: RecordFiles, runs: Path, *, resume: bool) -> bool:
    """Learn finished games and report the losses on games held back.

    The policy learns the plies that were played; value, ownership and whatever other heads the
    network has learn as from self-play. There are `iterations` times `learner.steps` steps.

    Args:
      config: network, learner, rules, name, seed and iterations; the rest is not read.
      records: the games.
      runs: directory of all runs.
      resume: go on from the newest checkpoint instead of starting.

    Returns:
      Whether the run reached its end; False when it was interrupted and saved.

    Raises:
      UsageError: files or directory cannot be used; another process is at it.
    """
    steps = iterations(config, runs / config.name, resume=resume, records=records)
    return to_end(steps, report_losses)


def report_losses(last: Iteration) -> bool:
    """Write and show the last losses on games held back."""
    run, config = last.run, last.run.config
    row = last.row or run.rows[-1]
    record = {name: value for name, value in row.items() if name.startswith("validation_")}
    path = run.directory / VALIDATION_FILE
    with sparing(path, f"to write it: {resume_command(run.directory)}"):
        write_json(path, {"iterations": config.iterations, **record})
    checked = read_summary(run.directory)["checked"]
    table = Table(
        title=f"{config.name}: {config.network.blocks} × {config.network.width}",
        heads=("validation", ""),
        rows=[
            (_NAMES.get(name.removeprefix("validation_"), name), f"{value:.4f}")
            for name, value in record.items()
        ],
        caption=f"{checked} positions of games held back · seed {config.seed}",
    )
    run.display.console.print(table)
    say_next(run)
    return True


_NAMES = {
    "loss": "weighted sum of the losses",
    "policy_loss": "policy, nats",
    "value_loss": "value",
    "accuracy": "likeliest slot is the one played",
    "ownership_loss": "ownership, nats a cell",
    "ownership_constant": "the same of a constant",
    "ownership_error": "ownership, mean squared error",
    "margin_loss": "margin, squared error in boards",
    "reply_loss": "next ply, nats",
}
