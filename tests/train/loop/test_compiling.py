"""A config's memory: checked before anything runs, by shapes and by the compiled programs."""

import dataclasses

import jax
import pytest

from tests.support.compiling import ROOT
from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from tests.support.learner.loop import Loop
from train.config import read_config
from train.loop import compiling, programs
from train.loop.tables import tables_of, variants_of
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


def compile_for(monkeypatch, config, memory) -> None:
    """Compile a run whose devices have some memory, as a function of what is asked of it."""
    loop = Loop(config)
    monkeypatch.setattr(compiling, "check_fits", memory)
    loop.compile()


def test_programs_beyond_the_memory_are_refused_once_they_are_compiled(monkeypatch):
    asked = {}

    def check(held, memory, *, programs):
        names = {need.name: need.bytes for need in programs}
        if "learning" in names:
            room = sum(need.bytes for need in held) + max(names.values())
            check_fits(held, Memory("a GPU", room, 1), programs=programs)
            asked.update(names)
            check_fits(held, Memory("a GPU", room - 1, 1), programs=programs)

    with pytest.raises(UsageError, match=r"a GPU has .* of it is for .*: lower "):
        compile_for(monkeypatch, tiny.config("--evaluation.opponents=[]"), check)
    assert asked.keys() == {"self-play", "adding to the replay", "learning", "a checkpoint"}
    assert asked["self-play"] > 0 and asked["learning"] > 0


def test_the_arrays_that_are_counted_are_those_of_a_run(monkeypatch):
    loop = Loop(tiny.config())
    counted = {}

    def count(held, memory, *, programs):
        for need in held:
            counted[need.name] = need.bytes * loop.devices.count

    monkeypatch.setattr(compiling, "check_fits", count)
    loop.compile()
    state = loop.state
    assert counted["the boards of self-play"] == nbytes(state.boards)
    replicated = len(jax.devices()) * nbytes(state.learner)
    assert counted["weights and optimizer"] == replicated
    rows = state.replay_state._replace(written=())
    assert 0 <= counted["the replay"] - nbytes(rows) < 100


class TracedError(Exception):
    """The arrays fit: the programs come next."""


def check_arrays(monkeypatch, config) -> None:
    """The check of a run's arrays alone."""

    def stop(*arguments, **options):
        raise TracedError

    monkeypatch.setattr(compiling, "traces_of_run", stop)
    tables, variants = tables_of(config), variants_of(config)
    like = programs.state_like(tables, variants)
    compiling.compile_run(config, tables, like, variants, None, None, done=0)


def test_arrays_of_a_config_for_gpus_fit_one(monkeypatch):
    """Three quarters of 80 GiB, as JAX takes by default, hold them with as much for programs; of
    the configs for GPUs this one has the largest."""
    monkeypatch.setattr(compiling, "device_memory", lambda: Memory("each H100", 30 * GIB, 1))
    with pytest.raises(TracedError):
        check_arrays(monkeypatch, read_config(ROOT / "configs" / "gpu.toml"))


def test_a_replay_on_the_host_is_no_need_of_the_device(monkeypatch):
    config = tiny.config("--replay.positions", "2e9")
    there = dataclasses.replace(config, replay=dataclasses.replace(config.replay, memory="host"))
    with monkeypatch.context() as patch, pytest.raises(TracedError):
        patch.setattr(compiling, "host_memory", lambda: None)
        check_arrays(patch, there)
    with pytest.raises(UsageError, match=r"this host has .* lower replay\.positions"):
        check_arrays(monkeypatch, there)
