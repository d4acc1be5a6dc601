"""The page in a real browser: a whole game by clicks, takeback, hint, reload, analysis, editor."""

import functools
import json
import random
import re
from xml.etree import ElementTree

import pytest

from tests.support import play as support
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
from wallgo_jax.formats import records
from wallgo_jax.game.rules import PRESETS

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
)
pytestmark = pytest.mark.slow
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}

REVIEWED_MS = 120_000
"""A review compiles its search."""


@pytest.fixture(scope="module")
def address():
    placed = ("A1", "A7", "G1", "G7")
    puzzles = [
        support.plain_puzzle(placed, "B6->B5:up", "G1->G1:down", difficulty=1),
        support.plain_puzzle(placed, "B6->C6:up", "G1->G1:down", difficulty=3),
    ]
    rules = PRESETS["wallzero-4stone"]
    with support.served(rules, puzzles) as found:
        yield found


@pytest.fixture
def open_page(open_tab, address):
    """Opens the page in a browser of its own."""
    return functools.partial(open_tab, address)


def test_picks_are_undone_moves_taken_back_and_stones_dragged(open_page):
    page = open_page()
    start(page, "person", "person")
    cell(page, "A1").click()
    assert "Stone on A1" in page.inner_text("#advice")
    page.keyboard.press("Escape")
    assert page.inner_text("#advice") == "Pick a cell for your stone"
    play_four(page)
    cell(page, "B6").click()
    cell(page, "B5").click()
    assert page.inner_text("#advice") == "Pick the wall to build"
    page.click("#step-back")
    assert page.inner_text("#advice").startswith("Choose a cell for it")
    page.click("#step-back")
    assert page.inner_text("#advice") == "Pick one of your stones"
    cell(page, "B6").click()
    for refused, reason in (
        ("D5", "D5 is more than two steps from B6"),
        ("F6", "F6 is more than two steps from B6"),
        ("A7", "Blue already stands on A7"),
    ):
        cell(page, refused).click()
        assert page.inner_text("#error") == reason
        assert len(live(page)) > 4, "the stone is still picked"
    cell(page, "B5").click()
    assert page.is_hidden("#error")
    cell(page, "F3").click()
    assert page.inner_text("#error") == "F3 is more than two steps from B6"
    page.locator('[data-side="0"]').click()
    assert wait_for_moves(page, 5)[-1] == "B6->B5:up"
    assert page.is_hidden("#error")
    page.click("#takeback")
    assert wait_for_moves(page, 4)[-1] == "G7"
    cell(page, "B6").drag_to(cell(page, "C5"))
    assert page.inner_text("#advice") == "Pick the wall to build"
    page.locator('[data-side="1"]').click()
    assert wait_for_moves(page, 5)[-1] == "B6->C5:right"


def test_by_keyboard_alone(open_page):
    page = open_page()
    start(page, "person", "person")
    for letter in ("b", "B"):  # The middle cell, D4; the second as with Caps Lock on.
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(letter)
        assert page.evaluate("document.activeElement.dataset.cell") == "24"
    for key in ("ArrowUp", "Enter", "Enter"):
        page.keyboard.press(key)
    assert wait_for_moves(page, 1) == ["D3"]
    label = page.locator('[data-cell="17"]').get_attribute("aria-label")
    assert label.startswith("D3, Red stone")
    page.fill("#typed", "D5")
    page.keyboard.press("Enter")
    assert wait_for_moves(page, 2) == ["D3", "D5"]
    assert "Blue D5" in page.inner_text("#says")
    for name in ("F4", "E5"):
        page.fill("#typed", name)
        page.keyboard.press("Enter")
        wait_for_text(page, "#moves", name)
    cell(page, "B6").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    shown = page.locator('[data-cell="36"] + .focus').bounding_box()
    around = page.locator('[data-cell="36"]').bounding_box()
    assert shown["x"] > around["x"] + 2, "the walls beside a cell stay in sight"
    page.keyboard.press("Enter")
    assert page.inner_text("#says").startswith("B6 picked. Choose a cell for it")


