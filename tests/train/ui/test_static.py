"""A page that `export --web` wrote, from a subfolder of a static host, in a real browser."""

import contextlib
import functools
import http.server
import random
import re
import threading

import pytest

import train
from tests.support.page import (
    cell,
    live,
    moves,
    place,
    play_somehow,
    start,
    wait_for_moves,
    wait_for_text,
    wait_for_turn,
)
from wallgo_jax.drawing.theme import DARK, LIGHT

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
)
pytestmark = pytest.mark.slow
WIDE = {"viewport": {"width": 1280, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
MAX_BYTES = 1_500_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A host's folder, with the page in a subfolder."""
    folder = tmp_path_factory.mktemp("host")
    train.export("pretrained:wallzero-4stone", web=folder / "some" / "page")
    return folder


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def hosted(folder):
    handler = functools.partial(_Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/some/page/"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def address(folder):
    with hosted(folder) as found:
        yield found


def cut_off(page):
    """Cut the network off, once the machine is ready."""
    page.wait_for_selector("#activity", state="hidden")
    wait_for_idle(page)
    page.context.set_offline(True)


def wait_for_idle(page):
    page.wait_for_load_state("networkidle")


def assert_is_sound(page, shown):
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [n["html"][:200] for n in each["nodes"]]) for each in found] == [], shown
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width, shown


def tap_somehow(page, choose):
    """Play a move by touch."""

    def tap(name):
        page.locator(f'[data-cell="{name}"]').tap()

    if page.inner_text("#advice").startswith("Pick a cell"):
        name = choose.choice(live(page))
        tap(name)
        tap(name)
        return
    tap(choose.choice(live(page)))
    tap(choose.choice(live(page)))
    walls = page.locator(".ghost")
    walls.nth(choose.randrange(walls.count())).tap()


ARROWS = {(-1, 0): "ArrowUp", (1, 0): "ArrowDown", (0, -1): "ArrowLeft", (0, 1): "ArrowRight"}


def key_somehow(page, choose):
    """Play a move by keys alone."""
    page.keyboard.press("b")

    def walk():
        wanted = int(choose.choice(live(page)))
        at = int(page.evaluate("document.activeElement.dataset.cell"))
        (row, column), (goal_row, goal_column) = divmod(at, 7), divmod(wanted, 7)
        for down, across, steps in (
            (1 if goal_row > row else -1, 0, abs(goal_row - row)),
            (0, 1 if goal_column > column else -1, abs(goal_column - column)),
        ):
            for _ in range(steps):
                page.keyboard.press(ARROWS[down, across])
        page.keyboard.press("Enter")

    if page.inner_text("#advice").startswith("Pick a cell"):
        walk()
        page.keyboard.press("Enter")
        return
    walk()
    walk()
    side = choose.choice(page.eval_on_selector_all(".ghost", "all => all.map(e => e.dataset.side)"))
    page.keyboard.press(["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"][int(side)])
    page.keyboard.press("Enter")


@pytest.mark.parametrize(
    ("settings", "play"),
    [(WIDE, play_somehow), (PHONE, tap_somehow), (WIDE, key_somehow)],
    ids=["mouse-1280", "touch-390", "keyboard-1280"],
)
def test_a_whole_game_without_a_network(open_tab, address, settings, play):
    page, choose = open_tab(address, **settings), random.Random(2)
    cut_off(page)
    start(page, "person", "novice")
    while wait_for_turn(page):
        before = len(moves(page))
        play(page, choose)
        page.wait_for_function(
            f"() => document.querySelectorAll('#moves button').length > {before + 1}"
        )
    assert page.inner_text("#status").startswith("Game over: ")
    end = page.inner_text("#end")
    assert re.search(r"You (won|lost)|A draw", end) and f"{len(moves(page))} plies" in end
    assert_is_sound(page, "the end")
    page.keyboard.press("Home")
    page.click("#hint")
    wait_for_text(page, "#advice", "Hint: place it in column")
    page.click("#hint")
    page.wait_for_selector("#ideas tbody")
    assert "64 simulations" in page.inner_text("#ideas")
    for shown in ("#bar", "#land"):
        page.click(shown)
    page.wait_for_selector("#evaluation .part")
    page.wait_for_selector(".land g")
    assert_is_sound(page, "a hint")


def test_reload_and_a_second_tab_lose_nothing(open_tab, address):
    page = open_tab(address)
    start(page, "person", "person")
    for name in ("C3", "D3", "E3", "F3"):
        place(page, name)
    page.click("#mode")
    page.keyboard.press("ArrowLeft")
    place(page, "G7")
    page.wait_for_selector(".variation")
    shown = page.inner_text("#moves")
    page.reload()
    page.wait_for_selector(".variation")
    assert page.inner_text("#moves") == shown
    assert page.inner_text("#status").startswith("Analysis")
    other = open_tab(page.url, beside=page)
    assert other.inner_text("#moves") == shown
    other.click(".variation .remove")
    page.wait_for_selector(".variation", state="detached")
    assert moves(page) == moves(other)


def test_the_machine_moves_once_where_two_tabs_show_its_game(open_tab, address):
    page = open_tab(address)
    other = open_tab(page.url, beside=page)
    place(page, "C3")
    expected = wait_for_moves(page, 3)
    assert wait_for_moves(other, 3) == expected
    page.close()
    place(other, next(name for name in ("A1", "A2", "A3", "A4") if name not in expected))
    other.fill("#typed", "C3->C3:right")
    other.keyboard.press("Enter")
    assert wait_for_moves(other, 6)[4] == "C3->C3:right", "the tab that is left asks the machine"


@pytest.mark.parametrize(("scheme", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_what_the_browser_prefers_is_followed(open_tab, address, scheme, theme):
    page = open_tab(address, color_scheme=scheme, reduced_motion="reduce", **PHONE)
    colour = "getComputedStyle(document.documentElement).getPropertyValue('--page').trim()"
    assert page.evaluate(colour) == theme.page
    page.click("#bar")
    page.wait_for_selector("#evaluation .part")
    moving = "getComputedStyle(document.querySelector('#evaluation .part')).transitionDuration"
    assert page.evaluate(moving) == "0s"
    assert_is_sound(page, scheme)


def test_a_review_is_python_s_and_puzzles_come_along(open_tab, address):
    page = open_tab(address)
    page.click("#puzzles-open")
    assert "of 50 solved" in page.inner_text("#puzzles-about")
    page.click('#puzzles-all [aria-label="puzzle 1"]')
    page.click("#puzzle-solution")
    page.wait_for_selector("#puzzle-told.shown")
    start(page, "person", "person")
    place(page, "C3")
    page.click("#review")
    wait_for_text(page, "#review-box", "No review: it needs Python's engine")


def test_other_rules_are_played_too(open_tab, address):
    page = open_tab(address)
    page.click("#new")
    page.select_option("#setup-rules", label="Twenty walls · 3 players")
    page.select_option("#seat-1", "casual")
    page.click("#setup-start")
    place(page, "C3")
    wait_for_moves(page, 3)
    page.click("#edit")
    page.wait_for_selector("#edit-play:enabled")
    cell(page, "A1").click()
    assert page.is_disabled("#edit-play")


def test_a_page_is_small_and_fetches_nothing_from_elsewhere(browser, folder, address):
    files = [path for path in (folder / "some" / "page").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MAX_BYTES
    asked, page = [], browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    place(page, "C3")
    wait_for_moves(page, 3)
    page.close()
    assert asked and all(url.startswith(address) for url in asked)
