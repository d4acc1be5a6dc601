"""The engine that is mctx itself: its policies as they come, over the slots of the exact game.

mctx: Babuschkin et al., "The DeepMind JAX Ecosystem" (2020), Apache License 2.0. It is the
reference that the native engine is held to; in self-play it takes longer, because it keeps six
arrays by slot where ours keeps two, and goes on below the end of a game.

B boards, A slots.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from train.network import MASKED
from train.search.config import SearchConfig
from train.search.puct import (
    FIRST_PLAY_REDUCTION,
    first_play_values,
    make_puct_choice,
    root_reduction,
)
from train.search.tree import ROOT, Budget, Choice, Choose, Node, Play, Root

_LEAST_VALUE = -4.0
"""Less than any value with any reduction."""

# Type checkers do not see the fields of chex's dataclasses, which these two are.
_RootFnOutput: Any = mctx.RootFnOutput
_RecurrentFnOutput: Any = mctx.RecurrentFnOutput


def make_gumbel(config: SearchConfig, *, explores: bool) -> Choose:
    """`mctx.gumbel_muzero_policy`, without its Gumbel noise where it does not explore."""
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale,
        maxvisit_init=config.visit_offset,
        rescale_values=config.rescale_values,
        epsilon=config.spread,
    )

    def choose(key: jax.Array, root: Root, play: Play) -> Choice:
        output: Any = mctx.gumbel_muzero_policy(
            **_inputs(config, key, root, play),
            max_num_considered_actions=config.max_considered_actions,
            gumbel_scale=1.0 if explores else 0.0,
            qtransform=qtransform,
        )
        tree = output.search_tree
        value = tree.node_values[:, ROOT]
        visits = tree.children_visits[:, ROOT]
        return Choice(output.action, output.action_weights, value, tree, visits)

    return choose


def make_puct(config: SearchConfig, *, explores: bool) -> Choose:
    """`mctx.muzero_policy`, with our noise in the prior that it gets and our draw of the move.

    mctx's own Dirichlet noise falls on illegal slots as well, whose share is lost.
    """
    qtransform = make_qtransform(config, explores=explores)

    def grow(key: jax.Array, root: Root, play: Play) -> tuple[jax.Array, jax.Array, Any]:
        # mctx draws a move and noise from the parts of the key that `make_puct_choice` uses too;
        # the fraction is 0 and the move is not read, so nothing comes of these draws.
        output: Any = mctx.muzero_policy(
            **_inputs(config, key, root, play),
            qtransform=qtransform,
            dirichlet_fraction=0.0,
            pb_c_init=config.c_init,
            pb_c_base=config.c_base,
        )
        tree = output.search_tree
        return tree.children_visits[:, ROOT], tree.node_values[:, ROOT], tree

    return make_puct_choice(config, grow, [Budget(config.simulations, explores)])


def make_qtransform(config: SearchConfig, *, explores: bool) -> Any:
    """Values of slots by a config's rule of first plays, float32[A], at a node of one board's tree;
    an illegal slot is worth less than any, since mctx masks none below the root."""
    if config.first_play == "mctx":
        return mctx.qtransform_by_parent_and_siblings
    at_root = root_reduction(config, explores=explores)

    def qtransform(tree: Any, node_index: Any) -> jax.Array:
        node = Node(
            logits=tree.children_prior_logits[node_index],
            raw_value=tree.raw_values[node_index],
            value=tree.node_values[node_index],
            visits=tree.node_visits[node_index],
            slot_visits=tree.children_visits[node_index],
            slot_qvalues=tree.qvalues(node_index),
            is_modelled=None,
        )
        reduction = jnp.where(node_index == ROOT, at_root, FIRST_PLAY_REDUCTION)
        values = first_play_values(config, reduction)(jax.tree.map(lambda x: x[None], node))
        return jnp.where(node.logits > MASKED, values[0], _LEAST_VALUE)

    return qtransform


def _inputs(config: SearchConfig, key: jax.Array, root: Root, play: Play) -> dict[str, Any]:
    """What both policies of mctx take."""

    def recurrent(params: Any, key: jax.Array, slot: jax.Array, position: Any) -> tuple[Any, Any]:
        # The exact game draws nothing.
        del params, key
        step = play(slot, position)
        output = _RecurrentFnOutput(
            reward=step.reward,
            discount=step.discount,
            prior_logits=step.logits,
            value=step.value,
        )
        return output, step.position

    return {
        "params": (),
        "rng_key": key,
        "root": _RootFnOutput(prior_logits=root.logits, value=root.value, embedding=root.position),
        "recurrent_fn": recurrent,
        "num_simulations": config.simulations,
        "invalid_actions": ~root.legal,
    }
