"""Files that are written whole: after an error a file is as it was before; errors of reading."""

import contextlib
import gzip
import os
import re
import secrets
import stat
import zlib
from pathlib import Path

DAMAGES = (EOFError, UnicodeDecodeError, gzip.BadGzipFile, zlib.error)
UNREADABLE = (OSError, *DAMAGES)
"""What reading a file raises that may be compressed: missing, cut short, no text or damaged."""
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.tmp")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step, in place of one that is there, whose permissions it keeps.

    What is no regular file, such as a pipe, is written to as it is.

    Raises:
      OSError: it cannot be written, with the path.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = path.resolve()  # The file, where the path is a link to it.
    unnamed = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with unnamed.open("xb") as file:
            # A target that is new, or a file system without permissions, has none to keep.
            with contextlib.suppress(OSError):
                unnamed.chmod(stat.S_IMODE(target.stat().st_mode))
            file.write(content)
        os.replace(unnamed, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            unnamed.unlink(missing_ok=True)


def is_unfinished(name: str) -> bool:
    """Whether a file's name is one that `write_whole` leaves where its process is killed."""
    return _UNFINISHED.fullmatch(name) is not None
