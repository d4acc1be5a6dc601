"""Trains 3,000 iterations of the tiny run: memory is flat, nothing compiles again, speed holds."""

import contextlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.compiling import count_compilations
from tests.support.learner import tiny
from train.loop.iterations import iterations

ITERATIONS, FIRST = 3000, 100
MEMORY, SPEED = 0.02, 0.05
"""The shares by which memory may grow from its least level, and speed fall."""


def resident() -> int:
    """Bytes of this process in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return 1024 * int(line.split()[1])
    raise SystemExit("this system does not tell the resident memory")


def soak(out: Path, count: int) -> dict[str, Any]:
    """The figures."""
    words = [f"--iterations={count}", "--evaluation.every=0", "--checkpoint.every=500"]
    memory, seconds, compiled = [], [], []
    with (
        count_compilations() as compilations,
        contextlib.closing(iterations(tiny.config(*words), out / "tiny", is_quiet=True)) as run,
    ):
        next(run)
        before = time.process_time()
        for _, _, row in run:
            now = time.process_time()
            seconds.append(now - before)
            before = now
            memory.append(resident())
            compiled.append(compilations())
            if row["iteration"] % 500 == 0:
                print(row["iteration"], memory[-1], compiled[-1], flush=True)
    part = min(1000, (count - FIRST) // 3)
    parts = [float(np.median(x)) for x in (seconds[FIRST : FIRST + part], seconds[-part:])]
    # Memory falls once in the first hundreds: what was needed to compile is given back then.
    levels = [np.median(memory[i : i + FIRST]) for i in range(FIRST, count - FIRST + 1, FIRST)]
    grown = float(levels[-1] / min(levels)) - 1
    figures = {
        "iterations": count,
        "memory_MiB": [round(x / 2**20, 1) for x in memory[FIRST - 1 :: max(1, count // 10)]],
        "memory_grown": round(grown, 4),
        "compilations_after_100": compiled[-1] - compiled[FIRST - 1],
        "cpu_ms_an_iteration": [round(1000 * x, 2) for x in parts],
        "slower": round(parts[1] / parts[0] - 1, 4),
    }
    failed = grown > MEMORY or figures["compilations_after_100"] or figures["slower"] > SPEED
    return figures | {"passed": not failed}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m tests.reliability.soak OUT [ITERATIONS]")
    figures = soak(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else ITERATIONS)
    print(figures)
    sys.exit(0 if figures["passed"] else 1)
