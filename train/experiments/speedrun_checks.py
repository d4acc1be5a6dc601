"""Verifies records of the speedrun: replays the games, and computes every figure again.

What a record alone cannot show is the training. `verify` says so, and trains a seed again if asked.

Q openings of a match, O plies drawn after the setup, N positions.
"""

import dataclasses
import functools
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import train
from train.api.players import Player
from train.arena.match_openings import random_bits
from train.checkpoints.weights import load_network
from train.config import RunConfig, read_config
from train.data.record_dataset import Examples, RecordedGames, make_examples, read_recorded_games
from train.experiments import lab, speedrun_records
from train.experiments.speedrun_records import (
    CONFIG,
    GAMES,
    GOALS,
    LOG,
    MATCH,
    OPENING_PLIES,
    SEEDS,
    Record,
    SeedFigures,
    counts_of,
    figures_of,
    read_record,
)
from train.game import State, draw_slot
from train.loop.stages import simulations_of
from train.metrics.rows import Row
from train.players.basic import Act
from train.runtime.devices import BY_BOARD, EVERYWHERE, local_devices
from train.runtime.display import Display
from train.runtime.errors import UsageError, usage_errors
from train.runtime.host import fetch, in_batches

UNSEEN = (
    "verified: the games are those of the seeds' openings and of this opponent, and every figure "
    "follows from log and games. The training itself cannot be seen; a rerun trains a seed again"
)
_NEEDED = {"iteration", "positions", "simulations", "full_search_share", "replay_positions"}
_NEEDED |= {"steps", "selfplay_seconds", "learn_seconds"}
_BATCH = 400


class Verified(NamedTuple):
    """A record that was not refused."""

    record: Record
    notes: tuple[str, ...]  # lines on what was done, and what that does not show
    is_passed: bool  # the goal is reached, and a rerun gave the same


def verify(folder: Path, *, rerun: int | None, display: Display, progress: bool) -> Verified:
    """Verify a record, and train one of its seeds again.

    Args:
      folder: the record.
      rerun: a seed, or None.
      display: shows bars.
      progress: whether the training and the match of a rerun show theirs.

    Raises:
      UsageError: the record is refused: what is wrong, and where.
    """
    if rerun is not None and rerun >= SEEDS:
        raise UsageError(f"speedrun: rerun: {rerun} is not from 0 to {SEEDS - 1}")
    record = read_record(folder)
    config = read_config(folder / CONFIG)
    with usage_errors(str(folder)):
        speedrun_records.check_recipe(config)
        numbers = [seed.seed for seed in record.seeds]
        if numbers != list(range(SEEDS)):
            raise UsageError(f"the seeds are {numbers}, not 0 to {SEEDS - 1}")
        logs = [_checked_log(folder, config, seed) for seed in record.seeds]
        for one, other in itertools.combinations(range(SEEDS), 2):
            if logs[one][-1].get("loss") == logs[other][-1].get("loss"):
                raise UsageError(f"the logs of seeds {one} and {other} are the same training's")
    with display.task("games checked", SEEDS * GAMES, "games") as tell:
        for number, seed in enumerate(record.seeds):
            with usage_errors(str(folder)):
                check_match(folder, record, seed)
            tell((number + 1) * GAMES)
    missed = speedrun_records.missed(record)
    notes = [UNSEEN, *missed]
    is_same = True
    if rerun is not None:
        is_same, told = _rerun(folder, record, config, rerun, progress)
        notes.append(told)
    return Verified(record, tuple(notes), is_same and not missed)


def _checked_log(folder: Path, config: RunConfig, seed: SeedFigures) -> list[Row]:
    """The rows of a seed's training.

    Raises:
      UsageError: they are not those of the recipe, or give other figures.
    """
    path = LOG.format(seed.seed)
    rows = speedrun_records.read_log(folder, seed.seed)
    for number, row in enumerate(rows, start=1):
        if missing := _NEEDED - row.keys():
            raise UsageError(f"{path}: row {number} has no {min(missing)}")
    numbers = [row["iteration"] for row in rows]
    if numbers != list(range(1, config.iterations + 1)):
        raise UsageError(f"{path}: its iterations are not 1 to {config.iterations}")
    played = config.selfplay.boards * config.selfplay.plies
    for row in rows:
        iteration = row["iteration"]
        due = config.learner.steps * int(row["replay_positions"]) // played
        # Without a finished game on each device there is no step, else at least one.
        allowed = {0, 1} if due == 0 else {min(due, config.learner.steps)}
        full = row["full_search_share"] * config.selfplay.plies
        wrong = {
            "positions": row["positions"] != played,
            "simulations": row["simulations"] != simulations_of(config, iteration - 1),
            "steps": row["steps"] not in allowed,
            "full_search_share": not (0 <= full <= config.selfplay.plies and full == int(full)),
            "selfplay_seconds": row["selfplay_seconds"] <= 0 or row["learn_seconds"] <= 0,
        }
        for name, is_wrong in wrong.items():
            if is_wrong:
                what = f"{name} cannot be {row[name]} in the recipe"
                raise UsageError(f"{path}: iteration {iteration}: {what}")
    for name, value in figures_of(config, rows).items():
        if getattr(seed, name) != value:
            told = getattr(seed, name)
            raise UsageError(f"seed {seed.seed}: {name} is {told}, but {value} by its log")
    return rows


