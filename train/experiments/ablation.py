"""Changes of a config, each trained at equal wall time and matched, seed by seed, with the base.

Each finished training and match is kept. The same call goes on where one was interrupted. The page
is written after each training with its matches.

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
import gc
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import jax
import pydantic
from pydantic import AfterValidator, Field

from train.arena.match_programs import check_opening
from train.config import RunConfig, config_from_dict, config_to_dict, read_config
from train.experiments import lab, pace
from train.experiments.tables import EARNEST_SEEDS, Table, estimate_of, rate, verdict
from train.loop.compiling import check_arrays
from train.loop.first_weights import start_of
from train.loop.opponent_weights import load_opponent
from train.loop.programs import state_like
from train.loop.stages import simulations_of
from train.loop.tables import make_teacher, tables_of, variants_of
from train.runtime.errors import (
    NotFiniteError,
    UsageError,
    check_two_players,
    distinct,
    usage_errors,
)
from train.runtime.fields import Real, Whole
from train.runtime.files import locked, read_toml

BASE = "base"
_DECISIVE = ("rules", "network", "search", "selfplay", "replay", "learner", "heuristics")
"""All settings that decide how a run learns, except seed and length."""
Settings = Annotated[dict[str, Any], Field(default_factory=dict)]
Count = Annotated[Whole, Field(ge=1)]
Pairs = Annotated[Whole, Field(ge=2, multiple_of=2)]
Plies = Annotated[Whole, Field(ge=0)]
_Record = TypeVar("_Record", bound="_Checked")


class _Checked(pydantic.BaseModel):
    """Fields that are refused by name where they are wrong."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


def validated(kind: type[_Record], fields: Mapping[str, Any], *, where: str) -> _Record:
    """A record of a kind; the message of a `UsageError` begins with `where`.

    Raises:
      UsageError: a key or a value is not allowed.
    """
    with usage_errors(where):
        return kind.model_validate(fields)


class ChangeEntry(_Checked):
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


class ChangeList(_Checked):
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
    base = config_from_dict(merge_tables(plain, fields), where=f"{path}: base")
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
        merged = merge_tables(config_to_dict(base), entry.keys)
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
            weights = lab.weights_of(config_to_dict(change.config))
        chosen[place] = change._replace(weights=weights)
    return tuple(chosen)


