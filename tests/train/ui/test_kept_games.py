"""Games in a real browser outlive reloads, closed tabs, other tabs and the server."""

import contextlib
from urllib.parse import urlsplit

import pytest

from tests.support import play as support
from tests.support.page import moves, place, start, wait_for_moves
from wallgo_jax.game.rules import PRESETS

pytestmark = pytest.mark.slow
RULES = PRESETS["wallzero-4stone"]
REFUSED = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });"
"""A browser that keeps nothing."""
FULL = """() => {
  for (let size = 1 << 22; size >= 1; size >>= 1) {
    for (let number = 0; ; number++) {
      try { localStorage.setItem(`other.${size}.${number}`, "x".repeat(size)); } catch { break; }
    }
  }
}"""
OLD_GAMES = """count => {
  for (let number = 0; number < count; number++) {
    const copy = { plies: number % 2 ? [[0, 1]] : [], note: "x".repeat(1000) };
    localStorage.setItem(`wallgo.game.old-${number}`, JSON.stringify({ at: number, copy }));
  }
}"""
"""Every other one is without a move."""


@pytest.fixture
def server():
    """A server that can be ended and started anew at its address."""
    with contextlib.ExitStack() as running:
        yield _Server(running)


class _Server:
    def __init__(self, running):
        self.running = running
        self.address = running.enter_context(support.served(RULES))

    def end(self, *pages):
        """End it; pages that are open notice."""
        self.running.close()
        for page in pages:
            page.wait_for_selector("#lost:visible")

    def start(self, *pages):
        """Start a server that knows no game; pages that are open find it."""
        port = urlsplit(self.address).port
        self.running.enter_context(support.served(RULES, port=port))
        for page in pages:
            page.wait_for_selector("#lost", state="hidden")


def play(page, *names):
    """Play placements; returns all moves of the game."""
    for name in names:
        before = len(moves(page))
        place(page, name)
        wait_for_moves(page, before + 1)
    return moves(page)


def kept_games(page):
    """The names of the games that the browser keeps."""
    keys = page.evaluate("() => Object.keys(localStorage)")
    return {key.removeprefix("wallgo.game.") for key in keys if key.startswith("wallgo.game.")}


def begin(page, *names):
    """Begin a game between people with placements."""
    start(page, "person", "person")
    return play(page, *names)


def test_two_tabs_keep_their_games_when_the_server_is_started_anew(server, open_tab):
    one = open_tab(server.address)
    begin(one, "A1", "A7")
    two = open_tab(server.address, beside=one)
    begin(two, "C3", "D4", "E5")
    addresses = one.url, two.url
    server.end(one, two)
    server.start(one, two)
    assert play(one, "G1") == ["A1", "A7", "G1"]
    assert play(two, "G7") == ["C3", "D4", "E5", "G7"]
    assert (one.url, two.url) == addresses


def test_a_second_tab_begins_its_own_game_and_offers_that_of_a_closed_one(server, open_tab):
    one = open_tab(server.address)
    begin(one, "A1", "A7")
    closed = open_tab(server.address, beside=one)
    begin(closed, "E5")
    closed.close()
    two = open_tab(server.address, beside=one)
    assert two.url != one.url and moves(two) == []
    two.wait_for_selector("#offer button")
    assert [text.split(",")[1] for text in two.locator("#offer button").all_inner_texts()] == [
        " 1 move"
    ], "another tab shows the game of two moves"
    start(two, "person", "person")
    assert play(two, "C3") == ["C3"]
    assert play(one, "D4") == ["A1", "A7", "D4"]
    one.close()
    server.end(two)
    server.start(two)
    three = open_tab(server.address, beside=two)
    three.wait_for_selector("#offer button")
    offered = three.locator("#offer button")
    assert "Quick start, 3 moves, " in offered.nth(0).inner_text()
    assert "Quick start, 1 move, " in offered.nth(1).inner_text()
    assert offered.count() == 2
    offered.nth(0).click()
    assert wait_for_moves(three, 3) == ["A1", "A7", "D4"]
    assert play(three, "E5") == ["A1", "A7", "D4", "E5"]
    assert three.is_hidden("#offer")
    assert moves(two) == ["C3"]


def test_people_play_on_without_a_server_and_the_machine_when_it_is_back(server, open_tab):
    page = open_tab(server.address)
    start(page, "person", "expert")
    server.end(page)
    place(page, "A1")
    assert moves(page) == ["A1"]
    server.start(page)
    assert wait_for_moves(page, 3) == ["A1", "B1", "C1"]
    server.end(page)
    begin(page, "C3", "D4")
    assert play(page, "E5") == ["C3", "D4", "E5"]


def test_play_goes_on_where_nothing_can_be_kept(server, open_tab):
    page = open_tab(server.address, script=REFUSED)
    begin(page, "A1", "A7")
    page.reload()
    assert wait_for_moves(page, 2) == ["A1", "A7"]
    assert play(page, "C3") == ["A1", "A7", "C3"]


@pytest.mark.parametrize(("count", "is_full"), [(20, True), (60, False)])
def test_the_latest_games_with_moves_are_kept_also_in_a_full_store(
    server, open_tab, count, is_full
):
    page = open_tab(server.address)
    page.evaluate(OLD_GAMES, count)
    if is_full:
        page.evaluate(FULL)
    begin(page, "A7", "C3")
    own, kept = urlsplit(page.url).fragment, kept_games(page)
    copy = page.evaluate(f"() => JSON.parse(localStorage['wallgo.game.{own}'])")["copy"]
    assert len(copy["plies"]) == 2
    assert kept >= {own} | {f"old-{number}" for number in range(1, count, 2)}
    assert is_full or len(kept) == 32


def test_a_game_that_nobody_keeps_is_told(server, open_tab):
    page = open_tab(f"{server.address}/#AAAAAAAAAAAA")
    page.wait_for_selector("#offer:visible")
    assert page.inner_text("#offer").startswith("The game of this address could not be set up")
    begin(page, "A1")
    assert page.is_hidden("#offer")
