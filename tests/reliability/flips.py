"""Flips one bit in each of 300 places of a run's directory, and of 300 of shipped weights."""

import random
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.reliability import runs as runs_lib

PLACES = int(sys.argv[2]) if len(sys.argv) > 2 else 300
KEPT = ("resume", "checkpoints", "config.json", "metrics.jsonl", "run.json")
"""What is drawn from first: a file of these, each as often as another; then a bit of it."""


def files_of(directory: Path) -> list[Path]:
    """The files below a directory that are not empty, as relative paths."""
    found = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return [path.relative_to(directory) for path in found if path.stat().st_size]


def flip(path: Path, draw: random.Random) -> str:
    """Turn over a bit of a file; returns where."""
    data = bytearray(path.read_bytes())
    place, bit = draw.randrange(len(data)), draw.randrange(8)
    data[place] ^= 1 << bit
    path.write_bytes(data)
    return f"byte {place}, bit {bit}"


def of_run(out: Path, draw: random.Random) -> dict[str, Any]:
    """Flips in a run that was stopped half-way, each resumed."""
    straight = out / "straight"
    straight.mkdir()
    runs_lib.finished(runs_lib.start(straight), straight)
    stopped = out / "stopped"
    shutil.copytree(straight, stopped)
    for kind in ("resume", "checkpoints"):
        for folder in (stopped / runs_lib.NAME / kind).iterdir():
            if folder.name == "8":
                shutil.rmtree(folder)
    (stopped / "saved").write_text("6\n")
    files, told, failures = files_of(stopped / runs_lib.NAME), Counter(), []
    for number in range(PLACES):
        copy = Path(shutil.copytree(stopped, out / "copy", dirs_exist_ok=False))
        file = _drawn(files, draw) if number % 2 else draw.choice(files)
        where = f"{file}: {flip(copy / runs_lib.NAME / file, draw)}"
        try:
            found = runs_lib.resume(copy, straight, is_damaged=True)
        except Exception as error:
            found = runs_lib.Resumed([], False, f"{type(error).__name__}: {error}")
        is_told = len(found.said) >= 1
        told["detected" if is_told else "harmless"] += 1
        if (found.difference and not is_told) or len(found.said) > 2:
            failures.append({"where": where, **found._asdict()})
            print(failures[-1], flush=True)
        shutil.rmtree(copy)
        print(number, where, found.said[:1], flush=True)
    return {"places": PLACES, **told, "failures": failures}


def _drawn(files: Sequence[Path], draw: random.Random) -> Path:
    part = draw.choice(KEPT)
    return draw.choice([file for file in files if file.parts[0] == part])


def of_weights(out: Path, draw: random.Random) -> dict[str, Any]:
    """Flips in the files of shipped models, each read."""
    import numpy as np
    from jax import tree

    from train.checkpoints import exported, pretrained
    from train.network.build import network_for
    from train.runtime.errors import UsageError

    told, failures = Counter(), []
    for number in range(PLACES):
        name = draw.choice(pretrained.models())
        folder = out / "model"
        shutil.copytree(pretrained.folder_of(name), folder)
        config = pretrained.read_config(name)
        like = network_for(config.network, config.rules.players).shapes
        wanted = exported.read_weights(pretrained.folder_of(name), like)
        file = ("weights.npz", "card.json")[number % 2]
        where = f"{name}/{file}: {flip(folder / file, draw)}"
        try:
            is_same = exported.read_config(folder) == config
            found = exported.read_weights(folder, like)
            pairs = zip(tree.leaves(found), tree.leaves(wanted), strict=True)
            is_same = is_same and all(np.array_equal(one, other) for one, other in pairs)
            told["harmless" if is_same else "silent"] += 1
            if not is_same:
                failures.append(where)
        except UsageError:
            told["detected"] += 1
        except Exception as error:
            failures.append(f"{where}: {type(error).__name__}: {error}")
        shutil.rmtree(folder)
    return {"places": PLACES, **told, "failures": failures}


def flips(out: Path) -> dict[str, Any]:
    """The figures of both."""
    draw = random.Random(0)
    run, weights = of_run(out, draw), of_weights(out, draw)
    return {"run": run, "weights": weights, "failures": run["failures"] + weights["failures"]}


if __name__ == "__main__":
    runs_lib.main("tests.reliability.flips", flips)