def merge_tables(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables with some of their keys changed."""
    merged = dict(fields)
    for key, value in changes.items():
        inner = merged.get(key)
        if isinstance(value, Mapping) and isinstance(inner, dict):
            value = merge_tables(inner, value)
        merged[key] = value
    return merged


def _lines(fields: Mapping[str, Any], opening: str = "") -> list[str]:
    """The keys of nested tables, as `table.key = value`."""
    lines = []
    for key, value in fields.items():
        if isinstance(value, dict):
            lines += _lines(value, f"{opening}{key}.")
        else:
            lines.append(f"{opening}{key} = {json.dumps(value)}")
    return lines


class AblationOptions(_Checked):
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
    trained: dict[int, dict[str, Any]]  # by seed
    diverged: list[int]  # seeds whose loss or gradient became NaN or infinite
    matches: dict[int, dict[str, int]]  # counts, by seed


@dataclasses.dataclass(frozen=True)
class Ablation:
    """A list of changes with the folder of its results.

    Attributes:
      changes: the base first.
      options: how they are compared.
      work: its kept results.
      say: shows a line.
    """

    changes: tuple[Change, ...]
    options: AblationOptions
    work: lab.Lab
    say: Callable[[str], Any]

    def run(self) -> Table:
        """Do what is left and write the page.

        A training whose loss or gradient becomes NaN or infinite is noted, and has no matches.

        Returns:
          The finished table.

        Raises:
          KeyboardInterrupt: a training was interrupted and saved.
          UsageError: the folder is another process's or cannot be written, or a change cannot be
            trained or matched; what each plays and starts with is tried before all trainings.
        """
        results: dict[str, ChangeResult] = {}
        with locked(self.work.scale.out):
            for change in self.changes:
                self._check(change)
                results[change.name] = ChangeResult(change, {}, [], {})
            # Seed by seed, so that an interrupted ablation holds whole seeds.
            steps = list(itertools.product(range(self.options.seeds), self.changes))
            for number, (place, change) in enumerate(steps, start=1):
                said = f"[{number} of {len(steps)}] "
                self._do(results, change, self.options.first_seed + place, said)
                self._write(results)
            return self._write(results)

    def _write(self, results: Mapping[str, ChangeResult]) -> Table:
        table = table_of(results)
        options = self.options.model_dump()
        kept = {
            name: {"trainings": line.trained, "matches": line.matches}
            for name, line in results.items()
        }
        text = text_of(self.changes, self.options)
        self.work.write({"table": table}, text=text, options=options, changes=kept)
        return table

    def _check(self, change: Change) -> None:
        rules = change.config.rules
        with usage_errors(f"ablation: {change.name}"):
            check_two_players(rules, "a match")
            check_opening(rules, max(self.options.opening_plies))
            make_teacher(change.config)
            start_of(change.config, self.work.runs, resume=False)
            run = lab.plain_run(change.config)
            tables, variants = tables_of(run, opponent=load_opponent(run)), variants_of(run)
            check_arrays(run, tables, state_like(tables, variants), variants)

    def _do(
        self, results: Mapping[str, ChangeResult], change: Change, seed: int, said: str
    ) -> None:
        """Train a change with a seed, and match it with the one that it is against."""
        options, result = self.options, results[change.name]
        said = f"{said}seed {seed}, {change.name}"
        trained = self._train(change, seed, said)
        if trained is None:
            result.diverged.append(seed)
            return
        result.trained[seed] = trained
        if not change.against or seed not in results[change.against].trained:
            return
        runs = trained, results[change.against].trained[seed]
        players = [lab.player_of(run, options.simulations) for run in runs]
        total = Counter({"won": 0, "drawn": 0, "lost": 0})
        for plies in options.opening_plies:
            self.say(f"{said} against {change.against}, {plies} plies")
            games = options.games // len(options.opening_plies)
            # All matches of a seed start from the same openings.
            total.update(self.work.match(*players, games=games, opening_plies=plies, seed=seed))
            _forget_programs()
        result.matches[seed] = dict(total)

    def _keys(self, change: Change) -> dict[str, Any]:
        """What a change's budget is known by."""
        return {"change": change.name, "digest": change.digest, "minutes": self.options.minutes}

    def _train(self, change: Change, seed: int, said: str) -> dict[str, Any] | None:
        """A training; None where it diverged."""
        key = self._keys(change) | {"seed": seed}
        if self.work.find("diverged", key) is not None:
            return None
        iterations = self._budget(change)["iterations"]
        config = dataclasses.replace(change.config, iterations=iterations, seed=seed)
        self.say(f"{said}: {iterations} iterations in about {self.options.minutes:g} min")
        try:
            return self.work.train(f"{change.name}-seed{seed}", config)
        except NotFiniteError as stop:
            reason = str(stop)
            self.work.keep("diverged", key, lambda: reason)
            return None
        finally:
            _forget_programs()

    def _budget(self, change: Change) -> dict[str, Any]:
        """The budget in iterations, timed once for all seeds of a change and for all changes whose
        iterations take the same time."""

        def measure() -> dict[str, Any]:
            for other in self.changes:
                if pace.take_equal_time(other.config, change.config):
                    timed = self.work.find("budgets", self._keys(other))
                    if timed is not None:
                        return timed | {"timed_as": other.name}
            return self._measure(change)

        return self.work.keep("budgets", self._keys(change), measure)

    def _measure(self, change: Change) -> dict[str, Any]:
        base = self.changes[0]
        against: tuple[Any, ...] = ()
        if change is not base:
            # Seconds of an iteration of the base in its last stage, as they were timed first.
            last = simulations_of(base.config, base.config.iterations - 1)
            by_name = self._budget(base)["seconds_an_iteration"]
            against = base.config, {last: by_name[f"search {last}"]}
        self.say(f"timing {change.name}")
        timed = pace.measure_pace(change.config, *against)
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


def text_of(changes: Sequence[Change], options: AblationOptions) -> list[str]:
    """What was compared and how, as paragraphs."""
    kind = "" if options.seeds >= EARNEST_SEEDS else "Screening: it decides nothing. "
    over = "Student's t over seeds" if options.seeds > 1 else "Wilson's over the games of one seed"
    terms = (
        f"{kind}{options.minutes:g} minutes of training each, compiling apart; {options.seeds} "
        f"paired seed(s), {options.games} games a seed at {options.simulations} simulations from "
        f"shared random openings of {' and '.join(map(str, options.opening_plies))} plies; "
        f"interval: {over}."
    )
    about = ["What each changes:", ""]
    for change in changes:
        keys = ", ".join(f"`{key}`" for key in change.keys)
        about.append(f"- `{change.name}`: {'; '.join(filter(None, (change.about, keys)))}")
    return [terms, "\n".join(about)]


def table_of(results: Mapping[str, ChangeResult]) -> Table:
    """The table of an ablation as it stands: a line for each change, those that lost as well."""
    columns = [["change", "change"], ["against", "against"], ["% won", "games"]]
    columns += [["verdict", "verdict"], ["by seed", "rates"], ["iterations", "iterations"]]
    columns += [["minutes", "minutes"], ["compiling", "compiling"]]
    return Table("Changes", columns, [_row(line) for line in results.values()])


def _row(line: ChangeResult) -> dict[str, Any]:
    trained = list(line.trained.values())
    row: dict[str, Any] = {"change": line.change.name, "against": line.change.against or "–"}
    if line.matches:
        met = list(line.matches.values())
        row["games"] = {key: [counts[key] for counts in met] for key in met[0]}
        row["verdict"] = verdict(estimate_of(row["games"]))
        row["rates"] = " ".join(f"{100 * rate(counts):.1f}" for counts in met)
    elif not line.change.against:
        row["verdict"] = "the base"
    if line.diverged:
        row["verdict"] = f"diverged with seed {' '.join(map(str, line.diverged))}"
    if trained:
        row["minutes"] = " ".join(f"{each['minutes']:.1f}" for each in trained)
        compiling = sum(each["compile_seconds"] for each in trained) / len(trained)
        row["compiling"] = f"{compiling:.0f} s"
        row["iterations"] = " or ".join(dict.fromkeys(str(each["iterations"]) for each in trained))
    return row
