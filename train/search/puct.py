"""PUCT search: AlphaZero's rule of selection, with noise at the root and moves drawn by visits.

After Silver et al., "A general reinforcement learning algorithm that masters chess, shogi, and Go
through self-play" (Science, 2018), with the scale of values of Schrittwieser et al., "Mastering
Atari, Go, chess and shogi by planning with a learned model" (Nature, 2020), appendix B. The slot
chosen at a node is the one of the largest sum of

    value   the slot's Q-value, or a first-play value for a slot not visited, by the rule of
            `search.first_play`: KataGo's, MiniZero's or mctx's
    prior   sqrt(N) (c_init + log((N + c_base + 1) / c_base)) P / (n + 1), where the node has N
            visits, the slot n visits and the prior P
    noise   below 1e-7, which breaks ties

By mctx's rule it finds what `mctx.muzero_policy` finds without its noise, from the same key. Over
many moves of a flat prior the prior's part is about 0.02 sqrt(N), while by the rules of mctx and
MiniZero a visited slot leads the others by up to 1: visits stay with the first slot that does
better than the node. By KataGo's rule a slot that is not visited is worth nearly as much as the
node.

B boards, A slots.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from train.network import MASKED
from train.search.config import SearchConfig
from train.search.sequential_halving import Selection, first_largest, slot_below
from train.search.simulation import simulate
from train.search.tree import (
    Budget,
    Choice,
    Choose,
    Node,
    Play,
    Root,
    Select,
    init_tree,
    root_view,
    simulations_of,
    where_explored,
)

_LEAST_SPREAD, _TIE_BREAK = 1e-8, 1e-7
"""mctx's: values closer together than the first are not spread further; the largest noise."""
FIRST_PLAY_REDUCTION = 0.2
"""KataGo's `fpuReductionMax`."""

Grow = Callable[[jax.Array, Root, Play], tuple[jax.Array, jax.Array, Any]]
"""(key, root, play) -> visits int32[B, A] of the root's slots, its value float32[B], the tree."""

QValues = Callable[[Node], jax.Array]
"""node -> the value of each slot, visited or not, float32[B, A]."""


def make_puct(
    config: SearchConfig, budgets: Sequence[Budget], *, has_model: bool = False
) -> Choose:
    """The native engine's PUCT search, whose policy is the shares of visits.

    Args:
      config: options of the search, but for its simulations.
      budgets: of which a search gets one. Those that explore mix noise into the root's prior and
        draw the move; else nothing but ties is drawn and the move is the most visited.
      has_model: as in `init_tree`.
    """
    most = max(each.simulations for each in budgets)
    below = make_puct_slot(config)

    def grow(key: jax.Array, root: Root, play: Play) -> tuple[jax.Array, jax.Array, Any]:
        tree = init_tree(
            root.logits, root.value, root.position, nodes=most + 1, has_model=has_model
        )
        tree_key, count = jax.random.split(key, 3)[2], simulations_of(budgets, root.budget)
        reduction = where_explored(
            budgets,
            root.budget,
            jnp.float32(root_reduction(config, explores=True)),
            jnp.float32(root_reduction(config, explores=False)),
        )
        at_root = make_puct_slot(config, reduction=reduction)
        tree = simulate(tree, tree_key, at_root=at_root, below=below, play=play, count=count)
        searched = root_view(tree)
        return searched.slot_visits, searched.value, tree

    return make_puct_choice(config, grow, budgets)


