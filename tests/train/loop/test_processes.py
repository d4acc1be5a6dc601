"""Several processes train what one trains; a lost one ends all with a line; the script of Slurm."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import read_rows, untimed
from tests.train.runtime.test_devices import environment
from train.checkpoints import store
from train.loop.run_directory import naming_lost_process
from train.runtime.errors import ProcessLostError, UsageError
from train.runtime.interrupts import EXIT_INTERRUPTED

ROOT = Path(__file__).parents[3]
DEVICES = 4
WITHOUT_MATCHES = ["--evaluation.every=0", "--evaluation.opponents=[]"]
WORDS = [str(tiny.PATH), "--selfplay.boards=8", "--learner.batch=8", "--checkpoint.every=1"]
# The learning rate does not depend on the number of iterations, which a test changes.
WORDS += ["--learner.schedule=steps", "--learner.lr-drops=[]"]


class Process(NamedTuple):
    """A process of a run, and what it prints."""

    popen: subprocess.Popen
    out: Path
    err: Path

    def last_line(self) -> str:
        return self.err.read_text().splitlines()[-1]


def start(words: list[str], variables: Mapping[str, str], folder: Path, name: str) -> Process:
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    with out.open("w") as to_out, err.open("w") as to_err:
        popen = subprocess.Popen(words, env=variables, cwd=ROOT, stdout=to_out, stderr=to_err)
    return Process(popen, out, err)


@contextlib.contextmanager
def processes(count: int, words: list[str], folder: Path) -> Iterator[list[Process]]:
    """A number of processes of one command, that share the devices; none outlives the context."""
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        address = f"localhost:{listener.getsockname()[1]}"
    common = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": str(count)}
    # A process alone joins itself: without, JAX sums in another order, which training amplifies.
    words = [sys.executable, "-m", "train", "run", *words, "--distributed"]
    started = []
    try:
        for number in range(count):
            own = common | {"JAX_PROCESS_ID": str(number)}
            variables = environment(devices=DEVICES // count, **own)
            started.append(start(words, variables, folder, f"{count}-{number}"))
        yield started
    finally:
        for process in started:
            process.popen.kill()
            process.popen.wait()


def wait_for(is_there: Callable[[], bool], process: Process) -> None:
    deadline = time.monotonic() + 500
    while not is_there():
        assert process.popen.poll() is None, process.err.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def done(directory: Path) -> int:
    return store.newest_iteration(directory, store.RESUME) or 0


def kill(process: Process, directory: Path) -> None:
    """Kill what was started, as a user does."""
    process.popen.kill()


def kill_child(process: Process, directory: Path) -> None:
    """Kill the process that computes, as a system does whose memory is short."""
    children = Path(f"/proc/{process.popen.pid}/task/{process.popen.pid}/children").read_text()
    os.kill(int(children), signal.SIGKILL)


def fail(process: Process, directory: Path) -> None:
    """Have the first process end by an error: it cannot write the next checkpoint."""
    weights = directory / store.WEIGHTS
    weights.rename(weights.with_name("kept"))
    weights.touch()
    process.popen.wait(timeout=120)
    weights.unlink()
    weights.with_name("kept").rename(weights)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_a_process_lost_before_the_run_has_begun(tmp_path, monkeypatch, kind):
    """JAX raises either, by where it finds a connection closed."""
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    with pytest.raises(ProcessLostError) as caught, naming_lost_process(tmp_path / "gloo"):
        raise kind("UNKNOWN: Gloo AllGather failed: Connection closed by peer [::1]:1")
    assert str(caught.value).startswith("distributed: another process has ended or is out of reach")
    last = "there is no good checkpoint yet; start all processes again with: the same command, for "
    assert str(caught.value).endswith(f"{last}the run has not begun")
    error = UsageError(f"{tmp_path / 'gloo'}: exists already")
    with pytest.raises(UsageError, match="exists already"), naming_lost_process(tmp_path):
        raise error


def known(row: dict) -> dict:
    """The figures of a row that there are, but for times."""
    return {name: value for name, value in untimed(row).items() if value is not None}


LOSSES = (
    (4, 0, kill_child),
    (2, 1, kill),
    (1, 0, kill),
    (2, 0, fail),
)
"""Number of processes, the one that is lost, and how."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds a child in /proc")
def test_processes_are_lost_in_turn_and_others_go_on(tmp_path):
    """The rows are those of a run of one process that was left alone, and each process that is left
    ends with a line that says how the run goes on."""
    directory = tmp_path / "tiny"
    before = 0
    for count, lost, lose in LOSSES:
        words = ["--resume", str(directory)] if before else [*WORDS, *WITHOUT_MATCHES]
        words += [] if before else ["--runs", str(tmp_path)]
        with processes(count, [*words, "--iterations", "2000"], tmp_path) as started:
            wait_for(lambda before=before: done(directory) > before, started[lost])
            lose(started[lost], directory)
            for process in started:
                process.popen.wait(timeout=120)
        before = done(directory)
        command = f"python -m train run --resume {directory} --distributed"
        for number, process in enumerate(started):
            code, name = process.popen.returncode, (count, lost, number)
            if number == lost and lose is not kill_child:
                assert code == (-signal.SIGKILL if lose is kill else 1), name
                continue
            line = process.last_line()
            assert code == 2, (name, process.err.read_text())
            assert line.startswith("error: distributed: "), (name, line)
            assert f"the last good checkpoint is {directory / store.RESUME}/" in line, name
            assert line.endswith(f"start all processes again with: {command}"), (name, line)
    total = before + 1
    with processes(1, ["--resume", str(directory), "--iterations", str(total)], tmp_path) as last:
        assert last[0].popen.wait(timeout=300) == 0, last[0].err.read_text()
    alone = [*WORDS, *WITHOUT_MATCHES, "--runs", str(tmp_path / "alone")]
    with processes(1, [*alone, "--iterations", str(total)], tmp_path) as straight:
        assert straight[0].popen.wait(timeout=300) == 0
    expected = read_rows(tmp_path / "alone" / "tiny")
    assert len(expected) == total >= len(LOSSES) + 1
    for row, wanted in zip(read_rows(directory), expected, strict=True):
        assert known(row) == pytest.approx(known(wanted), rel=1e-5)


