"""Records of the speedrun: how little work wins a share of games from random weights?

A record is a folder:

    record.json               goal, commit, versions, machine, and the figures of each seed
    config.toml               the recipe, its seed aside
    seed-N.metrics.jsonl.gz   the log of the training
    seed-N.games.jsonl.gz     the games of its match

All figures are functions of the log and the games (`figures_of`, `counts_of`), and
`train.experiments.speedrun_checks` computes them again.
"""

import dataclasses
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import train
from train.checkpoints.weights import load_network
from train.config import DEFAULT_RULES, RunConfig, config_to_toml, read_config
from train.experiments import lab
from train.experiments.tables import Estimate, Table, over_seeds, rate
from train.loop.stages import evaluations_of_rows
from train.metrics.rows import Row, metrics_of
from train.network import census, channels_of
from train.runtime import files
from train.runtime.devices import machine
from train.runtime.display import Display
from train.runtime.errors import UsageError
from train.runtime.provenance import provenance
from wallgo_jax.formats import records
from wallgo_jax.game.rules import PRESETS

SEEDS = 6
"""They are 0, 1, ... and none is left out."""
GAMES = 400
"""Of each seed's match."""
SIMULATIONS = 64
OPENING_PLIES = 4
"""Random plies, after the players have placed the stones."""
RECORD = "record.json"
CONFIG = "config.toml"
LOG = "seed-{}.metrics.jsonl.gz"
MATCH = "seed-{}.games.jsonl.gz"
FOLDER = "record"
"""The record in the folder of its trainings."""
_BACKWARD = 2
"""The passes forward that a pass backward costs."""


class Goal(NamedTuple):
    """What a recipe must reach."""

    opponent: str
    least: float  # share of games, draws as half, in the mean of the seeds
    most_other: float
    """Share of the opponent's moves that may differ where they are searched again: another kind of
    device rounds two values that hardly differ the other way, a network's more often."""


GOALS = {
    "cpu": Goal("heuristic-search:wjx@64", 0.90, 0.005),
    "gpu": Goal("pretrained:wallzero-4stone-v4@64", 0.55, 0.05),
}


class SeedFigures(NamedTuple):
    """A training and its match."""

    seed: int
    won: int
    drawn: int
    lost: int
    evaluations: int  # of the network in self-play
    operations: float  # of the network in self-play and learning
    seconds: float  # of self-play and learning, without compiling
    weights: str  # checksum of those that played

    @property
    def rate(self) -> float:
        """Share of its games, draws as half."""
        return rate(self._asdict())


@dataclasses.dataclass(frozen=True)
class Record:
    """The figures of a record, and what measured them; the fields are those of record.json."""

    goal: str
    about: str
    commit: str
    is_changed: bool  # the sources differed from the commit
    versions: dict[str, str]
    machine: str
    day: str
    seeds: tuple[SeedFigures, ...]

    @property
    def win_rate(self) -> Estimate:
        """Share of games over the seeds, with Student's interval."""
        return over_seeds([seed.rate for seed in self.seeds], GAMES)

    def mean(self, field: str) -> float:
        """The mean of a figure over the seeds."""
        return float(np.mean([getattr(seed, field) for seed in self.seeds]))

    def to_dict(self) -> dict[str, Any]:
        """The record as record.json holds it."""
        means = {field: self.mean(field) for field in ("evaluations", "operations", "seconds")}
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        seeds = [seed._asdict() for seed in self.seeds]
        return fields | {"seeds": seeds, "means": means, "win_rate": self.win_rate._asdict()}


