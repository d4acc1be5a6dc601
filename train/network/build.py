"""Builds the network of a config, a ResTNet or one of your own; equal configs share one.

Networks of your own are functions, or modules of Flax as they are.

B boards, H W cells, C planes, P players.
"""

import contextlib
import functools
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

from train.functions import call_of, check_returned
from train.game import PRESETS, Channel, Precomputed, State, channels, initial_state, observe
from train.network.config import NetworkConfig
from train.network.restnet import Network, Output, Variables, make_network, mover_first
from train.network.slots import POLICY_PLANES
from train.runtime.devices import backend
from train.runtime.errors import UsageError

CUSTOM = "custom"
"""The kind of the channels that a function of one's own shows."""
_SIZE = 7

Observe = Callable[[State, Precomputed | None], jax.Array]
"""(state of one board, what is known of it or None) -> bool[H, W, C]."""


def network_for(config: NetworkConfig, players: int, *, size: int = _SIZE) -> Network:
    """The network of a config for that number of players; equal arguments give the same object, as
    long as programs are traced for one platform.

    Args:
      config: of the network.
      players: P.
      size: side of the board, which only networks of one's own are told, when they are made.

    Raises:
      UsageError: it is a network of one's own that this process has not been told.
    """
    return _network(config, players, size if config.custom else _SIZE, backend())


@functools.cache
def _network(config: NetworkConfig, players: int, size: int, platform: str) -> Network:
    del platform  # which decides the type of its numbers
    shown = channels_of(config, players)
    if not config.custom:
        return make_network(config, shown)
    return make_custom_network(
        call_of("network.custom", config.custom),
        shown,
        players=players,
        size=size,
        has_mover_first=config.mover_first,
    )


def channels_of(config: NetworkConfig, players: int) -> tuple[Channel, ...]:
    """The channels that the network reads: those of `planes`, then those of `custom_planes`."""
    own = 0
    if config.custom_planes:
        rules = next(rules for rules in PRESETS.values() if rules.players == players)
        own = jax.eval_shape(_custom_planes(config), initial_state(rules)).shape[-1]
    # An age tells planes of one kind apart.
    shown = channels(config.planes, players, has_playable=config.playable)
    return (*shown, *(Channel(CUSTOM, age=i) for i in range(own)))


@functools.cache
def observer_for(config: NetworkConfig) -> Observe:
    """The function that shows states to a config's network."""

    @jax.named_scope("planes")
    def show(state: State, precomputed: Precomputed | None = None) -> jax.Array:
        return observe(
            state, planes=config.planes, has_playable=config.playable, precomputed=precomputed
        )

    if not config.custom_planes:
        return show
    own = _custom_planes(config)
    return lambda state, precomputed=None: jnp.concatenate(
        [show(state, precomputed), own(state)], axis=-1
    )


def _custom_planes(config: NetworkConfig) -> Callable[[State], jax.Array]:
    call = call_of("network.custom_planes", config.custom_planes)

    def planes(state: State) -> jax.Array:
        shown = call(state)
        shape = (state.grid, state.grid, None)
        wanted = f"bool[{state.grid},{state.grid},C]"
        check_returned("planes", config.custom_planes, shown, shape, wanted)
        return jnp.asarray(shown).astype(bool)

    return planes


class CustomNetwork(NamedTuple):
    """The functions of a network."""

    init: Callable[[jax.Array, jax.Array], Variables]
    """(key, planes bool[1, H, W, C]) -> variables."""
    evaluate: Callable[[Variables, jax.Array], Any]
    """(variables, planes bool[B, H, W, C]) -> what `make_custom_network` takes; uses running
    statistics."""
    evaluate_batch: Callable[[Variables, jax.Array], tuple[Any, Any]]
    """Likewise, with batch statistics; also returns the new running ones."""


def read_network(network: Any) -> tuple[CustomNetwork, str]:
    """Read a network that Python passes, and the name by which checkpoints know it.

    Args:
      network: a pair of functions (init, evaluate), an object that has both, a module of Flax's
        NNX, whose weights a run begins with, or one of Linen.

    Raises:
      UsageError: it is none of these, or a module of Linen that has more than parameters.
    """
    if isinstance(network, nnx.Module):
        return _of_nnx(network)
    if isinstance(network, linen.Module):
        return _of_linen(network)
    is_pair = isinstance(network, tuple) and len(network) == 2
    pair = (
        network if is_pair else (getattr(network, "init", None), getattr(network, "evaluate", None))
    )
    if not all(map(callable, pair)):
        raise UsageError(
            "network: must be a pair of functions, (init, evaluate), or a module of Flax"
        )
    return _of_functions(*pair), getattr(pair[1], "__name__", "")


