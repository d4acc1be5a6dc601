"""Machines and folders off the beaten path: nothing is lost there, and no traceback is shown."""

import contextlib
import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import jax
import pytest

from tests.support import compiling
from tests.support.learner import tiny
from tests.support.learner.commands import CONFIG, RULES, command
from train.__main__ import main
from train.config import read_config
from train.ratings import results_cache
from train.runtime import devices, files
from train.runtime.files import CannotWriteError
from wallgo_jax.cli.parsing import open_missing_streams
from wallgo_jax.formats import docstrings, records


@pytest.fixture
def cache():
    """Sets up the cache of compiled programs; returns where it is."""
    before = jax.config.jax_compilation_cache_dir

    def enable() -> str | None:
        jax.config.update("jax_compilation_cache_dir", None)
        devices.enable_compilation_cache()
        return jax.config.jax_compilation_cache_dir

    yield enable
    jax.config.update("jax_compilation_cache_dir", before)


def test_a_folder_may_have_any_name(tmp_path):
    """But for a backslash, which is refused before anything is made."""
    folder = tmp_path / "a?b#c%20|d"
    words = ["run", tiny.PATH, "--iterations", 1, "--evaluation.opponents", "[]"]
    assert command(*words, "--runs", folder).code == 0
    run = folder / "tiny"
    assert command("export", run, tmp_path / "models?").code == 0
    assert command("run", "--resume", run, "--iterations", 2).code == 0
    said = command(*words, "--runs", tmp_path / "a\\b")
    assert said.code == 2 and "backslash" in said.err
    assert not (tmp_path / "a\\b").exists()


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_no_character_ends_a_command_whose_output_has_few(monkeypatch, errors):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors=errors)
    monkeypatch.setattr(sys, "stdout", out)
    open_missing_streams()
    print("7×7 · ┃")
    out.flush()
    assert out.buffer.getvalue() == b"7?7 ? ?\n"


def test_a_cache_that_cannot_be_made_is_left_out(monkeypatch, tmp_path, cache):
    """Without a home, or where a file is in its place."""
    with monkeypatch.context() as patch:
        patch.setattr(Path, "home", Mock(side_effect=RuntimeError("Could not determine home.")))
        assert cache() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache() == str(tmp_path / "wallgo-jax")


def test_a_config_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xef\xbb\xbfiterations = 3\n")
    assert read_config(path).iterations == 3


FULL = "No space left on device"


def test_a_log_on_a_full_disk_costs_no_iteration(tmp_path, monkeypatch, capsys):
    words = ["run", tiny.PATH, "--iterations", 2, "--checkpoint.every", 100, "--runs", tmp_path]
    with contextlib.suppress(OSError), open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main([str(word) for word in words]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"/dev/full: cannot be written: {FULL}; what it does not take is shown here"
    assert [line.partition(":")[0] for line in lines if line.startswith("iteration")] == [
        *("iteration 1", "iteration 2")
    ]
    assert {path.name for path in (tmp_path / "tiny" / "resume").iterdir()} == {"2"}


def test_files_next_to_the_weights_cost_no_final_match(copy):
    directory, names = copy / CONFIG.name, ("game.jsonl", "evaluation.json")
    for name in names:
        (directory / name).unlink()
        (directory / name).mkdir()
    said = command("run", "--resume", directory)
    assert said.code == 2 and "against random" in said.out and "results: " in said.out
    game, matches = said.err.splitlines()
    reason = "cannot be written: Is a directory"
    assert game.startswith(f"{directory / names[0]}: ") and game.endswith("goes on without it")
    goes_on = f"python -m train run --resume {directory}"
    assert matches == f"{directory / names[1]}: {reason}; to write it: {goes_on}"


@pytest.mark.parametrize("platform", ["foo", "cuda"])
def test_a_platform_that_is_not_there_is_told_in_a_line(tmp_path, platform):
    words = [sys.executable, "-m", "train", "match", "random", "random", "--games", "2"]
    environment = compiling.environment() | {"JAX_PLATFORMS": platform}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if platform == "cuda" and done.returncode == 0:
        pytest.skip("there is one")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert platform in done.stderr
    assert not os.listdir(tmp_path)


WITHOUT_DOCSTRINGS = """
import sys
from train.__main__ import main
from wallgo_jax.formats import docstrings
assert False, "asserts are on"
for line in sys.argv[1:]:
    main(line.split())
print(docstrings.docstring_of(docstrings))
"""


def test_docstrings_that_are_data_are_there_without_them(monkeypatch):
    """`python -OO` drops docstrings and asserts."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = ["config", "config --toml", "--help", "run --help", "ablation --help"]
    words = [sys.executable, "-OO", "-c", WITHOUT_DOCSTRINGS, *lines]
    environment = compiling.environment() | {"COLUMNS": "80"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shown = "".join(command(*line.split()).out for line in lines)
    assert done.stdout == f"{shown}{docstrings.__doc__}\n"


OF_PLAYERS = ["--rules", RULES, "--opening-plies", 0]
ENDS_WITH_FILES = {
    "match": ["match", "random", "greedy", *OF_PLAYERS, "--games", 4, "--records", "x.jsonl"],
    "tournament": [
        *("tournament", "random", "greedy", *OF_PLAYERS, "--games", 2, "--records", "x.jsonl")
    ],
    "elo": [
        *("elo", "--anchors", "random", "greedy", *OF_PLAYERS, "--games", 4, "--budget", 8),
        *("--cache", "x.jsonl", "--plot", "x.png"),
    ],
}


@pytest.mark.parametrize("name", ENDS_WITH_FILES)
def test_a_full_disk_costs_no_result(name, monkeypatch, plays):
    def fail(path, content):
        raise OSError(errno.ENOSPC, FULL, str(path))

    def refuse(path, line):
        raise CannotWriteError(f"{path}: cannot be written: {FULL}")

    for module in (files, records):
        monkeypatch.setattr(module, "write_whole", fail)
    monkeypatch.setattr(results_cache, "append_line", refuse)
    words = [*ENDS_WITH_FILES[name], "--json", "x.json"]
    said = command(*words)
    assert said.code == 2 and "greedy" in said.out and "written: " not in said.out
    told = dict(line.split(": ", 1) for line in said.err.splitlines())
    assert set(told) == {str(word) for word in words if str(word).startswith("x.")}
    for line in told.values():
        assert line.startswith(f"cannot be written: {FULL}; ")
