"""Files and directories of results: written whole, read as JSON and TOML, locked, with errors of
the disk in one line."""

import contextlib
import datetime
import errno
import gzip
import json
import math
import os
import socket
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

from train.runtime.errors import UsageError, message_of, one_line
from train.runtime.showing import tell
from wallgo_jax.formats.files import UNREADABLE, write_whole
from wallgo_jax.formats.option_names import argument

_T = TypeVar("_T")

_NAMES = (
    *("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "EIO", "ENAMETOOLONG"),
    # Of disks that are gone, and of network disks: NFS, Lustre, FUSE.
    *("ENODEV", "ENXIO", "ESTALE", "EREMOTEIO", "ENOLCK", "ENOLINK", "ETIMEDOUT", "ENOTCONN"),
    *("ESHUTDOWN", "ECONNABORTED", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH"),
)
_EXPECTED = {getattr(errno, name) for name in _NAMES if hasattr(errno, name)}
"""Reasons that lie with the machine or the path, not with this program; no system has them all."""
_UNREADABLE = " "
"""A lock's file begins with it: Windows locks the first byte, which nobody else then reads."""


class CannotWriteError(UsageError):
    """A file cannot be written; the message names it and the reason."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into one line that names the path.

    Raises:
      CannotWriteError: the path cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be written: {reason_of(error)}") from None


@contextlib.contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Turn an error of a file that cannot be read, or is damaged, into one line that names it.

    Raises:
      UsageError: the path cannot be read.
    """
    try:
        yield
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or "not a text (UTF-8) or gzip file"
        raise UsageError(f"{path}: cannot be read: {reason}") from None


def reason_of(error: OSError) -> str:
    """The system's words for an error, or that no relative path can be found."""
    if isinstance(error, FileNotFoundError) and not _has_working_folder():
        return "the working folder was deleted: change to another one"
    return error.strerror or one_line(error) or type(error).__name__


def complaint_of(error: OSError) -> str | None:
    """A line for an error whose reason lies with the machine or the path, else None."""
    if isinstance(error, FileNotFoundError) and not _has_working_folder():
        return reason_of(error)
    if error.errno not in _EXPECTED:
        return None
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}cannot be read or written: {reason_of(error)}"


def _has_working_folder() -> bool:
    """Whether the folder that relative paths begin from is there."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def disk_error(error: BaseException | None) -> str | None:
    """The system's words where an error, or one that it came from, is about the disk, else None.

    Libraries wrap such errors into their own, some with the words alone.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _EXPECTED:
            return reason_of(error)
        for words in map(os.strerror, sorted(_EXPECTED)):
            if words in str(error):
                return words
        error = error.__cause__ or error.__context__
    return None


def check_writable(path: Path) -> None:
    """Refuse a path that no file can be written to, before work is done whose results go there.

    Makes the directories above it; leaves a file that is there as it is. A pipe or a device is not
    tried: its reader would take that for all that comes.

    Raises:
      CannotWriteError: the path names a directory, or it or one above it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        if existed and not (path.is_file() or path.is_dir()):
            return
        with path.open("ab"):
            pass
        if not existed:
            path.resolve().unlink()  # The file, where the path is a link to it.


def plain_data(data: Any) -> Any:
    """Figures for JSON: records as dicts, tuples as lists; NaN and infinities, which few readers
    take, as null."""
    if hasattr(data, "_asdict"):
        data = data._asdict()
    if isinstance(data, Mapping):
        return {str(key): plain_data(value) for key, value in data.items()}
    if isinstance(data, Sequence) and not isinstance(data, str):
        return [plain_data(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_json(path: Path, data: Any) -> None:
    """Write a file of indented JSON in one step: it is never half-written.

    Raises:
      CannotWriteError: it cannot be written.
    """
    replace_text(path, json.dumps(data, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read a file of JSON.

    Raises:
      UsageError: it cannot be read, or is no JSON.
    """
    return _parse(path, "JSON", json.loads)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of TOML.

    Raises:
      UsageError: it cannot be read, or is no TOML.
    """
    return _parse(path, "TOML", tomllib.loads)


def _parse(path: Path, kind: str, parse: Callable[[str], Any]) -> Any:
    text = read_text(path)
    try:
        return parse(text)
    except (RecursionError, ValueError) as error:  # a number of 4300 digits is a ValueError, too
        raise UsageError(f"{path}: cannot be read: not {kind}: {one_line(error)}") from None


def read_text(path: Path) -> str:
    """A text file's content; one that ends in .gz is compressed.

    Raises:
      UsageError: it cannot be read.
    """
    with reading(path):
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")


def read_json_lines(path: Path) -> list[str]:
    """The lines of a file of JSON lines but for a half-written last one; none where it is missing.

    Raises:
      UsageError: it cannot be read.
    """
    text = read_text(path) if path.exists() else ""
    lines = text.splitlines()
    if lines and not text.endswith("\n") and not _is_whole(lines[-1]):
        lines.pop()
    return lines


def append_line(path: Path, line: str) -> None:
    """Add a line of JSON to a file of such lines; makes the file and its directory.

    A last line that was left without a line feed gets one; a half-written one is dropped.

    Raises:
      CannotWriteError: it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes() if path.exists() else b""
        end = data.rfind(b"\n") + 1
        is_whole = _is_whole(data[end:].decode(errors="replace"))
        with path.open("ab") as file:
            if not is_whole:
                file.truncate(end)
            feed = "\n" if is_whole and end < len(data) else ""
            file.write(f"{feed}{line}\n".encode())


def _is_whole(line: str) -> bool:
    """Whether a line is JSON: a process that was killed, or a full disk, leaves a part of one."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def parse_lines(
    path: Path, lines: Iterable[str], parse: Callable[[str], _T], *, hint: str = ""
) -> list[_T]:
    """The values of a file's lines; empty lines are left out.

    Raises:
      UsageError: which line is wrong, by the ValueError of `parse`, and the hint.
    """
    values = []
    for number, line in enumerate(lines, start=1):
        try:
            values += [parse(line)] if line.strip() else []
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {message_of(error)}{hint}") from None
    return values


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file as `replace_bytes` does; one that ends in .gz is compressed. The same lines
    give the same bytes."""
    data = "".join(f"{line}\n" for line in lines).encode()
    replace_bytes(path, gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)


def replace_text(path: Path, text: str) -> None:
    """Write a text file as `replace_bytes` does."""
    replace_bytes(path, text.encode())


def replace_bytes(path: Path, content: bytes) -> None:
    """Write a file in one step, and its directory if it is missing: it is never half-written, and
    after an error it is as before. A link stays one, and a pipe or a device is written to.

    Raises:
      CannotWriteError: it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)


def names_of_runs(runs: Sequence[Path]) -> list[str]:
    """The directories' names, or, where two have the same, their paths."""
    short = [run.resolve().name for run in runs]
    return short if len(set(short)) == len(short) else [str(run) for run in runs]


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which need not exist yet: a file beside it, `.NAME.lock`.

    One process holds it at a time, and the kernel takes it from a dead one. The file tells who
    holds the lock. Where the file system has no locks, a line says so.

    Raises:
      UsageError: another process holds it, or the file cannot be made.
    """
    with writing(directory):
        target = directory.resolve()
    path = target.with_name(f".{target.name}.lock")
    is_new = not path.parent.exists()
    with contextlib.ExitStack() as stack:
        with writing(directory):
            path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                file = stack.enter_context(path.open("a+", encoding="utf-8"))
                _lock(file, directory)
                if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    break  # else its holder has removed it
            now = datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
            file.truncate(0)
            file.write(f"{_UNREADABLE}{_holder()}{now}")
            file.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)  # while it is held, so that no other's file goes
                if is_new:
                    path.parent.rmdir()  # of a run that never began; stays where there is anything


def _holder() -> str:
    """How this process's line in a lock's file begins."""
    return f"process {os.getpid()} on {socket.gethostname()} since "


def _lock(file: IO[str], directory: Path) -> None:
    """Lock an open file."""
    # Here, since it takes longer to load than a help page has.
    from filelock import lock_descriptor

    try:
        is_ours = lock_descriptor(file.fileno(), blocking=False)
    except OSError as error:
        reason = reason_of(error)
        tell(f"{directory}: cannot be locked ({reason}): start no second run")
        return
    if is_ours:
        return
    file.seek(len(_UNREADABLE))
    holder = file.read()
    if holder.startswith(_holder()):
        raise UsageError(
            f"{directory}: in use by this process ({holder}), where a run is open: "
            "`run.close()` saves it and leaves the directory"
        )
    raise UsageError(
        f"{directory}: in use by {holder or 'another process'}; wait for it or stop it, "
        f"or choose another {argument('name')}"
    )
