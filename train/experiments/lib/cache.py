"""Finished pieces of work, each in a file of its own, which the next call reuses."""

import datetime
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from train.runtime.errors import UsageError
from train.runtime.files import replace_text, writing

FOLDER = "pieces"


class ResultCache:
    """Results of finished pieces of work, which all experiments of a folder share.

    Args:
      directory: of the experiments; the files lie in its folder `pieces`.
      machine: where new pieces are made, in words.
    """

    def __init__(self, directory: Path, *, machine: str) -> None:
        self.directory, self._machine = directory, machine
        self._used: dict[Path, Mapping[str, Any]] = {}

    def find(self, name: str, settings: Mapping[str, Any]) -> Any:
        """The result of a finished piece, or None.

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
            raise UsageError(f"{path}: not a result of an experiment; remove the file") from None
        self._used[path] = piece
        return result

    def cached(
        self,
        name: str,
        settings: Mapping[str, Any],
        make: Callable[[], Any],
        *,
        seconds_before: float = 0.0,
    ) -> Any:
        """The result of a finished piece, or of one that is made now.

        Args:
          name: the beginning of its file's name.
          settings: all that decides the result, JSON-ready.
          make: returns the result, JSON-ready.
          seconds_before: time that interrupted calls have spent on it, of which `make` does the
            rest.

        Raises:
          UsageError: a file is damaged or cannot be written.
        """
        finished = self.find(name, settings)
        if finished is not None:
            return finished
        began = time.perf_counter()
        result = make()
        piece = {
            "settings": settings,
            "seconds": seconds_before + time.perf_counter() - began,
            "where": self._machine,
            "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "result": result,
        }
        path, text = self._path(name, settings), json.dumps(piece)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, f"{text}\n")
        self._used[path] = json.loads(text)
        return self._used[path]["result"]

    @property
    def hours(self) -> float:
        """Hours that the used pieces took, whenever they were made."""
        return sum(piece["seconds"] for piece in self._used.values()) / 3600

    def noted(self, key: str) -> list[str]:
        """The machines (`where`) or the days (`day`) of the used pieces."""
        return sorted({piece[key] for piece in self._used.values() if key in piece})

    def _path(self, name: str, settings: Mapping[str, Any]) -> Path:
        text = json.dumps(settings, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.directory / FOLDER / f"{name}-{digest}.json"
