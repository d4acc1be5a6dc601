"""Variants of one config, each trained with several seeds and matched with all others.

The seed is the unit: players of one seed meet players of the same seed, and intervals are over
seeds.
"""

import dataclasses
import itertools
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from train.arena.match import MatchOptions, play_meeting
from train.checkpoints import store
from train.config import (
    CheckpointConfig,
    EvaluationConfig,
    RunConfig,
    config_to_dict,
    read_saved_config,
)
from train.loop import training
from train.metrics.rows import METRICS_FILE, elapsed_seconds, read_rows
from train.players.basic import Player
from train.players.registry import make_player
from train.runtime.errors import UsageError
from train.runtime.files import write_json, writing
from train.study.frame.seeds import Estimate, estimate
from train.study.frame.work import Work
from wallgo_jax.game.rules import Rules

RUNS = "runs"
_BATCH = 200
_CHECKPOINTS = 4


NO_MATCHES = EvaluationConfig(every=0, opponents=(), anchors=())


class Variant(NamedTuple):
    """A config with a name; its own name, seed and evaluation do not count.

    `{seed}` in its `init_from` and `selfplay.opponent` stands for the seed. With `keeps_all` the
    weights of every checkpoint are kept. `made_by` is what else decides the result, JSON-ready.
    """

    name: str
    config: RunConfig
    evaluation: EvaluationConfig = NO_MATCHES
    keeps_all: bool = False
    made_by: Any = None


class Trained(NamedTuple):
    """What one training took."""

    seconds: float  # of self-play and learning
    games: int
    positions: int
    run: str  # name of its directory


def train_all(work: Work, variants: Sequence[Variant], *, seeds: int) -> dict[str, list[Trained]]:
    """Train each variant with seeds 0, 1, ...; what is kept is not trained again.

    Raises:
      KeyboardInterrupt: a training was interrupted and saved.
      UsageError: a variant cannot be trained, or its run's directory holds another training.
    """
    _check_runs(work, variants, seeds)
    found: dict[str, list[Trained]] = {variant.name: [] for variant in variants}
    for seed in range(seeds):
        for variant in variants:
            kept = work.pieces.keep(
                f"trained-{variant.name}-{seed}",
                settings_of(variant, seed),
                lambda variant=variant, seed=seed: _train(work, variant, seed),
                seconds_before=lambda variant=variant, seed=seed: _seconds_of(
                    runs_of(work) / _run_config(variant, seed).name
                ),
            )
            found[variant.name].append(Trained(*kept))
    return found


def runs_of(work: Work) -> Path:
    """The directory of a study's runs."""
    return work.pieces.directory / RUNS


def settings_of(variant: Variant, seed: int) -> dict[str, Any]:
    """All that decides a variant's training with a seed, JSON-ready."""
    fields = config_to_dict(_run_config(variant, seed))
    if not variant.config.selfplay.opponent:
        # Pieces that are kept from before there was this key are still found.
        del fields["selfplay"]["opponent"]
    found = {key: fields[key] for key in fields if key not in ("name", "tracking")}
    return found if variant.made_by is None else found | {"made_by": variant.made_by}


def kept_iterations(iterations: int) -> list[int]:
    """The iterations of the checkpoints of a variant that keeps them all."""
    every = _every(iterations)
    return [*range(every, iterations, every), iterations]


