"""The equations of a traced program that a platform would run."""

from collections.abc import Iterator
from typing import Any

import jax


def equations_of(jaxpr: Any, platform: str) -> Iterator[Any]:
    """All equations of a program, each followed by those of the programs inside it."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in inside(equation, platform):
            yield from equations_of(inner, platform)


def inside(equation: Any, platform: str) -> list[Any]:
    """The programs inside an equation; of those for several platforms the one that is taken."""
    branches = equation.params.get("branches_platforms")
    if branches is not None:
        taken = [platform in (names or (platform,)) for names in branches].index(True)
        return [equation.params["branches"][taken].jaxpr]
    found = jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program)
    return [getattr(value, "jaxpr", value) for value in found if _is_program(value)]


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")
