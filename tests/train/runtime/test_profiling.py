"""Which part of the code an operation of a trace belongs to, and a trace of a run."""

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command
from train.runtime import profiling

PATHS = {
    ("fusion", "jit(play)/shard_map/while/body/closed_call/select/while/body/add"): "select",
    ("fusion", "jit(play)/while/body/evaluate/vmap(backup)/add"): "backup",
    ("convolution", "jit(learn_step)/transpose(jvp(learner))/conv_general_dilated"): "learner",
    ("fusion", "jit(play)/while/body/jit(evaluate)/add"): "other",
    ("fusion", "jit(play)/while/body/replays/add"): "other",
    ("fusion", ""): "other",
    ("all-reduce", "jit(learn_step)/learner/psum"): "waiting",
    ("while", "jit(play)/while"): profiling._WITHIN,
}


@pytest.mark.parametrize(("kind", "path"), PATHS)
def test_an_operation_belongs_to_the_innermost_scope_of_its_path(kind, path):
    assert profiling.part_of(kind, path) == PATHS[kind, path]


def test_shares_are_named_from_the_largest_on():
    assert profiling.in_words({"play": 1.0, "select": 3.0, "other": 0.0}) == (
        "select 75.0 %, play 25.0 %"
    )


@pytest.mark.slow
def test_a_profile_names_the_parts_of_two_iterations(tmp_path):
    # Sizes of no other test: a program that was kept before the code had a scope would lack it.
    said = command(
        *("run", tiny.PATH, "--runs", tmp_path, "--profile", tmp_path / "trace"),
        *("--selfplay.boards", "6", "--network.width", "12", "--learner.batch", "12"),
        *("--iterations", "3", "--evaluation.opponents", "[]"),
    )
    assert (said.code, said.err) == (0, "")
    (line,) = [line for line in said.out.splitlines() if line.startswith("trace of two iterations")]
    times = profiling.times_by_scope(profiling.newest_trace(tmp_path / "trace"))
    assert line.endswith(f"{tmp_path / 'trace'}: {profiling.in_words(times)}")
    assert {*profiling.SCOPES} <= {name for name, time in times.items() if time > 0}
    assert times["other"] < sum(times.values()) / 2


@pytest.mark.slow
def test_a_run_too_short_for_a_profile_says_so(tmp_path):
    trace = tmp_path / "trace"
    short = ("--iterations", "2", "--evaluation.opponents", "[]")
    said = command("run", tiny.PATH, "--runs", tmp_path, "--profile", trace, *short)
    assert said.code == 0
    assert said.err == f"{trace}: the run ended before 2 iterations were traced\n"
