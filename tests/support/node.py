"""The page's engine in a process of node, which answers requests line by line."""

import json
import subprocess
from pathlib import Path
from typing import Any

_DRIVER = Path(__file__).with_name("engine.mjs")


class Engine:
    """A running process."""

    def __init__(self, node: str) -> None:
        self._process = subprocess.Popen(
            [node, str(_DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, kind: str, **fields: Any) -> Any:
        """The answer to a request.

        Raises:
          ValueError: the engine refuses, in its words.
        """
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"kind": kind, **fields}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if isinstance(answer, dict) and "stack" in answer:
            raise ValueError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
