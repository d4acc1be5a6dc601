"""The server: whom it answers, what it serves, and how messages change games."""

import asyncio
import contextlib
import json
import os
import signal
import threading
import time

import pytest
from aiohttp import WSServerHandshakeError
from aiohttp.test_utils import TestClient, TestServer

from tests.support.play import PlainMachine
from train.ui import game_server, server, wire
from train.ui.game_server import GameServer
from train.ui.reviewing import Reviewed
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
    app = server.make_app(GameServer(PlainMachine(), rules))
    async with TestClient(TestServer(app, host="127.0.0.1")) as client:
        yield client


def served(test):
    """A test of a client of a fresh server."""

    async def run():
        async with new_server() as client:
            await test(client)

    run.__name__ = test.__name__
    return run


class Page:
    """A page that is open: sends messages and waits for answers."""

    def __init__(self, socket):
        self.socket = socket

    async def ask(self, kind="", *, until="", **fields):
        """The next message, of a type if one is named, after one that is sent."""
        if kind:
            await self.socket.send_json({"type": kind, **fields})
        message = await asyncio.wait_for(self.socket.receive_json(), 60)
        while until and message["type"] != until:
            message = await asyncio.wait_for(self.socket.receive_json(), 60)
        return message

    async def view(self, kind="", **fields):
        return await self.ask(kind, until="game", **fields)

    async def error(self, kind="", **fields):
        return (await self.ask(kind, until="error", **fields))["error"]


async def open_page(client):
    origin = str(client.make_url("/"))[:-1]
    page = Page(await client.ws_connect("/socket", headers={"Origin": origin}))
    page.welcome = await page.ask()
    assert page.welcome["type"] == "welcome"
    return page


def people(players):
    return ["person"] * players


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
    for name in ("", "main.js", "style.css", "colours.css"):
        answer = await client.get(f"/{name}")
        found[name] = answer.headers, await answer.text()
    assert (await client.post("/")).status == 405
    assert "default-src 'self'" in found[""][0]["Content-Security-Policy"]
    assert "javascript" in found["main.js"][0]["Content-Type"]
    assert all(headers["X-Content-Type-Options"] == "nosniff" for headers, _ in found.values())
    for theme in (LIGHT, DARK):
        assert all(colour in found["colours.css"][1] for colour in theme.players)
    assert "http:" not in found[""][1] and "https:" not in found[""][1]


@served
async def test_a_game_by_messages(client):
    page = await open_page(client)
    view = await page.view("new", rules="playwallgo-3p", seats=people(3))
    assert len(view["position"]["legal"]["cells"]) == 49
    view = await page.view("play", node=view["current"], move="A1")
    assert view["position"]["player"] == 1
    assert [node[2] for node in view["nodes"]] == ["", "A1"]
    error = await page.error("play", node=view["current"], move="A1")
    assert "Red already stands on A1" in error
    assert "the position has changed" in await page.error("play", node=0, move="A2")
    view = await page.view("takeback")
    assert [node[2] for node in view["nodes"]] == [""]


async def test_a_reloaded_page_finds_its_game_and_a_new_server_its_copy():
    async with new_server() as client:
        page = await open_page(client)
        view = await page.view("new", rules="wallzero-empty", seats=people(2))
        view = await page.view("play", node=view["current"], move="D4")
        await page.socket.close()
        again = await (await open_page(client)).view("open", game=view["game"])
        assert (again["game"], again["nodes"]) == (view["game"], view["nodes"])
    fields = {key: view[key] for key in ("game", "copy")}
    async with new_server() as client:
        pages = [await open_page(client) for _ in range(2)]
        asked = await asyncio.gather(*(page.view("open", **fields) for page in pages))
        assert [each["game"] for each in asked] == [view["game"]] * 2
        assert asked[0]["nodes"] == view["nodes"]
        games = client.server.app[server.GAMES]
        assert len(games) == 1 and games.find(view["game"]).is_watched
        seen = await pages[0].view("play", node=asked[0]["current"], move="A1")
        assert (await pages[1].view())["nodes"] == seen["nodes"]
        other = await (await open_page(client)).view("open", game="a/b", copy=view["copy"])
        assert other["game"] != "a/b" and other["nodes"] == view["nodes"]
        broken = await (await open_page(client)).view("open", copy={"rules": 3})
        assert len(broken["nodes"]) == 1


WRONG = [
    ("{", "JSON"),
    ('{"type": "go", "node": ' + "9" * 5000 + "}", "JSON"),
    ('{"type": "dance"}', "dance"),
    ('{"type": "play", "node": 0, "move": "' + "A" * 50 + '"}', "move"),
    ('{"type": "go", "node": true}', "node"),
    ('{"type": "go", "node": 99}', "99"),
    ('{"type": "new", "rules": "chess"}', "chess"),
    ('{"type": "new", "rules": {"size": 99}}', "size"),
    ('{"type": "new", "clock": {"minutes": NaN}}', "minutes"),
    ('{"type": "new", "seats": ["person"]}', "seats"),
    ('{"type": "new", "seats": ["person", "god"]}', "beginner"),
    ('{"type": "load", "text": ""}', "load"),
    ('{"type": "review", "theme": "auto"}', "review"),
    ('{"type": "puzzle", "puzzle": "x"}', "puzzles"),
    ('{"type": "solution"}', "puzzle"),
]
"""Messages that are refused, and a word of the line that says why."""


