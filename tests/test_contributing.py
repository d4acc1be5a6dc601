"""The worked example of CONTRIBUTING.md does what the page says, in a copy of the tree."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.partition("## A worked example")[2].partition("\n## ")[0]


def edits() -> list[tuple[str, str, str]]:
    """Of each edit: the file, the lines to find in it, the lines in their place."""
    found = []
    for block in re.findall(r"^```diff\n(.*?)^```", EXAMPLE, re.MULTILINE | re.DOTALL):
        for file, hunks in re.findall(r"^--- (\S+)\n(.*?)(?=^--- |\Z)", block, re.M | re.DOTALL):
            for hunk in hunks.split("@@\n")[1:]:
                lines = hunk.splitlines(keepends=True)
                old = "".join(line[1:] for line in lines if line[0] != "+")
                new = "".join(line[1:] for line in lines if line[0] != "-")
                found.append((file, old, new))
    return found


def test_every_edit_of_the_example_has_its_place():
    assert {Path(file).suffix for file, _, _ in edits()} == {".py", ".md"}
    for file, old, _ in edits():
        assert (ROOT / file).read_text(encoding="utf-8").count(old) == 1, (file, old)


@pytest.mark.slow
def test_the_example_works(tmp_path):
    for folder in ("wallgo_jax", "train", "tests", "docs", "configs", ".github"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__py*"))
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for file, old, new in edits():
        path = tmp_path / file
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    script = re.findall(r"^```bash\n(.*?)^```", EXAMPLE, re.MULTILINE | re.DOTALL)[0]
    formats, test, match = script.splitlines()
    assert formats == "ruff format . && ruff check --fix ."
    # The whole of the folder and all games take minutes.
    for command in (f"{test} -n 0 -k 'crowding or every_kind'", f"{match} --games 4"):
        words = [sys.executable, *shlex.split(command)[1:]]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"2 passed|crowding on wallzero-4stone", done.stdout), done.stdout
