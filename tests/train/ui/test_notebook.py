"""The board in a notebook: its Python side without a browser, its drawing in one."""

import importlib.util
import queue

import pytest

import train
from tests.support.play import PlainMachine
from train.runtime.errors import UsageError
from train.ui import assets, game_session, notebook
from train.ui.widget import PlayWidget
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_action

SMALL = Rules(size=3, stones=1, order=(0, 1))


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(game_session, "PACE_SECONDS", 0.0)
    monkeypatch.setattr(notebook, "machine_for", lambda player: PlainMachine())


@pytest.fixture
def board():
    found = train.play(SMALL, level="expert")
    yield found
    found.close()


def moves(board):
    return [node[2] for node in board.view["nodes"][1:]]


def test_the_machine_has_answered_when_a_move_returns(board):
    board.play("B2")
    # The plain machine at its surest takes the first legal cell.
    assert [parse_action(move, grid=3).action for move in ("B2", "A1")] == list(board.game.actions)
    board.play(parse_action("B2->B2:up", grid=3).action)
    assert len(board.game.actions) == 4
    assert moves(board)[:3] == ["B2", "A1", "B2->B2:up"]
    assert board.view["mayPlay"] and not board.is_over
    board.take_back()
    assert len(board.game.actions) == 2
    board.resign()
    assert board.is_over and board.view["status"] == "Red resigned"


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


def test_modules_need_no_server():
    text = assets.module("widget.js")
    assert 'from "./' not in text
    assert text.count("data:text/javascript;base64,") == 5


PAGE = """<div id="place"></div><script type="module">
import widget from "{module}";
const values = {values}, heard = {{}};
window.model = {{
  get: (key) => values[key], on: (event, run) => {{ heard[event] = run; }}, off: () => {{}},
  send: (message) => window.receive(message),
  tell: (message) => {{
    if (message.type === "game") {{ values.view = message; heard["change:view"](); }}
    else heard["msg:custom"](message);
  }},
}};
widget.render({{ model, el: document.querySelector("#place") }});
window.isReady = true;
</script>"""


@pytest.mark.slow
def test_a_move_by_clicks(browser):
    messages, rules = queue.Queue(), PRESETS["wallzero-4stone"]
    game = PlayWidget(rules, PlainMachine(), ("person", "novice"))
    game.observe(lambda change: messages.put(change.new), "view")
    game.send = messages.put
    messages.put(game.view)
    page, complaints = browser.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.expose_function("receive", game._receive)

    def listen(until):
        for _ in range(200):
            while not messages.empty():
                page.evaluate("(message) => model.tell(message)", messages.get())
            if page.evaluate(until):
                return
            page.wait_for_timeout(50)
        raise AssertionError(until)

    address, values = assets._address("widget.js"), '{"levels": ["club", "strong"]}'
    page.set_content(
        f"<style>{assets.widget_style()}</style>" + PAGE.format(module=address, values=values)
    )
    page.wait_for_function("() => window.isReady")
    listen("() => document.querySelector('.advice').textContent.startsWith('Pick a cell')")
    for _ in range(2):
        page.click('[data-cell="24"]')
    listen("() => document.querySelectorAll('.moves button').length === 4")
    assert "D4" in page.inner_text(".moves").split()
    page.click("text=Take back")
    listen("() => document.querySelectorAll('.moves button').length === 1")
    game._receive({"type": "play", "node": 0, "move": "nonsense"})
    listen("() => !document.querySelector('.error').hidden")
    assert "nonsense" in page.inner_text(".error")
    page.click("text=Resign")
    listen("() => !document.querySelector('.end').hidden")
    assert page.inner_text(".end h2") == "Blue won: Red resigned"
    page.close()
    game.close()
    assert complaints == []
