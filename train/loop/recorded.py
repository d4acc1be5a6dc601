"""The recorded games that a run of `fit` learns in place of its own, and the losses on some of them
that are held back."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced

from train.config import RunConfig
from train.data.record_dataset import (
    RecordedPositions,
    make_examples,
    read_recorded_games,
    split,
    take,
)
from train.learning.learner import LearnerState
from train.learning.losses import Losses
from train.loop.programs import learner_of, trace_learning
from train.loop.run_directory import RECORDS_FILE, has_checkpoint
from train.loop.tables import LearnTables
from train.network import Variables
from train.runtime.errors import UsageError
from train.runtime.files import read_json
from wallgo_jax.formats.option_names import argument

DEFAULT_VALIDATION = 0.1
_CHECKED_AT_ONCE = 512
_MOST_CHECKED = 8192


class RecordFiles(NamedTuple):
    """Record files to learn from."""

    paths: tuple[Path, ...]
    validation: float = DEFAULT_VALIDATION  # share of the games that is held back


class GamesToLearn(NamedTuple):
    """The games of a run.

    Attributes:
      positions: on the device.
      summary: files, numbers of games and positions, share held back and a checksum; JSON-ready.
    """

    positions: RecordedPositions
    summary: dict[str, Any]

    def __str__(self) -> str:
        """A line for the console."""
        about = self.summary
        return (
            f"{about['games']} games, {about['learned']} positions to learn, "
            f"{about['held_back']} held back, of which {self.positions.held_back.size} are "
            "checked on"
        )

    def losses(self, tables: LearnTables, weights: Variables) -> list[Losses]:
        """Losses of weights on each batch held back."""
        batches = range(len(self.positions.held_back))
        return [_held_back_losses(tables, weights, self.positions, np.int32(i)) for i in batches]

    def traces(self, tables: LearnTables, learner: LearnerState, keys: jax.Array) -> list[Traced]:
        """What `learn` and `losses` call, traced for the shapes of a learner and of keys [S]."""
        weights = learner.weights
        first = np.int32(0)
        return [
            trace_learning(tables, learner, self.positions, None, keys),
            _held_back_losses.trace(tables, weights, self.positions, first),
        ]


@jax.jit
def _held_back_losses(
    tables: LearnTables, weights: Variables, positions: RecordedPositions, batch: jax.Array
) -> Losses:
    """Losses of weights on a batch held back, by its number int32[]."""
    index = positions.held_back[batch]
    sample = take(positions.examples, index, has_reply=tables.network.reply)
    # Each device evaluates all of it: a batch held back need not be a multiple of their number.
    return learner_of(tables, is_split=False).validation_losses(weights, sample)


def read_games(
    config: RunConfig, records: RecordFiles, directory: Path, *, resume: bool
) -> GamesToLearn:
    """Read record files, for a run in a directory.

    Args:
      config: the run.
      records: the files.
      directory: of the run, whose games must be these where it goes on.
      resume: whether it goes on.

    Raises:
      UsageError: a file cannot be used, the config has several rule sets, or the run began with
        other games.
    """
    if config.mix:
        raise UsageError(
            f"fit: learns games of one rule set, but the config lists {len(config.mix)}; "
            f"{argument('rules')} names one"
        )
    recorded = read_recorded_games(records.paths, config.rules)
    examples = make_examples(recorded)
    learned, held = split(examples, share=records.validation, seed=config.seed)
    batch = min(_CHECKED_AT_ONCE, len(held))
    count = min(len(held), _MOST_CHECKED) // batch
    chosen = np.random.default_rng(config.seed).permutation(held)[: count * batch]
    digest = hashlib.sha256()
    for record in recorded.records:
        digest.update(json.dumps([record.rules.to_dict(), record.actions]).encode())
    summary = {
        "files": [path.name for path in records.paths],
        "paths": [str(path.resolve()) for path in records.paths],
        "games": len(recorded.records),
        "learned": len(learned),
        "held_back": len(held),
        "checked": chosen.size,
        "validation": records.validation,
        "sha256": digest.hexdigest(),
    }
    if resume and ((directory / RECORDS_FILE).exists() or has_checkpoint(directory)):
        before = read_summary(directory)
        for key in ("validation", "games", "sha256"):
            if before.get(key) != summary[key]:
                raise UsageError(
                    f"{directory}: cannot resume: {key} was {before.get(key)!r} when the run "
                    f"began and is {summary[key]!r} now"
                )
    held_back = jnp.asarray(chosen.reshape(count, batch), jnp.int32)
    positions = RecordedPositions(examples, jnp.asarray(learned, jnp.int32), held_back)
    return GamesToLearn(positions, summary)


def saved_records(
    directory: Path, records: Sequence[Path], validation: float | None
) -> RecordFiles:
    """The record files of a run that goes on.

    Args:
      directory: the run's.
      records: files that are named now; empty for those that the run began with.
      validation: share that is named now; None for the one that the run began with.

    Raises:
      UsageError: the directory is not one of `fit`.
    """
    before = read_summary(directory)
    paths = tuple(records) or tuple(map(Path, before.get("paths", [])))
    share = before.get("validation", DEFAULT_VALIDATION) if validation is None else validation
    return RecordFiles(paths, share)


def read_summary(directory: Path) -> dict[str, Any]:
    """What the directory of a run of `fit` says of its games.

    Raises:
      UsageError: it is no such directory.
    """
    if not (directory / RECORDS_FILE).exists():
        raise UsageError(f"{directory}: no run of `fit`: it has no {RECORDS_FILE}")
    return read_json(directory / RECORDS_FILE)
