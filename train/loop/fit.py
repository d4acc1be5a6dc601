"""Supervised learning: a network learns the games of record files, no self-play."""

import functools
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from train.checkpoints.store import Store
from train.config import RunConfig, config_to_dict
from train.data.record_dataset import Examples, make_examples, read_recorded_games, split, take
from train.learning.learner import Learner, LearnerState, make_learner
from train.learning.losses import Losses
from train.loop.iteration import check_finite, means_of, warning_of
from train.loop.metrics import Display, MetricsWriter
from train.loop.run_directory import (
    begin,
    check_directory,
    first_state,
    has_checkpoint,
    naming_last_good,
    write_json,
)
from train.network.build import network_for
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.runtime.interrupts import interrupts

RECORDS_FILE, VALIDATION_FILE = "records.json", "validation.json"
_CHECKED_AT_ONCE, _MOST_CHECKED = 512, 8192


class FitState(NamedTuple):
    """All that an iteration changes."""

    learner: LearnerState
    iterations: jax.Array  # int32, iterations done


class _Data(NamedTuple):
    """Positions on the device, and which of them are learned and checked on."""

    examples: Examples
    learned: jax.Array  # int32[N]
    checked: np.ndarray  # int[C, n], whole batches


class _Programs(NamedTuple):
    init: Callable[[], FitState]
    learn: Callable[..., Any]
    validation_losses: Callable[..., Losses]


def fit(
    config: RunConfig, records: Sequence[Path], runs: Path, *, validation: float, resume: bool
) -> bool:
    """Learn policy (the plies that were played), value, ownership and whatever other heads the
    network has from finished games, `iterations` times `learner.steps` steps, and report the
    losses on games held back.

    Args:
      config: network, learner, rules, name, seed and iterations; the rest is idle.
      records: record files.
      runs: directory of all runs.
      validation: share of the games that is held back.
      resume: go on from the newest checkpoint instead of starting.

    Returns:
      Whether it came to its end; False when it was interrupted and saved.

    Raises:
      UsageError: files or directory cannot be used.
    """
    directory = runs / config.name
    check_directory(directory, config, resume=resume)
    if not 0 < validation < 1:
        raise UsageError(f"fit: validation ({validation}) must lie between 0 and 1")
    display = Display(total=config.iterations)
    data, summary = _read(config, records, validation)
    if resume and ((directory / RECORDS_FILE).exists() or has_checkpoint(directory)):
        _check_records(directory, summary)
    display.say(
        f"{summary['games']} games, {summary['learned']} positions to learn, "
        f"{summary['held_back']} held back, of which {data.checked.size} are checked on"
    )
    programs = _make_programs(config)
    state = first_state(directory, programs.init, _place, resume=resume)
    done = int(fetch(state.iterations))
    store = begin(directory, config, state.learner.player, done=done)
    write_json(directory / RECORDS_FILE, summary)
    return _run(config, programs, state, data, directory, store, display)


def _run(
    config: RunConfig,
    programs: _Programs,
    state: FitState,
    data: _Data,
    directory: Path,
    store: Store,
    display: Display,
) -> bool:
    done = int(fetch(state.iterations))
    row = _validate(programs, state, data)
    writer = MetricsWriter(directory, from_iteration=done)
    try:
        with display, interrupts() as interrupted, naming_last_good(directory, store.wait):
            for iteration in range(done, config.iterations):
                state, row = _iteration(config, programs, state, data, iteration)
                done = iteration + 1
                writer.write(row)
                display.show(row)
                if "warning" in row:
                    display.say(f"iteration {done}: {row['warning']}")
                is_last = done == config.iterations or interrupted()
                if is_last or done % config.checkpoint.every == 0:
                    weights = state.learner.player
                    store.save(done, weights, state, config_to_dict(config))
                if is_last:
                    break
            store.wait()
            stopped = interrupted() and done < config.iterations
        if stopped:
            display.say(f"saved after iteration {done}; the same command with --resume goes on")
            return False
        record = {name: value for name, value in row.items() if name.startswith("validation_")}
        write_json(directory / VALIDATION_FILE, {"iterations": done, **record})
        display.console.print(_table(config, record, data))
        return True
    finally:
        store.close()
        writer.close()


