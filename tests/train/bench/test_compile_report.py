"""What the compilers of accelerators make of a run: structure that keeps a search fast there."""

import functools
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import jax
import pytest
from rich.console import Console

from tests.support.compiling import ROOT
from tests.support.learner import tiny
from train.bench import compile_report, hlo
from train.bench.compile_report import Target, absent_devices
from train.cli.bench import BenchCommand
from train.runtime.devices import all_devices, tracing_for
from train.runtime.errors import UsageError

MOST_TURNS = 1_000  # of a loop: a gather of rows can become one turn a row
MOST_PADDING = 1.5
MOST_KERNELS = 150  # a simulation
LOOPS_IN_GRAPHS = "--xla_gpu_enable_command_buffer=+WHILE"
MOST_CONDITIONS = {"search": 0, "selfplay": 1}
"""Of a simulation, that the host reads. A coin decides how many simulations self-play has."""


@functools.cache
def _programs_for(target: str):
    """The report of the quickstart, compiled in a process of its own, as JSON has it; on a GPU with
    loops in its graphs."""
    words = ["--what", "compile", "--target", target, "--programs", "search,selfplay"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        words += [
            "--json",
            str(path),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "train", "bench", *words],
            env=os.environ | {"PYTHONPATH": str(ROOT), "XLA_FLAGS": LOOPS_IN_GRAPHS},
            capture_output=True,
            text=True,
            check=False,
        )
        if "needs its compiler" in done.stderr:
            return None
        assert done.returncode == 0, done.stderr
        return json.loads(path.read_text(encoding="utf-8"))["programs"]


def _compiled(target: str):
    programs = _programs_for(target)
    if programs is None:
        pytest.skip(f"the compiler of {target} is not installed")
    assert set(programs) == {"search", "selfplay"}
    return programs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["search", "selfplay"])
def test_search_on_a_tpu_has_no_long_loops_sorts_or_padding(name):
    found = _compiled("v5e:1x1")[name]
    long = [x for x in found["loops"] if x["turns"] is not None and x["turns"] > MOST_TURNS]
    assert [(loop["place"], loop["turns"]) for loop in long] == []
    assert found["turn_ms"] > 0 and found["turn_sorts"] == 0
    assert found["padding"] <= MOST_PADDING


@pytest.mark.slow
@pytest.mark.parametrize("name", ["search", "selfplay"])
def test_a_simulation_on_a_gpu_has_few_kernels_and_the_host_reads_few_conditions(name):
    found = _compiled("h100")[name]
    assert 50 < found["turn_kernels"] <= MOST_KERNELS
    assert found["turn_reads"] <= MOST_CONDITIONS[name]


@pytest.mark.parametrize("name", ["", "a100", "v5e", "v5e:", "v5e:one", "h100:2"])
def test_unknown_target_is_one_line_with_those_that_are_known(name):
    with pytest.raises(UsageError, match=r"h100.*v5e:CHIPS.*v5e:1x1") as refused:
        absent_devices(name)
    assert repr(name) in str(refused.value) and "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def compiled():
    """The network and the search of a tiny run, compiled for a device that is there."""
    target = Target("here", "cpu", 1e9, 1e9, all_devices(1))
    names = ("network", "search")
    return compile_report.compile_for(target, tiny.config(), names, simulations=3)


def test_figures_of_a_program_and_of_its_main_loop(compiled):
    network, search = compiled["programs"].values()
    assert "turn_kernels" not in network and network["share"] == network["bytes"] / 1e9
    loops = [x for x in search["loops"] if x["place"].startswith("train/search/")]
    main = max(loops, key=lambda loop: loop["kernels"])
    assert main["turns"] == 3
    assert 0 < main["kernels"] < search["turn_kernels"]  # inner loops are part of a turn
    assert search["turn_reads"] == 0  # a CPU is its own host


def test_the_host_reads_a_loop_once_more_than_it_turns():
    leaf = hlo.Loop("", "", None, True, 0, (), Counter(), hlo.Bytes(0, 0), ())
    main = leaf._replace(place="train/search/x.py:1", turns=3, is_read=False, branches_read=1)
    whole = leaf._replace(turns=1, is_read=False, inner=(main._replace(inner=(leaf, leaf)),))
    found = compile_report.program_record("search", whole, None)
    assert found["turn_reads"] == pytest.approx(1 + 2 * (2.2 + 1))


def test_a_report_has_a_row_a_program_and_a_row_a_loop(compiled):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(compile_report.tables(compiled))
    text = console.export_text()
    assert "tiny compiled for here" in text and "train/search/" in text


def test_a_program_that_does_not_compile_is_part_of_the_report(monkeypatch):
    class Failing:
        def lower(self):
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: too\nlarge")

    monkeypatch.setattr(compile_report, "make_traces", lambda *_, **__: {"env": Failing})
    target = Target("here", "cpu", 1e9, 1e9, all_devices(1))
    found = compile_report.compile_for(target, tiny.config(), ("env",), simulations=1)
    assert found["failed"] == {"env": "RESOURCE_EXHAUSTED: too large"}


def test_learning_is_traced_as_the_target_runs_it():
    """One program for all steps on accelerators, a call for each step on a CPU."""
    loops = {}
    for platform in ("cpu", "gpu"):
        with tracing_for(platform):
            traces = compile_report.make_traces(tiny.config(), all_devices(1), simulations=2)
            assert ",".join(traces) == ",".join(compile_report.PROGRAMS) == BenchCommand.programs
            equations = traces["learn"]().jaxpr.eqns
        loops[platform] = sum(each.primitive.name == "while" for each in equations)
    assert loops == {"cpu": 0, "gpu": 1}
