"""The run: self-play, replay, learn, evaluate, save, again."""

import contextlib
import dataclasses
import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train import checkpoint, replay, roster
from train.arena import MatchResult, play_match
from train.config import RunConfig, config_from_dict, config_to_dict
from train.errors import UsageError
from train.host import fetch
from train.learner import LearnerState, make_learner
from train.metrics import Display, MetricsWriter, match_record, match_table
from train.search import make_search
from train.selfplay import first_boards, make_selfplay
from wallgo_jax import render
from wallgo_jax.game.state import Position, Variant, make_variant

CONFIG_FILE, RESULT_FILE, GAME_FILE = "config.json", "evaluation.json", "game.txt"


class RunState(NamedTuple):
    """All that an iteration changes; with the config, all that resuming needs."""

    learner: LearnerState
    boards: Position  # [B], games under way
    ring: replay.Ring
    iterations: jax.Array  # int32, iterations done


class Programs(NamedTuple):
    """What is compiled once a run."""

    init: Callable[[], RunState]
    variant: Variant  # [B], what each board plays
    selfplay: Callable[..., Any]
    append: Callable[..., Any]
    learn: Callable[..., Any]


def train(config: RunConfig, runs: Path, *, resume: bool) -> bool:
    """Train to the end of the budget, evaluate, print the table.

    Args:
      config: the run.
      runs: directory of all runs.
      resume: go on from the newest checkpoint instead of starting.

    Returns:
      Whether the run came to its end; False when it was interrupted and saved.

    Raises:
      UsageError: the run exists already, or cannot be resumed with this config; an opponent does
        not exist.
    """
    directory = runs / config.name
    _check_directory(directory, config, resume=resume)
    for opponent in config.evaluation.opponents:
        roster.make_player(opponent, config.game)
    programs = make_programs(config)
    state = programs.init()
    if resume:
        state = checkpoint.read_run(directory, state)
    done = int(fetch(state.iterations))
    display = Display(total=config.iterations, done=done)
    _make_directory(directory)
    _write_json(directory / CONFIG_FILE, config_to_dict(config))
    writer = MetricsWriter(directory, from_iteration=done)
    store = checkpoint.Store(directory, keep=config.checkpoint.keep)
    try:
        with _interrupts(display) as interrupted, display:
            for iteration in range(done, config.iterations):
                state, row = run_iteration(config, programs, state, iteration)
                done = iteration + 1
                if _is_due(done, config.evaluation.every) and done < config.iterations:
                    row |= _short_match(config, state, done, display)
                writer.write(row)
                display.show(row)
                stops = interrupted()
                if stops or done == config.iterations or _is_due(done, config.checkpoint.every):
                    store.save(done, state.learner.variables, state, config_to_dict(config))
                if stops:
                    break
            store.wait()
            if interrupted():
                display.say(f"saved after iteration {done}; the same command with --resume goes on")
                return False
            _write_game(config, programs, state, directory)
            _final_evaluation(config, state, directory, display)
        return True
    finally:
        store.close()
        writer.close()


