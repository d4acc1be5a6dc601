"""The messages of an engine as JSON objects: one request, one response.

They are those of a bot game session in the public protocol of wallgame.io (its blog post "Training
an AlphaZero-Style AI for a New Board Game", section "The Protocol", and its repository's
`custom-bot-protocol.ts`): `start_game_session`, `evaluate_position`, `apply_move` and
`end_game_session`; `stop_search` is ours. docs/engine.md lists their keys.

The server reads and writes one a line, on standard input and output; the page of `play` sends them
over a WebSocket.
"""

import asyncio
import contextlib
import logging
import weakref
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from train.engine.searcher import GamePosition, begin_game
from train.engine.sessions import Sessions
from train.players.names import MAX_SECONDS
from train.runtime.errors import UsageError, message_of, one_line, usage_errors
from train.runtime.fields import Real, Whole
from train.runtime.host import fetch
from train.search.report import SearchReport, canonical_move
from wallgo_jax.formats import diagram
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
Tell = Callable[[Response], None]
"""Takes what an engine says before it responds."""
Prepare = Callable[[Rules, Callable[[int, int], None]], Awaitable[Sessions]]
"""(rules, function of the programs compiled so far and of all) -> the engine that plays them."""

_Seconds = Annotated[Real | None, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]

_LOG = logging.getLogger(__name__)


class _Request(BaseModel):
    """The keys of every request, as the protocol names them."""

    model_config = ConfigDict(strict=True)
    bgsId: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]  # noqa: N815


class _Start(_Request):
    type: Literal["start_game_session"]
    rules: str | dict[str, Any] | None = None
    position: str | None = None
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


class _Stop(_Request):
    type: Literal["stop_search"]


class _End(_Request):
    type: Literal["end_game_session"]


_REQUESTS: TypeAdapter[Any] = TypeAdapter(
    Annotated[_Start | _Evaluate | _Apply | _Stop | _End, Discriminator("type")]
)
_NO_MOVE: Response = {"ply": None, "bestMove": "", "evaluation": 0.0}
_RESPONSES: dict[str, tuple[str, Response]] = {
    "start_game_session": ("game_session_started", {}),
    "evaluate_position": ("evaluate_response", _NO_MOVE),
    "apply_move": ("move_applied", {"ply": None}),
    "stop_search": ("search_stopped", {}),
    "end_game_session": ("game_session_ended", {}),
}
"""The response to each request, and what it has where the request fails."""


class Protocol:
    """Answers requests about the sessions of one or more shapes (size, players, stones)."""

    def __init__(self, engines: Sequence[Sessions], prepare: Prepare | None = None) -> None:
        """The first of the engines is the one for sessions that name no rules; `prepare`, if there
        is one, makes those for rules that are named."""
        self._engines, self._prepare = engines, prepare
        self._sessions: dict[str, Sessions] = {}
        self._searches: dict[str, Future[SearchReport]] = {}
        # asyncio's locks are fair, so requests of a session keep their order.
        self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def answer(self, line: bytes | str, tell: Tell = lambda message: None) -> Response:
        """The response to a request as it was read. Those of one session are answered in the order
        in which this was called, but for one that stops a search. `tell` gets the progress."""
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
            if isinstance(request, _Stop):
                if (search := self._searches.get(request.bgsId)) is not None:
                    search.cancel()
            else:
                turn = self._turns.setdefault(request.bgsId, asyncio.Lock())
                async with turn:
                    response |= await self._answer(request, tell)
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
        """End all sessions, and the engines that were not prepared for them."""
        for search in self._searches.values():
            search.cancel()
        for name, engine in self._sessions.items():
            with contextlib.suppress(UsageError):  # Its engine has ended.
                engine.close(name)
        for engine in self._engines:
            engine.shut_down()
        self._sessions.clear()

    async def _answer(self, request: Any, tell: Tell) -> Response:
        name = request.bgsId
        if isinstance(request, _Start):
            return await self._start(request, tell)
        engine = self._sessions.get(name)
        if engine is None:
            raise UsageError(f"session {name!r} is not open; start it first")
        match request:
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
                self._searches[name] = future
                try:
                    report = await asyncio.wrap_future(future)
                except asyncio.CancelledError:
                    if not future.cancelled():
                        raise
                    raise UsageError("the search was stopped") from None
                finally:
                    del self._searches[name]
                return format_evaluation(report, details=request.details)
        engine.close(name)
        del self._sessions[name]
        return {}

    async def _start(self, request: _Start, tell: Tell) -> Response:
        name, rules = request.bgsId, request.rules
        if rules is None and request.position is None and self._engines:
            rules = self._engines[0].rules
        rules, start = read_start(rules, request.position)
        engine = self._sessions.get(name)
        if engine is None and self._prepare is not None:
            # What is compiled is not searched: without a word this looks like a broken engine.
            about = {"type": "progress", "bgsId": name, "stage": "compiling"}
            engine = await self._prepare(
                rules, lambda done, total: tell(about | {"done": done, "total": total})
            )
        elif engine is None:
            shape = sizes_of(rules)
            fits = (each for each in self._engines if sizes_of(each.rules) == shape)
            engine = next(fits, self._engines[0])
        engine.open(
            rules,
            moves=request.moves,
            position=start,
            name=name,
            simulations=request.simulations,
            seconds=request.seconds,
        )
        self._sessions[name] = engine
        return {"rules": name_of(rules)} | _standing(engine.position(name))


def read_start(
    rules: Rules | str | dict[str, Any] | None, position: str | None = None
) -> tuple[Rules, GamePosition]:
    """The rules and the first position of a game: of a preset, rules or their fields, or
    of a diagram, which names its rules.

    Raises:
      UsageError: what is wrong with them.
    """
    if position is None:
        if rules is None:
            raise UsageError("rules: name them, or draw a position")
        with usage_errors():
            read = Rules.from_dict(rules) if isinstance(rules, dict) else rules_lib.named(rules)
        return read, begin_game(read)
    if rules is not None:
        raise UsageError("position: holds the rules; leave `rules` out")
    with usage_errors("position"):
        state = diagram.parse(position)
        read = diagram.rules_of(state)
        if state.grid != read.size:
            raise UsageError(f"the board lies in a grid of {state.grid}; leave `grid` out")
        if state.position.terminated:
            raise UsageError("the game is over")
    return read, begin_game(read, fetch(state))


def failure(error: object, name: str | None = None) -> Response:
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
        "chances": report.win_chances,
        "candidates": [
            {
                "move": each.move,
                "prior": each.prior,
                "policy": each.policy,
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
