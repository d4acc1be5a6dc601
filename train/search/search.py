"""Search over the exact game, in slots; the only file that knows mctx.

Two kinds. `gumbel`: after Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning
with Gumbel" (ICLR 2022). `puct`: after Silver et al., "A general reinforcement learning algorithm
that masters chess, shogi, and Go through self-play" (Science, 2018), in mctx's form. mctx prepares
the root and reads it at the end; in between `train.search.tree` grows the tree in place of mctx's own
loop, to the same result. The tree holds positions, not observations or public masks: planes and
legal slots are worked out when a node is made, and the variant, the same at every node, stays
outside.

B boards, A slots, P players.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx

from train.network import MASKED
from train.search.distributions import dirichlet, divergence, draw_visited, mix, most_visited
from train.search.evaluator import Evaluator, make_play
from train.search.sequential_halving import (
    best_due,
    completed_values,
    halving_schedule,
    slot_below,
    visits_due,
)
from train.search.tree import ROOT, Node, Play, Step, init_tree, root_view, simulate
from wallgo_jax.game import actions
from wallgo_jax.game.state import Position, State

_AT_ROOT, _BELOW_ROOT = 0, 1
"""Depths, of which mctx's selection only tells the root from the rest."""


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """Options of the search; those of the other kind are idle.

    Attributes:
      simulations: simulations a move.
      max_considered_actions: gumbel: most actions that sequential halving starts from at the root.
      kind: `gumbel` or `puct`.
      c_init: puct: weight of the prior against the value.
      c_base: puct: visits at which that weight has grown by log 2.
      dirichlet_fraction: puct: share of noise in the root's prior in self-play.
      dirichlet_alpha: puct: of each legal slot; 10 over the usual number of legal moves, which is
        about 60.
      temperature: puct: in self-play a move is drawn with chances as visits to the power of
        1 / temperature; 0 for the most visited.
      temperature_plies: puct: plies of a game that are drawn so, after which the most visited is
        played; 0 for all.
      first_simulations: simulations a move of the first iterations of self-play (see `stages`); 0
        for `simulations` from the start.
    """

    simulations: int = 16
    max_considered_actions: int = 16
    kind: str = "gumbel"
    c_init: float = 1.25
    c_base: float = 19652.0
    dirichlet_fraction: float = 0.25
    dirichlet_alpha: float = 0.17
    temperature: float = 1.0
    temperature_plies: int = 0
    first_simulations: int = 0

    def __post_init__(self) -> None:
        if self.simulations < 1 or self.max_considered_actions < 1:
            raise ValueError("simulations and max_considered_actions must be at least 1")
        if self.kind not in _MAKERS:
            raise ValueError(f"kind {self.kind!r} is not one of {', '.join(_MAKERS)}")
        if not 0 <= self.c_init < float("inf") or not 0 < self.c_base < float("inf"):
            raise ValueError("c_init must be a number from 0 on, c_base a positive one")
        if not 0 <= self.dirichlet_fraction <= 1:
            raise ValueError("dirichlet_fraction must be from 0 to 1")
        if not 1e-3 <= self.dirichlet_alpha <= 1e3:
            raise ValueError("dirichlet_alpha must be from 0.001 to 1000")
        if self.temperature != 0 and not 0.01 <= self.temperature <= 100:
            raise ValueError("temperature must be 0 or from 0.01 to 100")
        if self.temperature_plies < 0:
            raise ValueError("temperature_plies must not be negative")
        if not 0 <= self.first_simulations <= self.simulations:
            raise ValueError("first_simulations must be from 0 to simulations")


def stages(config: SearchConfig) -> tuple[int, ...]:
    """Simulations a move of the stages of a run: the first doubled until the last is reached.

    A progressive simulation as in Wu et al., "MiniZero: Comparative Analysis of AlphaZero and
    MuZero on Go, Othello, and Atari Games" (2023), of few values: each is a program of its own.
    """
    count, grown = config.first_simulations or config.simulations, []
    while count < config.simulations:
        grown.append(count)
        count *= 2
    return (*grown, config.simulations)


