"""The messages of an engine as JSON objects: one request, one response.

They are those of a bot game session in the public protocol of wallgame.io (its blog post "Training
an AlphaZero-Style AI for a New Board Game", section "The Protocol", and its repository's
`custom-bot-protocol.ts`): `start_game_session`, `evaluate_position`, `apply_move` and
`end_game_session`. docs/engine.md lists their keys.

The server reads and writes one a line, on standard input and output.
"""

import asyncio
import logging
import weakref
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from train.engine.searcher import GamePosition
from train.engine.sessions import Sessions
from train.players.names import MAX_SECONDS
from train.runtime.errors import UsageError, message_of, one_line, usage_errors
from train.runtime.fields import Real, Whole
from train.search.report import SearchReport, canonical_move
from wallgo_jax.game import rules as rules_lib
from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.game.state import sizes_of

MAX_NAME = 200
"""Longest name of a session, in characters."""
MAX_MESSAGE = 65_536
"""Longest request, in bytes."""
MAX_ERROR = 400
"""Longest error, in characters."""

Response = dict[str, Any]

_Seconds = Annotated[Real | None, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]

_LOG = logging.getLogger(__name__)


class _Request(BaseModel):
    """The keys of every request, as the protocol names them."""

    model_config = ConfigDict(strict=True)
    bgsId: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]  # noqa: N815


class _Start(_Request):
    type: Literal["start_game_session"]
    rules: str | dict[str, Any] | None = None
    moves: list[str] = []
    simulations: Whole | None = None
    seconds: _Seconds = None


class _Evaluate(_Request):
    type: Literal["evaluate_position"]
    expectedPly: Whole | None = None  # noqa: N815
    simulations: Whole | None = None
    seconds: _Seconds = None
    temperature: Annotated[Real | None, Field(ge=0, le=100)] = None
    details: bool = False


class _Apply(_Request):
    type: Literal["apply_move"]
    expectedPly: Whole | None = None  # noqa: N815
    move: str


class _End(_Request):
    type: Literal["end_game_session"]


_REQUESTS: TypeAdapter[Any] = TypeAdapter(
    Annotated[_Start | _Evaluate | _Apply | _End, Discriminator("type")]
)
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
        # asyncio's locks are fair, so requests of a session keep their order.
        self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def answer(self, line: bytes) -> Response:
        """The response to a request as it was read. Those of one session are answered in the order
        in which this was called."""
        try:
            fields = from_json(line, allow_inf_nan=False)
        except ValueError as error:
            return failure(f"not JSON: {error}")
        if not isinstance(fields, dict):
            return failure("not a JSON object")
        name, kind = fields.get("bgsId"), fields.get("type")
        shown = name if isinstance(name, str) and len(name) <= MAX_NAME else None
        if not isinstance(kind, str) or kind not in _RESPONSES:
            return failure(f"type: not one of {', '.join(_RESPONSES)}", shown)
        called, on_failure = _RESPONSES[kind]
        response: Response = {"type": called, "bgsId": shown}
        try:
            request = _REQUESTS.validate_python(fields)
            turn = self._turns.setdefault(request.bgsId, asyncio.Lock())
            async with turn:
                response |= await self._answer(request)
        except (UsageError, ValidationError) as error:
            engine = self._sessions.get(shown or "")
            if "ply" in on_failure and engine is not None and shown is not None:
                on_failure = on_failure | {"ply": engine.position(shown).ply}
            return response | on_failure | {"success": False, "error": error_line(error)}
        except Exception as error:
            _LOG.exception("session %s", shown)
            text = f"internal error: {type(error).__name__}: {error}"
            return response | on_failure | {"success": False, "error": error_line(text)}
        return response | {"success": True, "error": ""}

    def close(self) -> None:
        """End all sessions."""
        for engine in self._engines:
            engine.shut_down()
        self._sessions.clear()

    async def _answer(self, request: Any) -> Response:
        name = request.bgsId
        # A session that is not open is the first engine's to refuse.
        engine = self._sessions.get(name, self._engines[0])
        match request:
            case _Start(simulations=simulations, seconds=seconds, moves=moves):
                rules = self._rules(request.rules)
                if name not in self._sessions:
                    shape = sizes_of(rules)
                    fits = (each for each in self._engines if sizes_of(each.rules) == shape)
                    engine = next(fits, engine)
                engine.open(rules, moves=moves, name=name, simulations=simulations, seconds=seconds)
                self._sessions[name] = engine
                return {"rules": name_of(rules)} | _standing(engine.position(name))
            case _Apply(move=move, expectedPly=ply):
                return _standing(engine.apply(name, move, expected_ply=ply))
            case _Evaluate(simulations=simulations, seconds=seconds, expectedPly=ply):
                future = engine.ask(
                    name,
                    simulations=simulations,
                    seconds=seconds,
                    temperature=request.temperature or 0.0,
                    expected_ply=ply,
                )
                report = await asyncio.wrap_future(future)
                return format_evaluation(report, details=request.details)
        engine.close(name)
        del self._sessions[name]
        return {}

    def _rules(self, given: str | dict[str, Any] | None) -> Rules:
        if given is None:
            return self._engines[0].rules
        with usage_errors():
            return rules_lib.named(given) if isinstance(given, str) else Rules.from_dict(given)


def failure(error: str, name: str | None = None) -> Response:
    """The response to a line that is not a request."""
    return {"type": "error", "bgsId": name, "success": False, "error": error_line(error)}


def format_evaluation(report: SearchReport, *, details: bool) -> Response:
    """A report as a response: evaluations are from the first player's side, with more than two
    players one number each."""
    grid, is_over = report.state.grid, not report.legal.any()
    values = [float(value) for value in np.clip(report.values, -1.0, 1.0)]
    response: Response = {
        "ply": int(report.state.position.ply),
        "bestMove": "" if is_over else canonical_move(int(report.action), grid=grid),
        "evaluation": values if len(values) > 2 else values[0],
        "winChance": report.win_chance,
        "simulations": report.simulations,
        "visits": int(report.root_visits),
    }
    if not details:
        return response
    owners, margin = report.owners, report.margin
    sign = -1 if len(values) == 2 and report.mover == 1 else 1
    seen = [each for each in report.candidates if each.visits]
    # The search's choice leads, then the most visited.
    seen.sort(
        key=lambda each: (each is report.candidates[0], each.visits, each.value), reverse=True
    )
    return response | {
        "candidates": [
            {
                "move": each.move,
                "prior": each.prior,
                "visits": each.visits,
                "value": sign * each.value,
                "winChance": each.win_chance,
                "line": list(each.moves),
            }
            for each in seen
        ],
        "owners": None if owners is None else owners.reshape(grid**2, -1).astype(float).tolist(),
        "margin": None if margin is None else float(margin),
    }


def _standing(position: GamePosition) -> Response:
    return {"ply": position.ply, "result": position.result and list(position.result)}


def error_line(error: object) -> str:
    """An error in one line; what a message held may stand in it, so it is cut."""
    text = message_of(error) if isinstance(error, ValueError) else one_line(error)
    return text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR - 3]}..."
