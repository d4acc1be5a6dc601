"""Supervised learning: a network learns the games of record files, no self-play."""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from train.config import RunConfig
from train.data.record_dataset import Examples, make_examples, read_recorded_games, split, take
from train.learning.learner import (
    LearnerState,
    StepMetrics,
    check_finite,
    make_learner,
    means_of,
    validation_figures,
    warning_of,
)
from train.learning.losses import Losses
from train.loop.run_directory import RECORDS_FILE, has_checkpoint, resume_command
from train.loop.run_loop import OpenRun, Procedure, opened, run_to_end, say_next
from train.loop.start import first_key
from train.loop.train_step import TrainState
from train.metrics.rows import FIT_FORMATS, Row
from train.network import Variables, network_for, observer_for
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.runtime.files import read_json, write_json
from train.runtime.host import fetch
from train.runtime.memory import (
    CompiledFunction,
    MemoryEstimate,
    check_fits,
    device_memory,
    tree_bytes,
)
from train.runtime.showing import sparing

VALIDATION_FILE = "validation.json"
DEFAULT_VALIDATION = 0.1
_CHECKED_AT_ONCE, _MOST_CHECKED = 512, 8192


class _Data(NamedTuple):
    """Positions on the device, split into those to learn and those to check on."""

    examples: Examples
    learned: jax.Array  # int32[N]
    checked: np.ndarray  # int[C, n], whole batches


class FitPrograms:
    """The functions that the iterations of fitting call."""

    def __init__(self, config: RunConfig, data: _Data) -> None:
        """Jit them; nothing is compiled yet."""
        self.config, self._data = config, data
        self._network = network_for(config.network, config.rules.players, size=config.rules.size)
        self._learner = make_learner(
            self._network,
            config.learner,
            total_steps=config.iterations * config.learner.steps,
            observe=observer_for(config.network),
        )
        self._like = jax.eval_shape(self.init)
        key, like = jax.random.key(0), self._like.learner
        self._learn = CompiledFunction(
            jax.jit(self._learn_step, donate_argnums=0),
            lambda: (like, data.examples, data.learned, key),
        )

        def validation_losses(variables: Variables, examples: Examples, index: jax.Array) -> Losses:
            sample = take(examples, index, has_reply=config.network.reply)
            return self._learner.validation_losses(variables, sample)

        self._validation_losses = CompiledFunction(
            jax.jit(validation_losses),
            lambda: (like.player, data.examples, jnp.asarray(data.checked[0])),
        )

    def init(self, variables: Variables | None = None) -> TrainState:
        """The first state, with random weights or with these."""
        key = first_key(self.config.seed)
        # Copied, for the first step of learning consumes the state.
        first = self._network.init(key) if variables is None else jax.tree.map(jnp.copy, variables)
        nothing = cast(Any, None)
        return TrainState(self._learner.init(first), nothing, nothing, jnp.zeros((), jnp.int32))

    def place(self, state: TrainState) -> TrainState:
        """Put a state of NumPy arrays onto the device; copied, for the buffers get donated."""
        return jax.tree.map(jnp.array, state)

    def compile(self, _: int) -> float:
        """Compile both functions, which are those of all iterations; returns the seconds that it
        took.

        Raises:
          UsageError: they need more memory than the device has.
        """
        started, data = time.perf_counter(), self._data
        largest = max(self._learn.bytes, self._validation_losses.bytes)
        seconds = time.perf_counter() - started
        size = ("network.width", "another size of the network")
        held = [
            MemoryEstimate(
                "the recorded games", tree_bytes((data.examples, data.learned)), ("--records",)
            ),
            MemoryEstimate("weights and optimizer", tree_bytes(self._like), size),
        ]
        learning = MemoryEstimate("learning", largest, ("learner.batch", "network.width"))
        check_fits(held, device_memory(), programs=[learning])
        return seconds

    def iterate(self, state: TrainState, iteration: int) -> tuple[TrainState, Row]:
        """Learn for `learner.steps` steps and check on the games held back."""
        started, options, data = time.perf_counter(), self.config.learner, self._data
        key = jax.random.fold_in(jax.random.key(self.config.seed), iteration)
        learner, steps = state.learner, []
        for step_key in jax.random.split(key, options.steps):
            learner, metrics = self._learn(learner, data.examples, data.learned, step_key)
            steps.append(metrics)
        steps = fetch(steps)
        check_finite(steps, learner, iteration)
        seconds, positions = time.perf_counter() - started, options.steps * options.batch
        row = {
            "iteration": iteration + 1,
            "positions": positions,
            "positions_per_second": positions / seconds,
            "learn_seconds": seconds,
            **means_of(steps),
            **warning_of(steps),
            **self.validate(learner),
        }
        return state._replace(learner=learner, iterations=state.iterations + 1), row

    def validate(self, learner: LearnerState) -> dict[str, float]:
        """Mean losses over the positions held back."""
        losses = [
            self._validation_losses(learner.player, self._data.examples, jnp.asarray(batch))
            for batch in self._data.checked
        ]
        return validation_figures(fetch(losses))

    def finish(self, run: OpenRun, state: TrainState, row: Row | None) -> bool:
        """Write and show the last losses on games held back."""
        row = row or self.validate(state.learner)
        record = {name: value for name, value in row.items() if name.startswith("validation_")}
        path = run.directory / VALIDATION_FILE
        with sparing(path, f"to write it: {resume_command(run.directory)}"):
            write_json(path, {"iterations": run.config.iterations, **record})
        network = self.config.network
        table = Table(
            title=f"{self.config.name}: {network.blocks} × {network.width}",
            heads=("validation", ""),
            rows=[
                (_NAMES.get(name.removeprefix("validation_"), name), f"{value:.4f}")
                for name, value in record.items()
            ],
            caption=f"{self._data.checked.size} positions of games held back · "
            f"seed {self.config.seed}",
        )
        run.display.console.print(table)
        say_next(run)
        return True

    def _learn_step(
        self, state: LearnerState, examples: Examples, learned: jax.Array, key: jax.Array
    ) -> tuple[LearnerState, StepMetrics]:
        """Learn from a batch of the positions int32[N]."""
        sample_key, turn_key = jax.random.split(key)
        shape = (self.config.learner.batch,)
        place = jax.random.randint(sample_key, shape, 0, learned.shape[0], jnp.int32)
        sample = take(examples, learned[place], has_reply=self.config.network.reply)
        return self._learner.update(state, sample, turn_key)


