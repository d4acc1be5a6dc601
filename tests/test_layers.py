"""The floor plan: a folder imports only from folders above its own; each library has one door."""

import sys
from collections.abc import Sequence

import pytest

import train
from tests.support.import_graph import (
    ROOT,
    circle,
    file_edges,
    folder_of,
    imports_of,
    libraries_of,
    read_modules,
)

# Folders and hubs from the ground up; each imports only from those before it. The map in
# docs/reference says what lives in each.
FLOORS: Sequence[str] = """
wallgo_jax/_version wallgo_jax/display wallgo_jax/board wallgo_jax/game wallgo_jax/planes
wallgo_jax/observation wallgo_jax/notation wallgo_jax/arguments wallgo_jax/serialization
wallgo_jax/env wallgo_jax/view wallgo_jax/formats wallgo_jax/drawing wallgo_jax/render
wallgo_jax/__init__ wallgo_jax/adapters wallgo_jax/cli wallgo_jax/__main__
train/__init__ train/game train/runtime train/functions train/network train/search
train/data train/learning train/solver train/config train/metrics train/checkpoints train/players
train/arena train/opponents train/engine
train/loop train/ratings train/analysis train/review
train/ui
train/bench train/api train/experiments train/cli train/__main__
""".split()
DOORS = {
    "flax": "train/network",
    "mctx": "train/search",
    "optax": "train/learning",
    "orbax": "train/checkpoints",
    "tensorstore": "train/checkpoints",
}
GAME_LIBRARIES = {"jax", "numpy", "chex", *sys.stdlib_module_names}
MORE_LIBRARIES = {
    "wallgo_jax/cli": {"docstring_parser", "rich", "tyro"},
    "wallgo_jax/drawing": {"PIL", "cairosvg"},
    "wallgo_jax/adapters": {"gymnasium", "pettingzoo", "pgx"},
}
LEARNER = ("train/network", "train/search", "train/data", "train/learning", "train/loop")
BORDER = "train/game"
"""The rooms that would serve another game too, and the one module that gives them this one."""
FORMATS = {f"wallgo_jax/{name}" for name in ("formats", "notation", "view", "render")}
"""How games are written and shown, which they may take as it is."""
WITHOUT_JAX = {("train/network/config.py", "wallgo_jax/planes.py")}
"""A config is checked before JAX is loaded, which the game needs."""
LEAVES = ("train/bench", "train/experiments", "wallgo_jax/cli")
USERS = ("train/api", "train/cli", "wallgo_jax/__main__")
"""Folders that nothing is built on, and those that may import them."""
CALLER = "train/experiments"
"""Scripts over the public interface, which take names of `train` as users do."""
FACE = "train/__init__"
"""The lowest module of the learner shows names of higher ones, which it imports when they are used;
no module of the learner may take them from there."""


def breaches(texts: dict[str, str]) -> set[str]:
    """One line for each breach of the floor plan."""
    found = {f"{name} has no floor" for name in texts if folder_of(name) not in FLOORS}
    files = {(a, b) for a, b in file_edges(texts) if a != b and a != f"{FACE}.py"}
    if nodes := circle(files):
        found.add(f"a circle: {' -> '.join(nodes)}")
    for name, target in files:
        source, imported = folder_of(name), folder_of(target)
        if imported == FACE and name.startswith("train/") and source != CALLER:
            found.add(f"{source} uses a name of train, which is its caller")
        elif source != imported and FLOORS.index(source) < FLOORS.index(imported):
            found.add(f"{source} imports {imported}, which is not above it")
        if source in LEARNER and imported.startswith("wallgo_jax"):
            if imported not in FORMATS and (name, target) not in WITHOUT_JAX:
                found.add(f"{name} imports {target}, which {BORDER} gives it")
        leaf = next((leaf for leaf in LEAVES if imported.startswith(leaf)), None)
        if leaf is not None and not source.startswith((leaf, *USERS)):
            found.add(f"{source} imports {imported}, which only {' and '.join(USERS)} may")
    for name, library in libraries_of(texts):
        folder = folder_of(name)
        if not folder.startswith(DOORS.get(library, folder)):
            found.add(f"{name} imports {library}, the business of {DOORS[library]} alone")
        allowed = GAME_LIBRARIES | MORE_LIBRARIES.get(folder, set())
        if folder.startswith("wallgo_jax") and library not in allowed:
            found.add(f"{name} imports {library}, which is not among its libraries")
    return found


def test_the_floor_plan_holds():
    texts = read_modules()
    assert breaches(texts) == set()
    assert {folder_of(name) for name in texts} == set(FLOORS)


def test_no_folder_or_file_has_the_name_of_something_public():
    # Python sets `train.NAME` to a module as soon as it is imported, in place of the function.
    taken = {name.removesuffix(".py").split("/")[1] for name in read_modules() if "train/" in name}
    assert taken & set(train.__all__) == set()


PLANTED = {
    "from ..game.rules import Rules": ("wallgo_jax/board/x.py", "imports wallgo_jax/game"),
    "def f():\n    import wallgo_jax.env": ("wallgo_jax/game/x.py", "game imports wallgo_jax/env"),
    "import importlib as a\na.import_module('train')": ("wallgo_jax/board/x.py", "imports train"),
    "from train.bench import suite": ("train/ui/x.py", "imports train/bench, which only"),
    "from wallgo_jax.cli import parsing": ("train/arena/x.py", "wallgo_jax/cli, which only"),
    "from train import Run": ("train/loop/training.py", "train/loop uses a name of train"),
    "from . import y": ("train/runtime/x.py", "a circle: train/runtime"),
    "from train.config import RunConfig": ("train/game.py", "train/game imports train/config"),
    "from wallgo_jax.game import referee": ("train/data/x.py", "referee.py, which train/game"),
    "from wallgo_jax import planes": ("train/learning/x.py", "planes.py, which train/game"),
    "": ("train/new.py", "train/new.py has no floor"),
    "import matplotlib": ("wallgo_jax/view/x.py", "matplotlib, which is not among its"),
    "from flax import nnx": ("train/learning/x.py", "flax, the business of train/network"),
    "from ..board.bitboard import Cells": ("wallgo_jax/game/x.py", None),
    "from flax import nnx\nfrom train import game": ("train/network/x.py", None),
    "from wallgo_jax import render": ("train/loop/x.py", None),
    "from wallgo_jax import env": ("train/arena/x.py", None),
}
"""A line that a file gets, the file, and a part of the breach that it is, if it is one."""


@pytest.mark.parametrize("line", PLANTED)
def test_a_planted_breach_is_caught(line):
    name, breach = PLANTED[line]
    texts = read_modules() | {"train/runtime/y.py": "from . import x", "train/runtime/x.py": ""}
    more = breaches(texts | {name: f"{texts.get(name, '')}\n{line}\n"}) - breaches(texts)
    assert any(breach in each for each in more) if breach else not more


def test_the_face_shows_what_it_declares_and_imports_nothing():
    text = (ROOT / "train" / "__init__.py").read_text(encoding="utf-8")
    outside, _, shown = text.partition("if TYPE_CHECKING:\n")
    later = shown.partition("\n__all__")[2]
    assert "from train" in shown
    assert "from train" not in outside + later
    declared = {name for name in imports_of("train/__init__.py", text) if name.startswith("train.")}
    assert declared == {f"train.{place}.{name}" for name, place in train._PLACES.items()}
    assert sorted(train.__all__) == sorted(train._PLACES)
