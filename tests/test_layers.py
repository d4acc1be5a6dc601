"""The floor plan: a folder imports only from folders above its own; each library has one door."""

import sys
from collections import Counter

import pytest

import train
from tests.support.import_graph import (
    ROOT,
    edges,
    file_edges,
    folder_of,
    imports_of,
    libraries_of,
    read_modules,
)

# Folders and hubs from the ground up; each imports only from those before it. The map in
# docs/reference says what lives in each.
FLOORS = """
wallgo_jax/_version wallgo_jax/display wallgo_jax/board wallgo_jax/game wallgo_jax/planes
wallgo_jax/observation wallgo_jax/notation wallgo_jax/arguments wallgo_jax/serialization
wallgo_jax/env wallgo_jax/view wallgo_jax/formats wallgo_jax/drawing wallgo_jax/render
wallgo_jax/__init__ wallgo_jax/adapters wallgo_jax/cli wallgo_jax/__main__
train/__init__ train/runtime train/functions train/network train/search/arrays train/search
train/data train/learning train/solver train/config train/metrics train/checkpoints train/players
train/arena train/opponents train/engine
train/loop train/ratings train/analysis train/review train/puzzles
train/experiments/lib train/experiments train/ui/games train/ui
train/bench train/api train/cli train/__main__
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
MAX_FILES, MAX_FOLDERS = 24, 28
LEAVES, USERS = ("train/bench", "train/experiments"), ("train/api", "train/cli")
"""Folders that nothing is built on, and those that may import them."""
FACE = "train/__init__"
"""The lowest module of the learner shows names of higher ones, which it imports when they are used;
no module of the learner may take them from there."""


def complaints(texts: dict[str, str]) -> list[str]:
    """One line for each breach of the floor plan; lazy imports count."""
    found = [f"{name} has no floor" for name in texts if folder_of(name) not in FLOORS]
    for source, target in sorted(edges(texts)):
        is_below = FLOORS.index(target) < FLOORS.index(source)
        if source not in (target, FACE) and not is_below:
            found.append(f"{source} imports {target}, which is not above it")
        leaf = next((leaf for leaf in LEAVES if target.startswith(leaf)), None)
        if leaf is not None and not source.startswith((leaf, *USERS)):
            found.append(f"{source} imports {target}, which only {' and '.join(USERS)} may")
    for name, target in sorted(file_edges(texts)):
        if target == f"{FACE}.py" and name.startswith("train/"):
            found.append(f"{name} uses a name of train, which is its caller")
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


def test_no_folder_or_file_has_the_name_of_something_public():
    # Python sets `train.NAME` to a module as soon as it is imported, in place of the function.
    taken = {name.removesuffix(".py").split("/")[1] for name in read_modules() if "train/" in name}
    assert taken & set(train.__all__) == set()


def complaints_added(name: str, line: str) -> list[str]:
    """The complaints that one more line in a file adds; a file that is missing is created."""
    texts = read_modules()
    planted = texts | {name: f"{texts.get(name, '')}\n{line}\n"}
    return sorted((Counter(complaints(planted)) - Counter(complaints(texts))).elements())


@pytest.mark.parametrize(
    ("name", "line", "source", "target"),
    [
        ("wallgo_jax/board/geometry.py", "from wallgo_jax.game import rules", "board", "game"),
        ("wallgo_jax/board/geometry.py", "from ..game.rules import Rules", "board", "game"),
        ("wallgo_jax/board/bitboard.py", "import wallgo_jax", "board", "__init__"),
        ("wallgo_jax/game/rules.py", "def f():\n    import wallgo_jax.env", "game", "env"),
        ("wallgo_jax/notation.py", "def f():\n    from . import render", "notation", "render"),
        ("wallgo_jax/board/x.py", "from .. import notation", "board", "notation"),
        ("train/data/selfplay.py", "from train.learning import learner", "data", "learning"),
        ("train/config/x.py", "def f():\n    from train import players", "config", "players"),
        ("train/search/x.py", "if True:\n    from train.loop import fit", "search", "loop"),
    ],
)
def test_planted_import_of_a_folder_is_caught(name, line, source, target):
    package = name.split("/")[0]
    found = f"{package}/{source} imports {package}/{target}, which is not above it"
    assert complaints_added(name, line) == [found]


def test_planted_import_of_a_leaf_is_caught():
    line = "from train.bench import suite"
    found = "train/ui/games imports train/bench, which only train/api and train/cli may"
    below = "train/ui/games imports train/bench, which is not above it"
    assert complaints_added("train/ui/games/x.py", line) == sorted([found, below])


def test_planted_import_of_the_other_package_is_caught():
    line = "import importlib\nimportlib.import_module('train')"
    found = "wallgo_jax/board imports train/__init__, which is not above it"
    assert complaints_added("wallgo_jax/board/geometry.py", line) == [found]


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        ("wallgo_jax/view/captions.py", "import matplotlib", "matplotlib, which is not among its"),
        (
            "train/learning/learner.py",
            "from flax import nnx",
            "flax, the business of train/network",
        ),
        ("train/loop/x.py", "if True:\n    from optax import adam", "optax, the business of train"),
        ("train/runtime/host.py", "import orbax.checkpoint", "orbax, the business of train/checkp"),
    ],
)
def test_planted_import_of_a_library_is_caught(name, line, found):
    (complaint,) = complaints_added(name, line)
    assert complaint.startswith(f"{name} imports {found}")


def test_planted_search_in_the_game_breaks_two_rules():
    found = complaints_added("wallgo_jax/render.py", "import mctx")
    assert found == [
        "wallgo_jax/render.py imports mctx, the business of train/search alone",
        "wallgo_jax/render.py imports mctx, which is not among its libraries",
    ]


def test_planted_use_of_the_face_is_caught():
    found = complaints_added("train/loop/training.py", "from train import Run")
    assert found == ["train/loop/training.py uses a name of train, which is its caller"]


def test_the_face_shows_what_it_declares_and_imports_nothing():
    text = (ROOT / "train" / "__init__.py").read_text(encoding="utf-8")
    outside, _, shown = text.partition("if TYPE_CHECKING:\n")
    later = shown.partition("\n__all__")[2]
    assert "from train" in shown
    assert "from train" not in outside + later
    declared = {name for name in imports_of("train/__init__.py", text) if name.startswith("train.")}
    assert declared == {f"train.{place}.{name}" for name, place in train._PLACES.items()}
    assert sorted(train.__all__) == sorted(train._PLACES)


def test_file_without_a_floor_is_caught():
    assert complaints_added("train/new.py", "") == ["train/new.py has no floor"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("wallgo_jax/game/state.py", "from ..board.bitboard import Cells"),
        ("train/network/heads.py", "from flax import nnx\nimport wallgo_jax"),
        ("train/__main__.py", "from train.loop import training\nimport tyro"),
    ],
)
def test_import_that_points_down_is_let_through(name, line):
    assert complaints_added(name, line) == []
