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
