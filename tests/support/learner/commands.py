"""Commands of `python -m train` on the tiny run, and readers of the files they write."""

import contextlib
import io
import json
import struct
from pathlib import Path
from typing import NamedTuple

from tensorboardX.proto.event_pb2 import Event

from tests.support.learner import tiny
from train.__main__ import main
from train.cli.options import EXIT_USAGE

CONFIG = tiny.config()
RULES = json.dumps(tiny.RULES.to_dict())
MATCH = ["--rules", RULES, "--games", "20", "--batch", "20", "--seed", "4"]


class Said(NamedTuple):
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str


def command(*words: object) -> Said:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return Said(code, out.getvalue(), err.getvalue())


def complaint(said: Said) -> str:
    """The message of a usage error, without `error: ` before it, or tyro's report."""
    assert said.code == EXIT_USAGE == 2
    assert "Traceback" not in said.err
    return said.err.removeprefix("error: ").rstrip()


def read_rows(directory: Path) -> list[dict]:
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def untimed(row: dict) -> dict:
    """A row of metrics, all but the figures of the wall clock."""
    timed = ("_seconds", "_per_second", "wall_time")
    return {name: value for name, value in row.items() if not name.endswith(timed)}


def read_scalars(directory: Path) -> dict[str, dict[int, float]]:
    """The values of TensorBoard's event files by name and step, which none may have twice."""
    found: dict[str, dict[int, float]] = {}
    for path in sorted((directory / "tensorboard").iterdir()):
        data, place = path.read_bytes(), 0
        while place < len(data):
            # A record is a length, its checksum, an event, its checksum.
            (length,) = struct.unpack_from("<Q", data, place)
            event = Event.FromString(data[place + 12 : place + 12 + length])
            place += 16 + length
            for value in event.summary.value:
                steps = found.setdefault(value.tag, {})
                assert event.step not in steps, (value.tag, event.step)
                steps[event.step] = value.simple_value
    return found


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()
    }
