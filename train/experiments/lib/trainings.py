"""Variants of one config, each trained with several seeds and matched with all others.

The seed is the unit: players of one seed meet players of the same seed.
"""

import dataclasses
import hashlib
import itertools
import json
import shutil
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax

from train.arena.match_programs import check_opening
from train.checkpoints import store
from train.checkpoints.weights import TrainedNetwork
from train.config import (
    CONFIG_FILE,
    CheckpointConfig,
    EvaluationConfig,
    RunConfig,
    config_from_dict,
    config_to_dict,
    read_saved_config,
)
from train.experiments.lib.scales import TrainingScale
from train.experiments.lib.stats import MatchCounts
from train.experiments.lib.work import Work, played_counts
from train.loop import training
from train.loop.history import code_of
from train.metrics.rows import METRICS_FILE, elapsed_seconds, read_rows
from train.players.basic import Player
from train.players.networks import load_network
from train.players.registry import make_player
from train.runtime.errors import UsageError, check_two_players, usage_errors
from train.runtime.files import locked, writing
from wallgo_jax.formats.option_names import argument

NO_MATCHES = EvaluationConfig(every=0, opponents=(), anchors=())
_CHECKPOINTS = 4


class Variant(NamedTuple):
    """A config with a name; its own name, seed and evaluation do not count."""

    name: str
    config: RunConfig  # `{seed}` in `init_from` and `selfplay.opponent` stands for the seed
    evaluation: EvaluationConfig = NO_MATCHES
    keeps_all: bool = False  # the weights of every checkpoint
    made_by: Any = None  # what else decides the result, JSON-ready; a part of its runs' names

    def run_name(self, seed: int | str) -> str:
        """The directory of a training."""
        if self.made_by is None:
            return f"{self.name}-seed{seed}"
        text = json.dumps(self.made_by, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}-seed{seed}"

    @property
    def iterations(self) -> list[int]:
        """The iterations of its checkpoints."""
        every, last = max(1, self.config.iterations // _CHECKPOINTS), self.config.iterations
        return [*range(every, last, every), last]

    def run_config(self, seed: int) -> RunConfig:
        """The config of a training."""
        config, every = self.config, self.iterations[0]
        opponent = config.selfplay.opponent.replace("{seed}", str(seed))
        kept = every if self.keeps_all else 0
        return dataclasses.replace(
            config,
            selfplay=dataclasses.replace(config.selfplay, opponent=opponent),
            name=self.run_name(seed),
            seed=seed,
            init_from=config.init_from.replace("{seed}", str(seed)),
            evaluation=self.evaluation,
            checkpoint=CheckpointConfig(every=every, keep=1, keep_best=0, keep_every=kept),
        )

    def settings(self, seed: int) -> dict[str, Any]:
        """All that decides a training, JSON-ready."""
        fields = config_to_dict(self.run_config(seed))
        settings = {key: fields[key] for key in fields if key not in ("name", "tracking")}
        return settings if self.made_by is None else settings | {"made_by": self.made_by}


class Trained(NamedTuple):
    """A finished training."""

    run: str  # name of its directory
    iterations: int
    seconds: float  # of self-play and learning
    compile_seconds: float
    games: int
    positions: int
    code: list[Any]  # versions that trained it, see `train.loop.history`

    @property
    def minutes(self) -> float:
        """Minutes of self-play and learning."""
        return self.seconds / 60


def mean_minutes(runs: Sequence[Trained]) -> str:
    """The mean of the trainings' minutes as a cell of a table."""
    return f"{statistics.fmean(run.minutes for run in runs):.1f}"


def merge_tables(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables with some of their keys changed."""
    merged = dict(fields)
    for key, value in changes.items():
        inner = merged.get(key)
        if isinstance(value, Mapping) and isinstance(inner, dict):
            value = merge_tables(inner, value)
        merged[key] = value
    return merged


def changed_config(base: RunConfig, changes: Mapping[str, Any], *, where: str) -> RunConfig:
    """A config with some of its keys changed; a table `rules` replaces the rules as a whole. A key
    or a value that is not allowed is a UsageError that begins with `where`."""
    fields = config_to_dict(base)
    if "rules" in changes:
        fields["rules"] = None
    return config_from_dict(merge_tables(fields, changes), where=where)


def base_config(
    scale: TrainingScale,
    *,
    where: str,
    base: RunConfig | None = None,
    changes: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The config that the variants of a scale share, or a base with some of its keys changed; one
    whose players cannot meet as the scale says is a UsageError."""
    changes = scale.config if changes is None else changes
    config = changed_config(base or RunConfig(), changes, where=where)
    with usage_errors(where):
        check_two_players(config.rules, "a match")
        check_opening(config.rules, scale.opening_plies)
    return config


def variant(name: str, base: RunConfig, changes: Mapping[str, Any], *, where: str) -> Variant:
    """A base config with some of its keys changed, known by the weights that it names."""
    config = changed_config(base, changes, where=where)
    return Variant(name, config, made_by=named_weights(config) or None)


def weights_of(trained: TrainedNetwork) -> dict[str, str]:
    """The weights that a training begins with or plays against, JSON-ready: by their checksum,
    since a name may come to mean others."""
    return {"source": trained.source, "weights": trained.digest}


def named_weights(config: RunConfig) -> dict[str, str]:
    """The checksums of the weights that a run's config names, by key; those that cannot be read are
    a UsageError."""
    names = {
        "start_weights": config.start_weights,
        "init_from": config.init_from,
        "selfplay.opponent": config.selfplay.opponent,
    }
    digests = {}
    for key, name in names.items():
        with usage_errors(key):
            digests |= {key: load_network(name).digest} if name else {}
    return digests


def train_all(work: Work, variants: Sequence[Variant], *, seeds: int) -> dict[str, list[Trained]]:
    """Train each variant with seeds 0, 1, ...; finished trainings are not repeated. One that is
    interrupted is saved and raises KeyboardInterrupt; one that cannot be done is a UsageError."""
    trainings = list(itertools.product(range(seeds), variants))
    # Refused first: runs of other settings are hours of work, and players are found by them.
    for seed, variant in trainings:
        config = variant.run_config(seed)
        run = work.runs / config.name
        # A directory without a config was left before it was written.
        if (run / CONFIG_FILE).exists():
            saved = read_saved_config(run)
            if dataclasses.replace(saved, tracking=config.tracking) != config:
                raise UsageError(
                    f"{run}: a training of other settings; choose another {argument('out')}, or "
                    "remove it"
                )
    trained: dict[str, list[Trained]] = {variant.name: [] for variant in variants}
    for seed, variant in trainings:
        trained[variant.name].append(train_variant(work, variant, seed, variant.settings(seed)))
    return trained


def train_variant(work: Work, variant: Variant, seed: int, settings: Mapping[str, Any]) -> Trained:
    """Train a variant with a seed, unless that is finished, which is found by the settings; what it
    raises is as in `train_all`."""
    config = variant.run_config(seed)
    run = work.runs / config.name

    def train() -> list[Any]:
        parts = (CONFIG_FILE, f"{store.WEIGHTS}/*", f"{store.RESUME}/*")
        if run.is_dir() and not any(any(run.glob(part)) for part in parts):
            # It was left before its config was written: the training starts anew.
            with locked(run), writing(run):
                shutil.rmtree(run)
        newest, is_left = store.newest_iteration(run, store.WEIGHTS), (run / store.RESUME).is_dir()
        is_finished = newest == config.iterations and not is_left
        if not is_finished and not training.train(config, work.runs, resume=run.is_dir()):
            raise KeyboardInterrupt
        # The replay of every run would fill a disk; the weights stay.
        shutil.rmtree(run / store.RESUME, ignore_errors=True)
        # Each variant has programs of its own, which would fill the memory.
        jax.clear_caches()
        keys = ("selfplay_seconds", "learn_seconds", "compile_seconds", "games", "positions")
        rows = read_rows(run / METRICS_FILE)
        playing, learning, compiling, games, positions = (
            sum(row.get(key) or 0.0 for row in rows) for key in keys
        )
        figures = [playing + learning, compiling, int(games), int(positions)]
        return [config.name, config.iterations, *figures, [dict(each) for each in code_of(run)]]

    rows = read_rows(run / METRICS_FILE) if (run / METRICS_FILE).exists() else []
    before = max(elapsed_seconds(rows), default=0.0)
    piece = f"training-{config.name}"
    return Trained(*work.cached(piece, settings, train, seconds_before=before))


def player_of(work: Work, trained: Trained, simulations: int) -> str:
    """The name of a training's player; without simulations its raw policy plays."""
    run = work.runs / trained.run
    return f"search:{run}@{simulations}" if simulations else f"net:{run}"


def round_robin(
    work: Work,
    variants: Sequence[Variant],
    trained: Mapping[str, Sequence[Trained]],
    scale: TrainingScale,
    *,
    simulations: Mapping[str, int] | None = None,
) -> list[MatchCounts]:
    """Play the meetings of the variants' players of each seed, each with every other; a variant may
    have simulations in place of the scale's."""
    return [
        meet(work, pair, trained, seed, scale, simulations=simulations)
        for pair in itertools.combinations(variants, 2)
        for seed in range(len(trained[pair[0].name]))
    ]


def meet(
    work: Work,
    pair: tuple[Variant, Variant],
    trained: Mapping[str, Sequence[Trained]],
    seed: int,
    scale: TrainingScale,
    *,
    simulations: Mapping[str, int] | None = None,
) -> MatchCounts:
    """The games of two variants' players of a seed by the second one's rules, which the first has
    learned, too; the rest is as in `round_robin`."""
    played, names = pair[1].config.rules, [each.name for each in pair]
    budgets = [(simulations or {}).get(name, scale.simulations) for name in names]
    settings = {"trained": [each.settings(seed) for each in pair], "simulations": budgets}
    if played != pair[0].config.rules:
        settings["rules"] = played.to_dict()

    def players() -> list[Player]:
        runs = zip((trained[name][seed] for name in names), budgets, strict=True)
        return [make_player(player_of(work, run, budget), played) for run, budget in runs]

    sizes = {"games": scale.games, "opening_plies": scale.opening_plies}
    piece = f"match-{'-'.join(names)}-{seed}"
    counts = played_counts(work, piece, settings, players, played, **sizes)
    return MatchCounts(names[0], names[1], seed, *counts)
