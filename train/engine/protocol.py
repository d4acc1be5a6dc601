"""The messages of an engine as JSON objects: one request, one response.

They are those of a bot game session in the public protocol of wallgame.io (its blog post "Training
an AlphaZero-Style AI for a New Board Game", section "The Protocol", and its repository's
`custom-bot-protocol.ts`): `start_game_session`, `evaluate_position`, `apply_move` and
`end_game_session`. docs/players.md lists their keys.
"""

import asyncio
import contextlib
import dataclasses
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from train.engine.answers import Candidate, Evaluation, SessionError, Standing
from train.engine.sessions import Sessions
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import sizes_of

MAX_NAME = 200
"""Longest name of a session, in characters."""
MAX_MESSAGE = 65_536
"""Longest request, in bytes."""

_TOO_LARGE = 2**63
MAX_ERROR = 400
"""Longest error, in characters."""

T = TypeVar("T", bound=int | float | None)

Request = Mapping[str, Any]
Response = dict[str, Any]

_LOG = logging.getLogger(__name__)
_NO_MOVE: Response = {"ply": None, "bestMove": "", "evaluation": 0.0}
_RESPONSES: dict[str, tuple[str, Response]] = {
    "start_game_session": ("game_session_started", {}),
    "evaluate_position": ("evaluate_response", _NO_MOVE),
    "apply_move": ("move_applied", {"ply": None}),
    "end_game_session": ("game_session_ended", {}),
}
"""The response to each request, and what it has where the request fails."""


class Protocol:
    """Answers requests about the sessions of one or more shapes (size, players, stones)."""

    def __init__(self, engines: Sequence[Sessions]) -> None:
        """The first of the engines is the one for sessions that name no rules."""
        self._engines = engines
        self._sessions: dict[str, Sessions] = {}
        self._turns: dict[str, _Turn] = {}
        self._answers: dict[str, Callable[[str, Request], Awaitable[Response]]] = {
            "start_game_session": self._start,
            "evaluate_position": self._evaluate,
            "apply_move": self._apply,
            "end_game_session": self._end,
        }

    async def answer(self, line: bytes) -> Response:
        """The response to a request as it was read. Those of one session are answered in the order
        in which this was called."""
        try:
            request = _read(line)
        except SessionError as error:
            return failure(str(error))
        kind, name = request.get("type"), request.get("bgsId")
        shown = name if isinstance(name, str) and len(name) <= MAX_NAME else None
        if not isinstance(kind, str) or kind not in _RESPONSES:
            known = ", ".join(_RESPONSES)
            return failure(f"type: {_short(kind)} is not one of {known}", shown)
        called, on_failure = _RESPONSES[kind]
        head: Response = {"type": called, "bgsId": shown}
        try:
            if shown is None or not shown:
                raise SessionError(f"bgsId: not a text of 1 to {MAX_NAME} characters")
            async with self._turn(shown):
                found = await self._answers[kind](shown, request)
        except SessionError as error:
            known_ply = {"ply": self._ply(shown)} if "ply" in on_failure else {}
            return head | on_failure | known_ply | {"success": False, "error": _line(error)}
        except Exception as error:
            _LOG.exception("session %s", shown)
            told = f"internal error: {type(error).__name__}: {error}"
            return head | on_failure | {"success": False, "error": _line(told)}
        return head | found | {"success": True, "error": ""}

    def close(self) -> None:
        """End all sessions."""
        for engine in self._engines:
            engine.shut_down()
        self._sessions.clear()

    async def _start(self, name: str, request: Request) -> Response:
        if name in self._sessions:
            raise SessionError(f"session {name!r} is open already; end it first, or choose a name")
        rules = self._rules(request.get("rules"))
        moves = request.get("moves", [])
        if not isinstance(moves, list) or not all(isinstance(move, str) for move in moves):
            raise SessionError("moves: not a list of texts, such as ['C3', 'E5']")
        engine = self._engine_for(rules)
        engine.open(
            rules,
            moves=moves,
            name=name,
            simulations=_integer(request, "simulations"),
            seconds=_number(request, "seconds"),
        )
        self._sessions[name] = engine
        standing = engine.standing(name)
        return {"rules": name_of(rules), "ply": standing.ply, "result": _result(standing)}

    async def _evaluate(self, name: str, request: Request) -> Response:
        details = request.get("details", False)
        if not isinstance(details, bool):
            raise SessionError(f"details: {_short(details)} is not true or false")
        found = await self._engine_of(name).evaluate(
            name,
            simulations=_integer(request, "simulations"),
            seconds=_number(request, "seconds"),
            temperature=_number(request, "temperature") or 0.0,
            details=details,
            expected_ply=_integer(request, "expectedPly"),
        )
        return _evaluation(found)

    async def _apply(self, name: str, request: Request) -> Response:
        engine, move = self._engine_of(name), request.get("move")
        if not isinstance(move, str):
            raise SessionError(f"move: {_short(move)} is not a text such as C3 or B6->B5:W0")
        standing = engine.apply(name, move, expected_ply=_integer(request, "expectedPly"))
        return {"ply": standing.ply, "result": _result(standing)}

    async def _end(self, name: str, request: Request) -> Response:
        self._engine_of(name).close(name)
        del self._sessions[name]
        return {}

    def _engine_of(self, name: str) -> Sessions:
        if name not in self._sessions:
            known = [*self._sessions]
            more = ", ..." if len(known) > 8 else ""
            told = (", ".join(map(repr, known[:8])) + more) or "none"
            raise SessionError(f"session {name!r} is not open; open sessions: {told}")
        return self._sessions[name]

    def _engine_for(self, rules: Rules) -> Sessions:
        for engine in self._engines:
            if engine.sizes == sizes_of(rules):
                return engine
        # Its first engine says what it plays.
        return self._engines[0]

    def _rules(self, asked: Any) -> Rules:
        try:
            if asked is None:
                return self._engines[0].rules
            if isinstance(asked, dict):
                return Rules.from_dict(asked)
            if isinstance(asked, str):
                return rules_lib.named(asked)
        except (ValueError, TypeError) as error:
            raise SessionError(str(error)) from None
        raise SessionError(f"rules: {_short(asked)} is neither a preset's name nor an object")

    def _ply(self, name: str | None) -> int | None:
        if name is None or name not in self._sessions:
            return None
        return self._sessions[name].standing(name).ply

    @contextlib.asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[None]:
        """Wait for all that was asked of a session before."""
        turn = self._turns.setdefault(name, _Turn(asyncio.Lock()))
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[name]


