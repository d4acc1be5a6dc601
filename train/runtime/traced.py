"""The operations of a traced program, for tools that count them. No training needs this.

JAX promises nothing about the inside of traced programs, so this file is all that reads it.
"""

from collections.abc import Callable
from typing import Any

import jax


def inner_programs(equation: Any) -> list[Any]:
    """The bodies of an equation's loops, branches and calls."""
    values = jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program)
    return [getattr(value, "jaxpr", value) for value in values if _is_program(value)]


def sum_equations(
    program: Any,
    count: Callable[[Any], int],
    inner: Callable[[Any], list[Any]] = inner_programs,
    times: Callable[[Any], int] = lambda equation: 1,
) -> int:
    """Sum a count over all equations of a program, those inside others included.

    Args:
      program: what `jax.make_jaxpr` returns.
      count: equation -> its count.
      inner: equation -> the programs in it to count.
      times: equation -> how often those run.
    """
    total = 0
    for equation in getattr(program, "jaxpr", program).eqns:
        below = sum(sum_equations(body, count, inner, times) for body in inner(equation))
        total += count(equation) + times(equation) * below
    return total


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")