def make_custom_network(
    functions: CustomNetwork,
    channels: tuple[Channel, ...],
    *,
    players: int,
    size: int,
    has_mover_first: bool,
) -> Network:
    """Make a network of functions that evaluate planes bool[B, H, W, C] as an `Output`, or as
    policy logits float32[B, H, W, 53] and a value float32[B] of the player to move, or float32[B,
    P], its own first.

    Args:
      functions: of the network.
      channels: of the planes.
      players: P.
      size: side of the board that `init` is shown.
      has_mover_first: renumber the planes of the usual sets, so that the player to move is first.
    """
    example = (1, size, size, len(channels))

    def init(key: jax.Array) -> Variables:
        return functions.init(key, jnp.zeros(example, bool))

    def show(planes: jax.Array) -> jax.Array:
        chex.assert_shape(planes, (None, None, None, len(channels)))
        return mover_first(planes, channels) if has_mover_first else planes

    def evaluate(variables: Variables, planes: jax.Array) -> Output:
        found = functions.evaluate(variables, show(planes))
        return _checked(found, planes.shape, players)

    def evaluate_batch(variables: Variables, planes: jax.Array) -> tuple[Output, Any]:
        found, stats = functions.evaluate_batch(variables, show(planes))
        return _checked(found, planes.shape, players), stats

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
    raise UsageError("network: one that Python passed shows no trunk and no attention")


@functools.cache  # So that programs of a network that is told again are not compiled again.
def _of_functions(init: Callable[..., Any], evaluate: Callable[..., Any]) -> CustomNetwork:
    def evaluate_params(variables: Variables, planes: jax.Array) -> Any:
        return evaluate(variables.params, planes)

    return CustomNetwork(
        init=lambda key, planes: Variables(init(key, planes), {}),
        evaluate=evaluate_params,
        evaluate_batch=lambda variables, planes: (
            evaluate_params(variables, planes),
            variables.batch_stats,
        ),
    )


def _of_linen(module: linen.Module) -> tuple[CustomNetwork, str]:
    def init(key: jax.Array, planes: jax.Array) -> Any:
        made = module.init(key, planes)
        if more := sorted(made.keys() - {"params"}):
            raise UsageError(
                f"network: {type(module).__name__} has {', '.join(more)} besides parameters; "
                "training updates parameters alone: write the module in NNX, or without these"
            )
        return made

    return _of_functions(init, module.apply), _name(module, repr(module))


_nnx: dict[tuple[Any, ...], CustomNetwork] = {}
"""Of modules by graph and weights, so that a sweep with one compiles once."""


def _of_nnx(module: nnx.Module) -> tuple[CustomNetwork, str]:
    module = nnx.clone(module)  # What the caller does to it later changes nothing.
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    keyed = nnx.to_pure_dict(rest)
    first = Variables(nnx.to_pure_dict(params), _without_keys(keyed))

    def build(variables: Variables, *, learns: bool) -> nnx.Module:
        own = nnx.clone(module)
        own.train() if learns else own.eval()
        graph, params, rest = nnx.split(own, nnx.Param, ...)
        nnx.replace_by_pure_dict(params, variables.params)
        nnx.replace_by_pure_dict(rest, _with_keys(keyed, variables.batch_stats))
        return nnx.merge(graph, params, rest)

    def evaluate(variables: Variables, planes: jax.Array) -> Any:
        return build(variables, learns=False)(planes)  # type: ignore[operator]

    def evaluate_batch(variables: Variables, planes: jax.Array) -> tuple[Any, Any]:
        own = build(variables, learns=True)
        found = own(planes)  # type: ignore[operator]
        return found, _without_keys(nnx.to_pure_dict(nnx.state(own, nnx.Not(nnx.Param))))

    functions = CustomNetwork(lambda key, planes: first, evaluate, evaluate_batch)
    about = str(jax.tree.map(lambda x: (x.shape, str(x.dtype)), first))
    with contextlib.suppress(TypeError):  # A graph with attributes that have no hash is not shared.
        weights = tuple(np.asarray(x).tobytes() for x in jax.tree.leaves(first))
        functions = _nnx.setdefault((graph, about, weights), functions)
    return functions, _name(module, about)


def _is_key(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def _without_keys(tree: Any) -> Any:
    """Random keys, of dropout, as the numbers that a checkpoint can hold."""
    return jax.tree.map(lambda x: jax.random.key_data(x) if _is_key(x) else x, tree)


def _with_keys(like: Any, tree: Any) -> Any:
    """The reverse of `_without_keys`; `like` says which are keys."""

    def typed(old: Any, new: Any) -> Any:
        return jax.random.wrap_key_data(new, impl=jax.random.key_impl(old)) if _is_key(old) else new

    return jax.tree.map(typed, like, tree)


def _name(module: Any, about: str) -> str:
    """A name that tells modules apart: the class, and a digest of how it is made."""
    return f"{type(module).__name__}-{zlib.crc32(about.encode()):08x}"
