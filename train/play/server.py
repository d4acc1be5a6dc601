"""The local server: static files of the page, and a WebSocket for each page that is open.

It is for the person at this machine. It binds to 127.0.0.1, answers only where `Host` names this
machine, so that no other site can reach it by a name of its own (DNS rebinding), and takes a
WebSocket only from its own page (`Origin`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import webbrowser
from collections.abc import Sequence
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from aiohttp import WSMsgType, web

from train.play import hall as hall_lib
from train.play import wire
from train.play.games import saving
from train.play.games.table import Table
from train.play.games.thinking import EngineThinker
from train.play.hall import Hall
from train.play.puzzles import PuzzleBook
from train.play.reviewing import Reviewer
from train.puzzles.puzzle_file import Puzzle
from train.runtime.errors import UsageError
from wallgo_jax.drawing.theme import DARK, LIGHT, Theme, variables
from wallgo_jax.game.rules import Rules

MAX_MESSAGE_BYTES = 1 << 20
MAX_PAGES = 16
MAX_COMPLAINT = 400
LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_REVIEW_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; base-uri 'none'; "
    "form-action 'none'"
)
"""A review holds its scripts; in a sandbox they reach neither the page nor the server."""
_LOG = logging.getLogger(__name__)
HALL = web.AppKey("hall", Hall)
_PAGES = web.AppKey("pages", set)


def run(
    rules: Rules, *, player: str, port: int, opens: bool, puzzles: Sequence[Puzzle] = ()
) -> int:
    """Serve the page until Ctrl-C or SIGTERM; returns the exit code.

    Args:
      rules: of the first game.
      player: the machine's name, or empty for the one that comes with the rules.
      port: at 127.0.0.1; 0 for any that is free.
      opens: whether to open the page in a browser.
      puzzles: to solve on the page.

    Raises:
      UsageError: the port cannot be had.
    """
    return asyncio.run(_run(rules, player, port, opens, PuzzleBook(puzzles)))


async def _run(rules: Rules, player: str, port: int, opens: bool, puzzles: PuzzleBook) -> int:
    thinker = EngineThinker(player)
    hall = Hall(thinker, rules, player=player, reviewer=Reviewer(player), puzzles=puzzles)
    runner = web.AppRunner(make_app(hall), access_log=None, shutdown_timeout=2.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOCAL_NAMES[0], port).start()
    except OSError as error:
        await runner.cleanup()
        reason = os.strerror(error.errno or 0)
        raise UsageError(
            f"play: port {port} cannot be used: {reason}; --port 0 takes a free one"
        ) from None
    address = f"http://{LOCAL_NAMES[0]}:{runner.addresses[0][1]}/"
    print(f"play at {address} (Ctrl-C ends the server)", flush=True)
    if opens:
        await asyncio.to_thread(webbrowser.open, address)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    try:
        await ended.wait()
    finally:
        await runner.cleanup()
        thinker.shut_down()
    return 0


def make_app(hall: Hall) -> web.Application:
    """Make the server of a hall."""
    app = web.Application(middlewares=[_guard], client_max_size=1024)
    app[HALL], app[_PAGES] = hall, set()
    for path, (body, kind) in read_assets().items():
        app.router.add_get(path, _asset(body, kind))
    app.router.add_get("/socket", _socket)
    app.router.add_get(r"/reviews/{name:[\w-]+}{ending:\.html|\.json}", _review)
    app.on_shutdown.append(_close)
    return app


def read_assets() -> dict[str, tuple[bytes, str]]:
    """The files that are served, by their path on the server: nothing else can be asked for."""
    found = {"/colours.css": (colours().encode(), "text/css")}
    for entry in resources.files("train.play").joinpath("page").iterdir():
        suffix = "." + entry.name.rpartition(".")[2]
        if entry.is_file() and suffix in _TYPES:
            found[f"/{entry.name}"] = entry.read_bytes(), _TYPES[suffix]
    found["/"] = found["/index.html"]
    return found


def colours() -> str:
    """The style sheet of the package's palette, which readers of all colours can tell apart."""
    dark = (
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {_rule(DARK)} }}'
    )
    return f':root {_rule(LIGHT)}\n{dark}\n:root[data-theme="dark"] {_rule(DARK)}\n'


def _rule(theme: Theme) -> str:
    values = "; ".join(f"{name}: {colour}" for name, colour in variables(theme).items())
    return f"{{ color-scheme: {theme.name}; {values} }}"


def is_local(host: str | None) -> bool:
    """Whether a `Host` header names this machine, whatever the port: tunnels change it."""
    try:
        return host is not None and urlsplit(f"//{host}").hostname in LOCAL_NAMES
    except ValueError:
        return False


def is_own_page(origin: str | None, host: str | None) -> bool:
    """Whether an `Origin` header is that of the page that this server serves."""
    return is_local(host) and origin == f"http://{host}"


