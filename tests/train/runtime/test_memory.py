"""Estimates of memory, and the line that refuses what does not fit."""

import jax
import jax.numpy as jnp
import pytest

from train.runtime import memory
from train.runtime.errors import UsageError
from train.runtime.memory import Memory, Need, check_fits, peak_bytes

MIB, GIB = 2**20, 2**30
HOST = Memory("this host", 16 * GIB, 4)


def peak(function, *shapes: tuple[int, ...]) -> int:
    like = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return peak_bytes(jax.make_jaxpr(function)(*like).jaxpr)


def test_an_array_lives_up_to_its_last_reader():
    def two_at_once(x):
        table = jnp.outer(x, x)  # 100 x 100
        return table.sum() + x.sum()

    def three_at_once(x):
        table = jnp.outer(x, x)
        other = jnp.sin(table)
        return (jnp.cos(other) @ table).sum()

    table = 4 * 100 * 100
    assert table <= peak(two_at_once, (100,)) < 2 * table + 4000
    assert 3 * table <= peak(three_at_once, (100,)) < 3 * table + 4000


def test_a_loop_holds_its_carry_and_what_it_stacks():
    def loop(x):
        def body(carry, number):
            return carry + 1, (carry + number).sum(axis=0)

        return jax.lax.scan(body, jnp.zeros((50, 20)) + x, jnp.arange(30.0))

    carry, stacked = 4 * 50 * 20, 4 * 30 * 20
    assert carry + stacked <= peak(loop, ()) <= 3 * carry + stacked + 1000


def test_sizes_beyond_int64_do_not_wrap_round():
    shape = jax.ShapeDtypeStruct((2**40, 2**40), jnp.float32)
    assert memory.tree_bytes(shape) == 2**82


def test_what_fits_passes():
    check_fits([Need("boards", 100, 4 * GIB)], HOST)
    check_fits([Need("boards", 100, 10**30)], None)


def test_one_setting_too_large_is_told_with_what_would_fit():
    needs = [Need("boards", 1000, 10 * GIB, "plies = 8"), Need("width", 32, MIB)]
    with pytest.raises(UsageError) as raised:
        check_fits(needs, HOST)
    # Four devices share the host; 0.8 of 16 GiB less 4 MiB over 40 GiB of 1000 boards is 319.
    assert str(raised.value) == (
        "boards = 1000 (plies = 8) needs 40.0 GiB, this host has 16.0 GiB; about 310 would fit"
    )


def test_two_settings_too_large_are_both_told():
    needs = [Need("boards", 1000, 100 * GIB), Need("positions", 10**9, 50 * GIB)]
    with pytest.raises(UsageError) as raised:
        check_fits(needs, Memory("each H100", 10 * GIB, 1))
    # Each gets half of 8 GiB.
    assert str(raised.value) == (
        "boards = 1000 needs 100 GiB and positions = 1000000000 needs 50.0 GiB, each H100 has "
        "10.0 GiB; about 40 and 80,000,000 would fit"
    )


def test_needs_of_one_key_are_added():
    needs = [Need("boards", 10, GIB), Need("boards", 10, 2 * GIB), Need("boards", 10, 2 * GIB)]
    with pytest.raises(UsageError, match=r"boards = 10 needs 20\.0 GiB, .* about 6 would fit"):
        check_fits(needs, HOST)


def test_sizes_that_cannot_be_indexed():
    memory.check_sizes(selfplay_boards=2**31 - 1)
    with pytest.raises(UsageError, match=r"selfplay\.boards = 2147483648 .* 2147483647 can"):
        memory.check_sizes(selfplay_boards=2**31)


def test_a_container_has_less_memory_than_its_machine(tmp_path):
    membership, root = tmp_path / "cgroup", tmp_path / "fs"
    membership.write_text("4:memory:/box/inner\n0::/user/app\n")
    for name, text in {
        "memory/box/memory.limit_in_bytes": "3000\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
        "user/memory.max": "5000\n",
        "user/app/memory.max": "max\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = sorted(memory._group_limits(membership, root))
    assert found == [3000, 5000, 9223372036854771712]
    assert list(memory._group_limits(tmp_path / "none", root)) == []


def test_memory_of_this_host():
    found = memory.device_memory()
    assert found is not None
    assert (found.name, found.devices) == ("this host", jax.local_device_count())
    assert GIB < found.bytes < 2**50


def test_an_error_of_the_allocator_is_one_line():
    error = RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5 GiB.\nAt x")
    found = memory.out_of_memory_message(error)
    assert found is not None
    assert found.startswith("out of memory: Out of memory while trying to allocate 5 GiB.")
    assert "\n" not in found
    error = RuntimeError(
        "INTERNAL: Error dispatching computation: Out of memory allocating 9 bytes."
    )
    assert "out of memory: allocating 9 bytes." in str(memory.out_of_memory_message(error))
    assert memory.out_of_memory_message(MemoryError()) is not None
    assert memory.out_of_memory_message(RuntimeError("something else")) is None
