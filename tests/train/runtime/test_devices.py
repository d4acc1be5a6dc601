"""Many devices give the same results as one; which keys set XLA's flags."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.support import compiling
from tests.support.learner import device_losses, samples, tiny
from tests.support.learner.commands import read_rows
from tests.support.learner.loop import Loop
from tests.support.refusals import refusal
from train.loop.programs import is_one_call
from train.runtime import cgroups
from train.runtime import devices as devices_lib
from train.runtime.devices import BY_BOARD, EVERYWHERE, ROWS_BY_BOARD, all_devices, set_gpu_flags

ROOT = Path(__file__).parents[3]
# A replay with room for several games of each board: without a finished game no device learns.
RUN = ["-m", "train", "run", str(tiny.PATH), "--selfplay.boards", "8", "--learner.batch", "8"]
RUN += ["--replay.positions", "256"]
WITHOUT_MATCHES = ["--evaluation.every", "0", "--evaluation.opponents", "[]"]


def environment(*, devices: int, **more: str) -> dict[str, str]:
    """Environment of a process with that number of simulated devices."""
    own = {"JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu"}
    return compiling.environment() | own | more


def ended(*words: str, devices: int) -> subprocess.CompletedProcess:
    """A process with its output."""
    return subprocess.run(
        [sys.executable, *words],
        env=environment(devices=devices),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )


def run(*words: str, devices: int) -> str:
    """Standard output of a process that succeeds."""
    done = ended(*words, devices=devices)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_devices_learn_what_one_learns():
    """Two devices agree with one when compiled as users compile it."""
    samples.played(2)  # compiled as tests do
    with compiling.as_users():
        one, two = (device_losses.losses(all_devices(count)) for count in (1, 2))
    assert (one["devices"], two["devices"]) == (1, 2)
    assert_same_learning(one, two)


def assert_same_learning(one: dict, other: dict) -> None:
    np.testing.assert_allclose(other["losses"], one["losses"], rtol=1e-4)
    np.testing.assert_allclose(other["statistics"], one["statistics"], rtol=1e-3, atol=3e-3)
    np.testing.assert_allclose(other["weights"], one["weights"], rtol=1e-4)


@pytest.mark.slow
def test_a_run_changes_its_devices(tmp_path):
    """Begun on one device, gone on with on eight; all draw the same coins."""
    directory = tmp_path / "tiny"
    begun = [*RUN, "--runs", str(tmp_path), "--selfplay.full_search_prob", "0.5"]
    begun += ["--selfplay.cheap_simulations", "2", *WITHOUT_MATCHES]
    resumed = ["-m", "train", "run", "--resume", str(directory)]
    for devices, iterations, words in ((1, 2, begun), (8, 4, resumed)):
        said = run(*words, "--iterations", str(iterations), devices=devices)
        assert f"on {devices} × " in said
    assert [row["iteration"] for row in read_rows(directory)] == [1, 2, 3, 4]
    assert "policy_loss" in read_rows(directory)[-1]
    plies = json.loads((directory / "config.json").read_text())["selfplay"]["plies"]
    full_plies = [row["full_search_share"] * plies for row in read_rows(directory)]
    assert full_plies == [round(number) for number in full_plies]
    starts = json.loads((directory / "run.json").read_text())["starts"]
    assert [start["devices"]["count"] for start in starts] == [1, 8]


def test_a_lost_process_is_told_only_by_a_distributed_run(monkeypatch):
    error = RuntimeError("UNKNOWN: Gloo all-reduce failed:\n Connection closed by peer [::1]:1")
    assert devices_lib.lost_process_message(error) is None
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    assert devices_lib.lost_process_message(error) == (
        "distributed: another process has ended or is out of reach (UNKNOWN: Gloo all-reduce "
        "failed: Connection closed by peer [::1]:1)"
    )
    assert devices_lib.lost_process_message(RuntimeError("out of memory")) is None


@pytest.mark.slow
def test_distributed_without_a_cluster_is_refused(tmp_path):
    done = ended(*RUN, "--runs", str(tmp_path), "--distributed", devices=1)
    assert done.returncode == 2
    assert done.stderr.startswith("error: distributed: ")
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_the_devices_cannot_share_is_refused():
    devices = all_devices(1)
    many = type(devices)(mesh=devices.mesh)
    many.check_divides(selfplay_boards=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(devices), "count", 8)
        said = refusal(many.check_divides, selfplay_boards=12, learner_batch=8)
        assert "selfplay.boards (12) must be a multiple of" in said
        said = refusal(many.check_divides, selfplay_boards=16, learner_batch=9)
        assert "learner.batch (9) must be a multiple" in said


def test_placed_arrays_are_those_given():
    devices = all_devices()
    trees = {"a": np.arange(12.0).reshape(3, 4), "b": np.int32(7), "c": np.arange(6)}
    specs = {"a": ROWS_BY_BOARD, "b": EVERYWHERE, "c": BY_BOARD}
    placed = devices.place(trees, specs)
    for name, array in placed.items():
        np.testing.assert_array_equal(array, trees[name])
        assert array.sharding == devices.sharding(specs[name])


def test_all_cores_are_used_and_wait_for_one_another(monkeypatch):
    found = {}
    monkeypatch.setattr(jax.config, "update", found.__setitem__)
    for name in ("JAX_NUM_CPU_DEVICES", "NPROC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")
    flag = "--xla_cpu_collective_call_terminate_timeout_seconds=300"
    for _ in range(2):
        devices_lib.use_all_cores()
        assert found == {"jax_num_cpu_devices": 4}
        assert os.environ["XLA_FLAGS"] == f"--xla_dump_to=/tmp/x {flag}"
        assert os.environ["NPROC"] == "16"
    monkeypatch.setenv("NPROC", "3")
    devices_lib.use_all_cores()
    assert os.environ["NPROC"] == "3"


@pytest.mark.parametrize(
    ("quotas", "devices", "threads"),
    [([], 64, "256"), ([1.4], 1, "4"), ([7.9, 12.0], 8, "32"), ([2.5], 2, "8"), ([0.2], 1, "4")],
)
def test_devices_follow_a_containers_share_of_the_cores(monkeypatch, quotas, devices, threads):
    found = {}
    monkeypatch.setattr(jax.config, "update", found.__setitem__)
    monkeypatch.setattr(devices_lib, "_MOST_CPU_DEVICES", 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(cgroups, "cpu_quotas", lambda: iter(quotas))
    for name in ("JAX_NUM_CPU_DEVICES", "NPROC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XLA_FLAGS", "")
    devices_lib.use_all_cores()
    assert (found["jax_num_cpu_devices"], os.environ["NPROC"]) == (devices, threads)
    assert devices_lib.machine().startswith(f"{min([64, *map(round, quotas)]) or 1} cores, ")


@pytest.mark.parametrize(
    ("name", "value", "threads"),
    [
        ("JAX_NUM_CPU_DEVICES", "1", None),
        ("JAX_NUM_CPU_DEVICES", "8", "32"),
        ("XLA_FLAGS", "--xla_force_host_platform_device_count=8", "64"),
    ],
)
def test_devices_that_are_set_get_threads_enough(monkeypatch, name, value, threads):
    monkeypatch.setattr(jax.config, "update", lambda name, value: pytest.fail("changed"))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.delenv("JAX_NUM_CPU_DEVICES", raising=False)
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv(name, value)
    devices_lib.use_all_cores()
    assert os.environ.get("NPROC") == threads


_SUMS = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
from train.runtime import devices
devices.use_all_cores()
import jax, jax.numpy as jnp
mesh = devices.all_devices()

def loss(weights, x):
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return (x**2).mean()

step = jax.jit(lambda weights, x: weights - jax.grad(loss)(weights, x))
weights = jax.device_put(jnp.ones((6, 64, 64)) / 100, mesh.sharding(devices.EVERYWHERE))
x = jax.device_put(jnp.ones((64, 64)), mesh.sharding(devices.BY_BOARD))
for _ in range(300):
    weights = step(weights, x)
print(jax.device_count(), bool(jnp.isfinite(weights).all()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_sums_over_as_many_devices_as_cores_come_to_an_end():
    """With a pool of a thread a core, this program ends in its first steps on JAX 0.10."""
    environment = {
        key: value
        for key, value in compiling.environment().items()
        if key not in ("JAX_NUM_CPU_DEVICES", "NPROC")
    }
    environment["XLA_FLAGS"] = "--xla_cpu_collective_call_terminate_timeout_seconds=20"
    done = subprocess.run(
        [sys.executable, "-c", _SUMS], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "2 True\n"), done.stderr[-500:]


def test_a_function_is_traced_again_for_another_platform():
    platforms = []

    @jax.jit
    def program(x):
        platforms.append(devices_lib.backend())
        return x + 1

    program(1)
    for _ in range(2):
        with devices_lib.tracing_for("tpu"):
            assert devices_lib.backend() == "tpu"
            program.trace(1)
    program(1)
    assert platforms == ["cpu", "tpu"]


@pytest.mark.slow
def test_steps_in_one_program_learn_what_steps_alone_learn():
    """On accelerators all steps of an iteration are one program."""
    config = tiny.config("--network.dtype", "float32", "--iterations", "3")

    def rows(*, in_one: bool) -> list[dict]:
        loop, found = Loop(config), []
        assert is_one_call(loop.tables.learn.place) == in_one
        for iteration in range(config.iterations):
            row = loop.iterate(iteration)
            found.append({k: v for k, v in row.items() if isinstance(v, float) and "loss" in k})
        return found

    alone = rows(in_one=False)
    with devices_lib.tracing_for("tpu"):
        together = rows(in_one=True)
    assert alone[-1].keys() == together[-1].keys() >= {"loss", "policy_loss"}
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, rel=1e-3)


def test_python_gets_the_devices_and_the_cache_of_the_commands(monkeypatch, tmp_path):
    """In a new process, before JAX has started; a program's own settings stay."""
    text = """
import os, jax, train
{before}
train.make_player
print(jax.device_count(), jax.config.jax_compilation_cache_dir, os.environ.get("NPROC", 0))
"""
    own = ("JAX_", "XLA_", "NPROC")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    environment |= {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(compiling.ROOT)}

    def said(before: str) -> list[str]:
        words = [sys.executable, "-c", text.format(before=before)]
        return subprocess.check_output(words, env=environment, text=True).split()

    cores = 1 << (len(os.sched_getaffinity(0)).bit_length() - 1)
    cache = str(tmp_path / "wallgo-jax")
    assert said("")[:2] == [str(min(cores, 16)), cache]
    # A sum over devices holds a thread for each of them.
    three = "jax.config.update('jax_num_cpu_devices', 3)"
    devices, there, threads = said(three)
    assert (devices, there) == ("3", cache) and int(threads) >= 12
    assert said(f"{three}; jax.devices()")[:2] == ["3", cache]


# XLA's flags for GPUs.

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


@pytest.fixture
def fresh_process(monkeypatch):
    """A process that has computed nothing and whose user has set a flag."""
    monkeypatch.setattr(devices_lib, "_has_started", lambda: False)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")


def _flags() -> list[str]:
    return os.environ["XLA_FLAGS"].split()


def test_flags_are_those_that_keys_of_a_config_ask_for(fresh_process):
    set_gpu_flags(deterministic=False)
    assert _flags() == ["--xla_dump_to=/tmp/x"]
    for _ in range(2):
        set_gpu_flags(deterministic=True)
        assert _flags() == ["--xla_dump_to=/tmp/x", DETERMINISTIC]


def test_a_process_that_has_used_its_devices(fresh_process, monkeypatch):
    monkeypatch.setattr(devices_lib, "_has_started", lambda: True)
    set_gpu_flags(deterministic=True)  # of a CPU
    assert _flags() == ["--xla_dump_to=/tmp/x"]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    said = refusal(set_gpu_flags, deterministic=True)
    assert said.startswith("deterministic: ") and said.endswith(DETERMINISTIC)
