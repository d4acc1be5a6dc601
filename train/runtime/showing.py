"""What shows work or notes it beside its result, and whose errors never end the work.

Standard output, TensorBoard, pictures and files of games may fail where the disk is full, a service
is gone or a library is broken. That is told in a line, and the work goes on.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from train.runtime.errors import UsageError, one_line

_unwritten: set[str] | None = None
"""What a command could not write so far, by name; None where no command runs."""


def tell(text: str) -> None:
    """Print a line on standard error; where that cannot be written either, nobody is told."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def tell_error(what: object, error: Exception, then: str) -> None:
    """Tell what failed, why, and what happens then."""
    is_known = isinstance(error, OSError | UsageError)
    reason = getattr(error, "strerror", None) or one_line(error) or type(error).__name__
    reason = reason if is_known else f"{type(error).__name__}: {reason}"
    # An error of the package's own names its file already.
    where = "" if reason.startswith(f"{what}: ") else f"{what}: "
    tell(f"{where}{reason}; {then}")


@contextlib.contextmanager
def sparing(what: object, then: str = "the work goes on without it") -> Iterator[None]:
    """Tell an error of writing or drawing something in place of raising it, a command once.

    Args:
      what: the file, or what it is in words.
      then: what happens then, in words.
    """
    try:
        yield
    except Exception as error:
        if _unwritten is None or str(what) not in _unwritten:
            tell_error(what, error, then)
        if _unwritten is not None:
            _unwritten.add(str(what))


def is_unwritten(what: object = None) -> bool:
    """Whether the command could not write something, or anything at all, within `sparing`."""
    unwritten = _unwritten or set()
    return bool(unwritten) if what is None else str(what) in unwritten


@contextlib.contextmanager
def sparing_output() -> Iterator["SparedOutput"]:
    """Within a command its output is a `SparedOutput`, which is yielded; that for errors is one,
    too."""
    global _unwritten
    out, err, before = sys.stdout, sys.stderr, _unwritten
    _unwritten = set()
    shown = spared(out)
    sys.stdout, sys.stderr = shown, SparedOutput(err, is_last=True)
    try:
        yield shown
    finally:
        sys.stdout, sys.stderr, _unwritten = out, err, before


def spared(stream: Any) -> Any:
    """A stream as a `SparedOutput`, which it may be already."""
    return stream if isinstance(stream, SparedOutput) else SparedOutput(stream)


def drop_unwritten(stream: Any) -> None:
    """Write what a stream holds to its file, or to nowhere if that fails: else Python would tell
    the error when it exits, and leave with a code of its own."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class SparedOutput:
    """A stream of text, whose errors do not end the work: what it does not take goes to standard
    error. A pipe whose reader has left raises BrokenPipeError, as it does elsewhere.

    Attributes:
      has_failed: something was not written here.
    """

    def __init__(self, stream: Any, *, is_last: bool = False) -> None:
        """Stand before a stream; behind the last one is nothing, so what it does not take is
        lost."""
        self._stream, self._is_last = stream, is_last
        self._held = ""  # what may still be in the stream's buffer
        self.has_failed = False

    def write(self, text: str) -> int:
        """Write a text, and each line at once."""
        self._held += text
        with self._failing_over():
            self._stream.write(text)
        if "\n" in text:
            self.flush()
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write out what is held."""
        with self._failing_over():
            self._stream.flush()
            self._held = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _failing_over(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            if isinstance(error, BrokenPipeError) and not self._is_last:
                raise
            held, self._held = self._held, ""
            if not self._is_last and not self.has_failed:
                tell_error(_name_of(self._stream), error, "what it does not take is shown here")
            self.has_failed = True
            if not self._is_last and held:
                with contextlib.suppress(OSError, ValueError):
                    sys.stderr.write(held)
                    sys.stderr.flush()


def _name_of(stream: Any) -> str:
    """The path of an open file where the system tells it, else what it is in words."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        path = os.readlink(f"/proc/self/fd/{stream.fileno()}")
        if path.startswith("/"):
            return f"{path}: cannot be written"
    return "standard output: cannot be written"
