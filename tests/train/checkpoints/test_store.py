"""Checkpoints come back bit for bit, few are kept, and damaged ones are refused in one line."""

import functools
import json
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from train.checkpoints import store as store_lib
from train.checkpoints.checkpoint import FORMAT
from train.checkpoints.store import (
    RESUME,
    WEIGHTS,
    Store,
    read_meta,
    read_run,
    read_weights,
)
from train.config import config_to_dict
from train.loop import training
from train.network.build import network_for
from train.programs.state import RunState
from train.runtime.errors import UsageError
from wallgo_jax.env import VERSION

CONFIG = config_to_dict(tiny.config())


def scrambled(tree: Any, seed: int) -> Any:
    """The tree with random bits in every leaf: NaN, denormal and extreme numbers among them."""
    rng = np.random.default_rng(seed)

    def fill(leaf: jax.Array) -> jax.Array:
        if leaf.dtype == jnp.bool_:
            return jnp.asarray(rng.random(leaf.shape) < 0.5)
        bits = rng.bytes(int(np.prod(leaf.shape)) * leaf.dtype.itemsize)
        return jnp.asarray(np.frombuffer(bits, leaf.dtype).reshape(leaf.shape))

    return jax.tree.map(fill, tree)


def assert_same_bits(found: Any, expected: Any) -> None:
    """Equal structure, types and bytes."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def steps(directory: Path, kind: str) -> list[int]:
    """The iterations that are on disk."""
    return sorted(int(entry.name) for entry in (directory / kind).iterdir())


def complaint(read, *arguments) -> str:
    """The one line that refuses a checkpoint that cannot be read."""
    with pytest.raises(UsageError) as caught:
        read(*arguments)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


@functools.cache
def new_run() -> RunState:
    """A run before its first iteration."""
    return training.make_programs(tiny.config()).init()


@pytest.fixture(scope="module")
def fresh() -> RunState:
    return new_run()


@pytest.fixture(scope="module")
def saved(fresh, tmp_path_factory) -> tuple[Path, RunState]:
    """A run directory with checkpoints of iterations 2, 4, 5 and 7, and the last one's content."""
    directory = tmp_path_factory.mktemp("saved")
    store = Store(directory, keep=2)
    for iteration in (2, 4, 5, 7):
        run = scrambled(fresh, iteration)
        store.save(iteration, run.learner.variables, run, CONFIG)
    store.close()
    return directory, scrambled(fresh, 7)


@pytest.fixture
def damaged(saved, tmp_path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(saved[0], tmp_path / "damaged"))


def test_run_comes_back_bit_for_bit(saved, fresh):
    directory, run = saved
    found = read_run(directory, fresh)
    assert_same_bits(found, run)
    assert type(found) is RunState


def test_weights_come_back_bit_for_bit(saved, fresh):
    directory, run = saved
    assert_same_bits(read_weights(directory, fresh.learner.variables), run.learner.variables)
    # Shapes without values are enough to restore.
    shapes = jax.eval_shape(lambda: fresh.learner.variables)
    assert_same_bits(read_weights(directory, shapes), run.learner.variables)


def test_checkpoint_names_no_device(saved):
    # So that another kind of device, or another number of them, can go on.
    for file in saved[0].rglob("*"):
        assert not file.is_file() or b"cpu:0" not in file.read_bytes()


@pytest.mark.parametrize("kind", [WEIGHTS, RESUME])
def test_meta_says_what_it_is(saved, kind):
    meta = read_meta(saved[0], kind)
    assert meta.pop("sums").keys() >= {"learner.step"} if kind == RESUME else meta.pop("sums")
    expected = {"format": FORMAT, "env_version": VERSION, "iteration": 7, "config": CONFIG}
    assert meta == expected | {"win_rate": None}


def test_last_weights_are_kept_and_two_runs(saved):
    assert steps(saved[0], WEIGHTS) == [5, 7]
    assert steps(saved[0], RESUME) == [5, 7]
    assert store_lib.newest_iteration(saved[0], WEIGHTS) == 7


def test_best_and_every_fourth_are_kept(fresh, tmp_path):
    rates = {1: 0.5, 2: 0.9, 3: 0.9, 4: 0.1, 5: None, 6: 0.7, 7: None, 8: 0.8, 9: None, 10: None}
    run = {"step": fresh.iterations}
    for iteration, rate in rates.items():
        # Opened anew each time: the best so far are read from disk.
        store = Store(tmp_path, keep=2, keep_best=2, keep_every=4)
        store.save(iteration, fresh.learner.variables, run, CONFIG, win_rate=rate)
        store.close()
    assert steps(tmp_path, WEIGHTS) == [2, 3, 4, 8, 9, 10]
    assert steps(tmp_path, RESUME) == [9, 10]


