"""How fast an engine answers: sessions that all ask at the same time, and one that asks alone.

Every session plays a game of its own by the moves that it is told, and keeps its tree.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from train.bench import report
from train.engine.sessions import Sessions
from train.engine.trees.options import EngineOptions
from train.engine.trees.search_player import make_search_player
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules, name_of

_MOST_TREES = 4096


class Speed(NamedTuple):
    """Rounds in which all sessions ask and are answered."""

    sessions: int
    rounds: int
    answers_per_second: float
    median_seconds: float  # from a round's questions to its last answer
    worst_seconds: float


class EngineSpeed(NamedTuple):
    """What was measured of an engine."""

    player: str
    rules: Rules
    simulations: int  # of an answer
    start_seconds: float  # until the first session could be answered
    compile_seconds: float  # until batches of all sizes could be searched
    speeds: tuple[Speed, ...]


def measure(
    player: str,
    rules: Rules,
    *,
    sessions: Sequence[int],
    seconds: float,
    rounds: int,
    on_progress: Callable[[str], None],
) -> EngineSpeed:
    """Start an engine, and let numbers of sessions play.

    Args:
      player: named as in docs/players.md, with a budget of simulations.
      rules: what it plays.
      sessions: their numbers; each is the size of a batch.
      seconds: least time of each number of sessions, about.
      rounds: least rounds of each.
      on_progress: hears what is measured.

    Raises:
      UsageError: the player cannot be asked, or has no number of simulations.
    """
    guide = make_search_player(player)
    if guide.simulations is None:
        raise UsageError(f"player {player!r}: name its simulations, such as @64")
    sizes = tuple(sorted(set(sessions)))
    if sizes[-1] > _MOST_TREES:
        raise UsageError(f"sessions: {sizes[-1]} is not from 1 to {_MOST_TREES}")
    on_progress("engine: compiling")
    began = time.perf_counter()
    engine = Sessions(guide, rules, EngineOptions(batch_sizes=sizes, trees=sizes[-1]))
    ready = time.perf_counter()
    try:
        engine.wait_for_all_sizes()
        compiled = time.perf_counter()
        speeds = []
        for count in sizes:
            on_progress(f"engine: {count} sessions")
            speeds.append(_measure_sessions(engine, count, seconds=seconds, rounds=rounds))
    finally:
        engine.shut_down()
    return EngineSpeed(
        player=guide.name,
        rules=rules,
        simulations=guide.simulations,
        start_seconds=ready - began,
        compile_seconds=compiled - began,
        speeds=tuple(speeds),
    )


def _measure_sessions(engine: Sessions, count: int, *, seconds: float, rounds: int) -> Speed:
    names = [engine.open() for _ in range(count)]
    _play_round(engine, names)  # A program's first run takes longer.
    times: list[float] = []
    while len(times) < rounds or sum(times) < seconds:
        times.append(_play_round(engine, names))
    for name in names:
        engine.close(name)
    return Speed(
        sessions=count,
        rounds=len(times),
        answers_per_second=count * len(times) / sum(times),
        median_seconds=statistics.median(times),
        worst_seconds=max(times),
    )


def _play_round(engine: Sessions, names: Sequence[str]) -> float:
    """Seconds until all sessions are answered; then each plays its move."""
    began = time.perf_counter()
    asked = [engine.ask(name) for name in names]
    answers = [one.result() for one in asked]
    took = time.perf_counter() - began
    for name, answer in zip(names, answers, strict=True):
        if engine.apply(name, int(answer.action)).is_over:
            engine.close(name)
            engine.open(name=name)
    return took


def table(speed: EngineSpeed) -> Table:
    """The figures for the console."""
    shown = Table(
        title=f"Engine of {speed.player} on {name_of(speed.rules)}",
        caption=(
            f"{speed.simulations} simulations an answer · ready after {speed.start_seconds:.1f} s, "
            f"all batches compiled after {speed.compile_seconds:.1f} s · {report.chip()}"
        ),
        caption_justify="left",
    )
    for heading in ("sessions", "answers a second", "ms a round", "worst ms", "rounds"):
        shown.add_column(heading, justify="right")
    for one in speed.speeds:
        shown.add_row(
            str(one.sessions),
            f"{one.answers_per_second:.4g}",
            f"{1e3 * one.median_seconds:.1f}",
            f"{1e3 * one.worst_seconds:.1f}",
            str(one.rounds),
        )
    return shown


def record(speed: EngineSpeed) -> dict[str, Any]:
    """The figures, JSON-ready."""
    return {
        "environment": report.environment(),
        **speed._asdict(),
        "rules": speed.rules.to_dict(),
        "speeds": [one._asdict() for one in speed.speeds],
    }