def _every(iterations: int) -> int:
    return max(1, iterations // _CHECKPOINTS)


def _run_config(variant: Variant, seed: int) -> RunConfig:
    every = _every(variant.config.iterations)
    selfplay = variant.config.selfplay
    opponent = selfplay.opponent.replace("{seed}", str(seed))
    return dataclasses.replace(
        variant.config,
        selfplay=dataclasses.replace(selfplay, opponent=opponent),
        name=f"{variant.name}-seed{seed}",
        seed=seed,
        init_from=variant.config.init_from.replace("{seed}", str(seed)),
        evaluation=variant.evaluation,
        checkpoint=CheckpointConfig(
            every=every, keep=1, keep_best=0, keep_every=every if variant.keeps_all else 0
        ),
    )


def _check_runs(work: Work, variants: Sequence[Variant], seeds: int) -> None:
    """Refuse runs of other settings: they are hours of work, and players are found by their
    directories."""
    for variant, seed in itertools.product(variants, range(seeds)):
        run = runs_of(work) / _run_config(variant, seed).name
        if run.is_dir() and not _is_of(run, variant, seed):
            raise UsageError(
                f"{run}: a training of other settings; choose another --out, or remove it"
            )


def _train(work: Work, variant: Variant, seed: int) -> list[Any]:
    config = _run_config(variant, seed)
    runs = runs_of(work)
    run = runs / config.name
    if not run.is_dir():
        _note_made_by(run, variant.made_by)
    if not training.train(config, runs, resume=run.is_dir()):
        raise KeyboardInterrupt
    rows = read_rows(run / METRICS_FILE)
    shutil.rmtree(run / store.RESUME, ignore_errors=True)
    # Each variant has programs of its own, which would fill the memory.
    jax.clear_caches()
    seconds = sum(row["selfplay_seconds"] + row["learn_seconds"] for row in rows)
    games, positions = (int(sum(row[key] or 0 for row in rows)) for key in ("games", "positions"))
    return [seconds, games, positions, config.name]


def _seconds_of(run: Path) -> float:
    """How long a run has been trained so far, over all its starts."""
    try:
        return max(elapsed_seconds(read_rows(run / METRICS_FILE)), default=0.0)
    except OSError:
        return 0.0


def _is_of(run: Path, variant: Variant, seed: int) -> bool:
    """Whether a run's directory is of this training, wherever it is tracked."""
    config, made_by = _run_config(variant, seed), json.loads(json.dumps(variant.made_by))
    try:
        if dataclasses.replace(read_saved_config(run), tracking=config.tracking) != config:
            return False
        return json.loads(_made_by_file(run).read_text(encoding="utf-8")) == made_by
    except FileNotFoundError:
        return True  # Older runs have their config alone.
    except (UsageError, ValueError, OSError):
        return False


def _note_made_by(run: Path, made_by: Any) -> None:
    """Write what else than its config decides a run that is to begin."""
    path = _made_by_file(run)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    if made_by is not None:
        write_json(path, made_by)


def _made_by_file(run: Path) -> Path:
    """The file beside a run's directory that says what else decides it."""
    return run.with_name(f"{run.name}.made_by.json")


class Meeting(NamedTuple):
    """The games of two variants' players of one seed, for the first."""

    first: str
    second: str
    seed: int
    wins: int
    draws: int
    losses: int


def round_robin(
    work: Work,
    variants: Sequence[Variant],
    trained: Mapping[str, Sequence[Trained]],
    *,
    games: int,
    simulations: Mapping[str, int],
    opening_plies: int,
    kind: str = "match",
) -> list[Meeting]:
    """Let the variants' players of each seed meet, each with every other.

    Args:
      work: the topic's.
      variants: at least two.
      trained: their runs, one a seed.
      games: of each meeting.
      simulations: of each variant's player.
      opening_plies: random plies that games start with.
      kind: the first word of the pieces' names.
    """
    found = []
    for place, first in enumerate(variants):
        for second in variants[place + 1 :]:
            for seed in range(len(trained[first.name])):
                found.append(
                    meet(
                        work,
                        (first, second),
                        trained,
                        seed,
                        first.config.rules,
                        games=games,
                        simulations=simulations,
                        opening_plies=opening_plies,
                        kind=kind,
                    )
                )
    return found


def meet(
    work: Work,
    pair: tuple[Variant, Variant],
    trained: Mapping[str, Sequence[Trained]],
    seed: int,
    rules: Rules,
    *,
    games: int,
    simulations: Mapping[str, int],
    opening_plies: int,
    kind: str = "match",
) -> Meeting:
    """The games of two variants' players of a seed by some rules; else as `round_robin`.

    Args:
      rules: which both have learned.
    """
    first, second = pair
    settings: dict[str, Any] = {
        "trained": [settings_of(each, seed) for each in pair],
        "simulations": [simulations[each.name] for each in pair],
        "games": games,
        "opening_plies": opening_plies,
        "seed": work.scale.seed,
    }
    if rules != first.config.rules:
        settings["rules"] = rules.to_dict()
    runs = [runs_of(work) / trained[each.name][seed].run for each in pair]
    names = [f"search:{run}@{simulations[each.name]}" for run, each in zip(runs, pair, strict=True)]

    def play() -> list[int]:
        players = [make_player(name, rules) for name in names]
        return play_counts(work, players, rules, games=games, opening_plies=opening_plies)

    piece = f"{kind}-{first.name}-{second.name}-{seed}"
    return Meeting(first.name, second.name, seed, *work.pieces.keep(piece, settings, play))


def play_counts(
    work: Work, players: Sequence[Player], rules: Rules, *, games: int, opening_plies: int
) -> list[int]:
    """Play a match of two players, with a bar: games won, drawn and lost by the first."""
    title = " against ".join(player.name for player in players)
    with work.task(title, games, "games") as on_progress:
        result = play_meeting(
            players,
            rules,
            MatchOptions(games, min(games, _BATCH), opening_plies),
            seed=work.scale.seed,
            before=0,
            on_progress=on_progress,
        )
    return [result.wins, result.draws, result.losses]


def rate_of(meetings: Sequence[Meeting], name: str, seed: int, against: str = "") -> float:
    """A variant's win rate in a seed's meetings, draws as half; against one other, if named."""
    points = games = 0.0
    for meeting in meetings:
        pair = (meeting.first, meeting.second)
        if meeting.seed != seed or name not in pair or (against and against not in pair):
            continue
        wins = meeting.wins if name == meeting.first else meeting.losses
        points += wins + meeting.draws / 2
        games += meeting.wins + meeting.draws + meeting.losses
    return points / games


def mean_rate(meetings: Sequence[Meeting], name: str, against: str = "") -> Estimate:
    """The mean over seeds of `rate_of`, with Student's interval; of one seed, Wilson's."""
    seeds = sorted({meeting.seed for meeting in meetings})
    games = sum(
        sum(meeting[3:])
        for meeting in meetings
        if name in meeting[:2] and (not against or against in meeting[:2])
    )
    return estimate([rate_of(meetings, name, seed, against) for seed in seeds], games // len(seeds))


def difference(meetings: Sequence[Meeting], name: str, other: str) -> Estimate:
    """The mean over seeds of one variant's mean rate less another's, with Student's interval; of
    one seed, which has none, ends that are NaN."""
    seeds = sorted({meeting.seed for meeting in meetings})
    gaps = [rate_of(meetings, name, seed) - rate_of(meetings, other, seed) for seed in seeds]
    if len(gaps) == 1:
        return Estimate(gaps[0], math.nan, math.nan, 1)
    shifted = estimate([0.5 + gap / 2 for gap in gaps], 10**9)
    return Estimate(2 * shifted.mean - 1, 2 * shifted.low - 1, 2 * shifted.high - 1, shifted.seeds)
