"""A lock on a directory, which one process holds at a time and the kernel takes from a dead one."""

import contextlib
import datetime
import errno
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from train.runtime.errors import UsageError
from train.runtime.files import reason_of

_HELD = {errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK}


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which need not exist yet: a file beside it, `.NAME.lock`.

    It tells who holds the lock: process, host and since when. A process that is killed leaves the
    file, which locks nothing. Where the file system has no locks, a line says so.

    Raises:
      UsageError: another process holds it, or the file cannot be made.
    """
    target = directory.resolve()
    path = target.with_name(f".{target.name}.lock")
    try:
        is_new = not path.parent.exists()
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
        file = _take(path, directory)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made: {reason_of(error)}") from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)  # while it is held, so that no other's file goes
        file.close()
        if is_new:
            with contextlib.suppress(OSError):
                path.parent.rmdir()  # of a run that never began; stays where there is anything


def _take(path: Path, directory: Path) -> IO[str]:
    """Open and lock the file, and note in it who holds it."""
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            _lock(file)
        except OSError as error:
            if error.errno in _HELD:
                file.seek(0)
                holder = _holder(file.read())
                file.close()
                raise UsageError(
                    f"{directory}: in use by {holder}; wait for it or stop it, or choose another "
                    "--name"
                ) from None
            reason = reason_of(error)
            print(f"{directory}: cannot be locked ({reason}): start no second run", file=sys.stderr)
        if _is_there(path, file):
            break
        file.close()  # its holder removed it when it ended
    file.truncate(0)
    now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now}) + "\n")
    file.flush()
    return file


def _lock(file: IO[str]) -> None:
    try:
        import fcntl
    except ImportError:  # not a Unix system
        raise OSError(errno.ENOSYS, "no file locks on this system") from None
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_there(path: Path, file: IO[str]) -> bool:
    """Whether the path still names the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _holder(text: str) -> str:
    try:
        noted = json.loads(text)
        return f"process {noted['pid']} on {noted['host']} since {noted['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
