"""Damaged checkpoints are passed over, or refused in one line; a flipped bit is seen."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner.checkpoints import (
    CONFIG,
    assert_same_bits,
    new_run,
    scrambled,
)
from tests.support.refusals import refusal
from train.checkpoints import store
from train.loop.programs import TrainState
from wallgo_jax import __version__
from wallgo_jax.env import VERSION


@pytest.fixture(scope="module")
def fresh() -> TrainState:
    """A run with fewer arrays, since they are read so often."""
    return small_run()


def small_run() -> TrainState:
    run = new_run()
    return run._replace(learner=run.learner._replace(optimizer=()), replay_state=())


def cut(path: Path) -> None:
    """Keep the first half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path, place: float = 0.5) -> None:
    """Turn over a bit in the middle of a file, or elsewhere."""
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1
    path.write_bytes(data)


def arrays(folder: Path) -> Path:
    """The largest file, where the arrays are."""
    return max(folder.rglob("d/*"), key=lambda path: path.stat().st_size)


def item(folder: Path) -> Path:
    """The arrays' folder in a checkpoint."""
    return folder / ("weights" if folder.parent.name == store.WEIGHTS else "run")


def meta(folder: Path) -> Path:
    return folder / "meta" / "metadata"


def replace_by_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("not a folder")


def replace_by_foreign(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"something else")


def replace_by_older(folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("5"), folder)


def change_seed(folder: Path) -> None:
    text = meta(folder).read_text()
    assert '"seed": 7' in text
    meta(folder).write_text(text.replace('"seed": 7', '"seed": 8'))


def other_network(folder: Path) -> None:
    wider = jax.tree.map(
        lambda x: np.zeros((*x.shape[:-1], 16), x.dtype) if x.dtype == jnp.float32 else x,
        small_run(),
    )
    shutil.rmtree(folder)
    store.save_checkpoint(folder.parents[1], 7, wider.learner.variables, wider, CONFIG)


DAMAGE = {
    "arrays cut": (lambda folder: cut(arrays(folder)), ""),
    "arrays deleted": (lambda folder: arrays(folder).unlink(), ""),
    "a bit of the arrays flipped": (lambda folder: flip(arrays(folder)), ""),
    "manifest cut": (lambda folder: cut(item(folder) / "manifest.ocdbt"), ""),
    "manifest deleted": (lambda folder: (item(folder) / "manifest.ocdbt").unlink(), ""),
    "tree cut": (lambda folder: cut(item(folder) / "_METADATA"), ""),
    "tree deleted": (lambda folder: (item(folder) / "_METADATA").unlink(), ""),
    "no arrays": (lambda folder: shutil.rmtree(item(folder)), ""),
    "meta cut": (lambda folder: cut(meta(folder)), "meta: "),
    "meta deleted": (lambda folder: meta(folder).unlink(), "meta: [Errno 2] No such file"),
    "meta no text": (lambda folder: meta(folder).write_bytes(b"\xff\xfe"), "meta: 'utf-8'"),
    "meta changed": (change_seed, "meta: not what was written"),
    "other format": (lambda folder: meta(folder).write_text('{"format": 99}'), "format 99, this"),
    "no format": (lambda folder: meta(folder).write_text('{"step": 3}'), "format None, this"),
    "meta a list": (lambda folder: meta(folder).write_text("[1, 2]"), "format [1, 2], this"),
    "meta NaN": (lambda folder: meta(folder).write_text("NaN"), "format nan, this"),
    "format NaN": (lambda folder: meta(folder).write_text('{"format": NaN}'), "format nan, this"),
    "empty": (lambda folder: (shutil.rmtree(folder), folder.mkdir()), "meta: "),
    "a file": (replace_by_file, "meta: [Errno 20] Not a directory"),
    "foreign": (replace_by_foreign, "meta: "),
    "an older one": (replace_by_older, "meta: not what was written"),
    "half-written": (
        lambda folder: folder.rename(f"{folder}.orbax-checkpoint-tmp"),
        "its saving was never finished",
    ),
}


DIFFERENT = ("arrays cut", "meta cut", "a file", "an older one", "half-written")
"""Damages of different places and kinds."""


def reader(kind: str, fresh: TrainState) -> tuple[Callable[..., Any], Any, Any]:
    """What reads this kind, what it should look like, and the content of iteration 5."""
    if kind == store.RESUME:
        return store.read_run, fresh, scrambled(fresh, 5)
    return store.read_weights, fresh.learner.variables, scrambled(fresh, 5).learner.variables


@pytest.mark.parametrize(
    ("kind", "name"),
    [*((store.RESUME, name) for name in DAMAGE), *((store.WEIGHTS, name) for name in DIFFERENT)],
)
def test_damaged_checkpoint_is_passed_over_and_alone_refused(damaged, fresh, capsys, kind, name):
    act, reason = DAMAGE[name]
    folder = damaged / kind / "7"
    act(folder)
    read, like, expected = reader(kind, fresh)
    capsys.readouterr()
    assert_same_bits(read(damaged, like), expected)
    (line,) = capsys.readouterr().err.splitlines()
    place = f"{folder}.orbax-checkpoint-tmp" if name == "half-written" else f"{folder}"
    said = f"{place}: cannot be read: {reason}"
    assert line.startswith(said)
    assert line.endswith("; taking iteration 5")
    shutil.rmtree(folder.with_name("5"))
    assert refusal(read, damaged, like).startswith(said)


