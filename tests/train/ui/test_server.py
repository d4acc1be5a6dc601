"""The server: whom it answers, what it serves, and the engine's protocol on its WebSocket."""

import asyncio
import contextlib
import os
import signal
import threading
import time

import pytest
from aiohttp import WSServerHandshakeError
from aiohttp.test_utils import TestClient, TestServer

from tests.support.play import PlainMachine
from train.engine.protocol import MAX_MESSAGE
from train.review import player as review_player
from train.ui import assets, server
from train.ui.reviewing import KeptReview
from wallgo_jax.drawing.theme import DARK, LIGHT
from wallgo_jax.game.rules import PRESETS, Rules

RULES, SMALL = PRESETS["wallzero-4stone"], Rules(size=3, stones=1, order=(0, 1))
HOSTS = {
    "127.0.0.1": 200,
    "localhost:9000": 200,
    "[::1]:80": 200,
    "evil.example": 403,
    "127.0.0.1.evil.example": 403,
    "localhost.evil.example:8642": 403,
    "[": 403,
}
OUTSIDE = ("/../server.py", "/%2e%2e/server.py", "/..%2fserver.py", "//etc/passwd", "/page/main.js")


@contextlib.asynccontextmanager
async def new_server(rules=RULES):
    """A client of a fresh server."""
    app = server.make_app(PlainMachine(), rules)
    async with TestClient(TestServer(app, host="127.0.0.1")) as client:
        client.machine = app[server._MACHINE]
        yield client


def served(test):
    """A test of a client of a fresh server."""

    async def run():
        async with new_server() as client:
            await test(client)

    run.__name__ = test.__name__
    return run


async def connect(client):
    origin = str(client.make_url("/"))[:-1]
    return await client.ws_connect("/socket", headers={"Origin": origin})


async def ask(socket, kind, **fields):
    """The response to a request."""
    await socket.send_json({"type": kind, "bgsId": "g", **fields})
    return await asyncio.wait_for(socket.receive_json(), 60)


@served
async def test_only_names_of_this_machine_and_its_own_page_are_answered(client):
    found = {host: (await client.get("/", headers={"Host": host})).status for host in HOSTS}
    assert found == HOSTS
    for origin in (None, "null", "http://evil.example", "https://127.0.0.1"):
        headers = {} if origin is None else {"Origin": origin}
        with pytest.raises(WSServerHandshakeError) as refused:
            await client.ws_connect("/socket", headers=headers)
        assert refused.value.status == 403, origin


@served
async def test_nothing_outside_the_page_is_served(client):
    for path in OUTSIDE:
        # By hand: clients tidy such paths up before they send them.
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert answer.split()[1] in (b"403", b"404") and b"import" not in answer, path


@served
async def test_the_page_is_served_with_its_colours(client):
    found = {}
    for name in ("", "main.js", "engine/rules.js", "style.css", "colours.css"):
        answer = await client.get(f"/{name}")
        found[name] = answer.headers, await answer.text()
    assert (await client.post("/")).status == 405
    assert "default-src 'self'" in found[""][0]["Content-Security-Policy"]
    assert "javascript" in found["engine/rules.js"][0]["Content-Type"]
    assert all(headers["X-Content-Type-Options"] == "nosniff" for headers, _ in found.values())
    for theme in (LIGHT, DARK):
        assert all(colour in found["colours.css"][1] for colour in theme.players)
    assert "http:" not in found[""][1] and "https:" not in found[""][1]


@served
async def test_a_page_plays_by_sessions_that_end_with_it(client):
    socket, other = await connect(client), await connect(client)
    started = await ask(socket, "start_game_session", rules="playwallgo-3p", moves=["A1"])
    assert (started["type"], started["ply"]) == ("game_session_started", 1)
    told = await ask(socket, "evaluate_position", simulations=9, temperature=1.0, details=True)
    assert told["success"] and told["bestMove"] == "B1" and len(told["chances"]) == 3
    assert "is not open" in (await ask(other, "evaluate_position"))["error"]
    assert list(client.machine.sessions.positions) == ["g"]
    await socket.close()
    await other.close()
    while client.machine.sessions.positions:
        await asyncio.sleep(0.01)


