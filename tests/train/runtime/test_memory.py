"""Estimates of memory, and the line that refuses what does not fit."""

import jax
import jax.numpy as jnp

from tests.support.refusals import refusal
from train.runtime import memory
from train.runtime.devices import BY_BOARD, all_devices
from train.runtime.memory import Memory, MemoryEstimate, check_fits

MIB, GIB = 2**20, 2**30
HOST = Memory("this host", 16 * GIB, 4)


def need(name: str, size: int) -> MemoryEstimate:
    return MemoryEstimate(name, size, (f"{name}.a", f"{name}.b"))


def test_memory_of_a_program_is_what_its_compiler_says():
    def program(x):
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.sort(y @ y, axis=0), x)

    shape = jax.ShapeDtypeStruct((500, 500), jnp.float32)
    compiled = jax.jit(program).lower(shape).compile()
    consuming = jax.jit(program, donate_argnums=0).lower(shape).compile()
    array = 4 * 500 * 500
    # The result and at least one product; an argument that is consumed holds the result.
    assert 2 * array <= memory.program_bytes(compiled) <= 5 * array
    assert memory.program_bytes(compiled) - memory.program_bytes(consuming) == array


def test_a_sharded_array_is_counted_by_a_device_s_share():
    devices = all_devices()
    array = jax.ShapeDtypeStruct((8, 3), jnp.float32, sharding=devices.sharding(BY_BOARD))
    assert memory.tree_bytes(array) * devices.count == 4 * 8 * 3


def test_sizes_beyond_int64_do_not_wrap_round():
    shape = jax.ShapeDtypeStruct((2**40, 2**40), jnp.float32)
    assert memory.tree_bytes(shape) == 2**82


def test_what_fits_passes():
    check_fits([need("boards", 4 * GIB)], HOST)
    check_fits([need("boards", 10**30)], None)
    # Programs run one after the other.
    check_fits([need("boards", GIB)], HOST, programs=[need("play", 3 * GIB), need("learn", GIB)])


def test_what_does_not_fit_names_the_largest_need_and_its_keys():
    boards, play = need("boards", 2 * GIB), need("play", 3 * GIB)
    # Four devices share the host.
    assert refusal(check_fits, [boards], HOST, programs=[play]) == (
        "out of memory before anything runs: this needs 20.0 GiB, this host has 16.0 GiB; "
        "12.0 GiB of it is for play: lower play.a or play.b"
    )


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
