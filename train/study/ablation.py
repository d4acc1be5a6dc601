"""Trains every change of a list at equal wall time and matches it, seed by seed, with the base.

Each finished training and match is a row of the results. The same call goes on where one was
interrupted: a training from its checkpoint, everything else from the rows.
"""

import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax

from train.arena.match import MatchOptions, play_match
from train.arena.result import MatchResult
from train.checkpoints import store
from train.config import CONFIG_FILE, CheckpointConfig, EvaluationConfig, RunConfig
from train.loop import training
from train.loop.compiled_step import make_step
from train.loop.selfplay import Stage, make_bootstrap, stage_at
from train.loop.start import code_of, start_of
from train.metrics.rows import METRICS_FILE, read_rows
from train.players import registry
from train.runtime.errors import NotFiniteError, UsageError
from train.runtime.files import locked, writing
from train.study.changes import Change
from train.study.frame import budget
from train.study.options import Options
from train.study.results import BUDGET, FAILURE, MATCH, TRAINING, Results, Row

RUNS, RESULTS_FILE = "runs", "results.jsonl"
_CHECKPOINTS = 8
"""Checkpoints of a training, each of which it can go on from."""


class Step(NamedTuple):
    """A training or a match that is still to be done."""

    kind: str  # TRAINING or MATCH
    change: Change
    seed: int
    opening_plies: int = 0


class Reporter(Protocol):
    """Shows what a study does; see `train.study.progress`."""

    def step(self, step: Step, done: int, total: int, iterations: int) -> None:
        """A training or match begins."""
        ...

    def task(self, title: str, total: int, unit: str) -> Any:
        """A context that yields a function of the parts done."""
        ...


def steps_of(changes: Sequence[Change], options: Options) -> Iterator[Step]:
    """All trainings and matches, in the order in which they are done: seed by seed, so that an
    interrupted study holds whole seeds."""
    for seed in options.all_seeds:
        for change in changes:
            yield Step(TRAINING, change, seed)
            for plies in options.opening_plies if change.against else ():
                yield Step(MATCH, change, seed, plies)


