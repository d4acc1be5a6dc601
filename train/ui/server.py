"""The local server: the files of the page, and a WebSocket that speaks the engine's protocol.

It is for the person at this machine. It binds to 127.0.0.1, answers only where `Host` names this
machine, so that no other site can reach it by a name of its own (DNS rebinding), and takes a
WebSocket only from its own page (`Origin`).
"""

import asyncio
import contextlib
import os
import socket
import threading
import webbrowser
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from aiohttp import WSMsgType, web

from train.engine.protocol import MAX_MESSAGE, Response
from train.review.puzzle_file import Puzzle
from train.runtime.errors import UsageError
from train.runtime.interrupts import leave
from train.ui import assets
from train.ui.connection import Connection
from train.ui.machine import Machine
from train.ui.reviewing import Reviewer
from wallgo_jax.drawing import theme
from wallgo_jax.formats.option_names import argument
from wallgo_jax.game.rules import Rules

LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
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
REVIEWER = web.AppKey("reviewer", Reviewer)
_MACHINE = web.AppKey("machine", Machine)
_CHOICES = web.AppKey("choices", dict)
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
    host, machine = LOCAL_NAMES[0], Machine(player)
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(
            f"play: port {port} cannot be used: {reason}; {argument('port', 0)} takes a free one"
        ) from None
    address = f"http://{host}:{listener.getsockname()[1]}/"
    app = make_app(machine, rules, puzzles=puzzles)
    print(f"play at {address} (Ctrl-C ends the server)", flush=True)
    if opens:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    async def leave_threads(app: web.Application) -> None:
        if machine.is_compiling or app[REVIEWER].is_reviewing:
            leave(0)  # The end of the process would wait for minutes.

    app.on_cleanup.append(leave_threads)
    web.run_app(app, sock=listener, print=None, access_log=None, shutdown_timeout=2.0)
    print("stopped; the games stay in the browser, and the same command opens them again")
    return 0


def make_app(
    machine: Machine,
    rules: Rules,
    *,
    puzzles: Sequence[Puzzle] = (),
    reviewer: Reviewer | None = None,
) -> web.Application:
    """Make the web server of a page; `rules` are those of its first game."""
    app = web.Application(middlewares=[_guard], client_max_size=1024)
    app[_MACHINE], app[REVIEWER] = machine, reviewer or Reviewer(machine)
    app[_CHOICES] = assets.choices_of(machine, rules, puzzles) | {"engine": "socket"}
    app[_PAGES] = set()
    app.router.add_get("/", _index)
    app.router.add_get("/colours.css", _colours)
    app.router.add_get("/choices.json", _choices)
    app.router.add_get("/socket", _socket)
    app.router.add_get(r"/reviews/{name:[\w-]+}{ending:\.html|\.json}", _review)
    app.router.add_static("/", assets.PAGE)
    app.on_shutdown.append(_close)
    return app


def is_local(host: str | None) -> bool:
    """Whether a `Host` header names this machine, whatever the port: tunnels change it."""
    try:
        return host is not None and urlsplit(f"//{host}").hostname in LOCAL_NAMES
    except ValueError:
        return False


@web.middleware
async def _guard(request: web.Request, handler: Any) -> web.StreamResponse:
    if not is_local(request.headers.get("Host")):
        raise web.HTTPForbidden(text="this server answers at 127.0.0.1 and localhost only\n")
    response = await handler(request)
    if not response.prepared:
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
    return response


async def _index(request: web.Request) -> web.FileResponse:
    return web.FileResponse(assets.PAGE / "index.html")


async def _colours(request: web.Request) -> web.Response:
    return web.Response(text=theme.style(), content_type="text/css")


async def _choices(request: web.Request) -> web.Response:
    return web.json_response(request.app[_CHOICES])


async def _review(request: web.Request) -> web.Response:
    """A finished review: its page, which may do nothing but show itself, or its figures."""
    review = request.app[REVIEWER].find(request.match_info["name"])
    if review is None:
        raise web.HTTPNotFound(text="this review is not kept any more; review the game again\n")
    if request.match_info["ending"] == ".json":
        headers = {"Content-Disposition": 'attachment; filename="review.json"'}
        return web.Response(text=review.figures, content_type="application/json", headers=headers)
    headers = {"Content-Security-Policy": _REVIEW_POLICY}
    return web.Response(text=review.page, content_type="text/html", headers=headers)


async def _socket(request: web.Request) -> web.WebSocketResponse:
    if request.headers.get("Origin") != f"http://{request.headers.get('Host')}":
        raise web.HTTPForbidden(text="WebSockets are for this server's own page\n")
    page = web.WebSocketResponse(max_msg_size=MAX_MESSAGE, heartbeat=30.0)
    await page.prepare(request)
    request.app[_PAGES].add(page)
    outbox: asyncio.Queue[Response] = asyncio.Queue()
    app = request.app
    connection = Connection(app[_MACHINE], app[REVIEWER], outbox.put_nowait)
    sender = asyncio.create_task(_send_all(page, outbox))
    try:
        async for message in page:
            if message.type is WSMsgType.TEXT:
                connection.receive(message.data)
    finally:
        connection.close()
        sender.cancel()
        request.app[_PAGES].discard(page)
    return page


async def _send_all(page: web.WebSocketResponse, outbox: asyncio.Queue[Response]) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            await page.send_json(await outbox.get())


async def _close(app: web.Application) -> None:
    for page in list(app[_PAGES]):
        await page.close(code=1001, message=b"the server ends")
    app[_MACHINE].shut_down()