@served
async def test_what_is_no_request_is_told_and_long_ones_are_refused(client):
    socket = await connect(client)
    for text, word in [("{", "JSON"), ('{"type": "dance"}', "type"), ("[1]", "object")]:
        await socket.send_str(text)
        assert word in (await socket.receive_json())["error"]
    assert "moves" in (await ask(socket, "review_game", rules="hkoi", moves="A1"))["error"]
    assert "A9" in (await ask(socket, "review_game", rules="hkoi", moves=["A9"]))["error"]
    await socket.send_str("x" * (MAX_MESSAGE + 1))
    assert (await socket.receive()).data == 1009  # The code of messages that are too big.


@served
async def test_reviews_are_shown_in_a_sandbox_and_only_by_name(client):
    client.app[server.REVIEWER]._reviews["a-name_1"] = KeptReview("<p>review", "{}")
    found = {}
    for path in ("a-name_1.html", "a-name_1.json", "other.html", "..%2fx.html"):
        answer = await client.get(f"/reviews/{path}")
        found[path] = answer.status, answer.headers, await answer.text()
    assert [status for status, *_ in found.values()] == [200, 200, 404, 404]
    policy = found["a-name_1.html"][1]["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert found["a-name_1.html"][2] == "<p>review"
    assert "attachment" in found["a-name_1.json"][1]["Content-Disposition"]


async def test_the_page_reads_its_first_rules_levels_and_machines():
    async with new_server(SMALL) as client:
        told = await (await client.get("/choices.json")).json()
    assert (told["rules"]["size"], told["engine"]) == (3, "socket")
    names = {
        str(rules): machine["name"] for machine in told["machines"] for rules in machine["rules"]
    }
    assert names["wallzero-4stone"] == "pretrained:wallzero-4stone"
    assert names[str(told["rules"])] == "heuristic-search:wjx"
    assert set(names) == {*PRESETS, str(told["rules"])}
    assert {"novice", told["level"]} <= {level["name"] for level in told["levels"]}


def test_the_machine_of_the_command_line_is_named_and_not_measured(monkeypatch):
    ratings = {"pretrained:wallzero-4stone": {"club": {"elo": 900, "low": 850, "high": 960}}}
    monkeypatch.setattr(assets, "ratings_of", lambda player: ratings.get(player, {}))
    own, other = (
        assets.choices_of(PlainMachine(player), RULES)["machines"]
        for player in ("", "heuristic-search:ethen")
    )
    assert own[0]["ratings"] == ratings["pretrained:wallzero-4stone"]
    assert [each["name"] for each in other] == ["heuristic-search:ethen"]
    assert other[0]["ratings"] == {}
    assert review_player.default_player(SMALL) == "heuristic-search:wjx"


@pytest.mark.parametrize(
    ("is_compiling", "is_reviewing"), [(False, False), (True, False), (False, True)]
)
def test_ctrl_c_ends_the_server_whatever_a_thread_still_does(
    monkeypatch, is_compiling, is_reviewing
):
    def interrupt():
        while signal.getsignal(signal.SIGTERM) == before:  # The last that the server sets.
            time.sleep(0.01)
        time.sleep(0.2)  # Until it serves.
        os.kill(os.getpid(), signal.SIGINT)

    left, before = [], signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(PlainMachine, "is_compiling", is_compiling)
    monkeypatch.setattr(server, "Machine", PlainMachine)
    monkeypatch.setattr(server.Reviewer, "is_reviewing", is_reviewing)
    monkeypatch.setattr(server, "leave", left.append)
    threading.Thread(target=interrupt).start()
    assert server.run(RULES, player="", port=0, opens=False) == 0
    assert left == [0] * (is_compiling or is_reviewing)
