"""A config's memory: estimated before anything is computed, and close to what a run then takes."""

import dataclasses
from pathlib import Path

import jax
import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train.config import read_config
from train.programs import memory as memory_lib
from train.programs.assembly import make_parts, make_programs
from train.runtime.devices import Devices, all_devices
from train.runtime.memory import Memory, Need, peak_bytes, tree_bytes

GIB = 2**30


def needs_of(config, devices: Devices) -> list[Need]:
    return memory_lib.run_needs(make_parts(config, devices))


def nbytes(tree) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_estimate_of_the_state_is_its_bytes(count):
    config, devices = tiny.config(), all_devices(count)
    programs = tiny.shared_programs(config)
    state = programs.init()
    boards, width, positions = needs_of(config, devices)[:3]
    assert boards == ("selfplay.boards", config.selfplay.boards, boards.bytes, "")
    assert boards.bytes == nbytes((programs.variant, state.boards)) // count
    rows = state.replay_state._replace(written=(), finished=())
    assert (positions.key, positions.bytes) == ("replay.positions", nbytes(rows) // count)
    # Counters of steps are in it.
    assert (width.key, width.bytes) == ("network.width", nbytes(state.learner))


@pytest.mark.slow
def test_estimate_of_selfplay_is_near_what_the_compiler_says(as_users_compile):
    config = tiny.config("--selfplay.boards", "64", "--search.simulations", "16")
    traced = make_parts(config, all_devices(1)).selfplay()
    found = traced.lower().compile().memory_analysis()
    taken = found.temp_size_in_bytes + found.output_size_in_bytes
    assert 0.7 * taken < peak_bytes(traced.jaxpr.jaxpr) < 1.3 * taken


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--selfplay.boards", "100000000"),
            "selfplay.boards = 100000000 (search.simulations = 2) ",
        ),
        (("--replay.positions", "1e11"), "replay.positions = 100000000000 needs "),
        pytest.param(
            ("--learner.batch", "1000000000"),
            "learner.batch = 1000000000 needs ",
            marks=pytest.mark.slow,
        ),
        (
            ("--network.destination_head", "true", "--network.destination_rank", "100000000"),
            "learner.batch = 8 needs ",
        ),
        (("--evaluation.batch", "1e9", "--evaluation.final_games", "1e9"), "evaluation.batch = "),
        pytest.param(
            ("--evaluation.final_games", "1e9"),
            "evaluation.final_games = 1000000000 needs ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_too_large_a_config_is_one_line(tmp_path, words, told):
    found = complaint(command("run", tiny.PATH, "--runs", tmp_path, *words))
    assert found.startswith(told)
    assert ", this host has " in found
    assert found.endswith(" would fit")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--selfplay.boards", "1e11"), "selfplay.boards = 100000000000 is too large"),
        (("--evaluation.final_games", "2e9"), "evaluation.final_games = 2000000000 is too large"),
        (("--search.simulations", "1000001"), "search.simulations (1000001) must be at most"),
    ],
)
def test_sizes_that_cannot_be_traced(tmp_path, words, told):
    assert complaint(command("run", tiny.PATH, "--runs", tmp_path, *words)).startswith(told)


def test_what_is_proposed_fits(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_lib, "device_memory", lambda: Memory("each GPU", 10**9, 1))
    words = ("run", tiny.PATH, "--runs", tmp_path, "--replay.positions")
    found = complaint(command(*words, "100000000"))
    proposed = int(found.split(" about ")[1].split()[0].replace(",", ""))
    assert 10**6 < proposed < 10**8
    make_programs(tiny.config("--replay.positions", str(proposed)))


@pytest.mark.parametrize(
    "path",
    [
        str(tiny.PATH),
        *(
            pytest.param(str(path), marks=pytest.mark.slow)
            for path in sorted(Path("configs").glob("*.toml"))
        ),
    ],
)
def test_bound_is_above_the_estimate(path):
    """Configs for GPUs fit one: three quarters of 80 GiB, as JAX takes by default, and a host's
    share for checkpoints."""
    parts = make_parts(read_config(path), all_devices(1))
    needs = sum(need.bytes for need in memory_lib.run_needs(parts))
    assert memory_lib.most_bytes(parts) > needs
    if Path(path).stem in ("gpu", "restnet", "wallzero_4stone", "wallzero_empty"):
        assert GIB < needs < 60 * GIB / 2


def test_a_small_run_is_not_traced_for_its_memory(monkeypatch):
    parts = make_parts(tiny.config(), all_devices(1))
    monkeypatch.setattr(memory_lib, "run_needs", pytest.fail)
    memory_lib.check_memory_of_run(parts)
    assert memory_lib.most_bytes(parts) < GIB


@pytest.mark.slow
def test_a_replay_on_the_host_is_no_need_of_the_device():
    config = tiny.config()
    there = dataclasses.replace(config, replay=dataclasses.replace(config.replay, memory="host"))
    keys = [need.key for need in needs_of(there, all_devices(1))]
    assert keys[:2] == ["selfplay.boards", "network.width"]
    assert tree_bytes(()) == 0
