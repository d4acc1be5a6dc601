"""Players that are other programs: they speak the engine's protocol on standard input and output.

A program is started once and plays all its games, one session a game. docs/players.md describes the
messages and has a whole program.
"""

import atexit
import collections
import contextlib
import json
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from train.players.basic import Player
from train.runtime.errors import UsageError

MOVE_SECONDS = 60.0
"""Time of a move unless said."""
START_SECONDS = 1800.0
"""Time from the start of a program to its first response: it may have to compile."""
MAX_RESPONSE = 1_000_000
_PREFIX = "external:"
_TOLD = 200  # characters of what a program wrote that an error repeats

Message = Mapping[str, Any]


_Key = tuple[str, str]
"""Session and type of a response."""
_RESPONSES = {
    "start_game_session": "game_session_started",
    "evaluate_position": "evaluate_response",
    "apply_move": "move_applied",
    "end_game_session": "game_session_ended",
}


class ProgramError(Exception):
    """A program has ended, is silent, or says that it cannot; one line says which."""


class Program:
    """A running program: requests go in, responses come out, in any order among sessions."""

    def __init__(self, command: str) -> None:
        """Start it.

        Raises:
          UsageError: there is no such program.
        """
        try:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise UsageError(f"player '{_PREFIX}{command}': cannot be started: {reason}") from None
        self.has_answered = False
        self._requests: queue.Queue[bytes | None] = queue.Queue()
        self._responses: queue.Queue[bytes | None] = queue.Queue()
        self._log: collections.deque[bytes] = collections.deque(maxlen=20)
        self._read: dict[_Key, collections.deque[Message]] = collections.defaultdict(
            collections.deque
        )
        self._is_over = False
        for work in (self._write, self._read_lines, self._read_log):
            threading.Thread(target=work, daemon=True).start()

    def ask(self, requests: Sequence[Message], *, seconds: float) -> list[Message | ProgramError]:
        """Send requests and wait for their responses, or what went wrong, in order.

        Args:
          requests: of any sessions; those of one session are answered in order.
          seconds: for all together, once the program has answered for the first time.
        """
        self.tell(requests)
        keys = [(request["bgsId"], _RESPONSES[request["type"]]) for request in requests]
        missing = collections.Counter(keys)
        for key in list(missing):
            missing[key] -= len(self._read[key])
        limit = seconds if self.has_answered else max(seconds, START_SECONDS)
        deadline = time.monotonic() + limit
        while any(count > 0 for count in missing.values()):
            is_first = not self.has_answered
            key = self._take(deadline - time.monotonic())
            if key is None:
                break
            if is_first:
                limit, deadline = seconds, time.monotonic() + seconds
            missing[key] -= 1
        return [self._outcome(key, limit) for key in keys]

    def tell(self, requests: Sequence[Message]) -> None:
        """Send requests whose responses do not matter."""
        for request in requests:
            self._requests.put(f"{json.dumps(request)}\n".encode())

    @property
    def is_over(self) -> bool:
        """Whether the program has ended."""
        return self._is_over or self._process.poll() is not None

    def close(self) -> None:
        """End the program: its input ends, and if it does not end by itself it is terminated."""
        self._requests.put(None)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process.kill()
            self._process.wait()

    def _take(self, seconds: float) -> "_Key | None":
        """Take a response; returns whose it is, None where none comes in time."""
        try:
            line = None if self._is_over else self._responses.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None
        if line is None:
            self._is_over = True
            return None
        response: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            response = json.loads(line)
        if not isinstance(response, dict):
            return "", ""
        self.has_answered = True
        key = str(response.get("bgsId")), str(response.get("type"))
        if key[1] != _RESPONSES["end_game_session"]:
            self._read[key].append(response)
        return key

    def _outcome(self, key: "_Key", seconds: float) -> Message | ProgramError:
        if self._read[key]:
            response = self._read[key].popleft()
            if response.get("success") is True:
                return response
            return ProgramError(f"refuses: {_short(response.get('error'))}")
        if not self._is_over:
            return ProgramError(f"gave no answer within {seconds:g} s")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        last = self._log[-1].decode(errors="replace").strip() if self._log else ""
        return ProgramError(
            f"ended with exit code {self._process.returncode}{f': {_short(last)}' if last else ''}"
        )

    def _write(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as stream:
            while (data := self._requests.get()) is not None:
                stream.write(data)
                stream.flush()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError), self._process.stdout as stream:
            while line := stream.readline(MAX_RESPONSE):
                self._responses.put(line)
        self._responses.put(None)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(OSError, ValueError), self._process.stderr as stream:
            for line in stream:
                if line.strip():
                    self._log.append(line)


class ExternalAct:
    """How an external player acts: by its program, outside of all compiled code.

    Attributes:
      command: starts the program.
      seconds: of a move.
    """

    def __init__(self, command: str, seconds: float) -> None:
        self.command, self.seconds = command, seconds
        self._program: Program | None = None

    def program(self) -> Program:
        """The running program; started where there is none, or it has ended.

        Raises:
          UsageError: it cannot be started.
        """
        if self._program is None or self._program.is_over:
            self.close()
            self._program = Program(self.command)
            atexit.register(self.close)
        return self._program

    def close(self) -> None:
        """End the program."""
        if self._program is not None:
            self._program.close()
            self._program = None
            atexit.unregister(self.close)

    def __call__(self, *arguments: Any) -> NoReturn:
        raise UsageError(
            f"player '{_PREFIX}{self.command}': plays in match, gate, tournament and elo alone"
        )


def make_external_player(command: str, *, seconds: float = MOVE_SECONDS) -> Player:
    """The player of a command; its program starts with its first game.

    Raises:
      UsageError: the command is no command.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"player '{_PREFIX}{command}': {str(error).lower()}") from None
    if not words:
        raise UsageError(f"player '{_PREFIX}{command}': names no command")
    return Player(f"{_PREFIX}{command}", (), ExternalAct(command, seconds))


def _short(text: Any) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _TOLD else f"{line[:_TOLD]}..."