def fit(
    config: RunConfig, records: Sequence[Path], runs: Path, *, validation: float, resume: bool
) -> bool:
    """Learn finished games and report the losses on games held back.

    The policy learns the plies that were played; value, ownership and whatever other heads the
    network has learn as from self-play. There are `iterations` times `learner.steps` steps.

    Args:
      config: network, learner, rules, name, seed and iterations; the rest is not read.
      records: record files.
      runs: directory of all runs.
      validation: share of the games that is held back.
      resume: go on from the newest checkpoint instead of starting.

    Returns:
      Whether the run reached its end; False when it was interrupted and saved.

    Raises:
      UsageError: files or directory cannot be used; another process is at it.
    """
    directory = runs / config.name

    def make() -> Procedure:
        if config.mix:
            raise UsageError(
                f"fit: learns games of one rule set, the config lists {len(config.mix)}; --rules "
                "names one"
            )
        data, summary = _read(config, records, validation)
        if resume and ((directory / RECORDS_FILE).exists() or has_checkpoint(directory)):
            before = _read_summary(directory)
            for key in ("validation", "games", "sha256"):
                if before.get(key) != summary[key]:
                    raise UsageError(
                        f"{directory}: cannot resume: {key} was {before.get(key)!r} when the run "
                        f"began and is {summary[key]!r} now"
                    )
        programs = FitPrograms(config, data)
        about = (
            f"{summary['games']} games, {summary['learned']} positions to learn, "
            f"{summary['held_back']} held back, of which {data.checked.size} are checked on"
        )
        return Procedure(
            programs=programs,
            iterate=programs.iterate,
            finish=programs.finish,
            about=lambda state: about,
            figures=FIT_FORMATS,
            # With it the directory is one of `fit`, whatever stops the run from here on.
            files={RECORDS_FILE: summary},
        )

    return run_to_end(opened(config, directory, make, resume=resume))


def _read(
    config: RunConfig, records: Sequence[Path], validation: float
) -> tuple[_Data, dict[str, Any]]:
    recorded = read_recorded_games(records, config.rules)
    examples = make_examples(recorded)
    learned, held = split(examples, share=validation, seed=config.seed)
    batch = min(_CHECKED_AT_ONCE, len(held))
    count = min(len(held), _MOST_CHECKED) // batch
    chosen = np.random.default_rng(config.seed).permutation(held)[: count * batch]
    digest = hashlib.sha256()
    for record in recorded.records:
        digest.update(json.dumps([record.rules.to_dict(), record.actions]).encode())
    summary = {
        "files": [path.name for path in records],
        "paths": [str(path.resolve()) for path in records],
        "games": len(recorded.records),
        "learned": len(learned),
        "held_back": len(held),
        "validation": validation,
        "sha256": digest.hexdigest(),
    }
    data = _Data(examples, jnp.asarray(learned, jnp.int32), chosen.reshape(count, batch))
    return data, summary


def saved_records(
    directory: Path, records: Sequence[Path], validation: float | None
) -> tuple[tuple[Path, ...], float]:
    """The record files and the share held back of a run that goes on.

    Args:
      directory: the run's.
      records: files that are named now; empty for those that the run began with.
      validation: share that is named now; None for the one that the run began with.

    Raises:
      UsageError: the directory is not one of `fit`.
    """
    before = _read_summary(directory)
    paths = tuple(records) or tuple(map(Path, before.get("paths", [])))
    return paths, before.get("validation", DEFAULT_VALIDATION) if validation is None else validation


def _read_summary(directory: Path) -> dict[str, Any]:
    if not (directory / RECORDS_FILE).exists():
        raise UsageError(f"{directory}: no run of `fit`: it has no {RECORDS_FILE}")
    return read_json(directory / RECORDS_FILE)


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
