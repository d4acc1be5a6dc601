"""Checkpoints: bit for bit what was saved, few of them, and one line for what cannot be read."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.train import tiny
from train import checkpoint, loop, roster
from train.checkpoint import FORMAT, RESUME, WEIGHTS, Store, read_meta, read_run, read_weights
from train.config import config_to_dict
from train.errors import UsageError
from train.loop import RunState
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
    """What is said in one line of a checkpoint that cannot be read."""
    with pytest.raises(UsageError) as caught:
        read(*arguments)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


@pytest.fixture(scope="module")
def fresh() -> RunState:
    """A run before its first iteration."""
    return loop.make_programs(tiny.config()).init()


@pytest.fixture(scope="module")
def saved(fresh, tmp_path_factory) -> tuple[Path, RunState]:
    """A run directory with checkpoints of iterations 2, 4, 5 and 7, and what is in the last."""
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
    # Shapes alone say what to read as well.
    shapes = jax.eval_shape(lambda: fresh.learner.variables)
    assert_same_bits(read_weights(directory, shapes), run.learner.variables)


def test_checkpoint_of_other_devices(damaged, saved, fresh):
    for file in damaged.rglob("_sharding"):
        text = file.read_text()
        assert "cpu:0" in text
        file.write_text(text.replace("cpu:0", "cuda:3"))
    assert_same_bits(read_run(damaged, fresh), saved[1])
    found = read_weights(damaged, fresh.learner.variables)
    assert_same_bits(found, saved[1].learner.variables)


@pytest.mark.parametrize("kind", [WEIGHTS, RESUME])
def test_meta_says_what_it_is(saved, kind):
    meta = {"format": FORMAT, "env_version": VERSION, "iteration": 7, "config": CONFIG}
    assert read_meta(saved[0], kind) == meta


def test_last_weights_are_kept_and_one_run(saved):
    assert steps(saved[0], WEIGHTS) == [5, 7]
    assert steps(saved[0], RESUME) == [7]
    assert checkpoint.newest_iteration(saved[0], WEIGHTS) == 7


def test_newest_is_by_number_and_only_finished_ones_count(tmp_path):
    assert checkpoint.newest_iteration(tmp_path, WEIGHTS) is None
    for name in ("9", "10", "11.orbax-checkpoint-tmp-1", "notes"):
        (tmp_path / WEIGHTS / name).mkdir(parents=True)
    assert checkpoint.newest_iteration(tmp_path, WEIGHTS) == 10


def test_what_was_saved_may_change_at_once(fresh, tmp_path):
    store = Store(tmp_path, keep=1)
    run = scrambled(fresh, 1)
    expected = jax.tree.map(np.array, run)
    store.save(1, run.learner.variables, run, CONFIG)
    jax.jit(lambda x: jax.tree.map(jnp.zeros_like, x), donate_argnums=0)(run)
    store.wait()
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


def largest_file(folder: Path) -> Path:
    """Where the arrays are."""
    return max((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


@pytest.mark.parametrize("damage", [Path.unlink, cut], ids=["deleted", "cut"])
@pytest.mark.parametrize("file", ["_METADATA", "manifest.ocdbt", "largest"])
def test_damaged_weights(damaged, fresh, file, damage):
    folder = damaged / WEIGHTS / "7"
    path = largest_file(folder) if file == "largest" else folder / "weights" / file
    damage(path)
    message = complaint(read_weights, damaged, fresh.learner.variables)
    assert message.startswith(f"{folder}: cannot be read: ")
    # The run itself is elsewhere and is not harmed.
    read_run(damaged, fresh)


def test_damaged_run(damaged, fresh):
    cut(largest_file(damaged / RESUME / "7" / "run"))
    message = complaint(read_run, damaged, fresh)
    assert message.startswith(f"{damaged / RESUME / '7'}: cannot be read: ")


@pytest.mark.parametrize("damage", [Path.unlink, cut], ids=["deleted", "cut"])
def test_damaged_meta(damaged, damage):
    folder = damaged / WEIGHTS / "7"
    damage(folder / "meta" / "metadata")
    assert complaint(read_meta, damaged, WEIGHTS).startswith(f"{folder}")


@pytest.mark.parametrize(
    ("meta", "found"), [({"format": 99}, "99"), ({"step": 3}, "None"), ([1, 2], r"[1, 2]")]
)
def test_other_format(damaged, meta, found):
    (damaged / WEIGHTS / "7" / "meta" / "metadata").write_text(json.dumps(meta))
    expected = f"{damaged}/checkpoints/7: format {found}, this program reads {FORMAT}"
    assert complaint(read_meta, damaged, WEIGHTS) == expected


def test_foreign_directory(tmp_path, fresh):
    (tmp_path / WEIGHTS / "12").mkdir(parents=True)
    (tmp_path / WEIGHTS / "12" / "model.bin").write_bytes(b"something else")
    assert "12: cannot be read" in complaint(read_meta, tmp_path, WEIGHTS)
    assert "12: cannot be read" in complaint(read_weights, tmp_path, fresh.learner.variables)


def test_file_in_place_of_a_checkpoint(tmp_path, fresh):
    (tmp_path / WEIGHTS).mkdir()
    (tmp_path / WEIGHTS / "3").write_text("not a folder")
    assert "3: cannot be read" in complaint(read_weights, tmp_path, fresh.learner.variables)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--network.width=16", "float32[8] for batch_stats.blocks.0.norm1.norm.mean, where float32[16]"),
        ("--network.blocks=2R", "nothing for batch_stats.blocks.1.norm1.norm.mean, where float32[8]"),
        ("--network.blocks=T", "float32[8] for batch_stats.blocks.0.norm1.norm.mean, where nothing"),
        (
            "--network.planes=BT",
            "float32[3, 3, 8, 8] for params.stem.conv.kernel, where float32[3, 3, 11",
        ),
    ],
)
def test_weights_of_another_shape(saved, change, expected):
    config = tiny.config(change)
    other = roster.network_for(config.network, config.game.players)
    message = complaint(read_weights, saved[0], other.shapes)
    assert message.startswith(f"{saved[0] / WEIGHTS / '7'}: cannot be read: it has {expected}")


def test_arrays_of_another_type(saved, fresh):
    other = fresh._replace(iterations=jnp.float32(0))
    message = complaint(read_run, saved[0], other)
    assert message.endswith("it has int32[] for iterations, where float32[] is wanted")