@pytest.mark.parametrize(
    ("starts", "said"),
    [
        (None, "another version of wallgo-jax wrote it"),
        ([{"versions": {"wallgo-jax": "0.1.0"}}], "wallgo-jax 0.1.0 wrote it"),
    ],
)
def test_a_run_of_another_version_is_refused_by_its_version(damaged, fresh, starts, said):
    """It is whole, and so are its weights; no damage is told."""
    shutil.rmtree(damaged / store.RESUME / "5")
    other_network(damaged / store.RESUME / "7")
    if starts is not None:
        (damaged / "run.json").write_text(json.dumps({"starts": starts}))
    complaint = refusal(store.read_run, damaged, fresh)
    assert complaint.startswith(f"{damaged / store.RESUME / '7'}: {said}, this is {__version__}")
    assert complaint.endswith(f"can start a new run: `start_weights={str(damaged)!r}`")
    assert store.read_weights(damaged, fresh.learner.variables)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((store.WEIGHTS, name) for name in ("arrays cut", "a file", "half-written")),
        *((store.RESUME, name) for name in ("meta cut", "half-written")),
    ],
)
def test_run_passes_there_again(damaged, fresh, capsys, name, kind):
    """The damaged checkpoint is moved out of the way of the one that takes its place."""
    folder = damaged / kind / "7"
    DAMAGE[name][0](folder)
    variables = fresh.learner.variables
    read, like, expected = reader(kind, fresh)
    store.set_aside(damaged, variables, after=5)
    assert store.newest_iteration(damaged, kind) == 5
    again = scrambled(fresh, 8)
    store.save_checkpoint(damaged, 7, again.learner.variables, again, CONFIG)
    capsys.readouterr()
    assert_same_bits(store.read_run(damaged, fresh), again)
    assert_same_bits(store.read_weights(damaged, variables), again.learner.variables)
    assert capsys.readouterr().err == ""
    assert name == "half-written" or (folder.with_name("7.aside")).exists()
    # Without it the older one is still whole.
    shutil.rmtree(folder)
    assert_same_bits(read(damaged, like), expected)


def test_none_of_several_can_be_read(damaged, fresh):
    for iteration in ("5", "7"):
        meta(damaged / store.RESUME / iteration).unlink()
    message = refusal(store.read_run, damaged, fresh)
    assert message.startswith(f"{damaged / store.RESUME / '7'}: cannot be read: ")
    assert message.endswith("; nor can any other of 2")
    assert refusal(store.read_meta, damaged, store.RESUME) == message


@pytest.mark.parametrize("kind", [store.WEIGHTS, store.RESUME])
def test_other_version_of_the_game_is_refused(damaged, fresh, kind):
    path = meta(damaged / kind / "7")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"env_version": "0.0"}))
    like = fresh.learner.variables if kind == store.WEIGHTS else fresh
    said = refusal(store.read_weights if kind == store.WEIGHTS else store.read_run, damaged, like)
    assert said == refusal(store.read_meta, damaged, kind)
    assert "version '0.0'" in said and repr(VERSION) in said


# Reads that a damaged file ends may still answer to an event loop that orbax has closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_any_bit_that_is_flipped_is_seen_or_does_not_matter(saved, fresh, tmp_path, capsys):
    rng = np.random.default_rng(0)
    files = [
        p.relative_to(saved[0]) for p in (saved[0] / store.RESUME / "7").rglob("*") if p.is_file()
    ]
    variants = [scrambled(fresh, 5), scrambled(fresh, 7)]
    seen = 0
    for file in sorted(files):
        directory = Path(shutil.copytree(saved[0], tmp_path / "copy", dirs_exist_ok=True))
        flip(directory / file, rng.random())
        found = store.read_run(directory, fresh)
        passed_over = len(capsys.readouterr().err.splitlines())
        assert passed_over in (0, 1)
        assert_same_bits(found, variants[1 - passed_over])
        seen += passed_over
    assert seen >= 2  # which bits matter is the luck of where they lie


def test_good_weights_that_a_run_left_behind_are_kept(damaged, fresh, saved):
    store.set_aside(damaged, fresh.learner.variables, after=5)
    assert sorted(path.name for path in (damaged / store.WEIGHTS).iterdir()) == ["5", "7.aside"]
    (damaged / store.WEIGHTS / "7.aside").rename(damaged / store.WEIGHTS / "7")
    assert_same_bits(
        store.read_weights(damaged, fresh.learner.variables), saved[1].learner.variables
    )


def test_whole_checkpoints_are_left_in_place(damaged, fresh):
    before = sorted(damaged.rglob("*"))
    store.set_aside(damaged, fresh.learner.variables, after=7)
    store.set_aside(damaged / "missing", fresh.learner.variables, after=0)
    assert sorted(damaged.rglob("*")) == before
