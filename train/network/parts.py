"""Counts the parts, parameters and multiply-adds of a network, in its traced programs.

JAX promises nothing about the inside of traced programs. This file is all that reads it, and no
training needs it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from train.game import NUM_SIDES, Channel
from train.network.config import NetworkConfig
from train.network.layers import Board
from train.network.restnet import ResTNet, Variables


class Part(NamedTuple):
    """A part of the network, on one board."""

    name: str  # such as `block 3 T`
    shape: tuple[int, ...]  # of its output, without the axis of boards
    parameters: int
    multiply_adds: int  # of its matrix products and convolutions, padding counted as cells
    numbers: int  # that those read and write, without weights


def census(config: NetworkConfig, channels: tuple[Channel, ...], *, size: int) -> tuple[Part, ...]:
    """The parts from the stem to the heads, for a board of the given size; traces shapes only."""
    model = nnx.eval_shape(lambda: ResTNet(config, channels, rngs=nnx.Rngs(0)))
    model.eval()
    planes = _like(size, size, len(channels))
    features, pooled = _like(size, size, config.width), _like(2 * config.width)
    board = Board(playable=None, gates=_like(size, size, NUM_SIDES))
    parts = [_part("stem", model.stem, planes, None)]
    parts += [
        _part(f"block {place} {kind}", block, features, board)
        for place, (kind, block) in enumerate(model.named_blocks(), start=1)
    ]
    parts += [_part(name, head, features, pooled) for name, head in model.heads().items()]
    return tuple(parts)


def count_parameters(variables: Variables) -> int:
    """Number of learned parameters, without running statistics."""
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(variables.params))


def _like(*shape: int) -> Any:
    return jax.ShapeDtypeStruct((1, *shape), jnp.float32)


def _part(name: str, module: Any, *inputs: Any) -> Part:
    graph, state = nnx.split(module)
    program, output = jax.make_jaxpr(
        lambda state, *inputs: nnx.merge(graph, state)(*inputs), return_shape=True
    )(state, *inputs)
    parameters = jax.tree.leaves(nnx.state(module, nnx.Param))
    return Part(
        name=name,
        shape=tuple(output.shape[1:]),
        parameters=sum(int(np.prod(leaf.shape)) for leaf in parameters),
        multiply_adds=sum_equations(program, _of_products(_multiply_adds)),
        numbers=sum_equations(program, _of_products(_numbers)),
    )


def sum_equations(program: Any, count: Callable[[Any], int]) -> int:
    """Sum a count over all equations of a program, those inside others included, loops once.

    Args:
      program: what `jax.make_jaxpr` returns.
      count: equation -> its count.
    """
    total = 0
    for equation in getattr(program, "jaxpr", program).eqns:
        total += count(equation)
        total += sum(sum_equations(body, count) for body in _inner_programs(equation))
    return total


def _inner_programs(equation: Any) -> list[Any]:
    """The bodies of an equation's loops, branches and calls."""
    values = jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program)
    return [getattr(value, "jaxpr", value) for value in values if _is_program(value)]


def _of_products(count: Callable[[Any], int]) -> Callable[[Any], int]:
    """A count of matrix products and convolutions alone."""
    products = ("dot_general", "conv_general_dilated")
    return lambda equation: count(equation) if equation.primitive.name in products else 0


def _multiply_adds(equation: Any) -> int:
    (out, *_), inputs = equation.outvars, equation.invars
    if equation.primitive.name == "dot_general":
        ((contracted, _), _) = equation.params["dimension_numbers"]
        summed = np.prod([inputs[0].aval.shape[axis] for axis in contracted])
        return int(np.prod(out.aval.shape) * summed)
    # Each number of the output sums a product for every tap and input feature.
    kernel = inputs[1].aval.shape
    out_axis = equation.params["dimension_numbers"].rhs_spec[0]
    return int(np.prod(out.aval.shape) * np.prod(kernel) // kernel[out_axis])


def _numbers(equation: Any) -> int:
    """Operands and result; the second operand is a weight, but in products of boards by boards."""
    left, right = (int(np.prod(x.aval.shape)) for x in equation.invars[:2])
    is_by_board = (
        equation.primitive.name == "dot_general" and equation.params["dimension_numbers"][1][0]
    )
    return left + int(np.prod(equation.outvars[0].aval.shape)) + (right if is_by_board else 0)


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")
