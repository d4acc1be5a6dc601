"""Files that are written whole: after an error a file is as it was before."""

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step, in place of one that is there.

    What is no regular file, such as a pipe, is written to as it is.

    Raises:
      OSError: it cannot be written, with the path.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = path.resolve()  # The file, where the path is a link to it.
    unnamed = target.with_name(f"{target.name}.tmp")
    try:
        unnamed.write_bytes(content)
        os.replace(unnamed, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            unnamed.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
