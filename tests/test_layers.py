"""The floor plan: a file imports only files listed above it, and each library has one door."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

# Files in order, floor by floor; each may import only those listed before it. Files that are still
# to come have their place already.
FLOORS = {
    0: ["wallgo_jax/_version.py"],
    1: [
        "wallgo_jax/board/__init__.py",
        "wallgo_jax/board/geometry.py",
        "wallgo_jax/board/fusion.py",
        "wallgo_jax/board/bitboard.py",
    ],
    2: [
        "wallgo_jax/game/__init__.py",
        "wallgo_jax/game/rules.py",
        "wallgo_jax/game/state.py",
        "wallgo_jax/game/terrain.py",
        "wallgo_jax/game/actions.py",
        "wallgo_jax/game/referee.py",
        "wallgo_jax/game/chance.py",
        "wallgo_jax/game/symmetry.py",
    ],
    3: [
        "wallgo_jax/observation.py",
        "wallgo_jax/env.py",
        "wallgo_jax/notation.py",
        "wallgo_jax/scene.py",
        "wallgo_jax/objection.py",
        "wallgo_jax/playback.py",
        "wallgo_jax/records.py",
        "wallgo_jax/hkoi_code.py",
        "wallgo_jax/captions.py",
        "wallgo_jax/lattice.py",
        "wallgo_jax/diagram.py",
        "wallgo_jax/drawing/__init__.py",
        "wallgo_jax/drawing/theme.py",
        "wallgo_jax/drawing/svg.py",
        "wallgo_jax/drawing/raster.py",
        "wallgo_jax/drawing/layout.py",
        "wallgo_jax/drawing/board.py",
        "wallgo_jax/drawing/overlay.py",
        "wallgo_jax/drawing/sheet.py",
        "wallgo_jax/drawing/film.py",
        "wallgo_jax/drawing/page.py",
        "wallgo_jax/render.py",
        "wallgo_jax/sources.py",
        "wallgo_jax/commands.py",
        "wallgo_jax/__init__.py",
        "wallgo_jax/adapters/__init__.py",
        "wallgo_jax/adapters/gymnasium.py",
        "wallgo_jax/adapters/pettingzoo.py",
        "wallgo_jax/adapters/pgx.py",
        "wallgo_jax/adapters/openspiel.py",
        "wallgo_jax/__main__.py",
    ],
    4: [
        "train/__init__.py",
        "train/errors.py",
        "train/host.py",
        "train/devices.py",
        "train/network/blocks.py",
        "train/network/config.py",
        "train/network/slots.py",
        "train/network/convolutions.py",
        "train/network/layers.py",
        "train/network/heads.py",
        "train/network/restnet.py",
        "train/network/census.py",
        "train/network/__init__.py",
    ],
    5: [
        "train/tree.py",
        "train/halving.py",
        "train/distributions.py",
        "train/judge.py",
        "train/search.py",
    ],
    6: [
        "train/players.py",
        "train/heuristics.py",
        "train/tables.py",
        "train/alphabeta.py",
        "train/solver.py",
        "train/reachable.py",
        "train/targets.py",
        "train/replay.py",
        "train/examples.py",
        "train/selfplay.py",
    ],
    7: [
        "train/losses.py",
        "train/learner.py",
        "train/arena.py",
        "train/elo.py",
        "train/sprt.py",
        "train/pairings.py",
        "train/ledger.py",
        "train/tournament.py",
        "train/checkpoint.py",
        "train/metrics.py",
    ],
    8: [
        "train/config.py",
        "train/pretrained.py",
        "train/roster.py",
        "train/rundir.py",
        "train/export.py",
        "train/truth.py",
        "train/pool.py",
        "train/curves.py",
        "train/scoreboards.py",
        "train/evaluation.py",
        "train/interrupts.py",
        "train/describe.py",
        "train/mazes.py",
        "train/corridors.py",
        "train/probe.py",
        "train/pictures.py",
        "train/attention.py",
        "train/programs.py",
        "train/iteration.py",
        "train/fit.py",
        "train/loop.py",
        "train/options.py",
        "train/bench/program.py",
        "train/bench/timing.py",
        "train/bench/play.py",
        "train/bench/games.py",
        "train/bench/rivals.py",
        "train/bench/peak.py",
        "train/bench/public.py",
        "train/bench/search.py",
        "train/bench/selfplay.py",
        "train/bench/learn.py",
        "train/bench/memory.py",
        "train/bench/suite.py",
        "train/bench/scaling.py",
        "train/bench/report.py",
        "train/bench/__init__.py",
    ],
    9: [
        "train/bench/command.py",
        "train/duel.py",
        "train/contests.py",
        "train/commands.py",
        "train/__main__.py",
    ],
}
ORDER = [name for names in FLOORS.values() for name in names]

# The one file or folder that may import each of these libraries.
DOORS = {
    "flax": "train/network/",
    "mctx": "train/search.py",
    "optax": "train/learner.py",
    "orbax": "train/checkpoint.py",
}

# What the game may import besides itself and the standard library.
GAME_LIBRARIES = {"jax", "numpy", "chex"}
MORE_LIBRARIES = {
    "wallgo_jax/commands.py": {"rich", "tyro"},
    "wallgo_jax/__main__.py": {"rich", "tyro"},
    "wallgo_jax/drawing/raster.py": {"PIL", "cairosvg"},
    "wallgo_jax/adapters/gymnasium.py": {"gymnasium"},
    "wallgo_jax/adapters/pettingzoo.py": {"gymnasium", "pettingzoo"},
    "wallgo_jax/adapters/pgx.py": {"pgx"},
    "wallgo_jax/adapters/openspiel.py": {"pyspiel"},
}

# Imports that point up, inside a function: who, whom and why.
LAZY = {
    ("wallgo_jax/env.py", "wallgo_jax/render.py"): "a notebook shows a state as a picture",
}


class Import(NamedTuple):
    """One imported module by its dotted name."""

    module: str
    is_lazy: bool  # inside a function


def files() -> dict[str, str]:
    """The text of every module of both packages, by path."""
    paths = [
        path for package in ("wallgo_jax", "train") for path in ROOT.glob(f"{package}/**/*.py")
    ]
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(paths)}


def imports_of(name: str, text: str) -> Iterator[Import]:
    """What a file imports; `from package import name` counts as `package.name`."""
    tree = ast.parse(text)
    lazy = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node in lazy)
        elif isinstance(node, ast.ImportFrom):
            package = Path(name).parent.parts
            base = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                yield Import(f"{module}.{alias.name}", node in lazy)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield Import(ast.literal_eval(node.args[0]), node in lazy)


def file_of(module: str, known: set[str]) -> str:
    """The file that holds a module, or a name in it; the longest dotted path that is a file."""
    parts = module.split(".")
    while parts:
        path = "/".join(parts)
        for candidate in (f"{path}.py", f"{path}/__init__.py"):
            if candidate in known:
                return candidate
        parts.pop()
    raise LookupError(module)


def complaints(texts: dict[str, str]) -> list[str]:
    """What breaks the floor plan, one line each."""
    found = [f"{name} has no floor" for name in texts if name not in ORDER]
    known = {*texts, *ORDER}
    for name, text in texts.items():
        for module, is_lazy in imports_of(name, text):
            library = module.split(".")[0]
            if library in ("wallgo_jax", "train"):
                target = file_of(module, known)
                if (name, target) in LAZY and is_lazy:
                    continue
                if name in ORDER and ORDER.index(target) >= ORDER.index(name):
                    found.append(f"{name} imports {target}, which is not above it in the list")
            elif not name.startswith(DOORS.get(library, name)):
                found.append(f"{name} imports {library}, the business of {DOORS[library]} alone")
            elif name.startswith("wallgo_jax/"):
                allowed = GAME_LIBRARIES | MORE_LIBRARIES.get(name, set()) | sys.stdlib_module_names
                if library not in allowed:
                    found.append(f"{name} imports {library}, which is not among its libraries")
    return found


def test_every_import_points_to_a_file_listed_above():
    assert complaints(files()) == []


def test_list_is_sound():
    assert len(ORDER) == len(set(ORDER))
    assert list(FLOORS) == sorted(FLOORS)
    assert all(any(name.startswith(door) for name in ORDER) for door in DOORS.values())
    assert set(MORE_LIBRARIES) <= set(ORDER)


def test_exemptions_are_in_use():
    texts = files()
    for (name, target), _ in LAZY.items():
        targets = [
            file_of(each.module, set(ORDER))
            for each in imports_of(name, texts[name])
            if each.module.startswith("wallgo_jax")
        ]
        assert target in targets


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("wallgo_jax/board/geometry.py", "from wallgo_jax.game import rules", "game/rules.py"),
        ("wallgo_jax/board/geometry.py", "from ..game import rules", "game/rules.py"),
        ("wallgo_jax/board/geometry.py", "from ..game.rules import Rules", "game/rules.py"),
        ("wallgo_jax/board/geometry.py", "import wallgo_jax.game.rules as r", "game/rules.py"),
        ("wallgo_jax/board/geometry.py", "from . import bitboard", "board/bitboard.py"),
        ("wallgo_jax/board/bitboard.py", "import wallgo_jax", "wallgo_jax/__init__.py"),
        ("wallgo_jax/game/rules.py", "def f():\n    import wallgo_jax.env", "wallgo_jax/env.py"),
        ("wallgo_jax/env.py", "from wallgo_jax import render", "wallgo_jax/render.py"),
        ("wallgo_jax/env.py", "from wallgo_jax import env", "wallgo_jax/env.py"),
        ("wallgo_jax/env.py", "import importlib\nimportlib.import_module('train')", "train/__init"),
        ("wallgo_jax/env.py", "from train.search import make_search", "train/search.py"),
        ("wallgo_jax/render.py", "import mctx", "train/search.py alone"),
        ("wallgo_jax/render.py", "from flax import nnx", "train/network/ alone"),
        ("wallgo_jax/render.py", "import optax", "train/learner.py alone"),
        ("wallgo_jax/render.py", "import orbax.checkpoint", "train/checkpoint.py alone"),
        ("wallgo_jax/render.py", "import matplotlib", "matplotlib"),
        ("train/learner.py", "from flax import nnx", "train/network/ alone"),
        ("train/network/heads.py", "import mctx", "train/search.py alone"),
        ("train/selfplay.py", "from train import learner", "train/learner.py"),
        ("train/checkpoint.py", "if True:\n    from optax import adam", "train/learner.py alone"),
        ("train/new.py", "", "train/new.py has no floor"),
    ],
)
def test_planted_import_is_caught(name, text, said):
    (complaint,) = complaints({name: text})
    assert name in complaint
    assert said in complaint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wallgo_jax/game/state.py", "from wallgo_jax.board import bitboard"),
        ("wallgo_jax/game/state.py", "from ..board.bitboard import Cells"),
        ("wallgo_jax/env.py", "def f():\n    from wallgo_jax import render"),
        ("wallgo_jax/__main__.py", "from wallgo_jax import __version__, make"),
        ("train/network/heads.py", "from flax import nnx\nimport wallgo_jax"),
        ("train/__main__.py", "from train import loop\nimport tyro"),
    ],
)
def test_import_that_points_down_is_let_through(name, text):
    assert complaints({name: text}) == []
