"""The floor plan: folders import only from folders above them; each library has one door."""

import sys

import pytest

from tests.support.import_graph import ROOT, edges, folder_of, libraries_of, read_modules

# Folders and hubs from the ground up; each imports only from those before it. docs/architecture.md
# says what lives in each.
FLOORS = """
wallgo_jax/_version wallgo_jax/notebook wallgo_jax/board wallgo_jax/game wallgo_jax/planes
wallgo_jax/observation wallgo_jax/notation wallgo_jax/env wallgo_jax/view wallgo_jax/formats
wallgo_jax/drawing wallgo_jax/render wallgo_jax/__init__ wallgo_jax/adapters wallgo_jax/cli
wallgo_jax/__main__
train/__init__ train/runtime train/network train/search train/data train/learning train/players
train/solver train/arena train/config train/checkpoints train/registry train/loop train/ratings
train/analysis train/bench/harness train/bench/parts train/bench train/cli train/__main__
""".split()
DOORS = {
    "flax": "train/network",
    "mctx": "train/search",
    "optax": "train/learning",
    "orbax": "train/checkpoints",
}
GAME_LIBRARIES = {"jax", "numpy", "chex", *sys.stdlib_module_names}
MORE_LIBRARIES = {
    "wallgo_jax/cli": {"rich", "tyro"},
    "wallgo_jax/__main__": {"rich", "tyro"},
    "wallgo_jax/drawing": {"PIL", "cairosvg"},
    "wallgo_jax/adapters": {"gymnasium", "pettingzoo"},
}
MAX_FILES, MAX_FOLDERS, MAX_EDGES = 11, 20, 90


def complaints(texts: dict[str, str]) -> list[str]:
    """What breaks the floor plan, one line each; lazy imports count."""
    found = [f"{name} has no floor" for name in texts if folder_of(name) not in FLOORS]
    for source, target in sorted(edges(texts)):
        if source != target and FLOORS.index(target) >= FLOORS.index(source):
            found.append(f"{source} imports {target}, which is not above it")
    for name, library in libraries_of(texts):
        folder = folder_of(name)
        if not folder.startswith(DOORS.get(library, folder)):
            found.append(f"{name} imports {library}, the business of {DOORS[library]} alone")
        allowed = GAME_LIBRARIES | MORE_LIBRARIES.get(folder, set())
        if folder.startswith("wallgo_jax") and library not in allowed:
            found.append(f"{name} imports {library}, which is not among its libraries")
    return found


def test_every_import_points_to_a_folder_above():
    assert complaints(read_modules()) == []


def test_every_floor_exists():
    assert [floor for floor in FLOORS if not list(ROOT.glob(f"{floor}.py"))] == [
        floor for floor in FLOORS if (ROOT / floor).is_dir()
    ]


def test_folders_are_small_and_few():
    modules = [name for name in read_modules() if not name.endswith("__init__.py")]
    by_folder = {folder: 0 for folder in map(folder_of, modules)}
    for name in modules:
        by_folder[folder_of(name)] += 1
    assert {folder: count for folder, count in by_folder.items() if count > MAX_FILES} == {}
    learner = {folder for folder in FLOORS if folder.startswith("train")}
    assert len({folder.split("/")[1] for folder in learner}) <= MAX_FOLDERS
    drawn = {(a, b) for a, b in edges(read_modules()) if a in learner and b in learner and a != b}
    assert len(drawn) <= MAX_EDGES


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("wallgo_jax/board/geometry.py", "from wallgo_jax.game import rules", "wallgo_jax/game"),
        ("wallgo_jax/board/geometry.py", "from ..game.rules import Rules", "wallgo_jax/game"),
        ("wallgo_jax/board/bitboard.py", "import wallgo_jax", "wallgo_jax/__init__"),
        ("wallgo_jax/game/rules.py", "def f():\n    import wallgo_jax.env", "wallgo_jax/env"),
        ("wallgo_jax/env.py", "def f():\n    from wallgo_jax import render", "wallgo_jax/render"),
        ("wallgo_jax/env.py", "import importlib\nimportlib.import_module('train')", "train/__init"),
        ("wallgo_jax/render.py", "import mctx", "train/search alone"),
        ("wallgo_jax/render.py", "import matplotlib", "matplotlib"),
        ("train/learning/learner.py", "from flax import nnx", "train/network alone"),
        ("train/data/selfplay.py", "from train.learning import learner", "train/learning"),
        ("train/config.py", "def f():\n    from train import registry", "train/registry"),
        ("train/loop/x.py", "if True:\n    from optax import adam", "train/learning alone"),
        ("train/new.py", "", "train/new.py has no floor"),
    ],
)
def test_planted_import_is_caught(name, text, said):
    found = complaints(read_modules() | {name: text})
    assert any(
        said in complaint and name.split(".")[0] in complaint or said in complaint
        for complaint in found
    )
    assert len(found) >= 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wallgo_jax/game/state.py", "from ..board.bitboard import Cells"),
        ("train/network/heads.py", "from flax import nnx\nimport wallgo_jax"),
        ("train/__main__.py", "from train.loop import training\nimport tyro"),
    ],
)
def test_import_that_points_down_is_let_through(name, text):
    assert complaints(read_modules() | {name: text}) == []
