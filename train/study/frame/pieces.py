"""Pieces of a study's work, each kept in a file once it is done, which the next call reuses."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from train.runtime.errors import UsageError
from train.runtime.files import replace_text, writing

FOLDER = "pieces"


class Pieces:
    """The kept pieces of a study, which its topics share.

    Args:
      directory: of the study; the files lie in its folder `pieces`.
      where: the machine in words, noted in the pieces that are made.
    """

    def __init__(self, directory: Path, *, where: str) -> None:
        self.directory, self._where = directory, where
        self.used: list[Mapping[str, Any]] = []

    def find(self, name: str, settings: Mapping[str, Any]) -> Any:
        """The result of a piece that is kept, or None.

        Raises:
          UsageError: its file is damaged.
        """
        path = self._path(name, settings)
        try:
            piece = json.loads(path.read_text(encoding="utf-8"))
            result = piece["result"]
            _ = piece["seconds"], piece["where"]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{path}: not a piece of a study; remove the file") from None
        self.used.append(piece)
        return result

    def keep(
        self,
        name: str,
        settings: Mapping[str, Any],
        make: Callable[[], Any],
        *,
        seconds_before: Callable[[], float] = lambda: 0.0,
    ) -> Any:
        """The kept result of a piece, or else the one that is made now.

        Args:
          name: of the piece, the beginning of its file's name.
          settings: JSON-ready, all that decides the result.
          make: returns the result, JSON-ready.
          seconds_before: returns what calls that were interrupted have spent on it, of which `make`
            does the rest.

        Raises:
          UsageError: a file is damaged or cannot be written.
        """
        found = self.find(name, settings)
        if found is not None:
            return found
        before, began = seconds_before(), time.perf_counter()
        result = make()
        seconds = before + time.perf_counter() - began
        piece = {"settings": settings, "seconds": seconds, "where": self._where, "result": result}
        path = self._path(name, settings)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, json.dumps(piece) + "\n")
        self.used.append(piece)
        return result

    @property
    def hours(self) -> float:
        """Hours that the used pieces took, whenever that was."""
        return sum(piece["seconds"] for piece in self.used) / 3600

    @property
    def machines(self) -> list[str]:
        """The machines that the used pieces were made on."""
        return sorted({piece["where"] for piece in self.used})

    def _path(self, name: str, settings: Mapping[str, Any]) -> Path:
        text = json.dumps(settings, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.directory / FOLDER / f"{name}-{digest}.json"