def _iteration(
    config: RunConfig, programs: _Programs, state: FitState, data: _Data, iteration: int
) -> tuple[FitState, dict[str, Any]]:
    started = time.perf_counter()
    key = jax.random.fold_in(jax.random.key(config.seed), iteration)
    learner, steps = state.learner, []
    for step_key in jax.random.split(key, config.learner.steps):
        learner, metrics = programs.learn(learner, data.examples, data.learned, step_key)
        steps.append(metrics)
    steps = fetch(steps)
    check_finite(steps, learner, iteration)
    seconds = time.perf_counter() - started
    state = FitState(learner, state.iterations + 1)
    row = {
        "iteration": iteration,
        "positions_per_second": config.learner.steps * config.learner.batch / seconds,
        **means_of(steps),
        **warning_of(steps),
        **_validate(programs, state, data),
    }
    return state, row


def _validate(programs: _Programs, state: FitState, data: _Data) -> dict[str, float]:
    """Means of the losses over the positions that are checked on."""
    found = [
        programs.validation_losses(state.learner.player, data.examples, jnp.asarray(batch))
        for batch in data.checked
    ]
    rows = [losses._asdict() for losses in fetch(found)]
    return {
        f"validation_{name}": float(np.mean([row[name] for row in rows]))
        for name, value in rows[0].items()
        if value is not None
    }


def _place(state: FitState) -> FitState:
    """Onto the device, in buffers of its own: they get donated."""
    return jax.tree.map(jnp.array, state)


def _make_programs(config: RunConfig) -> _Programs:
    has_reply = config.network.reply
    network = network_for(config.network, config.rules.players)
    learner: Learner = make_learner(
        network,
        config.learner,
        total_steps=config.iterations * config.learner.steps,
        planes=config.network.planes,
        has_playable=False,
    )
    choose = functools.partial(take, has_reply=has_reply)

    def init() -> FitState:
        key = jax.random.fold_in(jax.random.key(config.seed), 2**31 - 1)
        return FitState(learner.init(network.init(key)), jnp.zeros((), jnp.int32))

    def learn(state: LearnerState, examples: Examples, learned: jax.Array, key: jax.Array):
        draw_key, turn_key = jax.random.split(key)
        place = jax.random.randint(draw_key, (config.learner.batch,), 0, learned.shape[0])
        return learner.update(state, choose(examples, learned[place]), turn_key)

    def validation_losses(variables: Any, examples: Examples, index: jax.Array) -> Losses:
        return learner.validation_losses(variables, choose(examples, index))

    return _Programs(init, jax.jit(learn, donate_argnums=0), jax.jit(validation_losses))


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
        "games": len(recorded.records),
        "learned": len(learned),
        "held_back": len(held),
        "validation": validation,
        "sha256": digest.hexdigest(),
    }
    data = _Data(examples, jnp.asarray(learned, jnp.int32), chosen.reshape(count, batch))
    return data, summary


def _check_records(directory: Path, summary: dict[str, Any]) -> None:
    """Refuse to go on with other games than those that were begun with."""
    path = directory / RECORDS_FILE
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(f"{directory}: no run of `fit`: it has no {RECORDS_FILE}") from None
    for key in ("validation", "games", "sha256"):
        if before.get(key) != summary[key]:
            raise UsageError(
                f"{directory}: cannot resume: it was begun with {key} {before.get(key)!r}, "
                f"now it is {summary[key]!r}"
            )


def _table(config: RunConfig, record: dict[str, float], data: _Data) -> Table:
    table = Table(
        title=f"{config.name}: {config.network.blocks} × {config.network.width}",
        caption=f"{data.checked.size} positions of games held back · seed {config.seed}",
        caption_justify="left",
    )
    table.add_column("validation")
    table.add_column("", justify="right")
    for name, value in record.items():
        table.add_row(_NAMES.get(name.removeprefix("validation_"), name), f"{value:.4f}")
    return table


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
