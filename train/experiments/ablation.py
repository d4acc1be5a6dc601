"""Changes of a config, each trained at equal wall time and matched, seed by seed, with the base.

Each finished training and match is a cached result. The same call goes on where one was
interrupted: a training from its checkpoint, everything else from the cache.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import jax
from pydantic import Field

from train.checkpoints import store
from train.experiments import pace
from train.experiments.changes import Change
from train.experiments.lib import stats, trainings
from train.experiments.lib.scale import Count, Pairs, Plies, Scale
from train.experiments.lib.stats import Estimate, MatchCounts
from train.experiments.lib.trainings import Trained, Variant
from train.experiments.lib.work import Work, counts_of, play_games
from train.loop.selfplay import Stage, make_bootstrap, stage_at
from train.loop.start import start_of
from train.loop.train_step import make_step
from train.players.registry import make_player
from train.runtime.errors import NotFiniteError, UsageError


@dataclasses.dataclass(frozen=True)
class AblationOptions(Scale):
    """Terms of a comparison of changes."""

    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)]  # of each training alone
    seeds: Count  # paired ones
    games: Pairs  # of each seed's match, shared among `opening_plies`
    simulations: Count  # of a move in the matches
    opening_plies: tuple[Plies, ...]  # random plies that games start with, the same for all changes
    first_seed: Annotated[int, Field(ge=0, le=2**30)] = 0  # the others follow it

    def __post_init__(self) -> None:
        parts = len(self.opening_plies)
        if not parts or len(set(self.opening_plies)) < parts:
            raise ValueError("opening_plies must be different numbers")
        if self.games % (2 * parts):
            raise ValueError(
                f"games must be a multiple of {2 * parts}, as each part has two colours"
            )

    @property
    def all_seeds(self) -> range:
        """The seeds, in order."""
        return range(self.first_seed, self.first_seed + self.seeds)


class AblationStep(NamedTuple):
    """A training, or a match of a change with another."""

    change: Change
    seed: int
    opening_plies: int | None = None  # None for the training


class ChangeResult(NamedTuple):
    """A change and what is known of it so far."""

    change: Change
    rates: tuple[float, ...]  # a win rate for each seed whose matches are all done
    score: Estimate | None  # None while there is none
    trained: tuple[Trained, ...]
    diverged: tuple[int, ...]  # seeds whose loss or gradient became NaN or infinite


@dataclasses.dataclass(frozen=True)
class Ablation:
    """A list of changes with the folder of its results.

    Attributes:
      changes: the base first.
      options: how they are compared.
      work: cache and progress.
    """

    changes: tuple[Change, ...]
    options: AblationOptions
    work: Work

    @property
    def steps(self) -> Iterator[AblationStep]:
        """All trainings and matches, in the order in which they are done: seed by seed, so that an
        interrupted ablation holds whole seeds."""
        for seed in self.options.all_seeds:
            for change in self.changes:
                yield AblationStep(change, seed)
                for plies in self.options.opening_plies if change.against else ():
                    yield AblationStep(change, seed, plies)

    def against(self, change: Change) -> Change:
        """The change that a change is matched with."""
        return next(each for each in self.changes if each.name == change.against)

    def trained(self, change: Change, seed: int) -> Trained | None:
        """A training that is done."""
        row = self.work.cache.find(
            f"training-{self.run_name(change, seed)}", self._keys(change, seed)
        )
        return None if row is None else Trained(*row)

    def match(self, step: AblationStep) -> MatchCounts | None:
        """A match that is done."""
        counts = self.work.cache.find(*self._match_piece(step))
        return counts and MatchCounts(step.change.name, step.change.against, step.seed, *counts)

    def diverged(self, change: Change, seed: int) -> str | None:
        """Why a training ended with a NaN or infinite loss or gradient, if it did."""
        piece = f"diverged-{self.run_name(change, seed)}"
        return self.work.cache.find(piece, self._keys(change, seed))

    def is_left(self, step: AblationStep) -> bool:
        """Whether a step is to be done: it is not done, and no training diverged that it needs."""
        change, seed, plies = step
        if plies is None:
            return self.trained(change, seed) is None and not self.diverged(change, seed)
        needed = (change, self.against(change))
        return self.match(step) is None and not any(self.diverged(each, seed) for each in needed)

    def run_name(self, change: Change, seed: int) -> str:
        """The directory of a training; another budget or definition has another."""
        return trainings.run_config(self._variant(change, 1), seed).name

    def _variant(self, change: Change, iterations: int) -> Variant:
        name = f"{change.name}-{change.digest[:6]}-{self.options.minutes:g}min"
        return Variant(name, dataclasses.replace(change.config, iterations=iterations))

    def _keys(self, change: Change, seed: int | None = None) -> dict[str, Any]:
        """The key of a change's budget, or of its training with a seed; without iterations, so that
        trainings of several machines can be put together."""
        keys = {"change": change.name, "digest": change.digest, "minutes": self.options.minutes}
        return keys if seed is None else keys | {"seed": seed}

    def _match_piece(self, step: AblationStep) -> tuple[str, dict[str, Any]]:
        (change, seed, plies), against = step, self.against(step.change)
        settings = self._keys(change, seed) | {
            "against": self._keys(against),
            "opening_plies": plies,
            "simulations": self.options.simulations,
            "games": self.options.games // len(self.options.opening_plies),
        }
        return f"match-{change.name}-{against.name}-{seed}-{plies}", settings

    def check(self) -> None:
        """Try what each training that is still to begin plays and starts with, and look for the
        weights of those that are done and have matches left.

        Raises:
          UsageError: a change's bootstrap player cannot be made; the weights of its opponent, its
            start or a finished training cannot be loaded; it does not fit this machine.
        """
        for step in self.steps:
            if step.opening_plies is None or not self.is_left(step):
                continue
            for change in (step.change, self.against(step.change)):
                run = self.work.runs / self.run_name(change, step.seed)
                is_trained = self.trained(change, step.seed) is not None
                if is_trained and store.newest_iteration(run, store.WEIGHTS) is None:
                    raise UsageError(
                        f"ablation: {run}: has no weights, and a match of {step.change.name} needs "
                        "them; copy the run there from where it was trained"
                    )
        for change in self.changes:
            if not any(self._is_to_begin(change, seed) for seed in self.options.all_seeds):
                continue
            try:
                make_bootstrap(change.config)
                start_of(change.config, self.work.cache.directory, resume=False)
                make_step(trainings.run_config(Variant(change.name, change.config), 0))
            except UsageError as error:
                raise UsageError(f"ablation: {change.name}: {error}") from None

    def _is_to_begin(self, change: Change, seed: int) -> bool:
        """Whether a training is neither done nor has a checkpoint, which holds all it needs."""
        run = self.work.runs / self.run_name(change, seed)
        is_left = self.is_left(AblationStep(change, seed))
        return is_left and store.newest_iteration(run, store.RESUME) is None

    def run(self, say: Callable[[str], Any], *, on_step: Callable[[], None] = lambda: None) -> None:
        """Do all that is left.

        A training whose loss or gradient becomes NaN or infinite is noted, and has no matches.

        Args:
          say: shows a line.
          on_step: called after each step, when its result is written.

        Raises:
          KeyboardInterrupt: a training was interrupted and saved.
          UsageError: a change cannot be trained.
        """
        steps = list(self.steps)
        for number, step in enumerate(steps, start=1):
            if not self.is_left(step):
                continue
            change, title = step.change, f"[{number} of {len(steps)}] seed {step.seed}, "
            if step.opening_plies is None:
                iterations = self._iterations(change)
                budget = f"{iterations} iterations in about {self.options.minutes:g} min"
                say(f"{title}{change.name}: {budget}")
                self._train(step, iterations)
            else:
                say(f"{title}{change.name} against {change.against}, {step.opening_plies} plies")
                self.work.cache.cached(*self._match_piece(step), lambda step=step: self._play(step))
            on_step()

    def _iterations(self, change: Change) -> int:
        """The budget in iterations, timed once for all seeds of a change and for all changes whose
        iterations take the same time."""
        return self._budget(change)["iterations"]

    def _budget(self, change: Change) -> dict[str, Any]:
        def measure() -> dict[str, Any]:
            for other in self.changes:
                if pace.take_equal_time(other.config, change.config):
                    timed = self.work.cache.find(f"budget-{other.name}", self._keys(other))
                    if timed is not None:
                        return timed | {"timed_as": other.name}
            return self._measure(change)

        return self.work.cache.cached(f"budget-{change.name}", self._keys(change), measure)

    def _measure(self, change: Change) -> dict[str, Any]:
        base, most = self.changes[0], pace.most_iterations(change.config)
        seconds = {} if change is base else self._base_seconds()
        with self.work.task(f"timing {change.name}", most, "iterations") as task:
            timed = (
                pace.measure_pace(change.config, on_progress=task)
                if change is base
                else pace.measure_pace_in_turns(
                    change.config, base.config, seconds, on_progress=task
                )
            )
        budget = 60 * self.options.minutes
        try:
            iterations = pace.iterations_within(change.config, timed.seconds, budget)
        except UsageError as error:
            raise UsageError(f"change {change.name!r}: {error}") from None
        by_stage = {_stage_name(stage): seconds for stage, seconds in timed.seconds.items()}
        figures = {"seconds_an_iteration": by_stage, "compile_seconds": timed.compile_seconds}
        return {"iterations": iterations, **figures}

    def _base_seconds(self) -> dict[Stage, float]:
        """Seconds of an iteration of the base in its last stage, as they were timed first."""
        base = self.changes[0]
        last = stage_at(base.config, base.config.iterations - 1)
        return {last: self._budget(base)["seconds_an_iteration"][_stage_name(last)]}

    def _train(self, step: AblationStep, iterations: int) -> None:
        change, seed, keys = step.change, step.seed, self._keys(step.change, step.seed)
        try:
            trainings.train_variant(self.work, self._variant(change, iterations), seed, keys)
        except NotFiniteError as error:
            reason, piece = str(error), f"diverged-{self.run_name(change, seed)}"
            self.work.cache.cached(piece, keys, lambda: reason)

    def _play(self, step: AblationStep) -> list[int]:
        rules, players = step.change.config.rules, []
        for change in (step.change, self.against(step.change)):
            trained = self.trained(change, step.seed)
            assert trained is not None
            name = trainings.player_of(self.work, trained, self.options.simulations)
            players.append(make_player(name, rules))
        plies = step.opening_plies or 0
        games = self.options.games // len(self.options.opening_plies)
        # All matches of a seed start from the same openings.
        key = jax.random.fold_in(jax.random.key(step.seed), plies)
        result = play_games(self.work, players, rules, games=games, opening_plies=plies, key=key)
        return counts_of(result)

    def lines(self) -> list[ChangeResult]:
        """A line for each change, the base first."""
        return [self._line(change) for change in self.changes]

    def _line(self, change: Change) -> ChangeResult:
        seeds, games = self.options.all_seeds, self.options.games
        trained = [self.trained(change, seed) for seed in seeds]
        rates = []
        for seed in seeds if change.against else ():
            steps = [AblationStep(change, seed, plies) for plies in self.options.opening_plies]
            matches = [match for match in map(self.match, steps) if match is not None]
            if len(matches) == len(steps):
                rates.append(sum(match.wins + match.draws / 2 for match in matches) / games)
        return ChangeResult(
            change,
            tuple(rates),
            stats.over_seeds(rates, games) if rates else None,
            tuple(each for each in trained if each is not None),
            tuple(seed for seed in seeds if self.diverged(change, seed)),
        )


def _stage_name(stage: Stage) -> str:
    return f"{stage.kind.value} {stage.simulations}"