def test_newest_is_by_number_and_only_finished_ones_count(tmp_path):
    assert store_lib.newest_iteration(tmp_path, WEIGHTS) is None
    for name in ("9", "10", "11.orbax-checkpoint-tmp-1", "notes"):
        (tmp_path / WEIGHTS / name).mkdir(parents=True)
    assert store_lib.newest_iteration(tmp_path, WEIGHTS) == 10


def test_what_was_saved_may_change_at_once(fresh, tmp_path):
    store = Store(tmp_path, keep=1)
    run = scrambled(fresh, 1)
    expected = jax.tree.map(np.array, run)
    store.save(1, run.learner.variables, run, CONFIG)
    jax.jit(lambda x: jax.tree.map(jnp.zeros_like, x), donate_argnums=0)(run)
    assert_same_bits(read_run(tmp_path, fresh), expected)
    assert_same_bits(read_weights(tmp_path, fresh.learner.variables), expected.learner.variables)
    store.close()


def test_iteration_already_there_is_left_alone(fresh, tmp_path):
    for seed in (1, 2):
        store = Store(tmp_path, keep=3)
        run = scrambled(fresh, seed)
        store.save(4, run.learner.variables, run, CONFIG)
        store.close()
    assert_same_bits(read_run(tmp_path, fresh), scrambled(fresh, 1))


@pytest.mark.parametrize("kind", [WEIGHTS, RESUME])
def test_no_checkpoint(tmp_path, fresh, kind):
    read, like = (read_weights, fresh.learner.variables) if kind == WEIGHTS else (read_run, fresh)
    expected = f"{tmp_path}: no checkpoint here (looked for {kind}/ITERATION)"
    assert complaint(read, tmp_path, like) == expected
    assert complaint(read_meta, tmp_path, kind) == expected
    (tmp_path / kind).mkdir()
    assert complaint(read, tmp_path, like) == expected
    assert complaint(read, tmp_path / "missing", like).startswith(f"{tmp_path}/missing: no check")


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
    return max((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


def item(folder: Path) -> Path:
    """The arrays' folder in a checkpoint."""
    return folder / ("weights" if folder.parent.name == WEIGHTS else "run")


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
        lambda x: np.zeros((*x.shape[:-1], 16), x.dtype) if x.dtype == jnp.float32 else x, new_run()
    )
    shutil.rmtree(folder)
    store = Store(folder.parents[1], keep=9)
    store.save(7, wider.learner.variables, wider, CONFIG)
    store.close()


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
    "an older one": (replace_by_older, "it is of iteration 5"),
    "other network": (other_network, "it has float32["),
    "half-written": (
        lambda folder: folder.rename(f"{folder}.orbax-checkpoint-tmp"),
        "its saving was never finished",
    ),
}


@pytest.mark.parametrize("kind", [WEIGHTS, RESUME])
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_checkpoint_is_passed_over(damaged, fresh, capsys, name, kind):
    act, reason = DAMAGE[name]
    folder = damaged / kind / "7"
    act(folder)
    variables = fresh.learner.variables
    read, like, expected = read_run, fresh, scrambled(fresh, 5)
    if kind == WEIGHTS:
        read, like, expected = read_weights, variables, expected.learner.variables
    capsys.readouterr()
    assert_same_bits(read(damaged, like), expected)
    (line,) = capsys.readouterr().err.splitlines()
    place = f"{folder}.orbax-checkpoint-tmp" if name == "half-written" else f"{folder}"
    assert line.startswith(f"{place}: cannot be read: {reason}")
    assert line.endswith("; taking iteration 5")
    # The run passes there again, with the damaged one out of its way.
    store_lib.set_aside(damaged, variables, after=5)
    assert store_lib.newest_iteration(damaged, kind) == 5
    store = Store(damaged, keep=2)
    again = scrambled(fresh, 8)
    store.save(7, again.learner.variables, again, CONFIG)
    store.close()
    assert_same_bits(read_run(damaged, fresh), again)
    assert_same_bits(read_weights(damaged, variables), again.learner.variables)
    assert capsys.readouterr().err == ""
    assert name == "half-written" or (folder.with_name("7.aside")).exists()
    # The only checkpoint left is refused in one line; the older one is still whole.
    shutil.rmtree(folder)
    assert_same_bits(read(damaged, like), expected)


@pytest.mark.parametrize("kind", [WEIGHTS, RESUME])
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_checkpoint_alone_is_refused(damaged, fresh, name, kind):
    act, reason = DAMAGE[name]
    folder = damaged / kind / "7"
    act(folder)
    shutil.rmtree(folder.with_name("5"))
    like = fresh.learner.variables if kind == WEIGHTS else fresh
    message = complaint(read_weights if kind == WEIGHTS else read_run, damaged, like)
    assert f": cannot be read: {reason}" in message
    assert message.startswith(str(folder))


def test_none_of_several_can_be_read(damaged, fresh):
    for iteration in ("5", "7"):
        meta(damaged / RESUME / iteration).unlink()
    message = complaint(read_run, damaged, fresh)
    assert message.startswith(f"{damaged / RESUME / '7'}: cannot be read: ")
    assert message.endswith("; nor can any other of 2")
    assert complaint(read_meta, damaged, RESUME) == message