@served
async def test_wrong_messages_are_told_and_change_nothing(client):
    page = await open_page(client)
    assert "no game is open" in await page.error("review")
    before = await page.view("new", seats=people(2))
    for message, word in WRONG:
        await page.socket.send_str(message)
        error = await page.error()
        assert word in error and "\n" not in error, message
    after = await page.view("show", evaluation=False)
    assert after["nodes"] == before["nodes"]


async def test_long_messages_are_refused_and_games_that_nobody_looks_at_make_room(monkeypatch):
    monkeypatch.setattr(game_server, "MAX_GAMES", 2)
    async with new_server() as client:
        page = await open_page(client)
        await page.socket.send_str(json.dumps({"type": "x" * (server.MAX_MESSAGE_BYTES + 1)}))
        assert (await page.socket.receive()).data == 1009  # The code of messages that are too big.
        page, games = await open_page(client), client.server.app[server.GAMES]
        names = [(await page.view("new", seats=people(2)))["game"] for _ in range(3)]
        assert len(games) == 2
        assert games.find(names[0]) is None
        await (await open_page(client)).view("open", game=names[1])
        assert "all 2 games are in use" in await page.error("new", seats=people(2))


@served
async def test_reviews_are_shown_in_a_sandbox_and_only_by_name(client):
    client.app[server.GAMES].reviewer._reviews["a-name_1"] = Reviewed("<p>review", "{}")
    found = {}
    for path in ("a-name_1.html", "a-name_1.json", "other.html", "..%2fx.html"):
        answer = await client.get(f"/reviews/{path}")
        found[path] = answer.status, answer.headers, await answer.text()
    assert [status for status, *_ in found.values()] == [200, 200, 404, 404]
    policy = found["a-name_1.html"][1]["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert found["a-name_1.html"][2] == "<p>review"
    assert "attachment" in found["a-name_1.json"][1]["Content-Disposition"]


async def test_rules_of_the_command_line_come_first_and_are_those_of_moves_without_rules():
    async with new_server(SMALL) as client:
        page = await open_page(client)
        view = await page.view("open")
        loaded = await page.view("load", text="1. A1 2. B2", rules="playwallgo-2p")
        own = await page.view("load", text="1. A1 2. B2")
        broken = await page.ask("check", position="rules: wallzero-4stone\nturn: R\n")
        saved = json.loads((await page.ask("save", until="saved"))["text"])
    assert [preset["name"] for preset in page.welcome["presets"]][1:] == list(PRESETS)
    assert page.welcome["presets"][0]["fields"] == view["rules"]["fields"] == own["rules"]["fields"]
    assert (view["rules"]["size"], loaded["rules"]["name"]) == (3, "playwallgo-2p")
    assert "the board is missing" in broken["error"]
    assert saved["rules"]["size"] == 3


def test_the_machine_of_the_command_line_is_named_and_not_measured(monkeypatch):
    ratings = {"pretrained:wallzero-4stone": {"club": {"elo": 900, "low": 850, "high": 960}}}
    monkeypatch.setattr(wire, "ratings_of", lambda player: ratings.get(player, {}))
    own, other = (
        wire.welcome(GameServer(PlainMachine(player), RULES))["presets"][0]["machine"]
        for player in ("", "heuristic-search:ethen")
    )
    elo = {level["name"]: level["rating"] for level in own["levels"]}
    assert own["name"] == "pretrained:wallzero-4stone"
    assert elo["club"] == {"elo": 900, "low": 850, "high": 960}
    assert elo["expert"] is None
    assert other["name"] == "heuristic-search:ethen"
    assert {level["rating"] for level in other["levels"]} == {None}


@served
async def test_custom_rules_are_played(client):
    fields = {"size": 3, "stones": 1, "order": [1, 0], "walls": 3, "tie": []}
    page = await open_page(client)
    for rules, word in [({"size": 2}, "size"), ({"board": 7}, "board"), ([7], "neither")]:
        told = await page.ask("rules", rules=rules)
        assert told["error"].startswith("rules: ") and word in told["error"]
        assert "\n" not in told["error"] and "choice" not in told
    told = await page.ask("rules", rules=fields)
    view = await page.view("new", rules=fields)
    assert told["error"] == "" and told["choice"]["name"] == "custom"
    assert told["choice"]["all"]["walls"] == 3
    assert told["choice"]["machine"]["name"] == "heuristic-search:wjx"
    assert view["rules"]["fields"] == told["choice"]["all"]
    assert view["position"]["player"] == 1


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
    monkeypatch.setattr(game_server.Reviewer, "is_reviewing", is_reviewing)
    monkeypatch.setattr(server, "leave", left.append)
    threading.Thread(target=interrupt).start()
    assert server.run(RULES, player="", port=0, opens=False) == 0
    assert left == [0] * (is_compiling or is_reviewing)
