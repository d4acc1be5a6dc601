"""Changes of a config, each trained at equal wall time and matched, seed by seed, with the base.

Each finished training and match is a cached result. The same call goes on where one was
interrupted: a training from its checkpoint, everything else from the cache. The page is written
after each step.
"""

import dataclasses
import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
from pydantic import Field

from train.arena.match_programs import check_opening
from train.checkpoints import store
from train.experiments import pace
from train.experiments.changes import Change
from train.experiments.lib import pages, stats, trainings
from train.experiments.lib.pages import PAGE, Report, Table
from train.experiments.lib.scale import Count, Pairs, Plies, Scale
from train.experiments.lib.stats import EARNEST_SEEDS, Estimate, MatchCounts
from train.experiments.lib.trainings import Trained, Variant
from train.experiments.lib.work import Work, counts_of, play_games
from train.loop.selfplay import Stage, make_bootstrap, stage_at
from train.loop.start import code_in_words, start_of
from train.loop.train_step import make_step
from train.players.registry import make_player
from train.runtime.errors import NotFiniteError, UsageError
from train.runtime.files import check_writable, locked

_HEADS = ("change", "against", "win rate", "95 % interval", "verdict", "by seed", "iterations")
_HEADS += ("minutes", "compiling")


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
      work: finished pieces and progress.
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
        row = self.work.find(f"training-{self.run_of(change, seed).name}", self._keys(change, seed))
        return row and Trained(*row)

    def match(self, step: AblationStep) -> MatchCounts | None:
        """A match that is done."""
        counts = self.work.find(*self._match_piece(step))
        return counts and MatchCounts(step.change.name, step.change.against, step.seed, *counts)

    def diverged(self, change: Change, seed: int) -> str | None:
        """Why a training ended with a NaN or infinite loss or gradient, if it did."""
        return self.work.find(*self._divergence(change, seed))

    def is_left(self, step: AblationStep) -> bool:
        """Whether a step is to be done: it is not done, and no training diverged that it needs."""
        change, seed, plies = step
        if plies is None:
            return self.trained(change, seed) is None and not self.diverged(change, seed)
        needed = (change, self.against(change))
        return self.match(step) is None and not any(self.diverged(each, seed) for each in needed)

    def run_of(self, change: Change, seed: int) -> Path:
        """The directory of a training; another budget or definition has another."""
        return self.work.runs / self._variant(change, 1).run_name(seed)

    def _variant(self, change: Change, iterations: int) -> Variant:
        name = f"{change.name}-{change.digest[:6]}-{self.options.minutes:g}min"
        return Variant(name, dataclasses.replace(change.config, iterations=iterations))

    def _keys(self, change: Change, seed: int | None = None) -> dict[str, Any]:
        """The key of a change's budget, or of its training with a seed; without iterations, so that
        trainings of several machines can be put together."""
        keys = {"change": change.name, "digest": change.digest, "minutes": self.options.minutes}
        return keys if seed is None else keys | {"seed": seed}

    def _divergence(self, change: Change, seed: int) -> tuple[str, dict[str, Any]]:
        return f"diverged-{self.run_of(change, seed).name}", self._keys(change, seed)

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
          UsageError: a change's rules are not for two players, or it has too many opening plies;
            its bootstrap player cannot be made; the weights of its opponent, its start or a
            finished training cannot be loaded; it does not fit this machine.
        """
        for step in self.steps:
            if step.opening_plies is None or not self.is_left(step):
                continue
            for change in (step.change, self.against(step.change)):
                run, is_trained = self.run_of(change, step.seed), self.trained(change, step.seed)
                if is_trained and store.newest_iteration(run, store.WEIGHTS) is None:
                    raise UsageError(
                        f"ablation: {run}: has no weights, and a match of {step.change.name} needs "
                        "them; copy the run there from where it was trained"
                    )
        for change in self.changes:
            rules, seeds = change.config.rules, self.options.all_seeds
            left = [seed for seed in seeds if self.is_left(AblationStep(change, seed))]
            runs = [self.run_of(change, seed) for seed in left]
            try:
                if rules.players != 2:
                    raise UsageError(f"the rules are for {rules.players} players, a match is for 2")
                check_opening(rules, max(self.options.opening_plies))
                # A checkpoint holds all that its training needs.
                if any(store.newest_iteration(run, store.RESUME) is None for run in runs):
                    make_bootstrap(change.config)
                    start_of(change.config, self.work.directory, resume=False)
                    make_step(Variant(change.name, change.config).run_config(0))
            except UsageError as error:
                raise UsageError(f"ablation: {change.name}: {error}") from None

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
                iterations = self._budget(change)["iterations"]
                budget = f"{iterations} iterations in about {self.options.minutes:g} min"
                say(f"{title}{change.name}: {budget}")
                variant, keys = self._variant(change, iterations), self._keys(change, step.seed)
                try:
                    trainings.train_variant(self.work, variant, step.seed, keys)
                except NotFiniteError as error:
                    reason = str(error)
                    self.work.cached(*self._divergence(change, step.seed), lambda r=reason: r)
            else:
                say(f"{title}{change.name} against {change.against}, {step.opening_plies} plies")
                self.work.cached(*self._match_piece(step), lambda step=step: self._play(step))
            on_step()

    def _budget(self, change: Change) -> dict[str, Any]:
        """The budget in iterations, timed once for all seeds of a change and for all changes whose
        iterations take the same time."""

        def measure() -> dict[str, Any]:
            for other in self.changes:
                if pace.take_equal_time(other.config, change.config):
                    timed = self.work.find(f"budget-{other.name}", self._keys(other))
                    if timed is not None:
                        return timed | {"timed_as": other.name}
            return self._measure(change)

        return self.work.cached(f"budget-{change.name}", self._keys(change), measure)

    def _measure(self, change: Change) -> dict[str, Any]:
        base, most = self.changes[0], pace.most_iterations(change.config)
        against: tuple[Any, ...] = ()
        if change is not base:
            # Seconds of an iteration of the base in its last stage, as they were timed first.
            last = stage_at(base.config, base.config.iterations - 1)
            by_name = self._budget(base)["seconds_an_iteration"]
            against = base.config, {last: by_name[_stage_name(last)]}
        with self.work.task(f"timing {change.name}", most, "iterations") as task:
            timed = pace.measure_pace(change.config, *against, on_progress=task)
        try:
            budget = 60 * self.options.minutes
            iterations = pace.iterations_within(change.config, timed.seconds, budget)
        except UsageError as error:
            raise UsageError(f"change {change.name!r}: {error}") from None
        by_stage = {_stage_name(stage): seconds for stage, seconds in timed.seconds.items()}
        figures = {"seconds_an_iteration": by_stage, "compile_seconds": timed.compile_seconds}
        return {"iterations": iterations, **figures}

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
        trained, rates = [self.trained(change, seed) for seed in seeds], []
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
    return f"search {stage}" if stage else "bootstrap 0"


def report(ablation: Ablation, *, title: str) -> Report:
    """The table of an ablation as it stands: a line for each change, those that lost as well."""
    lines = ablation.lines()
    about = ["What each changes:", ""]
    for change, *_ in lines:
        keys = ", ".join(f"`{key}`" for key in change.keys)
        about.append(f"- `{change.name}`: {'; '.join(filter(None, (change.about, keys)))}")
    numbers = Counter(code_in_words(each.code) for line in lines for each in line.trained)
    versions = ", ".join(f"{code} ({number})" for code, number in numbers.items())
    of_code = f"The trainings are of different versions of the code: {versions}."
    text = [_caption(ablation, lines), *([of_code] if len(numbers) > 1 else []), "\n".join(about)]
    table = Table("Changes", _HEADS, [_cells(line) for line in lines])
    data = {line.change.name: [each._asdict() for each in line.trained] for line in lines}
    return Report(title, text, [table], [], {"trainings": data})


def _caption(ablation: Ablation, lines: Sequence[ChangeResult]) -> str:
    """The terms of the comparison, in a sentence or two."""
    options, work = ablation.options, ablation.work
    plies = " and ".join(map(str, options.opening_plies))
    kind = "" if options.seeds >= EARNEST_SEEDS else "Screening: it decides nothing. "
    # A line of one seed has the interval of its games, also while others are still to come.
    seeds = {len(line.rates) for line in lines if line.rates} or {options.seeds}
    interval = ", or ".join(dict.fromkeys(map(stats.interval_kind, sorted(seeds, reverse=True))))
    where = " and ".join(work.noted("where")) or "not yet trained"
    return (
        f"{kind}{options.minutes:g} minutes of training each, compiling apart; {options.seeds} "
        f"paired seed(s), {options.games} games a seed at {options.simulations} simulations from "
        f"shared random openings of {plies} plies; interval: {interval}; {where}; "
        f"{', '.join(work.noted('day')) or 'no day yet'}."
    )


def _cells(line: ChangeResult) -> list[str]:
    score, trained = line.score, line.trained
    cells = [line.change.name, line.change.against or "–"]
    if score is None:
        cells += ["", "", "" if line.change.against else "the base", ""]
    else:
        by_seed = " ".join(f"{100 * rate:.1f}" for rate in line.rates)
        cells += [*score.cells(), score.verdict, by_seed]
    if line.diverged:
        cells[_HEADS.index("verdict")] = f"diverged with seed {' '.join(map(str, line.diverged))}"
    if not trained:
        return [*cells, "", "", ""]
    minutes = " ".join(f"{each.minutes:.1f}" for each in trained)
    compiling = sum(each.compile_seconds for each in trained) / len(trained)
    iterations = " or ".join(dict.fromkeys(str(each.iterations) for each in trained))
    return [*cells, iterations, minutes, f"{compiling:.0f} s"]


def run_ablation(
    ablation: Ablation, *, title: str, command: str, say: Callable[[str], Any]
) -> tuple[Report, list[Path]]:
    """Do what is left of an ablation and write its page, after each step.

    Args:
      ablation: the changes and how they are compared.
      title: of the page.
      command: that makes it again, for the page.
      say: shows a line.

    Returns:
      The finished report, and its files.

    Raises:
      KeyboardInterrupt: a training was interrupted and saved.
      UsageError: the folder is another process's or cannot be written, or a change cannot be
        trained or matched; what each plays and starts with is tried before anything is trained.
    """
    work, options = ablation.work, ablation.options
    scale = {"seed": options.first_seed} | dataclasses.asdict(options)

    def write() -> tuple[Report, list[Path]]:
        finished, how = report(ablation, title=title), {"command": command, "scale": scale}
        return finished, pages.write_report(finished, work.directory, **how, work=work)

    def on_step() -> None:
        write()
        # Each change has programs of its own, which would fill the memory.
        jax.clear_caches()
        gc.collect()

    with locked(work.directory):
        check_writable(work.directory / PAGE)
        ablation.check()
        ablation.run(say, on_step=on_step)
        return write()