def simulations_at(config: SearchConfig, iteration: int, iterations: int) -> int:
    """Simulations a move in an iteration of a run whose stages are of equal length."""
    grown = stages(config)
    return grown[min(iteration * len(grown) // iterations, len(grown) - 1)]


class SearchResult(NamedTuple):
    """What a search found."""

    slot: jax.Array  # int32[B], the chosen action
    policy: jax.Array  # float32[B, A], to be learned, 0 at illegal slots
    value: jax.Array  # float32[B], of the root after search, for the player to move
    surprise: jax.Array  # float32[B], nats: divergence of the policy from the evaluator's


Search = Callable[[Any, State, jax.Array], SearchResult]
"""(variables, states [B], key) -> SearchResult."""


def make_search(evaluate: Evaluator, config: SearchConfig, *, explores: bool) -> Search:
    """A search as a function of (variables, states [B], key).

    Args:
      evaluate: judges leaves and roots.
      config: options of the search.
      explores: with the noise of self-play; else the strongest move.
    """
    choose = _MAKERS[config.kind](config, explores=explores)
    play = make_play(evaluate)

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        chex.assert_rank(states.position.player, 1)
        variant, position = states
        evaluation = evaluate(variables, states)
        legal = jax.vmap(actions.legal_slots)(states)
        root = Root(evaluation.logits, evaluation.value[:, 0], position, legal)
        slot, policy, value = choose(
            key, root, functools.partial(play, (variables, variant, position.player))
        )
        return SearchResult(slot, policy, value, divergence(policy, evaluation.logits))

    return search


class Root(NamedTuple):
    """Where a search begins."""

    logits: jax.Array  # float32[B, A]
    value: jax.Array  # float32[B]
    position: Position  # [B]
    legal: jax.Array  # bool[B, A]


Choose = Callable[[jax.Array, Root, Play], tuple[jax.Array, jax.Array, jax.Array]]
"""(key, root, play) -> slot int32[B], policy float32[B, A], value of the root float32[B]."""


def _make_gumbel(config: SearchConfig, *, explores: bool) -> Choose:
    """`mctx.gumbel_muzero_policy`, whose policy is the improved one; the strongest move is that of
    its `gumbel_scale` 0, for which nothing is drawn here."""
    schedule = halving_schedule(config.max_considered_actions, config.simulations)

    def choose(key: jax.Array, root: Root, play: Play):
        prior = _mask(root.logits, root.legal)
        gumbel = jnp.zeros_like(prior)
        if explores:
            gumbel = jax.random.gumbel(jax.random.split(key)[1], prior.shape, prior.dtype)

        def best(node: Node, due: jax.Array) -> jax.Array:
            completed = completed_values(node)
            return best_due(
                node.logits, node.slot_visits, completed, due, gumbel=gumbel, legal=root.legal
            )

        def at_root(keys: jax.Array | None, node: Node) -> jax.Array:
            del keys
            return best(node, visits_due(node.visits, root.legal, schedule))

        def below(keys: jax.Array | None, node: Node) -> jax.Array:
            del keys
            return slot_below(node, completed_values(node))

        tree = init_tree(prior, root.value, root.position, nodes=config.simulations + 1)
        found = root_view(simulate(tree, None, at_root=at_root, below=below, play=play))
        policy = jax.nn.softmax(_mask(prior + completed_values(found), root.legal), axis=1)
        return best(found, found.slot_visits.max(axis=1)), policy, found.value

    return choose


def _mask(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """float32[B, A]: logits against the largest, MASKED where not legal."""
    return jnp.where(legal, logits - logits.max(axis=1, keepdims=True), MASKED)


def _make_puct(config: SearchConfig, *, explores: bool) -> Choose:
    """Its policy is the shares of visits."""
    fraction = config.dirichlet_fraction if explores else 0.0
    temperature = config.temperature if explores else 0.0
    select = functools.partial(
        mctx.muzero_action_selection, pb_c_init=config.c_init, pb_c_base=config.c_base
    )

    def by(depth: int) -> _Select:
        def selected(keys: jax.Array, node: Node, tree: Any) -> jax.Array:
            del node
            return jnp.asarray(
                jax.vmap(lambda key, tree: select(key, tree, ROOT, depth))(keys, tree)
            )

        return selected

    def choose(key: jax.Array, root: Root, play: Play):
        slot_key, noise_key, search_key = jax.random.split(key, 3)
        prior, ply = root.logits, root.position.ply
        if fraction > 0:
            noise = dirichlet(noise_key, root.legal, alpha=config.dirichlet_alpha)
            root = root._replace(logits=mix(prior, noise, root.legal, fraction=fraction))
        # `mctx.muzero_policy` without its noise, which falls on illegal slots as well, whose share
        # is lost; switched off it would still be drawn.
        tree = mctx.search(
            rng_key=search_key,
            root_action_selection_fn=functools.partial(select, depth=_AT_ROOT),
            interior_action_selection_fn=select,
            **_growing(root, play, config.simulations, at_root=by(_AT_ROOT), below=by(_BELOW_ROOT)),
        )
        summary = tree.summary()
        visits = jnp.asarray(summary.visit_counts)
        slot = most_visited(visits, prior)
        if temperature > 0:
            drawn = draw_visited(slot_key, visits, temperature=temperature)
            is_late = (config.temperature_plies > 0) & (ply >= config.temperature_plies)
            slot = jnp.where(is_late, slot, drawn)
        return slot, jnp.asarray(summary.visit_probs), jnp.asarray(summary.value)

    return choose


_MAKERS = {"gumbel": _make_gumbel, "puct": _make_puct}


def make_mctx_gumbel(config: SearchConfig) -> Choose:
    """The same as mctx does it by itself, in its own loop: what the search here is measured by."""

    def choose(key: jax.Array, root: Root, play: Play):
        found = mctx.gumbel_muzero_policy(
            params=(),
            rng_key=key,
            root=_as_mctx_root(root, root.position),
            recurrent_fn=_as_recurrent_fn(lambda _, slot, position: play(slot, position)),
            num_simulations=config.simulations,
            invalid_actions=~root.legal,
            max_num_considered_actions=config.max_considered_actions,
        )
        value = found.search_tree.summary().value
        return jnp.asarray(found.action), jnp.asarray(found.action_weights), jnp.asarray(value)

    return choose


_Select = Callable[[Any, Node, Any], jax.Array]
"""(keys [B] or None, node, mctx's tree of this node alone) -> the slot to visit next, int32[B]."""


def _growing(
    root: Root, play: Play, simulations: int, *, at_root: _Select, below: _Select
) -> dict[str, Any]:
    """Arguments of an mctx search whose tree is grown by `train.search.tree`, not by mctx's own loop.

    mctx prepares the root and the keys before the loop and reads the root after it.
    """

    def loop(first: int, last: int, body: Any, carry: tuple[jax.Array, Any]):
        del first, last, body
        key, planted = carry

        def select_at_root(keys: Any, node: Node) -> jax.Array:
            return at_root(keys, node, _as_mctx(node, planted))

        def select_below(keys: Any, node: Node) -> jax.Array:
            return below(keys, node, _as_mctx(node, None))

        tree = init_tree(
            planted.children_prior_logits[:, ROOT],
            planted.node_values[:, ROOT],
            root.position,
            nodes=simulations + 1,
        )
        grown = simulate(tree, key, at_root=select_at_root, below=select_below, play=play)
        return key, _as_mctx(root_view(grown), planted)

    return {
        "params": (),
        "root": _as_mctx_root(root, ()),
        "recurrent_fn": None,
        "num_simulations": 0,
        "invalid_actions": ~root.legal,
        "loop_fn": loop,
    }


def _as_mctx_root(root: Root, embedding: Any) -> Any:
    return mctx.RootFnOutput(
        prior_logits=root.logits,  # pyright: ignore[reportCallIssue]
        value=root.value,  # pyright: ignore[reportCallIssue]
        embedding=embedding,  # pyright: ignore[reportCallIssue]
    )


def _as_mctx(node: Node, planted: Any) -> Any:
    """mctx's tree of this node alone; what belongs to the root alone comes from another tree, of
    the same boards, and is left out without one."""
    boards, slots = node.logits.shape
    alone = jnp.zeros((boards, 1), jnp.int32)
    nothing = jnp.zeros((boards, 1, slots))
    invalid = nothing[:, 0] > 0 if planted is None else planted.root_invalid_actions
    return mctx.Tree(
        node_visits=node.visits[:, None],  # pyright: ignore[reportCallIssue]
        raw_values=node.raw_value[:, None],  # pyright: ignore[reportCallIssue]
        node_values=node.value[:, None],  # pyright: ignore[reportCallIssue]
        parents=alone,  # pyright: ignore[reportCallIssue]
        action_from_parent=alone,  # pyright: ignore[reportCallIssue]
        children_index=nothing,  # pyright: ignore[reportCallIssue]
        children_prior_logits=node.logits[:, None],  # pyright: ignore[reportCallIssue]
        children_visits=node.slot_visits[:, None],  # pyright: ignore[reportCallIssue]
        children_rewards=node.slot_qvalues[:, None],  # pyright: ignore[reportCallIssue]
        children_discounts=nothing,  # pyright: ignore[reportCallIssue]
        children_values=nothing,  # pyright: ignore[reportCallIssue]
        embeddings=(),  # pyright: ignore[reportCallIssue]
        root_invalid_actions=invalid,  # pyright: ignore[reportCallIssue]
        extra_data=None if planted is None else planted.extra_data,  # pyright: ignore[reportCallIssue]
    )


def make_recurrent_fn(evaluate: Evaluator) -> Callable[..., Any]:
    """`make_play` as mctx's own loop takes it."""
    return _as_recurrent_fn(make_play(evaluate))


def _as_recurrent_fn(play: Callable[..., Step]) -> Callable[..., Any]:
    def recurrent(
        params: Any, key: jax.Array, slot: jax.Array, position: Position
    ) -> tuple[Any, Position]:
        del key
        step = play(params, slot, position)
        output = mctx.RecurrentFnOutput(
            reward=step.reward,  # pyright: ignore[reportCallIssue]
            discount=step.discount,  # pyright: ignore[reportCallIssue]
            prior_logits=step.logits,  # pyright: ignore[reportCallIssue]
            value=step.value,  # pyright: ignore[reportCallIssue]
        )
        return output, step.position

    return recurrent
