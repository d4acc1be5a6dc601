"""Players that are other programs: they speak the engine's protocol on standard input and output.

A program is started once and plays all its games, one session a game. docs/engine.md describes the
messages and has a whole program.
"""

import collections
import contextlib
import json
import queue
import shlex
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from train.players.basic import Player
from train.players.names import MOVE_SECONDS
from train.runtime.errors import UsageError, usage_errors

START_SECONDS = 600.0
"""Time from the start of a program to its first response: it may have to compile."""
STRAY_SECONDS = 60.0
"""Time to its first response for a program that wrote a line that answers no request."""
MAX_RESPONSE = 1_000_000
MAX_STRAY = 1000
"""Lines that are no response to a request, after which a program is given up."""
_MAX_UNREAD = 10_000  # lines
_PREFIX = "external:"
_TOLD = 200  # characters of what a program wrote that an error repeats

Message = Mapping[str, Any]
_RESPONSES = {
    "start_game_session": "game_session_started",
    "evaluate_position": "evaluate_response",
    "apply_move": "move_applied",
    "end_game_session": "game_session_ended",
}


class ProgramError(Exception):
    """A program has ended, is silent, or refuses a request; one line says which."""


class Program:
    """A running program: requests go in, responses come out, in any order among sessions.

    Attributes:
      has_answered: whether there has been a response.
    """

    def __init__(self, command: str) -> None:
        """Start a command.

        Raises:
          UsageError: there is no such program.
        """
        try:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C is for the match: a program that took it, too, would lose all its games.
                start_new_session=True,
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"player '{_PREFIX}{command}': cannot be started: {reason}") from None
        self.has_answered = False
        self._requests: queue.Queue[bytes | None] = queue.Queue()
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MAX_UNREAD)
        self._log: collections.deque[bytes] = collections.deque(maxlen=20)
        self._stray, self._strays = "", 0  # the last line that is no response, and their number
        self._failure = ""  # why it is given up
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._log_reader.start()
        for task in (self._write, self._read_lines):
            threading.Thread(target=task, daemon=True).start()

    def ask(self, requests: Sequence[Message], *, seconds: float) -> list[Message | ProgramError]:
        """Send requests and wait for their responses, or what went wrong, in order.

        Args:
          requests: of any sessions; those of one session are answered in order.
          seconds: from one response to the next; the first of all has time to start.
        """
        self.tell(requests)
        keys = [(request["bgsId"], _RESPONSES[request["type"]]) for request in requests]
        missing, received = collections.Counter(keys), collections.defaultdict(collections.deque)
        limit = seconds if self.has_answered else max(seconds, START_SECONDS)
        deadline = time.monotonic() + limit
        while missing.total() and not self._failure:
            line = self._take(deadline, limit)
            response, now = _read_object(line), time.monotonic()
            key = str(response.get("bgsId")), str(response.get("type"))
            if missing[key]:
                self.has_answered, limit, deadline = True, seconds, now + seconds
                missing[key] -= 1
                received[key].append(response)
            elif line and key[1] != _RESPONSES["end_game_session"]:
                self._note_stray(line.decode(errors="replace"))
                if not self.has_answered:
                    limit = min(limit, max(seconds, STRAY_SECONDS))
                    deadline = min(deadline, now + limit)
        return [self._outcome(received[key]) for key in keys]

    def tell(self, requests: Sequence[Message]) -> None:
        """Send requests whose responses do not matter."""
        for request in requests:
            self._requests.put(f"{json.dumps(request)}\n".encode())

    @property
    def has_failed(self) -> bool:
        """Whether the program has ended, or is given up."""
        return bool(self._failure) or self._process.poll() is not None

    def close(self) -> None:
        """End the program: its input ends, and if it does not end by itself it is terminated."""
        self._requests.put(None)
        try:
            self._process.wait(timeout=1 if self._failure else 5)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process.kill()
            self._process.wait()

    def _take(self, deadline: float, limit: float) -> bytes:
        """The next line; empty where none comes until the deadline, `limit` seconds from its start:
        the program is given up."""
        try:
            line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            stray = f"; it wrote {short(self._stray)!r}" if self._stray else ""
            self._failure = f"gave no answer within {limit:g} s{stray}"
            return b""
        if line is None:
            self._failure = self._how_it_ended()
        return line or b""

    def _note_stray(self, line: str) -> None:
        self._stray, self._strays = line, self._strays + 1
        if self._strays == MAX_STRAY:
            last = repr(short(line))
            self._failure = f"wrote {MAX_STRAY} lines that answer no request, the last {last}"

    def _how_it_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=3)
            self._log_reader.join(timeout=1)  # What it wrote last may still be on its way.
        last = self._log[-1].decode(errors="replace").strip() if self._log else ""
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with exit code {code}"
        return f"{how}: {short(last)}" if last else how

    def _outcome(self, received: "collections.deque[Message]") -> Message | ProgramError:
        """The next of some responses, or why there is none."""
        if not received:
            return ProgramError(self._failure)
        response = received.popleft()
        if response.get("success") is True:
            return response
        return ProgramError(f"refuses: {short(response.get('error'))}")

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
                self._lines.put(line)
        self._lines.put(None)

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
      seconds: from one answer to the next.
      has_answered: whether a program of this command has ever answered.
    """

    def __init__(self, command: str, seconds: float) -> None:
        self.command, self.seconds = command, seconds
        self.has_answered = False
        self._program: Program | None = None

    def program(self) -> Program:
        """The running program; started where there is none, or it has failed.

        Raises:
          UsageError: it cannot be started.
        """
        if self._program is None or self._program.has_failed:
            self.close()
            self._program = Program(self.command)
            # At the end of the process, too; `atexit` would keep this player until then.
            self._end = weakref.finalize(self, self._program.close)
        return self._program

    def ask(self, requests: Sequence[Message]) -> list[Message | ProgramError]:
        """Ask the program that `program` returned; see `Program.ask`.

        Raises:
          UsageError: no program of this command has ever answered.
        """
        assert self._program is not None
        answers = self._program.ask(requests, seconds=self.seconds)
        self.has_answered |= self._program.has_answered
        if not self.has_answered:
            self.close()
            raise UsageError(f"player '{_PREFIX}{self.command}': {answers[0]}")
        return answers

    def close(self) -> None:
        """End the program."""
        if self._program is not None:
            self._program.close()
            self._end.detach()
            self._program = None

    def __call__(self, *arguments: Any) -> NoReturn:
        raise UsageError(
            f"player '{_PREFIX}{self.command}': can play only in match, tournament and elo"
        )


def make_external_player(command: str, *, seconds: float = MOVE_SECONDS) -> Player:
    """The player of a command; its program starts with its first game.

    Raises:
      UsageError: the command is no command.
    """
    with usage_errors(f"player '{_PREFIX}{command}'"):
        if not shlex.split(command):
            raise ValueError("names no command")
    return Player(f"{_PREFIX}{command}", (), ExternalAct(command, seconds))


def short(text: Any) -> str:
    """What a program wrote, in one line that is not long."""
    line = " ".join(str(text).split())
    return line if len(line) <= _TOLD else f"{line[:_TOLD]}..."


def _read_object(line: bytes) -> Message:
    """The JSON object of a line, an empty one where it holds none."""
    with contextlib.suppress(ValueError, RecursionError):
        read: Any = json.loads(line)
        return read if isinstance(read, dict) else {}
    return {}
