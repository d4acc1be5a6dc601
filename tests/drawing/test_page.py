"""The page of a game or of a position holds all that it needs, and tells nothing too early."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from tests.support.game.small import MOVES, SMALL
from wallgo_jax import render
from wallgo_jax.drawing.theme import DARK, LIGHT
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import parse_moves
from wallgo_jax.view.game_replay import replay_moves


@pytest.fixture(scope="module")
def game():
    return replay_moves(SMALL, parse_moves(MOVES, grid=3))


class Text(HTMLParser):
    """The words of a page outside of its styles and scripts, by the nearest id around them."""

    def __init__(self, page):
        super().__init__()
        self.said, self.open, self.tags = {}, [("", "")], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "path"):
            self.open.append((tag, dict(attrs).get("id") or self.open[-1][1]))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self.open[-1][0] not in ("style", "script") and data.strip():
            place = self.open[-1][1] or self.open[-1][0]
            self.said[place] = f"{self.said.get(place, '')} {data.strip()}".strip()


@pytest.mark.parametrize("kind", ["game", "position"])
def test_a_page_needs_nothing_else(game, kind):
    page = render.page(game) if kind == "game" else render.position_page(game.states[2], reach=0)
    links = set(re.findall(r"https?://[^\"' )]+", page)) - {"http://www.w3.org/2000/svg"}
    assert not links and "src=" not in page and "@import" not in page and "url(" not in page
    assert "$" not in page


def test_names_are_text(game):
    page = render.page(game, players=["<me>", "</script>$"])
    assert "&lt;me&gt;" in page and "<me>" not in page
    assert page.count("</script>") == 1


def test_nothing_tells_the_result_before_the_end(game):
    page = render.page(game, players=["one", "two"])
    said = Text(page).said
    assert not any("won" in text or "over" in text for text in said.values())
    assert said["title"] == "WallGo: one – two"
    assert said["caption"] == "Ply 0 · Red to place a stone"
    steps = json.loads(re.search(r"const STEPS = (.*);\n", page)[1])
    assert [step["text"] for step in steps] == [
        "Ply 0 · Red to place a stone",
        "Ply 1: R A1 · Blue to place a stone",
        "Ply 2: B C3 · Red to move",
        "Ply 3: R A1->A1:right · Blue to move",
        "Ply 4: B C3->C3:up · Red to move",
        "Ply 5: R A1->A1:down · over, Blue won",
    ]
    assert [step["cells"] for step in steps[-2:]] == [[0, 0], [1, 8]]


def test_the_list_has_every_step(game):
    text = Text(render.page(game))
    plies = [a["data-ply"] for tag, a in text.tags if tag == "button" and "data-ply" in a]
    assert plies == [str(ply) for ply in range(6)]
    assert text.said["moves"].endswith("4. B C3->C3:up 5. R A1->A1:down")
    assert "Rules: custom (3×3, 1 stone each)" in text.said["p"]


def test_walls_left_follow_the_steps():
    limited = Rules(size=3, stones=1, order=(0, 1), walls=2)
    page = render.page(replay_moves(limited, parse_moves(MOVES, grid=3)))
    steps = json.loads(re.search(r"const STEPS = (.*);\n", page)[1])
    assert [step["left"] for step in steps] == [[2, 2]] * 3 + [[1, 2], [1, 1], [0, 1]]
    assert "2 walls left" in " ".join(Text(page).said["tally"].split())
    assert "(3×3, 1 stone, 2 walls each)" in page


def test_themes_of_a_page(game):
    auto, dark = render.page(game), render.page(game, theme="dark")
    for theme in (LIGHT, DARK):
        assert f"--page: {theme.page}; --tile: {theme.tile}" in auto
        assert f"--players-1: {theme.players[1]}" in auto
    assert auto.index(LIGHT.page) < auto.index("prefers-color-scheme: dark") < auto.index(DARK.page)
    assert DARK.page in dark and LIGHT.page not in dark and "prefers-color-scheme" not in dark
    used = set(re.findall(r"var\((--[\w-]+)\)", auto))
    assert used <= set(re.findall(r"(--[\w-]+):", auto)) and len(used) > 15
    svg = auto[auto.index("<svg xmlns") : auto.index('<p id="tally"')]
    assert not re.findall(r"#[0-9a-f]{6}", svg)
    with pytest.raises(ValueError, match="theme: 'blue' is not one of light, dark"):
        render.page(game, theme="blue")


def test_the_page_of_a_position(game):
    text = Text(render.position_page(game.states[-1], theme="light"))
    assert text.said["caption"] == "Ply 5: R A1->A1:down · over, Blue won"
    assert " ".join(text.said["tally"].split()) == "R 1 cells B 8 cells"
    assert not {"button", "script", "input", "nav"} & {tag for tag, _ in text.tags}
    plain = render.position_page(game.states[2])
    assert render.position_page(game.states[2], reach=0).count("<circle") > plain.count("<circle")


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
KEYS = """<script>
const said = [];
const step = () => [location.hash, document.querySelector("#caption").textContent,
                    document.querySelector("[aria-current]").dataset.ply,
                    document.querySelector("#ply").value].join("|");
const press = (key, more) => {
  document.dispatchEvent(new KeyboardEvent("keydown", { key, ...more }));
  said.push(step());
};
said.push(step());
press("ArrowRight"); press("End"); press("ArrowLeft"); press("ArrowLeft", { altKey: true });
document.querySelector('[data-ply="3"]').click(); said.push(step());
press("Home");
document.documentElement.dataset.said = said.join("~");
</script></body>"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium to open the page with")
def test_a_browser_steps_the_page(game, tmp_path):
    """Keys, clicks and the address move caption, list and slider together."""
    assert BROWSER is not None
    file = tmp_path / "game.html"
    file.write_text(render.page(game).replace("</body>", KEYS))
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    opened = subprocess.run(
        [BROWSER, *words, "--dump-dom", f"file://{file}#2"], capture_output=True, timeout=60
    )
    said = re.search('data-said="([^"]*)"', opened.stdout.decode())
    assert said is not None, opened.stderr.decode()
    steps = [line.split("|") for line in said[1].replace("&gt;", ">").split("~")]
    assert [place for place, *_ in steps] == ["#2", "#3", "#5", "#4", "#4", "#3", "#0"]
    for place, caption, current, slider in steps:
        assert f"#{current}" == f"#{slider}" == place and caption.startswith(f"Ply {current}")
    assert steps[2][1] == "Ply 5: R A1->A1:down · over, Blue won"
