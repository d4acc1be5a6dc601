"""Speed of an engine: sessions that all ask at the same time, and one that asks alone.

Every session plays its own game by the moves that it is told, and keeps its tree.
"""

import statistics
import time
from collections.abc import Callable, Sequence

from train.bench.suite import Figures
from train.bench.timing import BenchRow
from train.engine.options import EngineOptions
from train.engine.sessions import Sessions
from train.players.registry import make_evaluating_player
from train.runtime.errors import UsageError
from wallgo_jax.game.rules import Rules, name_of

_MOST_TREES = 4096


def measure(
    player: str,
    rules: Rules,
    *,
    sessions: Sequence[int],
    seconds: float,
    rounds: int,
    on_progress: Callable[[str], None],
) -> Figures:
    """Start an engine, and let numbers of sessions play.

    Args:
      player: named as in docs/players.md, with a budget of simulations.
      rules: of the games.
      sessions: their numbers; each is the size of a batch.
      seconds: least time of each number of sessions, about.
      rounds: least rounds of each, in which all sessions ask and are answered.
      on_progress: gets a line before each step.

    Returns:
      A row for each number of sessions, whose runs are its rounds.

    Raises:
      UsageError: the player cannot be asked, or has no number of simulations.
    """
    answering = make_evaluating_player(player)
    if answering.simulations is None:
        raise UsageError(f"player {player!r}: name its simulations, such as @64")
    sizes = tuple(sorted(set(sessions)))
    if not 0 < max(sizes, default=0) <= _MOST_TREES:
        raise UsageError(f"sessions: {sizes} must be from 1 to {_MOST_TREES}")
    on_progress("engine: compiling")
    began = time.perf_counter()
    engine = Sessions(answering, rules, EngineOptions(batch_sizes=sizes, trees=sizes[-1]))
    ready = time.perf_counter() - began
    rows, name = [], f"sessions of {answering.name} on {name_of(rules)}"
    try:
        engine.programs.compile_rest()
        engine.programs.wait()
        notes = [
            f"{answering.simulations} simulations an answer; ready after {ready:.1f} s, all "
            f"batches compiled after {time.perf_counter() - began:.1f} s"
        ]
        for count in sizes:
            on_progress(f"engine: {count} sessions")
            times = _time_rounds(engine, count, seconds=seconds, rounds=rounds)
            rates = {"answers": count * len(times) / sum(times)}
            rows.append(BenchRow("engine", name, count, 1, tuple(times), rates, 0, None))
            notes.append(
                f"{count} sessions: {1e3 * statistics.median(times):.1f} ms a round, at worst "
                f"{1e3 * max(times):.1f} ms, {len(times)} rounds"
            )
    finally:
        engine.shut_down()
    return Figures(tuple(rows), notes=tuple(notes))


def _time_rounds(engine: Sessions, count: int, *, seconds: float, rounds: int) -> list[float]:
    """Seconds of each round of that number of sessions: until all are answered; then each plays its
    move."""
    names = [engine.open() for _ in range(count)]
    times: list[float] = []
    while len(times) <= rounds or sum(times[1:]) < seconds:
        began = time.perf_counter()
        futures = [engine.ask(name) for name in names]
        answers = [one.result() for one in futures]
        times.append(time.perf_counter() - began)
        for name, answer in zip(names, answers, strict=True):
            if engine.apply(name, int(answer.action)).result is not None:
                engine.close(name)
                engine.open(name=name)
    for name in names:
        engine.close(name)
    return times[1:]  # A program's first run takes longer.
