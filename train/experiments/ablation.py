"""Changes of a config, each trained at equal wall time and matched, seed by seed, with the base.

Each finished training and match is a cached result. The same call goes on where one was
interrupted: a training from its checkpoint, everything else from the cache. The page is written
after each training with its matches.

Changes are a list in TOML:

    [base]
    config = "../cpu.toml"          # a path from this file; without it, the quickstart
    learner.steps = 16              # any keys of the config besides

    [[change]]
    name = "planes-d"               # names its runs, so a plain word
    about = "reach planes of 2 to 4 turns"
    against = "base"                # or an earlier change, whose player it meets
    network.planes = "BTRD"         # any keys of the config

A change starts from the base's config, whatever it is matched against.
"""

import dataclasses
import functools
import gc
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
from pydantic import AfterValidator, Field

from train.arena.match_programs import check_opening
from train.config import RunConfig, config_from_dict, config_to_dict, read_config
from train.experiments import pace
from train.experiments.lib import stats, trainings
from train.experiments.lib.pages import PAGE, Report, write_report
from train.experiments.lib.scales import Count, Pairs, Plies, Scale, validated
from train.experiments.lib.trainings import Trained, Variant
from train.experiments.lib.work import Work, play_games
from train.loop.compiling import check_arrays
from train.loop.first_weights import start_of
from train.loop.history import code_in_words
from train.loop.opponent_weights import load_opponent
from train.loop.programs import state_like
from train.loop.stages import simulations_of
from train.loop.tables import make_teacher, tables_of, variants_of
from train.players.registry import make_player
from train.runtime.display import Table
from train.runtime.errors import (
    NotFiniteError,
    UsageError,
    check_two_players,
    distinct,
    usage_errors,
)
from train.runtime.fields import Real, Whole
from train.runtime.files import check_writable, locked, read_toml

BASE = "base"
_DECISIVE = ("rules", "network", "search", "selfplay", "replay", "learner", "heuristics")
"""All settings that decide how a run learns, except seed and length."""
Settings = Annotated[dict[str, Any], Field(default_factory=dict)]


