"""The engine that is mctx itself: its policies as they come, over the slots of the exact game.

mctx: Babuschkin et al., "The DeepMind JAX Ecosystem" (2020), Apache License 2.0. It is the
reference that the native engine is held to; in self-play it takes longer, because it keeps six
arrays by slot where ours keeps two, and goes on below the end of a game.

B boards, A slots.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from train.network import MASKED
from train.search.config import SearchConfig
from train.search.engine import Budget, Choice, Choose, Root
from train.search.puct import FIRST_PLAY_REDUCTION, make_puct_choice, root_reduction
from train.search.tree import ROOT, Play

_LEAST_VALUE = -4.0
"""Less than any value with any reduction."""

# Type checkers do not see the fields of chex's dataclasses, which these two are.
_RootFnOutput: Any = mctx.RootFnOutput
_RecurrentFnOutput: Any = mctx.RecurrentFnOutput


def make_gumbel(config: SearchConfig, *, explores: bool) -> Choose:
    """`mctx.gumbel_muzero_policy`, without its Gumbel noise where it does not explore."""

    def choose(key: jax.Array, root: Root, play: Play) -> Choice:
        output: Any = mctx.gumbel_muzero_policy(
            params=(),
            rng_key=key,
            root=_root(root),
            recurrent_fn=_make_recurrent_fn(play),
            num_simulations=config.simulations,
            invalid_actions=~root.legal,
            max_num_considered_actions=config.max_considered_actions,
            gumbel_scale=1.0 if explores else 0.0,
            qtransform=functools.partial(
                mctx.qtransform_completed_by_mix_value,
                value_scale=config.value_scale,
                maxvisit_init=config.visit_offset,
                rescale_values=config.rescale_values,
                epsilon=config.least_spread,
            ),
        )
        tree = output.search_tree
        return Choice(output.action, output.action_weights, tree.node_values[:, ROOT], tree)

    return choose


def make_puct(config: SearchConfig, *, explores: bool) -> Choose:
    """`mctx.muzero_policy`, with our noise in the prior that it gets and our draw of the move.

    mctx's own Dirichlet noise falls on illegal slots as well, whose share is lost.
    """
    qtransform = {
        "mctx": mctx.qtransform_by_parent_and_siblings,
        "minizero": qtransform_by_first_play,
        "katago": functools.partial(
            qtransform_by_reduction, at_root=root_reduction(config, explores=explores)
        ),
    }[config.first_play]

    def grow(key: jax.Array, root: Root, play: Play) -> tuple[jax.Array, jax.Array, Any]:
        # mctx draws a move and noise from the parts of the key that `make_puct_choice` uses too;
        # the fraction is 0 and the move is not read, so nothing comes of these draws.
        output: Any = mctx.muzero_policy(
            params=(),
            rng_key=key,
            root=_root(root),
            recurrent_fn=_make_recurrent_fn(play),
            num_simulations=config.simulations,
            invalid_actions=~root.legal,
            qtransform=qtransform,
            dirichlet_fraction=0.0,
            pb_c_init=config.c_init,
            pb_c_base=config.c_base,
        )
        tree = output.search_tree
        return tree.children_visits[:, ROOT], tree.node_values[:, ROOT], tree

    return make_puct_choice(config, grow, [Budget(config.simulations, explores)])


def qtransform_by_first_play(tree: Any, node_index: Any) -> jax.Array:
    """`train.search.puct.unscaled_qvalues`, float32[A], of one node of mctx's tree of one board.

    The largest Q-value of the visited slots is never below the value of a slot not visited, so
    below the root, where mctx masks nothing, a prior of 0 keeps illegal slots out.
    """
    qvalues, is_seen = tree.qvalues(node_index), tree.children_visits[node_index] > 0
    first_play = (jnp.sum(qvalues, where=is_seen) - 1.0) / (jnp.sum(is_seen) + 1.0)
    return jnp.where(is_seen, qvalues, first_play)


def qtransform_by_reduction(tree: Any, node_index: Any, *, at_root: float) -> jax.Array:
    """`train.search.puct.reduced_qvalues`, float32[A], of one node of mctx's tree of one board.

    Where each legal slot is visited and worse than a first play, an illegal one would win below the
    root, where mctx masks nothing: it is worth less than any.

    Args:
      at_root: the reduction at the root.
    """
    qvalues, is_seen = tree.qvalues(node_index), tree.children_visits[node_index] > 0
    logits = tree.children_prior_logits[node_index]
    prior = jax.nn.softmax(logits)
    reduction = jnp.where(node_index == ROOT, at_root, FIRST_PLAY_REDUCTION)
    first_play = tree.node_values[node_index] - reduction * jnp.sqrt(jnp.sum(prior, where=is_seen))
    return jnp.where(is_seen, qvalues, jnp.where(logits > MASKED, first_play, _LEAST_VALUE))


def _root(root: Root) -> Any:
    return _RootFnOutput(prior_logits=root.logits, value=root.value, embedding=root.position)


def _make_recurrent_fn(play: Play) -> Callable[..., Any]:
    """A step as mctx takes it; the exact game draws nothing, so the key stays unused."""

    def recurrent(params: Any, key: jax.Array, slot: jax.Array, position: Any) -> tuple[Any, Any]:
        del params, key
        step = play(slot, position)
        output = _RecurrentFnOutput(
            reward=step.reward,
            discount=step.discount,
            prior_logits=step.logits,
            value=step.value,
        )
        return output, step.position

    return recurrent