def make_puct_choice(config: SearchConfig, grow: Grow, budgets: Sequence[Budget]) -> Choose:
    """The noise before and the draw of the move after a tree is grown, whichever engine grows it.

    `grow` gets the whole key and must use no more of it than its third part,
    `jax.random.split(key, 3)[2]`, as `mctx.muzero_policy` does.
    """
    explores = any(each.explores for each in budgets)
    fraction = config.dirichlet_fraction if explores else None
    temperature = config.temperature if explores else None

    def choose(key: jax.Array, root: Root, play: Play) -> Choice:
        slot_key, noise_key, _ = jax.random.split(key, 3)
        prior, ply = root.logits, root.position.ply
        if fraction is not None:
            noise = dirichlet(noise_key, root.legal, alpha=config.dirichlet_alpha)
            mixed = mix(prior, noise, root.legal, fraction=fraction)
            root = root._replace(logits=where_explored(budgets, root.budget, mixed, prior))
        visits, value, tree = grow(key, root, play)
        # Slots of equal visits are told apart by the prior as evaluated, without the noise.
        slot = most_visited(visits, prior)
        if temperature is not None:
            drawn = draw_at(slot_key, visits, temperature)
            is_late = (config.temperature_plies > 0) & (ply >= config.temperature_plies)
            explored = jnp.where(is_late, slot, drawn)
            slot = where_explored(budgets, root.budget, explored, slot)
        counts = visits.astype(jnp.float32)
        policy = counts / counts.sum(axis=1, keepdims=True)
        return Choice(slot, policy, value, tree, visits)

    return choose


def root_reduction(config: SearchConfig, *, explores: bool) -> float:
    """By how much a slot of the root that is not visited falls behind the node at most: by nothing
    where noise shall be tried, as KataGo has it (`rootFpuReductionMax`)."""
    has_noise = explores and config.dirichlet_fraction is not None
    return 0.0 if has_noise else FIRST_PLAY_REDUCTION


def make_puct_slot(
    config: SearchConfig, *, reduction: jax.Array | float = FIRST_PLAY_REDUCTION
) -> Select:
    """`puct_slot` with a config's weights and its rule of first plays; `reduction` is KataGo's."""
    qvalues = first_play_values(config, reduction)
    return functools.partial(puct_slot, c_init=config.c_init, c_base=config.c_base, qvalues=qvalues)


def first_play_values(config: SearchConfig, reduction: jax.Array | float) -> QValues:
    """The values of slots by a config's rule of first plays."""
    return {
        "mctx": scaled_qvalues,
        "minizero": unscaled_qvalues,
        "katago": functools.partial(reduced_qvalues, reduction=reduction),
    }[config.first_play]


def select_by_visits(config: SearchConfig) -> Selection:
    """The choices of a PUCT search without noise; its policy is the prior before any visit."""
    select = functools.partial(make_puct_slot(config), None)

    def result(node: Node, before: Any) -> tuple[jax.Array, jax.Array]:
        del before
        visits = node.slot_visits.astype(jnp.float32)
        total = visits.sum(axis=1, keepdims=True)
        prior = jax.nn.softmax(node.logits, axis=1)
        policy = jnp.where(total > 0, visits / jnp.maximum(total, 1.0), prior)
        return most_visited(node.slot_visits, node.logits), policy

    return Selection(lambda node, before, due: select(node), select, result)


def puct_slot(
    keys: jax.Array | None, node: Node, *, c_init: float, c_base: float, qvalues: QValues
) -> jax.Array:
    """int32[B]: the slot of the largest sum of value, prior and noise; never an illegal one. Where
    an opponent is modelled its policy decides, see `slot_below`.

    Args:
      keys: [B], one a board, for the noise; None for no noise.
      node: whose slots are chosen from; MASKED logits mark the illegal ones.
      c_init: weight of the prior against the value.
      c_base: visits at which that weight has grown by log 2.
      qvalues: `scaled_qvalues`, `unscaled_qvalues` or `reduced_qvalues`.
    """
    visits = node.visits[:, None].astype(jnp.float32)
    weight = jnp.sqrt(visits) * (c_init + jnp.log((visits + c_base + 1.0) / c_base))
    prior = weight * jax.nn.softmax(node.logits, axis=1) / (node.slot_visits + 1)
    score = qvalues(node) + prior
    if keys is not None:
        # Anew at each node, slot by slot, as mctx draws it: the keys decide the ties.
        draw = jax.vmap(lambda key: jax.random.uniform(key, node.logits.shape[1:], jnp.float32))
        score += _TIE_BREAK * draw(keys)
    # Where c_init is 0, an illegal slot could otherwise win by its noise.
    slot = first_largest(jnp.where(node.logits > MASKED, score, -jnp.inf))
    if node.is_modelled is None:
        return slot
    return jnp.where(node.is_modelled, slot_below(node, jnp.zeros_like(node.logits)), slot)


