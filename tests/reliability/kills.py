"""Resumes what SIGKILL leaves at random moments, and at each kind of call on each kind of file.

A process that trains is stopped (SIGSTOP), its directory is copied, and it goes on. The copy is
what SIGKILL would have left at that moment, so one run gives the states of a hundred kills.
"""

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from tests.reliability import runs as runs_lib

RANDOM, MOST = 30, 100


def at_calls(out: Path) -> tuple[Path, dict[str, Path]]:
    """A run that is left to its end, and copies of its directory by the kind of call."""
    runs, kinds, found = out / "calls", out / "calls.txt", {}
    runs.mkdir()
    child = runs_lib.start(runs, kinds=kinds)
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        kind = kinds.read_text().splitlines()[-1]
        copy = found.setdefault(kind, out / f"call{len(found)}")
        if copy.exists():
            shutil.rmtree(copy)  # the later one has an older save beside it
        shutil.copytree(runs, copy)
        os.kill(child, signal.SIGCONT)
    if status:
        raise SystemExit(runs.with_suffix(".output").read_text())
    return runs, {kind: copy for kind, copy in found.items() if runs_lib.NAME in kind}


def at_moments(out: Path, draw: random.Random) -> dict[str, Path]:
    """Copies of a run's directory at random moments of its iterations; it is killed at last."""
    runs, found = out / "moments", {}
    runs.mkdir()
    child = runs_lib.start(runs)
    while not (runs / runs_lib.NAME / "metrics.jsonl").exists():
        time.sleep(0.01)
    for number in range(RANDOM):
        time.sleep(draw.uniform(0, 0.2))
        os.kill(child, signal.SIGSTOP)
        os.waitpid(child, os.WUNTRACED)
        found[f"moment {number}"] = Path(shutil.copytree(runs, out / f"moment{number}"))
        os.kill(child, signal.SIGCONT)
        if (runs / runs_lib.NAME / "game.txt").exists():
            break
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return found


def kills(out: Path) -> dict[str, Any]:
    """The figures: states of both kinds that were resumed, and failures."""
    draw = random.Random(0)
    straight, calls = at_calls(out)
    moments = {}
    while len(moments) < RANDOM:
        folder = out / f"run{len(moments)}"
        folder.mkdir()
        more = at_moments(folder, draw)
        moments |= {f"{folder.name}, {name}": copy for name, copy in more.items()}
    moments = dict(list(moments.items())[:RANDOM])
    chosen = dict(draw.sample(sorted(calls.items()), min(MOST, len(calls))))
    failures = []
    for label, copy in [*moments.items(), *chosen.items()]:
        found = runs_lib.resume(copy, straight)
        if found.is_refused or found.difference:
            failures.append({"at": label, "in": str(copy), **found._asdict()})
            print(failures[-1], flush=True)
        else:
            shutil.rmtree(copy)
    return {
        "kinds of calls": len(calls),
        "resumed after a kind of call": len(chosen),
        "resumed after a random moment": len(moments),
        "failures": failures,
    }


if __name__ == "__main__":
    runs_lib.main("tests.reliability.kills", kills)