# Slurm.

SRUN = """#!/usr/bin/env bash
# The tasks of a step on one node; a signal goes on to all of them, and the highest code is its own.
tasks=()
trap 'kill -USR1 "${tasks[@]}"' USR1
export SLURM_STEP_NODELIST=localhost SLURM_STEP_NUM_TASKS=$SLURM_NTASKS SLURM_STEP_NUM_NODES=1
for ((task = 0; task < SLURM_NTASKS; task++)); do
  SLURM_PROCID=$task SLURM_LOCALID=$task "$@" &
  tasks+=($!)
done
highest=0
for task in "${tasks[@]}"; do
  code=0
  wait "$task" || code=$?
  while kill -0 "$task" 2>/dev/null; do code=0; wait "$task" || code=$?; done
  if ((code > highest)); then highest=$code; fi
done
exit $highest
"""
SCONTROL = '#!/usr/bin/env bash\necho "$@" >>"$(dirname "$0")/scontrol.said"\n'


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a shell script")
def test_the_slurm_script_requeues_a_run_that_goes_on(tmp_path):
    """Two tasks are told that time ends; the job that Slurm begins anew is one task, and ends."""
    programs = {"srun": SRUN, "scontrol": SCONTROL}
    programs["python"] = f'#!/usr/bin/env bash\nexec {sys.executable} "$@"\n'
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    job = str(os.getpid())
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    slurm = {"PATH": path, "SLURM_JOB_ID": job, "SLURM_ARRAY_TASK_ID": "3"}
    script = ["bash", str(ROOT / "configs" / "slurm.sbatch"), *WORDS, "--runs", str(tmp_path)]
    script += ["--evaluation.every=0", "--evaluation.final-games=20"]
    directory = tmp_path / "tiny-3"

    first = environment(devices=2, SLURM_NTASKS="2", **slurm)
    job_of_two = start([*script, "--iterations=2000"], first, tmp_path, "first")
    try:
        wait_for(lambda: done(directory) > 0, job_of_two)
        job_of_two.popen.send_signal(signal.SIGUSR1)
        assert job_of_two.popen.wait(timeout=120) == EXIT_INTERRUPTED, job_of_two.err.read_text()
    finally:
        job_of_two.popen.kill()
        job_of_two.popen.wait()
    requeued = tmp_path / "scontrol.said"
    assert requeued.read_text() == f"requeue {job}\n"
    before = len(read_rows(directory))
    assert done(directory) == before

    total = before + 1
    second = environment(devices=4, SLURM_NTASKS="1", SLURM_RESTART_COUNT="1", **slurm)
    job_of_one = start([*script, f"--iterations={total}"], second, tmp_path, "second")
    assert job_of_one.popen.wait(timeout=300) == 0, job_of_one.err.read_text()
    assert requeued.read_text() == f"requeue {job}\n"
    assert [row["iteration"] for row in read_rows(directory)] == list(range(1, total + 1))
    assert '"seed": 3' in (directory / "config.json").read_text()
    for name in ("evaluation.json", "game.jsonl", "game.txt"):
        assert (directory / name).exists(), name
