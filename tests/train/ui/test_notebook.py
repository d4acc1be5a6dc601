"""The board in a notebook: its Python side without a browser, its drawing in one."""

import importlib.util
import json
import queue

import pytest

import train
from tests.support.play import PlainMachine
from train.runtime.errors import UsageError
from train.ui import assets, notebook
from train.ui.widget import PlayWidget
from wallgo_jax.drawing.theme import LIGHT
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import format_action, parse_action

SMALL = Rules(size=3, stones=1, order=(0, 1))


@pytest.fixture(autouse=True)
def plain_machine(monkeypatch):
    monkeypatch.setattr(notebook, "machine_for", lambda player: PlainMachine())


@pytest.fixture
def board():
    found = train.play(SMALL, level="expert")
    yield found
    found.close()


def moves(board):
    return [format_action(action, grid=3) for action in board.game.actions]


def test_the_machine_has_answered_when_a_move_returns(board):
    board.play("B2")
    # The plain machine at its surest takes the first legal cell.
    assert moves(board) == ["B2", "A1"]
    board.play(parse_action("B2->B2:up", grid=3).action)
    assert len(board.game.actions) == 4
    assert moves(board)[:3] == ["B2", "A1", "B2->B2:up"]
    assert not board.is_over
    board.take_back()
    assert len(board.game.actions) == 2 == len(board.copy["plies"])
    board.resign()
    assert board.is_over and board.copy["forfeit"] == [0, "resigned"]
    with pytest.raises(UsageError, match="no game that a person could resign"):
        board.resign()
    board.take_back()
    assert not board.is_over and moves(board) == []


def test_refusals_are_one_line(board):
    with pytest.raises(UsageError, match="C9"):
        board.play("C9")
    with pytest.raises(UsageError, match="no move of yours to take back"):
        board.take_back()
    board.play("B2")
    with pytest.raises(UsageError, match=r"^move: "):
        board.play(10**9)
    assert len(board.game.actions) == 2


def test_the_machine_begins_for_blue():
    board = train.play(SMALL, colour="blue", level="expert")
    board.play("C3")
    assert moves(board)[:2] == ["A1", "C3"] and len(board.game.actions) == 3
    board.close()
    with pytest.raises(UsageError, match="the board is closed"):
        board.play("A1")


def test_what_the_board_changes_is_taken_unless_python_has_written_since(board):
    before = board.copy
    action = parse_action("B2", grid=3).action
    board.copy = before | {"plies": [[0, action]], "tip": 1, "current": 1}
    assert moves(board) == ["B2"]
    board.play("A2->A2:right") if board.is_over else board.play("B2->B2:up")
    after = board.copy
    board.copy = before | {"plies": [[0, action + 1]], "tip": 1, "current": 1}
    assert board.copy == after and moves(board)[0] == "B2"


def test_a_picture_stands_in_where_widgets_are_not_shown(board):
    data, _ = board._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert "application/vnd.jupyter.widget-view+json" in data


def test_missing_library_is_one_line(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "anywidget" else find(name)
    )
    with pytest.raises(UsageError, match=r"pip install 'wallgo-jax\[notebooks\]'"):
        train.play(SMALL)


def test_a_module_holds_each_that_it_imports_once():
    text = assets.module("widget.js")
    sources = json.loads(text.partition(" = ")[2].partition(", addresses = {};\n")[0])
    assert {"widget.js", "board.js", "geometry.js", "engine/rules.js"} <= set(sources)
    assert list(sources)[-1] == "widget.js"
    assert not [name for name, body in sources.items() if 'from "./' in body or 'from "../' in body]


PAGE = """<div id="place"></div><script type="module">
import widget from "{module}";
const values = {values}, heard = {{}};
window.model = {{
  get: (key) => values[key], on: (event, run) => {{ heard[event] = run; }},
  set: (key, value) => {{ values[key] = value; }},
  save_changes: () => window.receive(JSON.stringify({{ copy: values.copy }})),
  send: (message) => window.receive(JSON.stringify(message)),
  tell: (message) => {{
    if ("copy" in message) {{ values.copy = message.copy; heard["change:copy"](); }}
    else heard["msg:custom"](message);
  }},
}};
widget.render({{ model, el: document.querySelector("#place") }});
window.isReady = true;
</script>"""


@pytest.mark.slow
def test_a_move_by_clicks(browser):
    messages, rules = queue.Queue(), PRESETS["wallzero-4stone"]
    game = PlayWidget(rules, PlainMachine(), ["person", "novice"])
    game.send = messages.put
    page, complaints, received = browser.new_page(), [], []
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def receive(text):
        message = json.loads(text)
        if "copy" in message:
            received.append(message["copy"])
            game.copy = message["copy"]
        else:
            game._receive(message["text"])

    page.expose_function("receive", receive)

    def send_copy(change):
        if change.new not in received:
            messages.put({"copy": change.new})

    game.observe(send_copy, "copy")

    def listen(until):
        for _ in range(200):
            while not messages.empty():
                page.evaluate("(message) => model.tell(message)", messages.get())
            if page.evaluate(until):
                return
            page.wait_for_timeout(50)
        raise AssertionError(until)

    values = json.dumps({"choices": game.choices, "copy": game.copy})
    page.route(
        "**/widget.js",
        lambda route: route.fulfill(
            body=assets.module("widget.js"), content_type="text/javascript"
        ),
    )
    page.route(
        "http://board.test/",
        lambda route: route.fulfill(
            body=f"<style>{assets.widget_style()}</style>"
            + PAGE.format(module="./widget.js", values=values),
            content_type="text/html",
        ),
    )
    page.goto("http://board.test/")
    page.wait_for_function("() => window.isReady")
    listen("() => document.querySelector('.advice').textContent.startsWith('Pick a cell')")
    for _ in range(2):
        page.click('[data-cell="24"]')
    listen("() => document.querySelectorAll('.moves button').length === 4")
    assert "D4" in page.inner_text(".moves").split()
    assert format_action(game.game.actions[0], grid=7) == "D4", "Python sees what is played"
    game.play("G7")
    listen("() => document.querySelectorAll('.moves button').length === 5")
    assert "G7" in page.inner_text(".moves").split()
    page.click("text=Take back")
    page.click("text=Take back")
    listen("() => document.querySelectorAll('.moves button').length === 1")
    page.evaluate("model.tell({ copy: { ...model.get('copy'), forfeit: [0, 'resigned'] } })")
    listen("() => !document.querySelector('.end').hidden")
    assert page.inner_text(".end h2") == "You resigned: Blue won"
    tile = "getComputedStyle(document.querySelector('.wallgo')).getPropertyValue('--tile')"
    assert page.evaluate(tile).strip() == LIGHT.tile
    page.close()
    game.close()
    assert complaints == []
