"""A network of one's own, any pair of init and evaluate functions, behind the usual interface.

B boards, H W cells, C planes, P players.
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import chex
import jax
import jax.numpy as jnp

from train.network.restnet import Network, Output, Variables, mover_first
from train.network.slots import POLICY_PLANES
from train.runtime.errors import UsageError
from wallgo_jax.planes import Channel


def make_custom_network(
    functions: Sequence[Callable[..., Any]],
    channels: tuple[Channel, ...],
    *,
    players: int,
    size: int,
    has_mover_first: bool,
) -> Network:
    """Make a network of the pair (init, evaluate).

    Args:
      functions: init (key, planes bool[1, H, W, C]) -> parameters, a tree of arrays; evaluate
        (parameters, planes bool[B, H, W, C]) -> `Output`, or policy logits float32[B, H, W, 53]
        and value float32[B] of the player to move, or float32[B, P], its own first.
      channels: of the planes.
      players: P.
      size: side of the board that `init` is shown.
      has_mover_first: renumber the planes of the usual sets, so that the player to move is first.
    """
    own_init, own_evaluate = functions
    example = (1, size, size, len(channels))

    def init(key: jax.Array) -> Variables:
        return Variables(own_init(key, jnp.zeros(example, bool)), {})

    def evaluate(variables: Variables, planes: jax.Array) -> Output:
        chex.assert_shape(planes, (None, None, None, len(channels)))
        shown = mover_first(planes, channels) if has_mover_first else planes
        return _checked(own_evaluate(variables.params, shown), planes.shape, players)

    def evaluate_batch(variables: Variables, planes: jax.Array) -> tuple[Output, Any]:
        return evaluate(variables, planes), variables.batch_stats

    shapes = jax.eval_shape(init, jax.random.key(0))
    # Wrong shapes are told now, not in the first iteration.
    jax.eval_shape(evaluate, shapes, jax.ShapeDtypeStruct(example, bool))
    return Network(init, shapes, evaluate, evaluate_batch, _refuse, _refuse)


def _checked(found: Any, planes: tuple[int, ...], players: int) -> Output:
    """The output in the usual form.

    Raises:
      UsageError: arrays are not of the shapes that they must have.
    """
    if not isinstance(found, Output):
        policy, value = found
        found = Output(policy, value, None, None, None, None)
    policy, value = found.policy.astype(jnp.float32), found.value.astype(jnp.float32)
    boards, height, width = planes[:3]
    if value.shape == (boards,) and players == 2:
        value = jnp.stack([value, -value], axis=-1)
    for name, array, shape in (
        ("policy", policy, (boards, height, width, POLICY_PLANES)),
        ("value", value, (boards, players)),
    ):
        if array.shape != shape:
            raise UsageError(f"network: its {name} has the shape {array.shape}, not {shape}")
    return found._replace(policy=policy, value=value)


def _refuse(*arguments: Any) -> NoReturn:
    raise UsageError("network: one that Python passed has no trunk or attention to look at")