@web.middleware
async def _guard(request: web.Request, handler: Any) -> web.StreamResponse:
    if not is_local(request.headers.get("Host")):
        raise web.HTTPForbidden(text="this server answers at 127.0.0.1 and localhost only\n")
    if request.method not in ("GET", "HEAD"):
        raise web.HTTPMethodNotAllowed(request.method, ["GET", "HEAD"])
    return await handler(request)


def _asset(body: bytes, kind: str) -> Any:
    async def serve(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=_HEADERS)

    return serve


async def _review(request: web.Request) -> web.Response:
    """A finished review: its page, which may do nothing but show itself, or its figures."""
    found = request.app[HALL].reviewer.find(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound(text="this review is not kept any more; review the game again\n")
    if request.match_info["ending"] == ".json":
        headers = _HEADERS | {"Content-Disposition": 'attachment; filename="review.json"'}
        return web.Response(text=found.figures, content_type="application/json", headers=headers)
    headers = _HEADERS | {"Content-Security-Policy": _REVIEW_POLICY}
    return web.Response(text=found.page, content_type="text/html", headers=headers)


async def _socket(request: web.Request) -> web.WebSocketResponse:
    if not is_own_page(request.headers.get("Origin"), request.headers.get("Host")):
        raise web.HTTPForbidden(text="WebSockets are for this server's own page\n")
    pages = request.app[_PAGES]
    if len(pages) >= MAX_PAGES:
        raise web.HTTPServiceUnavailable(text=f"{MAX_PAGES} pages are open; close one first\n")
    socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE_BYTES, heartbeat=30.0)
    await socket.prepare(request)
    page = _Page(socket, request.app[HALL])
    pages.add(page)
    try:
        await page.run()
    finally:
        pages.discard(page)
    return socket


async def _close(app: web.Application) -> None:
    for page in list(app[_PAGES]):
        await page.socket.close(code=1001, message=b"the server ends")
    app[HALL].close()


class _Page:
    """One page that is open, and the table that it shows."""

    def __init__(self, socket: web.WebSocketResponse, hall: Hall) -> None:
        self.socket = socket
        self._hall, self._name = hall, ""
        self._table: Table | None = None
        self._is_stale = asyncio.Event()

    async def run(self) -> None:
        """Answer messages until the page is closed."""
        hall = self._hall
        offered = wire.welcome(hall.default_rules, hall.puzzles.listing(), player=hall.player)
        await self.socket.send_json(offered)
        sender = asyncio.ensure_future(self._send_changes())
        try:
            async for message in self.socket:
                if message.type is WSMsgType.TEXT:
                    await self._answer(message.data)
                else:
                    await self._complain("messages are JSON text")
        finally:
            self._sit_down(None, "")
            sender.cancel()

    async def _answer(self, text: str) -> None:
        try:
            message = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            await self._complain("not JSON")
            return
        if not isinstance(message, dict):
            await self._complain("not a JSON object")
            return
        try:
            await self._do(message)
        except ValueError as error:
            await self._complain(str(error))
        except Exception:
            _LOG.exception("a message could not be answered")
            await self._complain("the server could not do this; its console says why")

    async def _do(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "open":
            name, table = await self._hall.enter(message)
            self._sit_down(table, name)
        elif kind == "new":
            name, table = await self._hall.start(message)
            self._sit_down(table, name)
        elif kind == "load":
            name, table = await self._hall.load(message)
            self._sit_down(table, name)
        elif kind == "puzzle":
            name, table = await self._hall.pose(message)
            self._sit_down(table, name)
        elif kind == "check":
            found = await asyncio.to_thread(hall_lib.check_position, message.get("position"))
            await self.socket.send_json(found)
        elif kind == "rules":
            found = wire.rules_view(message.get("rules"), player=self._hall.player)
            await self.socket.send_json(found)
        elif self._table is None:
            raise ValueError("no game is open; send open or new first")
        elif kind == "save":
            ending, text = saving.write_game(self._table)
            saved = {"type": "saved", "name": f"wallgo.{ending}", "text": text}
            await self.socket.send_json(saved)
        elif kind == "review":
            if self._table.is_posed:
                raise ValueError("a puzzle cannot be reviewed before it is solved")
            self._hall.reviewer.start(self._table, theme=str(message.get("theme")))
        else:
            hall_lib.act(self._table, message)

    def _sit_down(self, table: Table | None, name: str) -> None:
        if self._table is not None:
            self._table.leave(self._is_stale.set)
        self._table, self._name = table, name
        if table is not None:
            table.listen(self._is_stale.set)
            self._is_stale.set()

    async def _send_changes(self) -> None:
        """Send the table whenever it has changed; changes that come faster are sent as one."""
        with contextlib.suppress(ConnectionError):
            while True:
                await self._is_stale.wait()
                self._is_stale.clear()
                if self._table is not None:
                    await self.socket.send_json(wire.table_view(self._table, self._name))

    async def _complain(self, reason: str) -> None:
        with contextlib.suppress(ConnectionError):
            told = reason if len(reason) <= MAX_COMPLAINT else f"{reason[:MAX_COMPLAINT]} …"
            await self.socket.send_json({"type": "error", "error": told})