@dataclasses.dataclass(frozen=True)
class Study:
    """A list of changes with the folder of its results.

    Attributes:
      changes: the base first.
      options: how they are compared.
      directory: of runs and results.
      results: what is done.
    """

    changes: tuple[Change, ...]
    options: Options
    directory: Path
    results: Results

    def change(self, name: str) -> Change:
        """The change of a name."""
        return next(change for change in self.changes if change.name == name)

    def find(self, step: Step) -> Row | None:
        """The row of a step that is done."""
        keys = self._keys(step.change) | {"seed": step.seed}
        if step.kind == MATCH:
            keys |= self._match_keys(step)
        return self.results.find(step.kind, **keys)

    @property
    def others(self) -> int:
        """How many trainings of these names have another definition or budget, and do not count."""
        rows = [row for row in self.results.rows if row["row"] == TRAINING]
        keys = {change.name: self._keys(change) for change in self.changes}
        named = [row for row in rows if row["change"] in keys]
        return sum(
            any(row[key] != value for key, value in keys[row["change"]].items()) for row in named
        )

    def failure(self, change: Change, seed: int) -> Row | None:
        """The row of a training that ended with a NaN or infinite loss or gradient."""
        return self.results.find(FAILURE, **self._keys(change), seed=seed)

    def is_left(self, step: Step) -> bool:
        """Whether a step is to be done: it has no row, and no training failed that it needs."""
        if self.find(step) is not None:
            return False
        needed = [step.change]
        if step.kind == MATCH:
            needed.append(self.change(step.change.against))
        return all(self.failure(change, step.seed) is None for change in needed)

    def budget(self, change: Change) -> Row | None:
        """The row of a change's number of iterations."""
        return self.results.find(BUDGET, **self._keys(change))

    def _keys(self, change: Change) -> dict[str, Any]:
        minutes = float(self.options.minutes)
        return {"change": change.name, "digest": change.digest, "minutes": minutes}

    def _match_keys(self, step: Step) -> dict[str, Any]:
        against, options = self.change(step.change.against), self.options
        return {
            "against": against.name,
            "against_digest": against.digest,
            "opening_plies": step.opening_plies,
            "simulations": options.simulations,
            "games": options.games // len(options.opening_plies),
        }

    def run_of(self, change: Change, seed: int) -> Path:
        """The directory of a training; another budget or definition has another."""
        name = f"{change.name}-{change.digest[:6]}-{self.options.minutes:g}min-seed{seed}"
        return self.directory / RUNS / name

    def check(self) -> None:
        """Try what each training that is still to begin plays and starts with, and look for the
        weights of those that are done and have matches left.

        Raises:
          UsageError: a change's bootstrap player cannot be made; the weights of its opponent, its
            start or a finished training cannot be loaded; it does not fit this machine.
        """
        self._check_weights()
        for change in self.changes:
            if not any(self._is_to_begin(change, seed) for seed in self.options.all_seeds):
                continue
            try:
                make_bootstrap(change.config)
                start_of(change.config, self.directory, resume=False)
                iterations = change.config.iterations
                make_step(training_config(change.config, change.name, 0, iterations))
            except UsageError as error:
                raise UsageError(f"ablate: {change.name}: {error}") from None

    def _check_weights(self) -> None:
        for step in steps_of(self.changes, self.options):
            if step.kind != MATCH or not self.is_left(step):
                continue
            for change in (step.change, self.change(step.change.against)):
                run = self.run_of(change, step.seed)
                is_trained = self.find(Step(TRAINING, change, step.seed)) is not None
                if is_trained and store.newest_iteration(run, store.WEIGHTS) is None:
                    raise UsageError(
                        f"ablate: {run}: has no weights, and a match of {step.change.name} needs "
                        "them; copy the run there from where it was trained"
                    )

    def _is_to_begin(self, change: Change, seed: int) -> bool:
        """Whether a training has neither a row nor a checkpoint, which keeps all that it needs."""
        run = self.run_of(change, seed)
        is_left = self.is_left(Step(TRAINING, change, seed))
        return is_left and store.newest_iteration(run, store.RESUME) is None

    def run(self, show: Reporter, *, on_row: Callable[[], None] = lambda: None) -> bool:
        """Do all that is left.

        A training whose loss or gradient becomes NaN or infinite has a row that says so, and no
        matches.

        Args:
          show: the console.
          on_row: called after each step, when its row is written.

        Returns:
          Whether all is done; False where a training was interrupted and saved.

        Raises:
          UsageError: a change cannot be trained.
        """
        steps = list(steps_of(self.changes, self.options))
        for number, step in enumerate(steps):
            if not self.is_left(step):
                continue
            if step.kind == TRAINING:
                try:
                    iterations = self._iterations(step.change, show)
                    show.step(step, number, len(steps), iterations)
                    if not self._train(step, iterations):
                        return False
                except NotFiniteError as error:
                    keys = self._keys(step.change) | {"seed": step.seed}
                    self.results.add(FAILURE, **keys, reason=str(error))
            else:
                show.step(step, number, len(steps), 0)
                self._match(step, show)
            on_row()
        return True

    def _iterations(self, change: Change, show: Reporter) -> int:
        """The budget in iterations, timed once for all seeds of a change and for all changes whose
        iterations take the same time."""
        found = self.budget(change)
        if found is not None:
            return found["iterations"]
        timed = self._timed_before(change)
        if timed is not None:
            kept = {key: timed[key] for key in ("iterations", "seconds_an_iteration")}
            self.results.add(BUDGET, **self._keys(change), **kept, timed_as=timed["change"])
            return timed["iterations"]
        title, most = f"timing {change.name}", budget.most_iterations(change.config)
        base = self.changes[0]
        with show.task(title, most, "iterations") as task:
            pace = (
                budget.measure_pace(change.config, on_progress=task)
                if change is base
                else budget.measure_pace_beside(
                    change.config, base.config, self._base_seconds(show), on_progress=task
                )
            )
        try:
            iterations = budget.iterations_within(
                change.config, pace.seconds, 60 * self.options.minutes
            )
        except UsageError as error:
            raise UsageError(f"change {change.name!r}: {error}") from None
        self.results.add(
            BUDGET,
            **self._keys(change),
            iterations=iterations,
            seconds_an_iteration={
                f"{stage.kind.value} {stage.simulations}": seconds
                for stage, seconds in pace.seconds.items()
            },
            compile_seconds=pace.compile_seconds,
        )
        return iterations

    def _timed_before(self, change: Change) -> Row | None:
        """The budget of another change whose iterations take the same time, if one was timed."""
        for other in self.changes:
            if budget.take_equal_time(other.config, change.config):
                found = self.budget(other)
                if found is not None:
                    return found
        return None

    def _base_seconds(self, show: Reporter) -> dict[Stage, float]:
        """Seconds of an iteration of the base, by stage, as they were timed first."""
        base = self.changes[0]
        self._iterations(base, show)
        row = self.budget(base)
        assert row is not None
        last = stage_at(base.config, base.config.iterations - 1)
        return {last: row["seconds_an_iteration"][f"{last.kind.value} {last.simulations}"]}

    def _train(self, step: Step, iterations: int) -> bool:
        run = self.run_of(step.change, step.seed)
        config = training_config(step.change.config, run.name, step.seed, iterations)
        _remove_unbegun(run)
        if not training.train(config, run.parent, resume=run.is_dir()):
            return False
        rows = read_rows(run / METRICS_FILE)
        self.results.add(
            TRAINING,
            **self._keys(step.change),
            seed=step.seed,
            iterations=iterations,
            seconds=_sum(rows, "selfplay_seconds") + _sum(rows, "learn_seconds"),
            compile_seconds=_sum(rows, "compile_seconds"),
            games=int(_sum(rows, "games")),
            positions=int(_sum(rows, "positions")),
            run=str(run.relative_to(self.directory)),
            code=code_of(run),
        )
        # The replay of every run would fill a disk; the weights stay.
        shutil.rmtree(run / store.RESUME, ignore_errors=True)
        return True

    def _match(self, step: Step, show: Reporter) -> None:
        against = self.change(step.change.against)
        keys = self._match_keys(step)
        first, second = (self._player(change, step.seed) for change in (step.change, against))
        rules, games = step.change.config.rules, keys["games"]
        how = MatchOptions(games=games, batch=min(games, 200), opening_plies=step.opening_plies)
        began = time.perf_counter()
        title = f"{step.change.name} against {against.name}"
        with show.task(title, games, "games") as task:
            key = match_key(step.seed, step.opening_plies)
            result = play_match((first, second), rules, how, key=key, on_progress=task)
        self.results.add(
            MATCH,
            **self._keys(step.change),
            seed=step.seed,
            **keys,
            **_counts(result),
            seconds=time.perf_counter() - began,
        )

    def _player(self, change: Change, seed: int) -> Any:
        run = self.run_of(change, seed)
        name = f"search:{run}@{self.options.simulations}"
        return registry.make_player(name, change.config.rules)