def run(
    recipe: Path, out: Path, *, goal: str, about: str, display: Display, progress: bool
) -> Record:
    """Train a recipe with each seed, match each, and write the record.

    Args:
      recipe: a TOML file.
      out: folder of trainings and record.
      goal: of GOALS.
      about: what is special in the recipe.
      display: shows lines.
      progress: whether trainings and matches show theirs.

    Raises:
      UsageError: the recipe is not allowed.
      KeyboardInterrupt: Ctrl-C came; what is finished is kept.
    """
    config = read_config(recipe)
    check_recipe(config)
    work = lab.Lab("speedrun", lab.Options(out), progress=progress)
    folder = out / FOLDER
    with files.locked(out), files.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files.replace_text(folder / CONFIG, config_to_toml(plain_recipe(config)))
        runs = [_trained(work, config, seed) for seed in range(SEEDS)]
        seeds = []
        for seed, directory in enumerate(runs):
            seeds.append(_matched(config, seed, directory, goal, folder, progress))
            counts = f"{seeds[-1].won} won, {seeds[-1].drawn} drawn, {seeds[-1].lost} lost"
            display.say(f"seed {seed}: {counts}, {seeds[-1].seconds:.0f} s")
        made = provenance()
        git = made["git"] or {"revision": "", "dirty": True}
        record = Record(
            goal=goal,
            about=about or config.name,
            commit=git["revision"],
            is_changed=git["dirty"],
            versions=made["versions"],
            machine=machine(),
            day=made["time"][:10],
            seeds=tuple(seeds),
        )
        files.write_json(folder / RECORD, record.to_dict())
    return record


def missed(record: Record) -> tuple[str, ...]:
    """A line where a record does not reach its goal."""
    least = GOALS[record.goal].least
    return () if record.win_rate.mean >= least else (f"the goal of {least:.0%} is not reached",)


def _trained(work: lab.Lab, config: RunConfig, seed: int) -> Path:
    """The run of a seed, trained unless that is done."""
    return Path(work.train(f"seed-{seed}", dataclasses.replace(config, seed=seed))["run"])


def _matched(
    config: RunConfig, seed: int, directory: Path, goal: str, folder: Path, progress: bool
) -> SeedFigures:
    """Match the newest weights of a run, unless that is done, and put its files into the record."""
    rows = metrics_of(directory)
    files.write_lines(folder / LOG.format(seed), [json.dumps(row) for row in rows])
    # The games lie with the weights that played them until all are over.
    games = directory / f"{goal}.jsonl.gz"
    if not games.exists():
        play(directory, goal, seed, games, progress=progress)
    shutil.copyfile(games, folder / MATCH.format(seed))
    return SeedFigures(
        seed=seed,
        **counts_of(list(records.read(games)), GOALS[goal].opponent),
        **figures_of(config, rows),
        weights=load_network(directory).digest,
    )


def play(directory: Path, goal: str, seed: int, path: Path, *, progress: bool) -> None:
    """Play the match of a run's newest weights, and write its games.

    Raises:
      KeyboardInterrupt: Ctrl-C came; the games of a part of the match are dropped.
    """
    played = train.match(
        f"search:{directory}@{SIMULATIONS}",
        GOALS[goal].opponent,
        games=GAMES,
        opening_plies=OPENING_PLIES,
        players_place=True,
        records=path,
        seed=seed,
        progress=progress,
    )
    if played.is_interrupted:
        path.unlink(missing_ok=True)
        raise KeyboardInterrupt


def plain_recipe(config: RunConfig) -> RunConfig:
    """The recipe without what does not count: its seed, its matches and its checkpoints."""
    return dataclasses.replace(lab.plain_run(config), seed=0)


def check_recipe(config: RunConfig) -> None:
    """Refuse a recipe that does not begin with random weights, learns from another player, or plays
    other rules, with a UsageError."""
    refused = {
        f"rules must be {DEFAULT_RULES}": config.rule_sets[0].rules != PRESETS[DEFAULT_RULES]
        or len(config.rule_sets) > 1,
        "start_weights must be empty": bool(config.start_weights),
        "init_from must be empty": bool(config.init_from),
        "selfplay.opponent must be empty": bool(config.selfplay.opponent),
        "selfplay.bootstrap_iterations must be 0": config.selfplay.bootstrap_iterations > 0,
        "functions that Python passes must be left out": any(
            (
                config.network.custom,
                config.search.custom,
                config.learner.custom_loss,
                config.learner.custom_targets,
            )
        ),
    }
    for what, is_refused in refused.items():
        if is_refused:
            raise UsageError(f"speedrun: the recipe's {what}: trainings begin with random weights")


def figures_of(config: RunConfig, rows: Sequence[Row]) -> dict[str, Any]:
    """Evaluations, operations and seconds of a training, from its rows.

    An evaluation is one of the network at a root or a leaf of self-play's searches. An operation is
    a multiplication or an addition of the network's matrix products and convolutions, forward for
    each evaluation, forward and backward for each sample that is learned.
    """
    asked = evaluations_of_rows(config, rows)
    samples = sum(row["steps"] for row in rows) * config.learner.batch
    channels = channels_of(config.network, config.rules.players)
    parts = census(config.network, channels, size=config.rules.size)
    forward = 2 * sum(part.multiply_adds for part in parts)
    return {
        "evaluations": asked,
        "operations": float(forward * (asked + (1 + _BACKWARD) * samples)),
        "seconds": sum(row["selfplay_seconds"] + row["learn_seconds"] for row in rows),
    }