def check_match(folder: Path, record: Record, seed: SeedFigures) -> None:
    """Replay the games of a seed, draw its openings again, and search the opponent's moves again.

    Raises:
      UsageError: a game is not a legal one of this match, or gives other figures.
    """
    path = MATCH.format(seed.seed)
    opponent = train.make_player(GOALS[record.goal].opponent)
    recorded = read_recorded_games([folder / path], opponent.rules, keys=())
    games = recorded.records
    if len(games) != GAMES:
        raise UsageError(f"{path}: {len(games)} finished games, not {GAMES}")
    # The first half of the games has the learner in the first seat, opening by opening.
    names = [each.players or () for each in games]
    learner = names[0][0] if names[0] else ""
    seats = [(learner, opponent.name)] * (GAMES // 2) + [(opponent.name, learner)] * (GAMES // 2)
    if names != seats or learner == opponent.name:
        raise UsageError(f"{path}: the players are not one against {opponent.name}, half as Red")
    counts = counts_of(games, opponent.name)
    for name, value in counts.items():
        if getattr(seed, name) != value:
            told = getattr(seed, name)
            raise UsageError(f"seed {seed.seed}: {name} is {told}, but {value} by its games")
    examples = make_examples(recorded)
    is_drawn = _check_openings(path, examples, seed.seed)
    of_opponent = fetch(examples.position.player) == np.array(
        [names[game].index(opponent.name) for game in fetch(examples.game)]
    )
    its = np.flatnonzero(of_opponent & ~is_drawn)
    found = _moves_of(opponent, examples, its)
    other = found != fetch(examples.slot)[its]
    if other.mean() > GOALS[record.goal].most_other:
        raise UsageError(
            f"{path}: {opponent.name} would have played {other.sum()} of its {len(its)} moves "
            f"otherwise, first in game {fetch(examples.game)[its[other.argmax()]] + 1}"
        )


def _check_openings(path: str, examples: Examples, seed: int) -> np.ndarray:
    """Draw the openings' plies again.

    Returns:
      bool[N], the positions where a ply was drawn.

    Raises:
      UsageError: another ply was played in one of them.
    """
    # As `train.arena.match.play_in_rounds` and then `match_programs.play_to_end` take theirs.
    key, _ = jax.random.split(jax.random.fold_in(jax.random.key(seed), 0))
    bits = np.asarray(random_bits(key, jnp.arange(GAMES // 2), plies=OPENING_PLIES))
    game, ply = fetch(examples.game), fetch(examples.position.ply)
    since = ply - fetch(examples.variant.num_placements)[game]
    drawn = np.flatnonzero((since >= 0) & (since < OPENING_PLIES))
    asked = _states(examples, drawn), bits[game[drawn] % (GAMES // 2), since[drawn]]
    (found,) = in_batches(_draw, asked, _BATCH)
    if (other := found != fetch(examples.slot)[drawn]).any():
        place = drawn[other.argmax()]
        raise UsageError(
            f"{path}: game {game[place] + 1}, ply {ply[place] + 1} is not the random one of this "
            "seed's opening"
        )
    return np.isin(np.arange(len(game)), drawn)


@jax.jit
def _draw(asked: tuple[State, jax.Array]) -> tuple[jax.Array]:
    return (jax.vmap(draw_slot)(*asked),)


def _moves_of(player: Player, examples: Examples, chosen: np.ndarray) -> np.ndarray:
    """int32[n], what a player plays in positions [n]."""
    act = _on_all_devices(player.registered.act)
    key = jax.random.key(0)  # a search without noise draws nothing

    def play(states: State) -> tuple[jax.Array]:
        return (act(player.registered.variables, states, key),)

    (found,) = in_batches(play, _states(examples, chosen), _BATCH * local_devices().count)
    return found


@functools.cache
def _on_all_devices(act: Act) -> Act:
    """What plays on boards that are spread over this process's devices; compiled once."""
    specs = EVERYWHERE, BY_BOARD, EVERYWHERE
    return jax.jit(local_devices().per_device(act, specs, BY_BOARD))


def _states(examples: Examples, chosen: np.ndarray) -> State:
    """Positions [n] with their variants."""
    game = fetch(examples.game)[chosen]
    variant = jax.tree.map(lambda x: x[game], fetch(examples.variant))
    return State(variant, jax.tree.map(lambda x: x[chosen], fetch(examples.position)))


def _rerun(
    folder: Path, record: Record, config: RunConfig, seed: int, progress: bool
) -> tuple[bool, str]:
    """Train a seed again and play its match; returns whether all is the same, in words too."""
    told = record.seeds[seed]
    with tempfile.TemporaryDirectory() as place:
        work = lab.Lab("speedrun", lab.Options(Path(place)), progress=progress)
        again = dataclasses.replace(config, seed=seed)
        directory = Path(work.train(f"seed-{seed}", again)["run"])
        games = Path(place) / "games.jsonl.gz"
        speedrun_records.play(directory, record.goal, seed, games, progress=progress)
        played = _games_of(read_recorded_games([games]))
        kept = _games_of(read_recorded_games([folder / MATCH.format(seed)]))
        counts = counts_of(read_recorded_games([games]).records, GOALS[record.goal].opponent)
        weights = load_network(directory).digest
    same = weights == told.weights and played == kept
    if same:
        return True, f"seed {seed}, trained again: weights and games are the same to the bit"
    found = ", ".join(f"{count} {name}" for name, count in counts.items())
    return False, (
        f"seed {seed}, trained again: {'the games' if weights == told.weights else 'the weights'} "
        f"differ; the match has {found} games here, where the record has {told.won} won, "
        f"{told.drawn} drawn, {told.lost} lost. Versions and kind of CPU must be the record's: "
        f"{record.machine}"
    )


def _games_of(recorded: RecordedGames) -> Sequence[Any]:
    return [(each.actions, each.result) for each in recorded.records]