@dataclasses.dataclass
class _Turn:
    """The order in which a session's requests are answered; asyncio's locks are fair."""

    lock: asyncio.Lock
    users: int = 0


def failure(error: str, name: str | None = None) -> Response:
    """The response to something that is no request."""
    return {"type": "error", "bgsId": name, "success": False, "error": _line(error)}


def _read(line: bytes) -> Request:
    """A request from its line.

    Raises:
      SessionError: it is no JSON object.
    """
    try:
        request = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise SessionError(f"not JSON: {error}") from None
    if not isinstance(request, dict):
        raise SessionError("not a JSON object")
    return request


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _integer(request: Request, key: str) -> int | None:
    value = request.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise SessionError(f"{key}: {_short(value)} is not a whole number")
    return _bounded(key, value)


def _number(request: Request, key: str) -> float | None:
    value = request.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise SessionError(f"{key}: {_short(value)} is not a number")
    return _bounded(key, value)


def _bounded(key: str, value: T) -> T:
    if value is not None and not abs(value) < _TOO_LARGE:
        raise SessionError(f"{key}: {_short(value)} is too large")
    return value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _line(error: object) -> str:
    """An error in one line; what a request held may stand in it, so it is cut."""
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR - 3]}..."


def _result(standing: Standing) -> list[float] | None:
    return None if standing.result is None else list(standing.result)


def _evaluation(found: Evaluation) -> Response:
    score = found.evaluation
    response: Response = {
        "ply": found.ply,
        "bestMove": found.best_move or "",
        "evaluation": score if isinstance(score, int | float) else list(score),
        "winChance": found.win_chance,
        "simulations": found.simulations,
        "visits": found.visits,
    }
    if found.candidates is not None:
        response["candidates"] = [_candidate(candidate) for candidate in found.candidates]
        response["owners"] = None if found.owners is None else [list(cell) for cell in found.owners]
        response["margin"] = found.margin
    return response


def _candidate(candidate: Candidate) -> Response:
    return {
        "move": candidate.move,
        "prior": candidate.prior,
        "visits": candidate.visits,
        "value": candidate.value,
        "winChance": candidate.win_chance,
        "line": list(candidate.line),
    }