class ChangeEntry(Scale):
    """An entry of the list."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*$")]
    about: str = ""
    against: str = BASE
    network: Settings
    search: Settings
    selfplay: Settings
    replay: Settings
    learner: Settings

    @property
    def keys(self) -> dict[str, Settings]:
        """The keys of the config that it changes, as tables."""
        return {key: table for key, table in self if isinstance(table, dict) and table}


class ChangeList(Scale):
    """A list as its file holds it."""

    base: Settings
    change: Annotated[tuple[ChangeEntry, ...], Field(min_length=1)]


class Change(NamedTuple):
    """A config that differs from the base in what its name says; the base is one, too."""

    name: str
    config: RunConfig  # its seed, name and iterations are set for each run
    against: str  # the change whose players it meets; empty for the base
    about: str  # a sentence for the table
    keys: tuple[str, ...]  # what differs, as `table.key = value`
    weights: Mapping[str, str]  # checksums of those that the config names, by key

    @property
    def digest(self) -> str:
        """Checksum of everything that decides how it learns, besides seed and length."""
        fields = config_to_dict(self.config)
        decisive = {key: fields[key] for key in _DECISIVE}
        for key in ("grid", "start_weights", "init_from"):
            if fields[key]:
                decisive[key] = fields[key]
        if self.weights:
            decisive["weights"] = dict(self.weights)
        text = json.dumps(decisive, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_changes(path: Path, only: Sequence[str] = ()) -> tuple[Change, ...]:
    """Read a list of changes, the base first.

    Args:
      path: the list.
      only: names of the changes to keep, with those that they are matched against; all if empty.

    Raises:
      UsageError: the file or a change is wrong: which, where, and what is allowed.
    """
    listed = validated(ChangeList, read_toml(path), where=str(path))
    fields = dict(listed.base)
    named = fields.pop("config", None)
    plain = config_to_dict(read_config(None if named is None else path.parent / str(named)))
    base = config_from_dict(trainings.merge_tables(plain, fields), where=f"{path}: base")
    about = named or "the quickstart"
    changes = {BASE: Change(BASE, base, "", about, tuple(_lines(fields)), {})}
    for entry in listed.change:
        where, against = f"{path}: change {entry.name!r}", entry.against
        if entry.name in changes:
            raise UsageError(f"{where}: the name is taken")
        if against not in changes:
            allowed = ", ".join(changes)
            raise UsageError(f"{where}: against {against!r} is not earlier; allowed: {allowed}")
        if not entry.keys:
            raise UsageError(f"{where}: changes nothing")
        merged = trainings.merge_tables(config_to_dict(base), entry.keys)
        config, keys = config_from_dict(merged, where=where), tuple(_lines(entry.keys))
        changes[entry.name] = Change(entry.name, config, against, entry.about, keys, {})
    for name in only:
        if name not in changes:
            raise UsageError(f"{path}: no change {name!r}; there are: {', '.join(changes)}")
    wanted = {BASE, *(only or changes)}
    for change in reversed(changes.values()):  # each stands behind the one that it meets
        if change.name in wanted and change.against:
            wanted.add(change.against)

    chosen = [change for name, change in changes.items() if name in wanted]
    for place, change in enumerate(chosen):
        with usage_errors(f"ablation: {change.name}"):
            weights = trainings.named_weights(change.config)
        chosen[place] = change._replace(weights=weights)
    return tuple(chosen)


def _lines(fields: Mapping[str, Any], opening: str = "") -> list[str]:
    """The keys of nested tables, as `table.key = value`."""
    lines = []
    for key, value in fields.items():
        if isinstance(value, dict):
            lines += _lines(value, f"{opening}{key}.")
        else:
            lines.append(f"{opening}{key} = {json.dumps(value)}")
    return lines


_HEADS = ("change", "against", "win rate", "95 % interval", "verdict", "by seed", "iterations")
_HEADS += ("minutes", "compiling")


class AblationOptions(Scale):
    """Terms of a comparison of changes."""

    minutes: Annotated[Real, Field(gt=0, allow_inf_nan=False)]  # of each training alone
    seeds: Count  # paired ones
    games: Pairs  # of each seed's match, shared among `opening_plies`
    simulations: Count  # of a move in the matches
    opening_plies: Annotated[  # random plies that games start with, the same for all changes
        tuple[Plies, ...], Field(min_length=1), AfterValidator(distinct)
    ]
    first_seed: Annotated[Whole, Field(ge=0, le=2**30)] = 0  # the others follow it

    def model_post_init(self, context: Any) -> None:
        parts = 2 * len(self.opening_plies)
        if self.games % parts > 0:
            raise ValueError(f"games must be a multiple of {parts}, as each part has two colours")


class ChangeResult(NamedTuple):
    """A change and what is known of it so far."""

    change: Change
    trained: dict[int, Trained]  # by seed
    diverged: list[int]  # seeds whose loss or gradient became NaN or infinite
    rates: list[float]  # a win rate for each seed whose matches are done


@dataclasses.dataclass(frozen=True)
class Ablation:
    """A list of changes with the folder of its results.

    Attributes:
      changes: the base first.
      options: how they are compared.
      work: finished pieces and progress.
      title: of the page.
      command: that makes it again, for the page.
      say: shows a line.
    """

    changes: tuple[Change, ...]
    options: AblationOptions
    work: Work
    title: str
    command: str
    say: Callable[[str], Any]

    def run(self) -> tuple[Report, list[Path]]:
        """Do what is left and write the page.

        A training whose loss or gradient becomes NaN or infinite is noted, and has no matches.

        Returns:
          The finished report, and its files.

        Raises:
          KeyboardInterrupt: a training was interrupted and saved.
          UsageError: the folder is another process's or cannot be written, or a change cannot be
            trained or matched; what each plays and starts with is tried before all trainings.
        """
        directory, results = self.work.directory, {}
        scale = {"seed": self.options.first_seed} | self.options.model_dump()
        how = {"command": self.command, "scale": scale, "work": self.work}
        with locked(directory):
            check_writable(directory / PAGE)
            for change in self.changes:
                self._check(change)
                results[change.name] = ChangeResult(change, {}, [], [])
            # Seed by seed, so that an interrupted ablation holds whole seeds.
            seeds = range(self.options.seeds)
            steps = list(itertools.product(seeds, self.changes))
            for number, (place, change) in enumerate(steps, start=1):
                said = f"[{number} of {len(steps)}] "
                self._do(results, change, self.options.first_seed + place, said)
                write_report(report(self, results), directory, **how)
            page = report(self, results)
            return page, write_report(page, directory, **how)

    def _check(self, change: Change) -> None:
        rules = change.config.rules
        with usage_errors(f"ablation: {change.name}"):
            check_two_players(rules, "a match")
            check_opening(rules, max(self.options.opening_plies))
            make_teacher(change.config)
            start_of(change.config, self.work.directory, resume=False)
            run = Variant(change.name, change.config).run_config(0)
            tables, variants = tables_of(run, opponent=load_opponent(run)), variants_of(run)
            check_arrays(run, tables, state_like(tables, variants), variants)

    def _do(
        self, results: Mapping[str, ChangeResult], change: Change, seed: int, said: str
    ) -> None:
        """Train a change with a seed, and match it with the one that it is against."""
        options, result = self.options, results[change.name]
        keys, said = self._keys(change) | {"seed": seed}, f"{said}seed {seed}, {change.name}"
        trained = self._train(change, seed, keys, said)
        if trained is None:
            result.diverged.append(seed)
            return
        result.trained[seed] = trained
        if not change.against or seed not in results[change.against].trained:
            return
        against = results[change.against]
        runs, points = (trained, against.trained[seed]), 0.0
        settings = keys | {"against": self._keys(against.change)}
        settings |= {"simulations": options.simulations}
        settings |= {"games": options.games // len(options.opening_plies)}
        for plies in options.opening_plies:
            piece = f"match-{change.name}-{change.against}-{seed}-{plies}"
            play = functools.partial(self._play, change, runs, seed, plies, said)
            wins, draws, _ = self.work.cached(piece, settings | {"opening_plies": plies}, play)
            points += wins + draws / 2
        result.rates.append(points / options.games)

    def _keys(self, change: Change) -> dict[str, Any]:
        """What a change's budget is known by; without iterations, so that trainings of several
        machines can be put together."""
        return {"change": change.name, "digest": change.digest, "minutes": self.options.minutes}

    def _train(self, change: Change, seed: int, keys: dict[str, Any], said: str) -> Trained | None:
        """A training; None where it diverged."""
        minutes = f"{self.options.minutes:g}min"
        variant = Variant(f"{change.name}-{change.digest[:6]}-{minutes}", change.config)
        piece = f"training-{variant.run_name(seed)}"
        if (result := self.work.find(piece, keys)) is None:
            iterations = self._budget(change)["iterations"]
            self.say(f"{said}: {iterations} iterations in about {self.options.minutes:g} min")
            config = dataclasses.replace(change.config, iterations=iterations)
            try:
                trainings.train_variant(self.work, variant._replace(config=config), seed, keys)
            except NotFiniteError as error:
                self.work.cached(piece, keys, functools.partial(str, error))
            _forget_programs()
            result = self.work.find(piece, keys)
        return None if isinstance(result, str) else Trained(*result)

    def _play(
        self, change: Change, runs: tuple[Trained, ...], seed: int, plies: int, said: str
    ) -> list[int]:
        self.say(f"{said} against {change.against}, {plies} plies")
        names = [trainings.player_of(self.work, run, self.options.simulations) for run in runs]
        players = [make_player(name, change.config.rules) for name in names]
        games = self.options.games // len(self.options.opening_plies)
        # All matches of a seed start from the same openings.
        how = {"opening_plies": plies, "key": jax.random.fold_in(jax.random.key(seed), plies)}
        result = play_games(self.work, players, change.config.rules, games=games, **how)
        _forget_programs()
        return [result.wins, result.draws, result.losses]

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
            last = simulations_of(base.config, base.config.iterations - 1)
            by_name = self._budget(base)["seconds_an_iteration"]
            against = base.config, {last: by_name[f"search {last}"]}
        with self.work.task(f"timing {change.name}", most, "iterations") as task:
            timed = pace.measure_pace(change.config, *against, on_progress=task)
        with usage_errors(f"change {change.name!r}"):
            budget = 60 * self.options.minutes
            iterations = pace.iterations_within(change.config, timed.seconds, budget)
        by_stage = {
            f"{'search' if stage else 'bootstrap'} {stage}": seconds
            for stage, seconds in timed.seconds.items()
        }
        figures = {"seconds_an_iteration": by_stage, "compile_seconds": timed.compile_seconds}
        return {"iterations": iterations, **figures}


def _forget_programs() -> None:
    """Each change has programs of its own, which would fill the memory."""
    jax.clear_caches()
    gc.collect()


def report(ablation: Ablation, results: Mapping[str, ChangeResult]) -> Report:
    """The table of an ablation as it stands: a line for each change, those that lost as well."""
    options, work, lines = ablation.options, ablation.work, results.values()
    about = ["What each changes:", ""]
    for change, *_ in lines:
        keys = ", ".join(f"`{key}`" for key in change.keys)
        about.append(f"- `{change.name}`: {'; '.join(filter(None, (change.about, keys)))}")
    kind = "" if options.seeds >= stats.EARNEST_SEEDS else "Screening: it decides nothing. "
    # A line of one seed has the interval of its games, also while others are still to come.
    seeds = {len(line.rates) for line in lines if line.rates} or {options.seeds}
    interval = ", or ".join(dict.fromkeys(map(stats.interval_kind, sorted(seeds, reverse=True))))
    terms = (
        f"{kind}{options.minutes:g} minutes of training each, compiling apart; {options.seeds} "
        f"paired seed(s), {options.games} games a seed at {options.simulations} simulations from "
        f"shared random openings of {' and '.join(map(str, options.opening_plies))} plies; "
        f"interval: {interval}; {' and '.join(work.noted('where'))}; "
        f"{', '.join(work.noted('day'))}."
    )
    codes = Counter(code_in_words(run.code) for line in lines for run in line.trained.values())
    versions = ", ".join(f"{code} ({number})" for code, number in codes.items())
    of_code = f"The trainings are of different versions of the code: {versions}."
    table = Table("Changes", _HEADS, [_cells(line, options.games) for line in lines])
    return Report(
        ablation.title,
        [table],
        {"trainings": {name: [*line.trained.values()] for name, line in results.items()}},
        text=[terms, *([of_code] if len(codes) > 1 else []), "\n".join(about)],
    )


def _cells(line: ChangeResult, games: int) -> list[str]:
    cells, trained = [line.change.name, line.change.against or "–"], line.trained.values()
    if line.rates:
        score = stats.over_seeds(line.rates, games)
        by_seed = " ".join(f"{100 * rate:.1f}" for rate in line.rates)
        cells += [*score.cells(), score.verdict, by_seed]
    else:
        cells += ["", "", "" if line.change.against else "the base", ""]
    if line.diverged:
        cells[_HEADS.index("verdict")] = f"diverged with seed {' '.join(map(str, line.diverged))}"
    if not trained:
        return [*cells, "", "", ""]
    minutes = " ".join(f"{each.minutes:.1f}" for each in trained)
    compiling = sum(each.compile_seconds for each in trained) / len(trained)
    iterations = " or ".join(dict.fromkeys(str(each.iterations) for each in trained))
    return [*cells, iterations, minutes, f"{compiling:.0f} s"]
