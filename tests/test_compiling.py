"""Tests that ask for it compile as users do, others quickly."""

import jax
import jax.numpy as jnp

from tests.support import compiling


def program(x):
    return jnp.tanh(jnp.sin(x) * 2 + jnp.cos(x) ** 2).sum()


def compiled_program() -> bytes:
    """The program for one vector, with the options that it was compiled with."""
    compiled = jax.jit(program).lower(jnp.ones(100)).compile()
    return compiled.runtime_executable().serialize()


def test_quick_options_reach_the_compiler():
    quick = compiled_program()
    with compiling.as_users():
        users = compiled_program()
    for name in compiling.quick_options():
        assert name.encode() in quick
        assert name.encode() not in users
    assert abs(len(users) - len(quick)) > sum(map(len, compiling.quick_options()))


def test_a_jitted_function_is_compiled_once_for_each():
    traced = []

    @jax.jit
    def counted(x):
        traced.append(compiling.is_quick())
        return x + 1

    for _ in range(2):
        counted(1.0)
        with compiling.as_users():
            counted(1.0)
    assert traced == [True, False]
    assert compiling.is_quick()


def test_there_are_two_devices():
    assert jax.device_count() == compiling.DEVICES == 2
