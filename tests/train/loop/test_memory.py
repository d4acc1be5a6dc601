"""A config's memory: checked before anything runs, by shapes and by the compiled programs."""

import dataclasses

import jax
import pytest

from tests.support.compiling import ROOT
from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train.config import read_config
from train.loop import memory as memory_lib
from train.loop import train_step
from train.loop.train_step import make_run_programs
from train.runtime.errors import UsageError
from train.runtime.memory import Memory, check_fits

GIB = 2**30


def nbytes(tree) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("--selfplay.boards", "1e7", "--replay.positions", "1"), "lower selfplay.boards"),
        (("--replay.positions", "2e9"), "lower replay.positions"),
        (("--network.width", "1000000"), "lower network.width"),
        (("--evaluation.batch", "1e9", "--evaluation.final_games", "1e9"), "evaluation.batch"),
    ],
)
def test_arrays_beyond_the_memory_are_refused_before_anything_is_traced(tmp_path, words, keys):
    found = complaint(command("run", tiny.PATH, "--runs", tmp_path, *words))
    assert keys in found and ", this host has " in found
    assert list(tmp_path.iterdir()) == []


def test_programs_beyond_the_memory_are_refused_once_they_are_compiled(monkeypatch):
    asked = {}

    def check(held, memory, *, programs):
        room = sum(need.bytes for need in held) + max(need.bytes for need in programs)
        check_fits(held, Memory("a GPU", room, 1), programs=programs)
        asked.update({need.name: need.bytes for need in programs})
        check_fits(held, Memory("a GPU", room - 1, 1), programs=programs)

    programs = make_run_programs(tiny.config())
    monkeypatch.setattr(memory_lib, "check_fits", check)
    with pytest.raises(UsageError, match=r"a GPU has .* of it is for .*: lower "):
        programs.compile(0)
    assert asked.keys() == {"self-play", "adding to the replay", "learning", "a checkpoint"}
    assert asked["self-play"] > 0 and asked["learning"] > 0


def test_the_arrays_that_are_counted_are_those_of_a_run(monkeypatch):
    config = tiny.config()
    counted = {}

    def check_held(config, like, plies, devices):
        for need in memory_lib.held_by(config, like, plies):
            counted[need.name] = need.bytes * devices.count

    monkeypatch.setattr(train_step, "check_held", check_held)
    state = make_run_programs(config).init()
    assert counted["the boards of self-play"] == nbytes(state.boards)
    replicated = len(jax.devices()) * nbytes(state.learner)
    assert counted["weights and optimizer"] == replicated
    rows = state.replay_state._replace(written=())
    assert 0 <= counted["the replay"] - nbytes(rows) < 100


def test_arrays_of_a_config_for_gpus_fit_one(monkeypatch):
    """Three quarters of 80 GiB, as JAX takes by default, hold them with as much for programs; of
    the configs for GPUs this one has the largest."""
    monkeypatch.setattr(memory_lib, "device_memory", lambda: Memory("each H100", 30 * GIB, 1))
    make_run_programs(read_config(ROOT / "configs" / "gpu.toml"))


def test_a_replay_on_the_host_is_no_need_of_the_device(monkeypatch):
    config = tiny.config("--replay.positions", "2e9")
    there = dataclasses.replace(config, replay=dataclasses.replace(config.replay, memory="host"))
    monkeypatch.setattr(memory_lib, "host_memory", lambda: None)
    make_run_programs(there)
    monkeypatch.undo()
    with pytest.raises(UsageError, match=r"this host has .* lower replay\.positions"):
        make_run_programs(there)