@pytest.mark.parametrize("kind", [WEIGHTS, RESUME])
def test_other_version_of_the_game_is_refused(damaged, fresh, kind):
    path = meta(damaged / kind / "7")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"env_version": "0.0"}))
    expected = (
        f"{damaged / kind / '7'}: made with version '0.0' of the game, "
        f"this program plays version {VERSION!r}"
    )
    like = fresh.learner.variables if kind == WEIGHTS else fresh
    assert complaint(read_weights if kind == WEIGHTS else read_run, damaged, like) == expected
    assert complaint(read_meta, damaged, kind) == expected


# Reads that a damaged file ends may still answer to an event loop that orbax has closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_any_bit_that_is_flipped_is_seen_or_does_not_matter(saved, fresh, tmp_path, capsys):
    rng = np.random.default_rng(0)
    files = [p.relative_to(saved[0]) for p in (saved[0] / RESUME / "7").rglob("*") if p.is_file()]
    variants = [scrambled(fresh, 5), scrambled(fresh, 7)]
    seen = 0
    for file in sorted(files):
        directory = Path(shutil.copytree(saved[0], tmp_path / "copy", dirs_exist_ok=True))
        flip(directory / file, rng.random())
        found = read_run(directory, fresh)
        passed_over = len(capsys.readouterr().err.splitlines())
        assert passed_over in (0, 1)
        assert_same_bits(found, variants[1 - passed_over])
        seen += passed_over
    assert seen >= 2  # which bits matter is the luck of where they lie


def test_good_weights_that_a_run_left_behind_are_kept(damaged, fresh, saved):
    store_lib.set_aside(damaged, fresh.learner.variables, after=5)
    assert sorted(path.name for path in (damaged / WEIGHTS).iterdir()) == ["5", "7.aside"]
    (damaged / WEIGHTS / "7.aside").rename(damaged / WEIGHTS / "7")
    assert_same_bits(read_weights(damaged, fresh.learner.variables), saved[1].learner.variables)


def test_whole_checkpoints_are_left_in_place(damaged, fresh):
    before = sorted(damaged.rglob("*"))
    store_lib.set_aside(damaged, fresh.learner.variables, after=7)
    store_lib.set_aside(damaged / "missing", fresh.learner.variables, after=0)
    assert sorted(damaged.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            "--network.width=16",
            "float32[8] for batch_stats.blocks.0.norm1.norm.mean, where float32[16]",
        ),
        pytest.param(
            "--network.blocks=2R",
            "nothing for batch_stats.blocks.1.norm1.norm.mean, where float32[8]",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "--network.blocks=T",
            "float32[8] for batch_stats.blocks.0.norm1.norm.mean, where nothing",
            marks=pytest.mark.slow,
        ),
        (
            "--network.planes=BT",
            "float32[3, 3, 8, 8] for params.stem.conv.kernel, where float32[3, 3, 11",
        ),
    ],
)
def test_weights_of_another_shape(saved, change, expected):
    config = tiny.config(change)
    other = network_for(config.network, config.rules.players)
    message = complaint(read_weights, saved[0], other.shapes)
    assert message.startswith(f"{saved[0] / WEIGHTS / '7'}: cannot be read: it has {expected}")
    assert message.endswith("; nor can any other of 2")


def test_arrays_of_another_type(saved, fresh):
    other = fresh._replace(iterations=jnp.float32(0))
    message = complaint(read_run, saved[0], other)
    assert "it has int32[] for iterations, where float32[] is wanted; nor can" in message


@pytest.fixture
def small_files():
    """No file can grow beyond 20,000 bytes, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_cannot_be_written_is_one_line_at_that_save(
    tmp_path, small_files, capfd, monkeypatch
):
    # Stays as it is until the process ends, so that threads that still write say nothing.
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    draw = np.random.default_rng(0)
    small, large = (draw.integers(0, 255, size, np.uint8) for size in (100, 100_000))
    store = Store(tmp_path, keep=2)
    store.save(1, {"a": small}, {"x": small}, CONFIG)
    with pytest.raises(UsageError) as raised:
        store.save(2, {"a": small}, {str(number): large for number in range(20)}, CONFIG)
    assert str(raised.value) == f"{tmp_path / RESUME / '2'}: cannot be written: File too large"
    store.close()
    assert capfd.readouterr() == ("", "")
    # Nothing of it is left, and what was there before is whole.
    assert steps(tmp_path, RESUME) == [1]
    assert [path.name for path in (tmp_path / RESUME).iterdir()] == ["1"]
    (found,) = jax.tree.leaves(store_lib.read_run(tmp_path, {"x": small}))
    assert (found == small).all()
    # A store that is opened again goes on.
    store = Store(tmp_path, keep=2)
    store.save(2, {"a": small}, {"x": small}, CONFIG)
    store.close()
    assert steps(tmp_path, RESUME) == [1, 2]
