"""XLA's flags for GPUs: which keys set them, and when."""

import os
import subprocess
import sys

import jax
import pytest

from tests.support import compiling
from train.runtime import devices as devices_lib
from train.runtime.devices import set_gpu_flags
from train.runtime.errors import UsageError

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
IN_GRAPHS = "--xla_gpu_enable_command_buffer=+WHILE"


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    """A process that has computed nothing and whose user has set a flag."""
    monkeypatch.setattr(devices_lib, "_has_started", lambda: False)
    monkeypatch.setattr(jax, "__version_info__", (0, 12, 1))
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")


def _flags() -> list[str]:
    return os.environ["XLA_FLAGS"].split()


def test_keys_of_a_config_set_flags():
    for _ in range(2):
        set_gpu_flags(deterministic=True, loops_in_graphs=True)
        assert _flags() == ["--xla_dump_to=/tmp/x", DETERMINISTIC, IN_GRAPHS]


def test_nothing_is_set_that_is_not_asked_for():
    set_gpu_flags(deterministic=False, loops_in_graphs=False)
    assert _flags() == ["--xla_dump_to=/tmp/x"]


def test_graphs_as_the_user_sets_them_stay(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_enable_command_buffer=-WHILE")
    set_gpu_flags(deterministic=False, loops_in_graphs=True)
    assert _flags() == ["--xla_gpu_enable_command_buffer=-WHILE"]


def test_a_version_that_is_not_known_to_take_the_flag_is_refused(monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", (0, 13, 0))
    set_gpu_flags(deterministic=True, loops_in_graphs=False)
    with pytest.raises(UsageError, match=r"^loops_in_graphs must be false for JAX .* 0\.12$"):
        set_gpu_flags(deterministic=True, loops_in_graphs=True)


def test_a_process_that_has_used_its_devices(monkeypatch):
    monkeypatch.setattr(devices_lib, "_has_started", lambda: True)
    set_gpu_flags(deterministic=True, loops_in_graphs=True)  # of a CPU
    assert _flags() == ["--xla_dump_to=/tmp/x"]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.raises(UsageError, match=rf"^loops_in_graphs: .*={IN_GRAPHS[:20]}.*$"):
        set_gpu_flags(deterministic=False, loops_in_graphs=True)


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