def scaled_qvalues(node: Node) -> jax.Array:
    """float32[B, A] from 0 to 1: Q-values between the least and the largest that the node knows.

    `mctx.qtransform_by_parent_and_siblings`: the node's own value is among those compared, and a
    slot without visits counts as the least.
    """
    is_seen, value = node.slot_visits > 0, node.value[:, None]
    known = jnp.where(is_seen, node.slot_qvalues, value)
    low = jnp.minimum(value, known.min(axis=1, keepdims=True))
    high = jnp.maximum(value, known.max(axis=1, keepdims=True))
    values = jnp.where(is_seen, node.slot_qvalues, low)
    return (values - low) / jnp.maximum(high - low, _LEAST_SPREAD)


def unscaled_qvalues(node: Node) -> jax.Array:
    """float32[B, A] from -1 to 1: Q-values as the node's mover expects them.

    A slot without visits has MiniZero's first-play value (rlglab/minizero,
    minizero/actor/mcts.cpp, `calculateInitQValue`, as for board games): the mean of the Q-values of
    the visited slots and of one loss, -1, each slot counted once; -1 where none is visited.
    """
    is_seen = node.slot_visits > 0
    known = jnp.where(is_seen, node.slot_qvalues, 0.0).sum(axis=1, keepdims=True)
    count = is_seen.astype(jnp.float32).sum(axis=1, keepdims=True)
    return jnp.where(is_seen, node.slot_qvalues, (known - 1.0) / (count + 1.0))


def reduced_qvalues(node: Node, *, reduction: jax.Array | float) -> jax.Array:
    """float32[B, A] from -1 to 1: Q-values as the node's mover expects them.

    A slot without visits has KataGo's first-play value (lightvector/KataGo, cpp/search,
    `getFpuValueForChildrenAssumeVisited`): the node's value less `reduction` times the root of the
    share of the prior that is visited.
    """
    is_seen = node.slot_visits > 0
    seen = jnp.where(is_seen, jax.nn.softmax(node.logits, axis=1), 0.0).sum(axis=1)
    first = node.value - reduction * jnp.sqrt(seen)
    return jnp.where(is_seen, node.slot_qvalues, first[:, None])


def dirichlet(key: jax.Array, legal: jax.Array, *, alpha: float) -> jax.Array:
    """float32[B, A]: a symmetric Dirichlet distribution over the legal slots bool[B, A] alone."""
    # In logs: the gamma variates of a small alpha underflow.
    logs = jax.random.loggamma(key, alpha, legal.shape, jnp.float32)
    return jax.nn.softmax(logs, axis=-1, where=legal)


def mix(logits: jax.Array, noise: jax.Array, legal: jax.Array, *, fraction: float) -> jax.Array:
    """float32[B, A] logits of a policy: a fraction of noise [B, A], the rest from logits [B, A]."""
    mixed = (1 - fraction) * jax.nn.softmax(logits, axis=-1) + fraction * noise
    return jnp.where(legal, jnp.log(jnp.maximum(mixed, jnp.finfo(mixed.dtype).tiny)), MASKED)


def most_visited(visits: jax.Array, prior: jax.Array) -> jax.Array:
    """int32[B]: the slot of the most visits int32[B, A]; of several, the likeliest by its prior."""
    # A half keeps the prior from outweighing a visit.
    order = visits + 0.5 * jax.nn.softmax(prior, axis=-1)
    return order.argmax(axis=-1).astype(jnp.int32)


def draw_at(key: jax.Array, weights: jax.Array, temperature: jax.Array | float) -> jax.Array:
    """int32[B]: slots drawn in proportion to weights [B, A] to the power 1 / temperature, which is
    one number or [B, 1]; the key is consumed."""
    logits = jnp.log(jnp.where(weights > 0, weights, 1)) / temperature
    return jax.random.categorical(key, jnp.where(weights > 0, logits, MASKED)).astype(jnp.int32)