def make_programs(config: RunConfig) -> Programs:
    """Build and jit the functions of a run; nothing is compiled yet."""
    rules = config.game
    network = roster.network_for(config.network, rules.players)
    view = {"grid": rules.size, "planes": config.network.planes, "has_playable": False}
    search = make_search(
        roster.evaluator_for(config.network, rules),
        config.search,
        grid=rules.size,
        gumbel_scale=1.0,
    )
    plies, boards = config.selfplay.plies, config.selfplay.boards
    selfplay = make_selfplay(search, grid=rules.size, plies=plies)
    learner = make_learner(
        network, config.learner, total_steps=config.iterations * config.learner.steps, **view
    )
    variant = jax.tree.map(
        lambda x: jnp.broadcast_to(jnp.asarray(x), (boards, *np.shape(x))), make_variant(rules)
    )
    iteration_rows = -(-config.replay.positions // (boards * plies))

    def init() -> RunState:
        key = jax.random.fold_in(jax.random.key(config.seed), 2**31 - 1)
        variables = network.init(key)
        first = first_boards(variant)
        _, like, _ = jax.eval_shape(selfplay, variables, variant, first, key)
        ring = replay.make_ring(iteration_rows * plies, like)
        return RunState(learner.init(variables), first, ring, jnp.zeros((), jnp.int32))

    return Programs(
        init=init,
        variant=variant,
        selfplay=jax.jit(selfplay, donate_argnums=2),
        append=jax.jit(replay.append, donate_argnums=0),
        learn=jax.jit(learner.step, donate_argnums=0),
    )


def run_iteration(
    config: RunConfig, programs: Programs, state: RunState, iteration: int
) -> tuple[RunState, dict[str, Any]]:
    """Play, remember, learn. The state is consumed; its key comes from seed and iteration alone.

    Returns:
      The next state and the iteration's row of metrics.
    """
    started = time.perf_counter()
    play_key, learn_key = jax.random.split(
        jax.random.fold_in(jax.random.key(config.seed), iteration)
    )
    learner = state.learner
    boards, plies, played = programs.selfplay(
        learner.variables, programs.variant, state.boards, play_key
    )
    ring = programs.append(state.ring, plies)
    played, rows = fetch((played, ring.ready))
    between = time.perf_counter()
    losses = []
    if rows > 0:
        for key in jax.random.split(learn_key, config.learner.steps):
            learner, loss = programs.learn(learner, ring, programs.variant, key)
            losses.append(loss)
    means = _means(fetch(losses))
    ended = time.perf_counter()
    if means and not np.isfinite(means["loss"]):
        raise UsageError(
            f"iteration {iteration + 1}: the loss is {means['loss']}; the last checkpoint is good, "
            "go on from it with a lower learner.learning_rate"
        )
    games = float(played.games)
    row = {
        "iteration": iteration,
        "games": games,
        "positions": float(played.positions),
        "mean_length": float(played.length) / games if games else None,
        "red_win_rate": float(played.red_wins + played.draws / 2) / games if games else None,
        "policy_entropy": float(played.entropy / played.positions),
        "games_per_second": games / (ended - started),
        "positions_per_second": float(played.positions) / (ended - started),
        "selfplay_seconds": between - started,
        "learn_seconds": ended - between,
        "replay_rows": int(rows),
        **means,
    }
    return RunState(learner, boards, ring, state.iterations + 1), row


def _means(losses: list[Any]) -> dict[str, float]:
    if not losses:
        return {}
    return {name: float(np.mean([getattr(x, name) for x in losses])) for name in losses[0]._fields}


def _is_due(done: int, every: int) -> bool:
    return every > 0 and done % every == 0


def _player(config: RunConfig, state: RunState):
    simulations = config.evaluation.simulations
    return roster.search_player(
        f"{config.name}@{simulations}",
        state.learner.variables,
        config.network,
        config.game,
        simulations=simulations,
    )


def _match(
    config: RunConfig, state: RunState, opponent: str, games: int, salt: int, display: Display
) -> MatchResult:
    """The newest weights against an opponent; `salt` sets its random numbers apart from others."""
    with display.match(f"{config.name} against {opponent}", games) as on_progress:
        return play_match(
            _player(config, state),
            roster.make_player(opponent, config.game),
            config.game,
            games=games,
            key=jax.random.fold_in(jax.random.key(config.seed + 1), salt),
            batch=config.evaluation.batch,
            opening_plies=config.evaluation.opening_plies,
            on_progress=on_progress,
        )


def _short_match(config: RunConfig, state: RunState, done: int, display: Display) -> dict[str, Any]:
    opponent = config.evaluation.opponents[-1]
    result = _match(config, state, opponent, config.evaluation.games, done, display)
    return {"opponent": opponent, "win_rate": result.win_rate}


def _final_evaluation(
    config: RunConfig, state: RunState, directory: Path, display: Display
) -> None:
    results = [
        _match(config, state, opponent, config.evaluation.final_games, 2**20 + index, display)
        for index, opponent in enumerate(config.evaluation.opponents)
    ]
    caption = (
        f"seed {config.seed} · {config.evaluation.simulations} simulations · "
        f"{config.evaluation.opening_plies} random opening plies · "
        "95 % intervals by Wilson · territory in cells, this player's first"
    )
    display.console.print(match_table(results, caption=caption))
    record = {
        "seed": config.seed,
        "iterations": config.iterations,
        "simulations": config.evaluation.simulations,
        "opening_plies": config.evaluation.opening_plies,
        "matches": [match_record(result) for result in results],
    }
    _write_json(directory / RESULT_FILE, record)


def _write_game(config: RunConfig, programs: Programs, state: RunState, directory: Path) -> None:
    game = replay.newest_game(state.ring, programs.variant, grid=config.game.size)
    if game:
        text = render.game_text(config.game, game)
        (directory / GAME_FILE).write_text(text + "\n", encoding="utf-8")


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made: {error.strerror}") from None


def _check_directory(directory: Path, config: RunConfig, *, resume: bool) -> None:
    if not resume:
        if directory.exists():
            raise UsageError(
                f"{directory}: exists already; add --resume to go on with it, or choose --name"
            )
        return
    if not directory.is_dir():
        raise UsageError(f"{directory}: nothing to resume; leave --resume out to start")
    meta = checkpoint.read_meta(directory, checkpoint.RESUME)
    saved = config_from_dict(meta["config"], where=f"{directory}: saved config")
    for field in ("seed", "rules", "network", "search", "selfplay", "replay", "learner"):
        old, new = getattr(saved, field), getattr(config, field)
        if old != new:
            raise UsageError(f"{directory}: cannot resume: {_difference(field, old, new)}")
    if meta["iteration"] > config.iterations:
        raise UsageError(
            f"{directory}: has {meta['iteration']} iterations already, more than "
            f"iterations = {config.iterations}"
        )


def _difference(field: str, old: Any, new: Any) -> str:
    """Which key of a config table differs, and how."""
    if dataclasses.is_dataclass(old) and dataclasses.is_dataclass(new):
        for inner in dataclasses.fields(old):
            a, b = getattr(old, inner.name), getattr(new, inner.name)
            if a != b:
                return _difference(f"{field}.{inner.name}", a, b)
    return f"the checkpoint was made with {field} = {old!r}, the config says {new!r}"


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _interrupts(display: Display) -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM into a question to ask; a second Ctrl-C stops at once."""
    seen: list[int] = []

    def note(signum: int, frame: Any) -> None:
        if seen and signum == signal.SIGINT:
            raise KeyboardInterrupt
        seen.append(signum)
        display.say(
            "stopping: this iteration is finished and saved first (Ctrl-C again to drop it)"
        )

    before = {name: signal.signal(name, note) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(seen)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
