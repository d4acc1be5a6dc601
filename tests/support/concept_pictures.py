"""The pictures of docs/concepts.md: one position on its way to what is learned.

`python -m tests.support.concept_pictures` draws them into docs/images/.
"""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import train
from train.network.build import observer_for
from train.players.networks import load_network
from wallgo_jax import planes, render
from wallgo_jax.drawing import board, overlay, theme
from wallgo_jax.game import actions
from wallgo_jax.game.state import State
from wallgo_jax.view.snapshot import take_snapshot

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "images"
PLY = 24
MODEL = "pretrained:wallzero-4stone"
SLOTS_A_STONE = 52
PLANES_A_ROW = 8
LIGHT = theme.named("light")


def slots(state: State) -> str:
    """The plays of the stone with the most of them, as arrows and walls."""
    legal = np.flatnonzero(actions.legal_slots(state))
    stone = np.bincount(legal // SLOTS_A_STONE).argmax()
    own = [slot for slot in legal if slot // SLOTS_A_STONE == stone]
    weights = {int(actions.action_of_slot(state, slot)): 1.0 for slot in own}
    snapshot = take_snapshot(state)
    return board.draw(
        snapshot, LIGHT, over=overlay.arrows(snapshot, LIGHT, weights, percents=False)
    )


def draw_planes(state: State, path: Path) -> None:
    """Every plane that the shipped network sees, under its name."""
    config = load_network(MODEL).config.network
    shown = np.moveaxis(np.asarray(observer_for(config)(state, None)), -1, 0)
    channels = planes.channels(config.planes, 2)
    rows = -(-len(channels) // PLANES_A_ROW)
    fig, axes = plt.subplots(rows, PLANES_A_ROW, figsize=(9, 1.35 * rows))
    for axis in axes.flat:
        axis.axis("off")
    for axis, channel, plane in zip(axes.flat, channels, shown, strict=False):
        axis.imshow(plane, cmap="Blues", vmin=0, vmax=1.3)
        axis.set_title(str(channel).replace("_", " "), fontsize=7)
        size = len(plane)
        axis.add_patch(plt.Rectangle((-0.5, -0.5), size, size, fill=False, linewidth=0.5))
    fig.tight_layout()
    fig.savefig(path, dpi=110)


def main() -> None:
    """Draw every picture."""
    matplotlib.use("agg")
    game = train.load_game(FOLDER / "game.txt")
    middle, end = game.states[PLY], game.states[-1]
    drawn = {
        "position": render.svg(middle),
        "slots": slots(middle),
        "search": train.make_player(f"{MODEL}@64").search(middle).svg(),
        "targets": render.svg(end),
    }
    for name, svg in drawn.items():
        (FOLDER / f"concept_{name}.svg").write_text(svg, encoding="utf-8")
    draw_planes(middle, FOLDER / "concept_planes.png")


if __name__ == "__main__":
    main()