def counts_of(played: Sequence[records.Record], opponent: str) -> dict[str, int]:
    """Games `won`, `drawn` and `lost` against a player, by their results."""
    lead = np.array(
        [
            np.sum(np.where(np.array(each.players) == opponent, -1, 1) * np.array(each.result))
            for each in played
        ]
    )
    return {
        "won": int((lead > 0).sum()),
        "drawn": int((lead == 0).sum()),
        "lost": int((lead < 0).sum()),
    }


_COLUMNS = (
    ("won, drawn, lost", "games", "counts"),
    ("% won", "games"),
    ("million evaluations", "evaluations"),
    ("tera-operations", "operations"),
    ("seconds", "seconds"),
)


def table_of(record: Record) -> Table:
    """A record's seeds, and all of them."""
    rows = [
        {
            "seed": str(seed.seed),
            "games": _counts([seed]),
            **_figures({name: getattr(seed, name) for name in _FIGURES}),
        }
        for seed in record.seeds
    ]
    rows.append({"seed": "all", **_row_of(record)})
    columns = (("seed", "seed"), *_COLUMNS)
    return Table(f"{record.about}, against {GOALS[record.goal].opponent}", columns, rows)


def leaderboards(folder: Path) -> dict[str, Table]:
    """The records in a folder, those of each goal by their days and, of a day, by evaluations."""
    tables = {}
    for goal, its in GOALS.items():
        found = [(path.parent, read_record(path.parent)) for path in folder.glob(f"*/{RECORD}")]
        chosen = [(path, record) for path, record in found if record.goal == goal]
        chosen.sort(key=lambda each: (each[1].day, -each[1].mean("evaluations")))
        rows = [
            {
                "record": f"[{record.about}](data/{folder.name}/{path.name}/{CONFIG})",
                **_row_of(record),
                "commit": record.commit[:8],
                "day": record.day,
            }
            for path, record in chosen
        ]
        columns = (("record", "record"), *_COLUMNS, ("commit", "commit"), ("day", "day"))
        tables[goal] = Table(f"The speedrun, against {its.opponent}", columns, rows)
    return tables


_FIGURES = ("evaluations", "operations", "seconds")


def _row_of(record: Record) -> dict[str, Any]:
    means = {name: record.mean(name) for name in _FIGURES}
    return {"games": _counts(record.seeds), **_figures(means)}


def _counts(seeds: Sequence[SeedFigures]) -> dict[str, list[int]]:
    return {name: [getattr(seed, name) for seed in seeds] for name in ("won", "drawn", "lost")}


def _figures(values: Mapping[str, float]) -> dict[str, str]:
    return {
        "evaluations": f"{values['evaluations'] / 1e6:.2f}",
        "operations": f"{values['operations'] / 1e12:.2f}",
        "seconds": f"{values['seconds']:.0f}",
    }


def read_log(folder: Path, seed: int) -> list[Row]:
    """The rows of a seed's training.

    Raises:
      UsageError: they cannot be read.
    """
    path = folder / LOG.format(seed)
    return files.parse_lines(path, files.read_json_lines(path), json.loads)


def read_record(folder: Path) -> Record:
    """The figures that a record's folder tells.

    Raises:
      UsageError: they cannot be read.
    """
    path = folder / RECORD
    if not path.exists():
        raise UsageError(
            f"speedrun: {folder}: is no record, for it has no {RECORD}; what `speedrun run` fills "
            f"has one in {FOLDER}"
        )
    told = files.read_json(path)
    try:
        fields = {field.name: told[field.name] for field in dataclasses.fields(Record)}
        fields["seeds"] = tuple(SeedFigures(**seed) for seed in told["seeds"])
        record = Record(**fields)
        is_whole = record.to_dict() == told and record.goal in GOALS
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: is no record: {error}") from None
    if not is_whole:
        raise UsageError(f"{path}: its means are not those of its seeds")
    return record