def _remove_unbegun(run: Path) -> None:
    """Remove a run's directory that was left before its config was written and that holds no
    checkpoint, so that the training starts anew."""
    checkpoints = (
        entry for kind in (store.WEIGHTS, store.RESUME) for entry in run.glob(f"{kind}/*")
    )
    if run.is_dir() and not (run / CONFIG_FILE).exists() and next(checkpoints, None) is None:
        with locked(run), writing(run):
            shutil.rmtree(run)


def training_config(config: RunConfig, name: str, seed: int, iterations: int) -> RunConfig:
    """A change's config as a run of its own, without matches."""
    every = max(1, iterations // _CHECKPOINTS)
    return dataclasses.replace(
        config,
        name=name,
        seed=seed,
        iterations=iterations,
        evaluation=EvaluationConfig(every=0, opponents=(), anchors=()),
        checkpoint=CheckpointConfig(every=every, keep=2, keep_best=0),
    )


def match_key(seed: int, opening_plies: int) -> jax.Array:
    """The key of all matches of a seed, so that they start from the same openings."""
    return jax.random.fold_in(jax.random.key(seed), opening_plies)


def _counts(result: MatchResult) -> dict[str, int]:
    return {
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        "distinct_games": result.distinct_games,
    }


def _sum(rows: Sequence[Row], name: str) -> float:
    return sum(row.get(name) or 0.0 for row in rows)
