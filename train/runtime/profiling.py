"""Traces the device's work for a while, and says which share of the time each part of it takes.

A part is a `jax.named_scope` of the code: the compiler keeps the scopes in the names of operations.
"""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax

from train.runtime.devices import is_first_process
from train.runtime.showing import sparing, tell

T = TypeVar("T")

SCOPES = ("select", "play", "planes", "evaluate", "backup", "replay", "learner")
"""The parts of an iteration, in the order of the architecture page."""
WAITING = "waiting"
OTHER = "other"
"""Of devices for one another; all that is in no part."""
SKIPPED = 1
"""Iterations before the trace: the first one may still compile something."""
TRACED = 2
_PROGRAMS = {"jit_learn_step": "learner", "jit_learn_steps": "learner", "jit_write_rows": "replay"}
"""Programs of one part. What the compiler adds, such as other layouts, has no scope."""
_NESTED = ("while", "conditional", "call")
"""Operations that others run in."""
_WITHIN = "within"
_COLLECTIVE = re.compile("all-|collective-|reduce-scatter")


def profiled(
    steps: Generator[T, None, None], directory: Path, on_end: Callable[[T, str], None]
) -> Generator[T, None, None]:
    """Yield what a run's iterations yield: the state before them, then one after each. The work of
    `TRACED` of them, after the first `SKIPPED`, is traced.

    Args:
      steps: of a run; closed with this generator.
      directory: of the trace, which `tensorboard --logdir` and Perfetto show.
      on_end: takes the newest step, and the shares of the parts in words, once the trace is there.
    """
    is_tracing = False
    number = 0
    with contextlib.closing(steps):
        try:
            for number, step in enumerate(steps):
                if is_tracing and number == SKIPPED + TRACED:
                    jax.profiler.stop_trace()
                    is_tracing = False
                    with sparing(directory, "the trace stands, without shares"):
                        on_end(step, in_words(times_by_scope(newest_trace(directory))))
                yield step
                if number == SKIPPED and is_first_process():
                    options = jax.profiler.ProfileOptions()
                    options.python_tracer_level = 0  # its events would take the place of others
                    jax.profiler.start_trace(directory, profiler_options=options)
                    is_tracing = True
            if number < SKIPPED + TRACED:
                tell(f"{directory}: the run ended before {TRACED} iterations were traced")
        finally:
            if is_tracing:
                jax.profiler.stop_trace()


def in_words(times: Mapping[str, float]) -> str:
    """Shares of the time, the largest first."""
    total = sum(times.values()) or 1.0
    shares = sorted(((time / total, name) for name, time in times.items() if time), reverse=True)
    return ", ".join(f"{name} {100 * share:.1f} %" for share, name in shares)


def newest_trace(directory: Path) -> Path:
    """The file of the newest trace in a directory."""
    return max(directory.glob("plugins/profile/*/*.xplane.pb"))


def times_by_scope(trace: Path) -> dict[str, float]:
    """Seconds of all devices' operations in a trace, by the innermost of `SCOPES` that each is in,
    or `WAITING` or `OTHER`."""
    parts = _parts(trace.read_bytes())
    found: Counter[str] = Counter()
    for plane in jax.profiler.ProfileData.from_file(str(trace)).planes:
        for line in plane.lines:
            for event in line.events:
                about = dict(event.stats)
                if "hlo_op" in about:
                    program = str(about["hlo_module"])
                    named = f"{program}({about.get('program_id')})", about["hlo_op"]
                    # A program that was compiled ahead runs by another number.
                    part = parts.get(named) or parts.get((program, about["hlo_op"]), OTHER)
                    if part == OTHER:
                        part = _PROGRAMS.get(program, OTHER)
                    found[part] += event.duration_ns / 1e9
    del found[_WITHIN]
    return dict(found)


def _parts(trace: bytes) -> dict[tuple[str, Any], str]:
    """The part of each operation, by its program, with and without its number, and its name. JAX
    reads no programs of a trace; the numbers are those of fields in `xplane.proto` and `hlo.proto`.
    """
    found: dict[tuple[str, Any], str] = {}
    for program in _at(trace, 1, 4, 2):  # planes, their kinds of events
        (name,) = _texts(program, 2)
        for operation in _at(program, 5, 6, 1, 3, 2):  # statistics, module, computations
            (own_name,), (kind,) = _texts(operation, 1), _texts(operation, 2)
            path = "".join(_texts(operation, 7, 2))  # its metadata
            found[name, own_name] = part_of(kind, path)
            found.setdefault((name.partition("(")[0], own_name), found[name, own_name])
    return found


def part_of(kind: str, path: str) -> str:
    """The part of an operation by its opcode, and by the innermost of `SCOPES` on the path that it
    was traced on, such as `select` of `jit(play)/while/body/vmap(select)/add`."""
    if kind in _NESTED:
        return _WITHIN
    if _COLLECTIVE.match(kind):
        return WAITING
    for part in reversed(path.split("/")):
        name = re.sub(r"^(?:(?:vmap|jvp|transpose)\()+|\)+$", "", part)
        if name in SCOPES:
            return name
    return OTHER


def _texts(message: bytes | memoryview, *numbers: int) -> list[str]:
    return [bytes(text).decode() for text in _at(message, *numbers)]


def _at(message: bytes | memoryview, *numbers: int) -> Iterator[memoryview]:
    """Messages or texts of a protocol buffer, by the numbers of the fields that lead to them."""
    for value in _values(memoryview(message), numbers[0]):
        if numbers[1:]:
            yield from _at(value, *numbers[1:])
        else:
            yield value


def _values(data: memoryview, number: int) -> Iterator[memoryview]:
    """Values of a field of a protocol buffer that are messages or texts."""
    at = 0

    def number_at() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number_at()
        kind = tag & 7
        size = {0: 0, 1: 8, 5: 4}.get(kind)
        if kind == 0:
            number_at()
        elif size is None:
            size = number_at()
            if tag >> 3 == number:
                yield data[at : at + size]
        at += size or 0
