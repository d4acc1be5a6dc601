"""Many devices and several processes give the same results as one."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.support import compiling
from tests.support.learner import devices_driver, tiny
from tests.support.learner.commands import untimed
from train.loop import training
from train.programs.assembly import make_programs
from train.runtime.devices import BY_BOARD, EVERYWHERE, ROWS_BY_BOARD, all_devices
from train.runtime.errors import UsageError

ROOT = Path(__file__).parents[3]
RUN = ["-m", "train", "run", str(tiny.PATH), "--selfplay.boards", "8", "--learner.batch", "8"]


def environment(*, devices: int, **more: str) -> dict[str, str]:
    """Environment of a process with that number of simulated devices."""
    own = {"JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu"}
    return compiling.environment() | own | more


def run(*words: str, devices: int) -> str:
    """Standard output of a process that succeeds."""
    done = subprocess.run(
        [sys.executable, *words],
        env=environment(devices=devices),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout


@pytest.mark.slow
def test_eight_devices_learn_what_one_learns():
    """Losses, gradients and batch statistics are those of the whole batch."""
    one, eight = (
        json.loads(run("-m", "tests.support.learner.devices_driver", devices=count))
        for count in (1, 8)
    )
    assert (one["devices"], eight["devices"]) == (1, 8)
    assert_same_learning(one, eight)


def test_two_devices_learn_what_one_learns():
    """Two devices agree with one when compiled as users compile it."""
    devices_driver.first_batch()
    with compiling.as_users():
        one, two = (devices_driver.losses(all_devices(count)) for count in (1, 2))
    assert (one["devices"], two["devices"]) == (1, 2)
    assert_same_learning(one, two)


def assert_same_learning(one: dict, other: dict) -> None:
    np.testing.assert_allclose(other["losses"], one["losses"], rtol=1e-4)
    np.testing.assert_allclose(other["statistics"], one["statistics"], rtol=1e-3, atol=3e-4)
    np.testing.assert_allclose(other["weights"], one["weights"], rtol=1e-4)


def rows_of(directory: Path) -> list[dict]:
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_run_changes_its_devices(tmp_path):
    """Begun on eight devices, gone on with on one, ended on four; all draw the same coins."""
    directory = tmp_path / "tiny"
    begun = [*RUN, "--runs", str(tmp_path), "--selfplay.full_search_prob", "0.5"]
    begun += ["--selfplay.cheap_simulations", "2"]
    resumed = ["-m", "train", "run", "--resume", str(directory)]
    for devices, iterations, words in ((8, 2, begun), (1, 4, resumed), (4, 6, resumed)):
        said = run(*words, "--iterations", str(iterations), devices=devices)
        assert f"on {devices} × " in said
    assert [row["iteration"] for row in rows_of(directory)] == list(range(1, 7))
    assert "policy_loss" in rows_of(directory)[-1]
    plies = json.loads((directory / "config.json").read_text())["selfplay"]["plies"]
    full_plies = [row["full_search_share"] * plies for row in rows_of(directory)]
    assert full_plies == [round(number) for number in full_plies]
    starts = json.loads((directory / "run.json").read_text())["starts"]
    assert [start["devices"]["count"] for start in starts] == [8, 1, 4]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["plain", "slurm"])
def test_two_processes_train_together(tmp_path, launcher):
    """Two processes of two devices each, joined by the launch variables; then one goes on alone,
    which does not depend on who launched them."""
    address = f"localhost:{free_port()}"
    words = [*RUN, "--runs", str(tmp_path), "--distributed", "--iterations", "3"]
    processes = []
    for number in range(2):
        plain = {"JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": str(number)}
        slurm = {
            "SLURM_JOB_ID": "1",
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_NTASKS": "2",
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_PROCID": str(number),
            "SLURM_LOCALID": str(number),
        }
        variables = plain if launcher == "plain" else slurm
        processes.append(
            subprocess.Popen(
                [sys.executable, *words],
                env=environment(devices=2, JAX_COORDINATOR_ADDRESS=address, **variables),
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        said = [process.communicate(timeout=300) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0, 0], said
    assert "iteration 3: " in said[0][0]
    assert "iteration" not in said[1][0]
    directory = tmp_path / "tiny"
    assert [row["iteration"] for row in rows_of(directory)] == [1, 2, 3]
    assert (directory / "evaluation.json").exists()
    if launcher == "plain":
        alone = ["-m", "train", "run", "--resume", str(directory), "--iterations", "5"]
        assert "iteration 5: " in run(*alone, devices=1)


def test_distributed_without_a_cluster_is_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, *RUN, "--runs", str(tmp_path), "--distributed"],
        env=environment(devices=1),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
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
        with pytest.raises(UsageError, match=r"selfplay\.boards \(12\) must be a multiple of"):
            many.check_divides(selfplay_boards=12, learner_batch=8)
        with pytest.raises(UsageError, match=r"learner\.batch \(9\) must be a multiple"):
            many.check_divides(selfplay_boards=16, learner_batch=9)


def test_placed_arrays_are_those_given():
    devices = all_devices()
    trees = {"a": np.arange(12.0).reshape(3, 4), "b": np.int32(7), "c": np.arange(6)}
    specs = {"a": ROWS_BY_BOARD, "b": EVERYWHERE, "c": BY_BOARD}
    placed = devices.place(trees, specs)
    for name, array in placed.items():
        np.testing.assert_array_equal(array, trees[name])
        assert array.sharding == devices.sharding(specs[name])


@pytest.mark.slow
def test_the_replay_lies_where_the_config_says(tmp_path):
    """The replay buffer's memory does not change the metrics, here on one device, the CPU itself:
    five boards cannot be split between two."""
    rows = {}
    for name, words in {
        "plain": [],
        "device": ["--replay.memory", "device"],
        "host": ["--replay.memory", "host"],
    }.items():
        words += ["--name", name, "--evaluation.every", "0", "--selfplay.boards", "5"]
        config = tiny.config(*words)
        assert training.train(config, tmp_path, resume=False)
        rows[name] = [untimed(row) for row in rows_of(tmp_path / name)]
    assert rows["device"] == rows["plain"]
    assert rows["host"] == rows["plain"]


@pytest.mark.parametrize("player", ["greedy", pytest.param("wjx", marks=pytest.mark.slow)])
def test_bootstrap_is_played_by_a_player_without_weights(player):
    words = ["--selfplay.bootstrap_iterations", "2", "--iterations", "3"]
    config = tiny.config(*words, "--selfplay.bootstrap_player", player)
    programs = make_programs(config)
    state = programs.init()
    keys, variables = programs.keys(0), state.learner.player
    boards = jax.tree.map(lambda x: x.copy(), state.boards)
    _, plies, metrics = programs.selfplay_at(0)(variables, programs.variant, boards, keys.play)
    counts = (plies.policy > 0).sum(axis=-1)
    share = np.asarray(plies.policy, np.float32).max(axis=-1)
    np.testing.assert_allclose(share, 1 / counts, rtol=1e-2)
    assert float(metrics.sums.games) > 0
    assert programs.selfplay_at(0) is programs.selfplay_at(1)
    assert programs.selfplay_at(2) is not programs.selfplay_at(1)


@pytest.mark.slow
def test_steps_in_one_program_learn_what_steps_alone_learn(monkeypatch):
    """On accelerators all steps of an iteration are one program."""
    config = tiny.config("--network.dtype", "float32", "--iterations", "3")

    def rows() -> list[dict]:
        programs = make_programs(config)
        state, found = programs.init(), []
        for iteration in range(config.iterations):
            state, row = training.run_iteration(config, programs, state, iteration)
            found.append({k: v for k, v in row.items() if isinstance(v, float) and "loss" in k})
        return found

    alone = rows()
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    together = rows()
    assert alone[-1].keys() == together[-1].keys() >= {"loss", "policy_loss"}
    for one, other in zip(alone, together, strict=True):
        assert one == pytest.approx(other, rel=1e-3)
