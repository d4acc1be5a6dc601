"""Trains tiny runs, resumes copies of their directories in this process, and compares the two."""

import contextlib
import ctypes
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import compiling

NAME = "tiny"
WORDS = ["--evaluation.opponents=[]", "--iterations=8"]  # matches would take most of the time
_SHIM = "WALLGO_SHIM"


class Resumed(NamedTuple):
    """What a resumed run said: its lines of errors, and how it differs from one left alone."""

    said: list[str]
    is_refused: bool
    difference: str


def prepare(module: str, out: Path) -> None:
    """Start this script again with the shim loaded and JAX set up; return in that process."""
    if _SHIM in os.environ:
        return
    if out.exists():
        raise SystemExit(f"{out}: exists already; choose another folder")
    out.mkdir(parents=True)
    library = (out / "shim.so").resolve()
    source = Path(__file__).with_name("shim.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    more = {"LD_PRELOAD": str(library), _SHIM: str(library), "JAX_NUM_CPU_DEVICES": "1"}
    command = [sys.executable, "-m", module, *sys.argv[1:]]
    os.execve(sys.executable, command, compiling.environment() | more)


def config() -> Any:
    """The tiny run without matches."""
    from tests.support.learner import tiny

    return tiny.config(*WORDS)


def start(runs: Path, *, kinds: Path | None = None) -> int:
    """Fork a process that trains in `runs`, whose JAX has not begun; returns its id.

    Each iteration whose saving has returned is appended to `runs`/tiny.saved. Where `kinds` names a
    file, the process stops before the first call of each kind, and again after the first save.
    """
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        output = os.open(runs.with_suffix(".output"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if kinds is not None:
            _arm(runs, os.open(kinds, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        else:
            _tell_saves(runs, lambda: None)
        from train.loop import training

        code = 0 if training.train(config(), runs, resume=False) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _arm(runs: Path, listing: int) -> None:
    library = ctypes.CDLL(os.environ[_SHIM])

    def arm() -> None:
        library.shim_arm(f"{runs.resolve()}/".encode(), listing)

    arm()
    _tell_saves(runs, arm)


def _tell_saves(runs: Path, then: Callable[[], None]) -> None:
    """Make this process write down what is saved, and call `then` after its first save."""
    from train.loop import reporting

    save, done = reporting.save_checkpoint, []

    def told_save(directory: Path, iteration: int, *values: Any, **named: Any) -> None:
        save(directory, iteration, *values, **named)
        descriptor = os.open(runs / "saved", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{iteration}\n".encode())
        os.close(descriptor)
        if not done:
            then()
        done.append(iteration)

    reporting.save_checkpoint = told_save


def resume(runs: Path, straight: Path, *, is_damaged: bool = False) -> Resumed:
    """Go on with a copy of a run, in this process, and compare it with the run left alone.

    A damaged one may begin at an older save than the newest where a line says so.
    """
    from train.checkpoints import store
    from train.loop import training
    from train.loop.run_directory import STARTS_FILE, resumed_config
    from train.runtime.errors import UsageError

    errors, directory = io.StringIO(), runs / NAME
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            goes_on = directory.exists()
            wanted = resumed_config(directory) if goes_on else config()
            training.train(wanted, runs, resume=goes_on)
    except UsageError as error:
        return Resumed([*errors.getvalue().splitlines(), str(error)], True, "")
    said = errors.getvalue().splitlines()
    path = runs / "saved"
    saved = max(map(int, path.read_text().split()), default=0) if path.exists() else 0
    starts = json.loads((directory / STARTS_FILE).read_text())["starts"]
    began = starts[-1]["iterations"][0]
    if began < saved and not (is_damaged and said):
        return Resumed(said, False, f"began at {began}, where {saved} was saved")
    newest = store.newest_iteration(directory, store.RESUME)
    if newest != wanted.iterations or rows(runs) != rows(straight):
        return Resumed(said, False, "metrics differ")
    for name in ("config.json", "game.jsonl"):
        if (directory / name).read_bytes() != (straight / NAME / name).read_bytes():
            return Resumed(said, False, f"{name} differs")
    return Resumed(said, False, "")


def rows(runs: Path) -> list[dict[str, Any]]:
    """The metrics, all but the wall clock's."""
    from tests.support.learner.commands import untimed

    lines = (runs / NAME / "metrics.jsonl").read_bytes().splitlines()
    return [untimed(json.loads(line)) for line in lines]


def finished(child: int, runs: Path) -> None:
    """Refuse a run that did not end well."""
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit((runs.with_suffix(".output")).read_text())


def main(module: str, script: Callable[[Path], dict[str, Any]]) -> None:
    """Run a script whose only word is a new folder; keep its figures in `figures.json` there."""
    if len(sys.argv) < 2:
        raise SystemExit(f"usage: python -m {module} OUT")
    out = Path(sys.argv[1])
    prepare(module, out)
    figures = script(out)
    text = json.dumps(figures, indent=2) + "\n"
    print(text, end="")
    (out / "figures.json").write_text(text)
    sys.exit(1 if figures["failures"] else 0)