def test_typed_moves_wait_for_their_turn(open_page):
    page = open_page(script=HOLDS_SEARCHES)

    def type_moves(*names):
        for name in names:
            page.fill("#typed", name)
            page.press("#typed", "Enter")

    start(page, "person", "person")
    type_moves("A1", "A7", "G1", "G7")  # None of them waits for the answer of the one before.
    assert wait_for_moves(page, 4) == ["A1", "A7", "G1", "G7"]
    type_moves("B9")
    wait_for_text(page, "#typed-told", "B9")
    assert page.input_value("#typed") == "B9", "to be mended"
    assert len(moves(page)) == 4
    start(page, "person", "expert")
    page.evaluate("window.held = []")
    type_moves("D4", "G7")
    wait_for_text(page, "#status", "machine")
    assert page.inner_text("#typed-told").startswith("Waits for your turn: G7")
    page.evaluate("letGo()")
    # Blue places twice running.
    assert wait_for_moves(page, 4) == ["D4", "A1", "B1", "G7"]
    assert page.inner_text("#typed-told") == ""


HOLDS_SEARCHES = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (text) {
  const go = () => send.call(this, text);
  if (window.held && JSON.parse(text).type === "evaluate_position") held.push(go);
  else go();
};
window.letGo = () => {
  held.forEach((go) => go());
  window.held = null;
};"""


def test_a_search_that_nobody_waits_for_any_more_is_stopped(browser):
    with support.served(PRESETS["wallzero-4stone"], is_slow=True) as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("#players li")
        place(page, "D4")
        wait_for_text(page, "#status", "Blue (machine) is thinking")
        page.wait_for_selector("#activity:visible")
        assert "Searches with 1 simulation" in page.inner_text("#activity")
        page.click("#takeback")
        wait_for_moves(page, 0)
        page.wait_for_selector("#activity", state="hidden")
        assert page.inner_text("#status") == "You are Red. Place your third stone"
        assert page.inner_text("#goal") == (
            "Goal: wall off more cells than Blue. Of each colour, 2 stones already stand."
        )
        place(page, "D4")
        wait_for_text(page, "#status", "Blue (machine) is thinking")
        page.close()


def test_a_board_is_there_before_the_game(browser, address):
    page = browser.new_page()
    page.route("**/choices.json", lambda route: None)
    page.goto(address)
    assert page.locator("#board .hit").count() == 49
    page.wait_for_selector("#activity:visible")
    assert re.fullmatch(r"Setting up the game, \d+ s", page.inner_text("#activity p"))
    assert page.get_attribute("header nav", "inert") is not None
    assert page.get_attribute("#game-panel", "inert") is not None
    page.close()


def test_the_rules_are_explained_in_pictures_to_who_is_new(open_page):
    page = open_page()
    page.click("text=New to WallGo?")
    assert page.locator("#pictures svg").count() == 3
    assert "1. Move a stone" in page.inner_text("#pictures")
    page.click("#keys-close")
    start(page, "person", "person")
    place(page, "C3")
    wait_for_moves(page, 1)
    start(page, "person", "person")
    page.wait_for_selector("#offer button")
    assert "New to WallGo?" not in page.inner_text("#offer")


def test_hint_and_undo_are_on_the_first_screen_of_a_phone(open_page):
    # What a browser's own bars leave of 844.
    page = open_page(viewport={"width": 390, "height": 664}, has_touch=True, is_mobile=True)
    start(page, "person", "person")
    for name in ("#hint", "#step-back", "#takeback"):
        box = page.locator(name).bounding_box()
        assert box["y"] + box["height"] <= 664, name


COVERED = """() => {
  const box = (part) => part.getBoundingClientRect();
  const error = box(document.querySelector("#error"));
  const parts = document.querySelectorAll("#board, #status, button, select, input");
  return [...parts].filter((part) => part.checkVisibility()).filter((part) => {
    const { left, right, top, bottom } = box(part);
    return left < error.right && error.left < right && top < error.bottom && error.top < bottom;
  }).map((part) => part.id || part.textContent);
}"""


def test_a_landscape_has_two_columns_and_messages_cover_nothing(open_page):
    page = open_page()
    # A phone upright and on its side, a desktop, and the same desktop at 200 %.
    for width, height, columns in ((390, 844, 1), (844, 390, 2), (1280, 800, 2), (640, 400, 2)):
        page.set_viewport_size({"width": width, "height": height})
        cell(page, "B2").click()
        assert page.inner_text("#error") == "Blue already stands on B2"
        assert page.evaluate(COVERED) == [], (width, height)
        page.evaluate("scrollTo(0, 0)")
        board, told, hint = (
            page.locator(part).bounding_box() for part in ("#board", "#error", "#hint")
        )
        for box in (told, hint):
            is_beside = box["x"] >= board["x"] + board["width"]
            assert is_beside == (columns == 2), (width, height)
            assert box["y"] + box["height"] <= height, (width, height)
        assert board["y"] + board["height"] <= height, (width, height)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.keyboard.press("Escape")
        assert page.is_hidden("#error")


def test_hint_evaluation_and_territory(open_page):
    page = open_page()
    start(page, "person", "person")
    play_four(page)
    cell(page, "B6").click()
    cell(page, "F6").click()
    page.click("#hint")
    assert page.is_hidden("#error"), "a message goes with the next thing that is done"
    wait_for_text(page, "#advice", "Hint: move the stone on A1")
    assert page.is_hidden("#ideas")
    wait_for_text(page, "#says", "Hint: move the stone on A1")
    assert page.locator(".over .hinted").count() == 1
    assert page.locator(".over polygon").count() == 0, "the move is not shown yet"
    page.click("#hint")
    page.wait_for_selector("#ideas tbody")
    shown = page.inner_text("#ideas")
    assert "256 simulations, the most visited first" in shown
    heads = page.locator("#ideas th[scope=col]").all_inner_texts()
    assert heads == ["move", "chance to win", "visits"]
    assert page.inner_text("#ideas tr:has(th[scope=row]) td:last-child") == "1"
    assert "Red 50\u202f%" in shown
    assert "R 50\u202f%" in page.locator(".over text").all_text_contents()
    assert page.locator(".over polygon").count() > 1
    page.hover("#ideas tbody:nth-of-type(2)")
    assert page.locator(".over polygon").count() <= 1
    page.click("#bar")
    page.wait_for_selector("#evaluation .part")
    assert "Red 50\u202f%" in page.get_attribute("#evaluation", "aria-label")
    page.click("#land")
    page.wait_for_selector(".land g")
    page.locator("#ideas button").first.click()
    wait_for_moves(page, 5)
    page.click("#takeback")
    wait_for_moves(page, 4)
    assert page.is_hidden("#ideas"), "a hint is of the position as it was asked for"
    assert page.locator(".over text").count() == 0


def test_analysis_keeps_variations(open_page):
    page = open_page()
    start(page, "person", "person")
    place(page, "C3")
    wait_for_moves(page, 1)
    page.click("#mode")
    wait_for_text(page, "#status", "Analysis")
    page.keyboard.press("ArrowLeft")
    wait_for_text(page, "#status", "Red")
    place(page, "E5")
    page.wait_for_selector(".variation")
    page.click(".variation .remove")
    page.wait_for_selector(".variation", state="detached")


def test_a_position_of_the_editor_is_played(open_page):
    page = open_page()
    start(page, "person", "person")
    play_four(page)
    page.click("#edit")
    page.wait_for_selector("#edit-play:enabled")
    cell(page, "D4").click()
    wait_for_text(page, "#edit-error", "Red has")
    cell(page, "D4").click()
    page.locator('[data-edge="0,0"]').click()
    page.wait_for_selector("#edit-play:enabled")
    page.click("#edit-play")
    wait_for_moves(page, 0)
    page.wait_for_selector(".walls g")
    assert "A1, Red stone, walls below" in cell(page, "A1").get_attribute("aria-label")


def test_load_and_save(open_page):
    page = open_page()
    page.click("#open")
    page.click("#load form .buttons button:first-child")
    page.wait_for_selector("#load-error:visible")
    assert page.inner_text("#load-error").startswith("nothing to load: choose a file")
    page.fill("#load-text", "# hkoi\n1. R C3 2. B D4")
    page.click("#load form .buttons button:first-child")
    assert wait_for_moves(page, 2) == ["C3", "D4"]
    with page.expect_download() as kept:
        page.click("#save")
        page.fill('[aria-label="Red\'s name"]', "Ada L.")
        page.click("#save-record")
    assert re.fullmatch(r"Ada-L-vs-person-[\d-]{10}\.jsonl", kept.value.suggested_filename)
    assert "Red · Ada L." in page.inner_text("#players")
    record = records.from_json(kept.value.path().read_text())
    assert record.players == ("Ada L.", "person")
    assert record.rules == PRESETS["hkoi"]
    assert records.replay(record).actions == (2564, 2572)
    page.click("#open")
    names = '["wide and wider and wider still", "a"]'
    page.fill("#load-text", f'{{"variant": "hkoi", "actions": [2564], "players": {names}}}')
    page.click("#load form .buttons button:first-child")
    wait_for_moves(page, 1)
    assert "Red · wide and wider" in page.inner_text("#players")


CLIPBOARD = """async () => {
  const [item] = await navigator.clipboard.read();
  const [type] = item.types;
  const bytes = new Uint8Array(await (await item.getType(type)).arrayBuffer());
  return [type, String.fromCharCode(...bytes.slice(0, 10_000))];
}"""


def test_a_link_holds_the_game_and_a_picture_the_board(open_page, open_tab):
    page = open_page()
    start(page, "person", "person")
    play_four(page)
    cell(page, "B6").click()
    cell(page, "B5").click()
    page.locator('[data-side="0"]').click()
    wait_for_moves(page, 5)
    page.click("#save")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copied = {}
    for what in ("moves", "link", "picture"):
        page.click(f"#copy-{what}")
        wait_for_text(page, "#save-told", f"{what.capitalize()} copied.")
        copied[what] = page.evaluate(CLIPBOARD)
    assert copied["moves"] == [
        "text/plain",
        "# wallzero-4stone, Red person, Blue person\n"
        "1. R A1\n2. B A7\n3. B G1\n4. R G7\n5. R B6->B5:up\n",
    ]
    assert copied["picture"][0] == "image/png" and copied["picture"][1].startswith("\x89PNG")
    link = page.input_value("#save-link")
    assert copied["link"] == ["text/plain", link]
    with page.expect_download() as kept:
        page.click("#save-picture")
    picture = kept.value.path().read_text()
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in picture and 'class="hit' not in picture and picture.count(">R</text>") == 4
    friend = open_tab(link)
    assert moves(friend) == ["A1", "A7", "G1", "G7", "B6->B5:up"]
    assert friend.inner_text("#status").startswith("Analysis")
    friend.reload()
    assert len(wait_for_moves(friend, 5)) == 5
    broken = open_tab(link.replace("A7", "Z7"))
    assert "ply 2" in broken.inner_text("#error") or "Z7" in broken.inner_text("#error")
    assert moves(broken) == []


def play_four(page):
    for name in ("A1", "A7", "G1", "G7"):
        place(page, name)
        wait_for_text(page, "#moves", name)


def test_a_review_opens(open_page):
    page = open_page(color_scheme="dark")
    start(page, "person", "person")
    assert page.is_disabled("#review")
    play_four(page)
    page.click("#review")
    page.wait_for_selector("#mistake-told:visible", timeout=REVIEWED_MS)
    wait_for_text(page, "#mistake-told", "Mistake 1 of ")
    assert re.search(r"chance to win fell from \d+\s% to \d+\s%", page.inner_text("#mistake-told"))
    first = moves(page).index(page.inner_text("#mistake-told").split()[8])
    assert page.locator("#moves button").nth(first).get_attribute("aria-current") == "step"
    wait_for_text(page, "#says", "Mistake 1 of ")
    place(page, "D4")
    wait_for_text(page, "#mistake-told", "D4: ")
    page.wait_for_selector("#try-again:enabled")
    page.click("#try-again")
    wait_for_text(page, "#mistake-told", "Mistake 1 of ")
    page.click(".variation .remove")
    page.click("#next-mistake")
    wait_for_text(page, "#mistake-told", "Mistake 2 of ")
    page.click("#review-open")
    frame = page.frame_locator("#review-frame")
    frame.get_by_text("accuracy", exact=True).wait_for()
    assert frame.locator("svg").count()
    second = int(re.search(r"Move (\d):", page.inner_text("#mistake-told"))[1])
    assert frame.locator("#moves [data-ply][aria-current]").get_attribute("data-ply") == str(second)
    assert page.locator("#moves small").count() == 0, "Evaluation is off"
    page.keyboard.press("Escape")
    # The frame is emptied a moment after the dialog closes: until then it shows the first report.
    frame.locator("svg").first.wait_for(state="detached")
    page.keyboard.press("Home")
    page.click("#bar")
    page.click("#review-open")
    frame.get_by_text("accuracy", exact=True).wait_for()
    told = [re.findall(r"\d+", each) for each in frame.locator("#moves small").all_inner_texts()]
    listed = page.locator("#moves small").all_inner_texts()
    assert [re.findall(r"\d+", each) for each in listed[1:]] == told, "the start has one, too"
    assert page.locator("#moves small").last.get_attribute("title").endswith("by 4 simulations")
    with page.expect_download() as kept:
        page.click("#review-figures")
    figures = json.loads(kept.value.path().read_text())
    assert [move["move"] for move in figures["moves"]] == ["A1", "A7", "G1", "G7"]
    page.click("#review-close")
    assert re.search(r"R \d+\s%\s+B \d+\s%", page.inner_text("#review-box").replace("\n", " "))
    colour = "getComputedStyle(document.body).backgroundColor"
    for theme in ("light", "dark", "auto"):
        page.select_option("#theme", theme)
        page.click("#review-open")
        page.wait_for_selector("#review-dialog[open]")
        frame.locator(f"html[data-theme={theme}]").wait_for()
        assert frame.locator("body").evaluate(f"() => {colour}") == page.evaluate(colour), theme
        page.click("#review-close")


def test_puzzles_are_solved(open_page):
    page = open_page()
    page.click("#puzzles-open")
    assert "0 of 2 solved" in page.inner_text("#puzzles-about")
    page.click('#puzzles-all [aria-label="puzzle 1"]')
    page.wait_for_selector("#puzzle:not([hidden])")
    assert page.is_disabled("#hint")
    for side, told in ((3, "B6->B5:left does not win"), (0, "Solved: B6->B5:up, Red 93\u202f%")):
        cell(page, "B6").click()
        cell(page, "B5").click()
        page.locator(f'[data-side="{side}"]').click()
        wait_for_text(page, "#puzzle-told", told)
    page.click("#puzzle-next")
    wait_for_text(page, "#puzzle-title", "Puzzle 2 of 2")
    page.reload()
    page.wait_for_selector("#puzzle-solution:visible")
    page.click("#puzzle-solution")
    page.wait_for_selector("#puzzle-told.shown")
    page.click("#puzzle-list")
    assert "1 of 2 solved" in page.inner_text("#puzzles-about")


def test_a_whole_game_of_custom_rules_against_machines_by_clicks(open_page):
    page, choose = open_page(), random.Random(1)
    page.click("#new")
    page.select_option("#setup-rules", "custom")
    page.wait_for_selector("#setup-start:enabled")
    page.fill("#custom-stones", "1")
    wait_for_text(page, "#custom-error", "start and order give player 0")
    assert page.is_disabled("#setup-start")
    page.select_option("#custom-setup", "snake")
    page.fill("#custom-size", "5")
    page.fill("#custom-players", "3")
    page.wait_for_selector("#seat-2")
    assert page.inner_text("#custom-error") == ""
    for player, seat in enumerate(("person", "expert", "expert")):
        page.select_option(f"#seat-{player}", seat)
    page.click("#setup-start")
    page.wait_for_function("() => document.querySelectorAll('.hit').length === 25")
    wait_for_text(page, "#rules", "Custom (5×5, 1 stone each)")
    assert page.locator("#players li").count() == 3
    turns = 0
    while wait_for_turn(page):
        before = len(moves(page))
        play_somehow(page, choose)
        turns += 1
        page.wait_for_function(
            f"() => document.querySelectorAll('#moves button').length > {before + 1}"
        )
        if turns == 2:
            page.reload()
            page.wait_for_selector("#players li")
            assert len(moves(page)) > before
    assert turns > 2
    assert page.inner_text("#status").startswith("Game over: ")
    end = page.inner_text("#end")
    assert re.search(r"You (won|lost: [A-Z]\w+ won)|A draw", end) and end.count("cell") >= 3
    assert f"{len(moves(page))} plies" in end
    page.click("#again")
    page.wait_for_selector("#end", state="hidden")
    assert page.inner_text("#players").startswith("R\nRed · you")
    page.click("#resign")
    assert page.inner_text("#resign-about").startswith("Red loses.")
    page.keyboard.press("Enter")
    assert page.is_hidden("#resign-dialog") and page.is_hidden("#end"), "the first button plays on"
    page.click("#resign")
    page.click("#resign-yes")
    page.wait_for_selector("#end:visible")
    assert page.inner_text("#end h2") == "You resigned"
    assert "nobody's: 25 cells" in page.inner_text("#end")
    page.click("#rematch")
    wait_for_text(page, "#players", "Red · machine")
    assert page.inner_text("#players").count("you") == 1


CUT_CHOICES = """[...document.querySelectorAll("#setup select, header select")].flatMap((select) =>
  [...select.options].filter((option) => {
    const alone = select.cloneNode();
    alone.append(option.cloneNode(true));
    Object.assign(alone.style, { width: "auto", maxWidth: "none", flex: "none" });
    select.after(alone);
    const wanted = alone.offsetWidth;
    alone.remove();
    return wanted > select.offsetWidth;
  }).map((option) => option.text))"""
"""Options that a box of the dialog would cut, had it chosen them."""


def assert_is_sound(page, shown):
    """Axe finds nothing, and nothing is wider than the window."""
    found = axe.Axe().run(page).response["violations"]
    told = [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found]
    assert told == [], shown
    cut = "moves => moves.filter(m => m.scrollWidth > m.clientWidth).map(m => m.textContent)"
    assert page.eval_on_selector_all("#moves button", cut) == [], shown
    # A phone's window grows with what is too wide for it.
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width, shown


@pytest.mark.parametrize(
    ("settings", "scheme", "page_colour"),
    [({}, "light", "rgb(239, 233, 221)"), (PHONE, "dark", "rgb(29, 33, 39)")],
    ids=["desktop", "phone"],
)
def test_axe_finds_nothing_and_nothing_is_too_wide(
    open_page, address, settings, scheme, page_colour
):
    """Board, dialogs, editor, puzzles and a review, their contrast included."""
    page = open_page(color_scheme=scheme, **settings)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == page_colour
    page.click("#new")
    named = page.locator("#setup-rules option").all_inner_texts()
    assert len(set(named)) == len(named) and not any(name in str(named) for name in PRESETS)
    levels = page.locator("#seat-1 optgroup option")
    assert levels.all_inner_texts()[:2] == [
        "Beginner: your first game",
        "Novice: you know the rules",
    ]
    assert "Elo" not in page.inner_text("#setup")
    for about in (page.locator("#seat-1"), levels.nth(1)):
        assert re.fullmatch(r"Elo -?\d+ ± \d+, with wjx at 0", about.get_attribute("title"))
    page.select_option("#setup-rules", "custom")
    page.wait_for_selector("#setup-start:enabled")
    assert_is_sound(page, "new game")
    width = page.viewport_size["width"]
    assert page.evaluate("document.querySelector('#setup').scrollWidth") <= width
    assert page.evaluate(CUT_CHOICES) == []
    page.keyboard.press("Escape")
    start(page, "person", "person")
    play_four(page)
    for shown in ("#bar", "#land", "#hint", "#hint"):
        page.click(shown)
    page.wait_for_selector("#ideas tbody")
    cell(page, "B6").click()
    cell(page, "B5").click()
    assert_is_sound(page, "board")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    start(page, "person", "person")
    page.wait_for_selector("#offer button")
    assert_is_sound(page, "offer of an unfinished game")
    page.click("#offer button")
    wait_for_moves(page, 4)
    dialogs = {
        "#open": "#load-cancel",
        "#save": "#save-cancel",
        "#puzzles-open": "#puzzles-close",
        "#help": "#keys-close",
    }
    for opens, closes in {**dialogs, "#edit": "#edit-cancel"}.items():
        page.click(opens)
        assert_is_sound(page, opens)
        page.click(closes)
    page.click("#review")
    page.wait_for_selector("#mistake-told:visible", timeout=REVIEWED_MS)
    assert_is_sound(page, "a mistake of a review")
    page.click("#review-open")
    page.frame_locator("#review-frame").get_by_text("accuracy", exact=True).wait_for()
    assert_is_sound(page, "review")
    review = page.get_attribute("#review-tab", "href").partition("#")[0]
    page.click("#review-close")
    page.keyboard.press("End")
    cell(page, "B6").click()
    cell(page, "B5").click()
    page.locator('[data-side="1"]').click()
    wait_for_moves(page, 5)
    page.wait_for_selector("#moves button:last-child small")
    assert_is_sound(page, "a long move with its chance")
    page.click("#puzzles-open")
    page.click('#puzzles-all [aria-label="puzzle 1"]')
    page.wait_for_selector("#puzzle:not([hidden])")
    page.click("#puzzle-solution")
    page.wait_for_selector("#puzzle-told.shown")
    assert_is_sound(page, "puzzle")
    page.goto(f"{address}/{review}")
    page.wait_for_selector("#candidates tbody tr")
    assert_is_sound(page, "page of a review")
