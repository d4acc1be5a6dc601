"""The page's modules without a browser: games, clocks, saving and reading, in node."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from train.ui.assets import PAGE

TESTS = sorted((Path(__file__).parent / "page").glob("*.test.mjs"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.partition(".")[0])
def test_modules_in_node(path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs the program node")
    done = subprocess.run([node, "--test", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert re.search(r"# pass [1-9]\d", done.stdout), done.stdout


def test_every_module_that_is_imported_is_there():
    for path in PAGE.rglob("*.js"):
        for name in re.findall(r'from "([^"]+)";', path.read_text(encoding="utf-8")):
            assert name.startswith(("./", "../", "node:")), f"{path}: {name}"
            assert name.startswith("node:") or (path.parent / name).is_file(), f"{path}: {name}"
