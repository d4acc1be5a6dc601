"""XLA's flags for GPUs: who sets them, and when."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import train
from tests.support import compiling
from train.cli import command_line
from train.runtime import devices as devices_lib
from train.runtime.devices import set_gpu_flags
from train.runtime.errors import UsageError

IN_GRAPHS = "--xla_gpu_enable_command_buffer=+WHILE"


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """JAX in a process that has set nothing and is going to start on a GPU, as files tell."""
    config = SimpleNamespace(
        jax_platforms=None, jax_num_cpu_devices=1, jax_compilation_cache_dir="unused"
    )
    fake = SimpleNamespace(
        config=config, __version_info__=(0, 12, 1), default_backend=lambda: "gpu"
    )
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(devices_lib, "jax", fake)
    monkeypatch.setattr(devices_lib, "_DEV", tmp_path)
    monkeypatch.setattr(devices_lib, "_own_flags", set())
    monkeypatch.setattr(devices_lib, "_has_started", lambda: False)
    plugin = SimpleNamespace(name="xla_cuda12")
    monkeypatch.setattr(devices_lib, "entry_points", lambda group: [plugin])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")
    return fake


def _flags() -> list[str]:
    return os.environ["XLA_FLAGS"].split()


@pytest.mark.parametrize("by", ["command line", "Python"])
def test_a_gpu_gets_loops_in_its_graphs(gpu, by):
    for _ in range(2):
        command_line._set_up_devices() if by == "command line" else train.make_config
        assert _flags() == ["--xla_dump_to=/tmp/x", IN_GRAPHS]
    set_gpu_flags(deterministic=True, loops_in_graphs=False)
    assert _flags() == ["--xla_dump_to=/tmp/x", "--xla_gpu_deterministic_ops=true"]
    set_gpu_flags(deterministic=True, loops_in_graphs=True)
    assert _flags()[-1] == IN_GRAPHS


def test_flags_of_the_user_stay(gpu, monkeypatch):
    for flag in (IN_GRAPHS, "--xla_gpu_enable_command_buffer=-WHILE"):
        monkeypatch.setenv("XLA_FLAGS", flag)
        devices_lib.set_up()
        set_gpu_flags(deterministic=False, loops_in_graphs=False)
        assert _flags() == [flag]


@pytest.mark.parametrize(
    "change",
    [
        lambda patch, jax: patch.setattr(jax.config, "jax_platforms", "cpu"),
        lambda patch, jax: patch.setattr(jax, "__version_info__", (0, 13, 0)),
        lambda patch, jax: patch.setenv("CUDA_VISIBLE_DEVICES", ""),
        lambda patch, jax: patch.setattr(devices_lib, "_DEV", Path("/dev/null/none")),
        lambda patch, jax: patch.setattr(devices_lib, "entry_points", lambda group: []),
        lambda patch, jax: patch.setattr(devices_lib, "_has_started", lambda: True),
    ],
)
def test_other_processes_and_unknown_versions_get_no_flag(gpu, monkeypatch, change):
    change(monkeypatch, gpu)
    devices_lib.set_up()
    assert _flags() == ["--xla_dump_to=/tmp/x"]


def test_a_gpu_that_is_used_already_keeps_loops_in_its_graphs(gpu, monkeypatch):
    devices_lib.set_up()
    monkeypatch.setattr(devices_lib, "_has_started", lambda: True)
    with pytest.raises(UsageError, match=r"^loops_in_graphs: .*=-WHILE$"):
        set_gpu_flags(deterministic=False, loops_in_graphs=False)


def test_this_jax_knows_the_flag_of_loops_in_graphs():
    """XLA ends a process that sets a flag which it does not know."""
    environment = compiling.environment() | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": IN_GRAPHS}
    done = subprocess.run(
        [sys.executable, "-c", "import jax; jax.devices()"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-500:]
