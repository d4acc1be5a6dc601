"""The picture of docs/playing.md: the page in a browser, in the middle of a game.

`python -m tests.support.play_picture` draws it into docs/images/; it needs the program chromium.
"""

import json
import re
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.support.play import in_thread
from train.ui.machine import Machine
from train.ui.server import make_app
from wallgo_jax.game.rules import PRESETS
from wallgo_jax.notation import parse_action

PATH = Path(__file__).parents[2] / "docs" / "images" / "play.png"
GAME = Path(__file__).parents[2] / "docs" / "images" / "game.txt"
RULES = "wallzero-4stone"
PLIES = 12
SIZE = {"width": 1280, "height": 800}
COMPILED_MS = 300_000
"""The engine compiles before its first search."""
NAME = "docs-picture"
KEEP = "([key, game]) => localStorage.setItem(key, game)"


def game_of_person() -> dict[str, object]:
    """The first plies of the game of the docs, as the page keeps a game against the machine."""
    moves = re.findall(
        r"[A-G]\d(?:->[A-G]\d:\w+)?", GAME.read_text(encoding="utf-8").split("\n\n")[0]
    )
    actions = [parse_action(move, grid=7).action for move in moves[:PLIES]]
    return {
        "rules": RULES,
        "plies": list(enumerate(actions)),
        "tip": PLIES,
        "current": PLIES,
        "seats": ["person", "novice"],
    }


def main() -> None:
    """Shows evaluation, expected territory and a hint at that position."""
    app = make_app(Machine(), PRESETS[RULES])
    with in_thread(app) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(COMPILED_MS)
        page.goto(address)
        page.wait_for_selector("#players li")
        page.evaluate(KEEP, [f"wallgo.game.{NAME}", json.dumps({"copy": game_of_person()})])
        page.goto(f"{address}/#{NAME}")
        page.wait_for_selector(f"#moves button:nth-child({PLIES + 1})")
        for part in ("#bar", "#land", "#hint", "#hint"):
            page.click(part)
        page.wait_for_selector("#ideas tbody")
        page.wait_for_selector(".land g")
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)  # The bar moves.
        page.screenshot(path=PATH)
        browser.close()


if __name__ == "__main__":
    main()
