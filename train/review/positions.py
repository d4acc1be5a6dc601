"""Searches many positions in one batch and returns what the search says of each, on the host.

Gumbel search without noise over the native tree, whatever the player's own kind of search: its
simulations are split into equal parts, so that progress can be shown.

B positions of a batch, A slots, K candidates, D plies of a line, P players, N cells.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.engine.trees.guide import chances_of_owners
from train.players.basic import EvaluateHeads
from train.review.analyst import Analyst
from train.runtime.host import fetch
from train.search.config import SearchConfig
from train.search.evaluator import Evaluator, make_play
from train.search.report import (
    RootReport,
    by_player,
    lines_below,
    owners_by_player,
    report_roots,
    share_value,
)
from train.search.sequential_halving import (
    best_of_root,
    completed_values,
    halving_schedule,
    improved_policy,
    mask_logits,
    slot_below,
    visits_due,
)
from train.search.simulation import simulate
from train.search.tree import Node, Tree, init_tree, root_view
from wallgo_jax.game import actions
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import State

CANDIDATES = 6
_BATCHES = (16, 64, 256)
_TREE_BYTES = 2**30
"""Room for the trees of a batch; more positions take more batches."""
_MOST_PARTS = 20
"""Parts of a search, between which progress is shown."""


class Candidate(NamedTuple):
    """A move that was searched, from the side of the player who makes it."""

    action: int
    prior: float
    policy: float  # of the search
    visits: int
    value: float  # of the position after it; meaningless without visits
    line: tuple[int, ...]  # public actions, this one first


class SearchedPosition(NamedTuple):
    """A position before the end of the game, as a search sees it.

    Attributes:
      mover: the player to move.
      value: float[P], expected reward of each player under best play as far as the search saw.
      network_value: float[P], the same before the search.
      likeliest: public action that the policy would play, without search.
      candidates: the best move first, then those of the largest share.
      owner: float32[N, P + 1], chances of each cell's final owners, nobody last; None without a
        head for them.
    """

    mover: int
    value: tuple[float, ...]
    network_value: tuple[float, ...]
    likeliest: int
    candidates: tuple[Candidate, ...]
    owner: np.ndarray | None

    @property
    def best(self) -> Candidate:
        """The move that the search chooses."""
        return self.candidates[0]


def search_positions(
    analyst: Analyst,
    states: Sequence[State],
    *,
    simulations: int | None = None,
    excluded: Sequence[int | None] | None = None,
    is_only: bool = False,
    on_progress: Callable[[int], None] = lambda simulations: None,
) -> list[SearchedPosition]:
    """Search positions, none of them after the end of a game.

    Args:
      analyst: the player that searches.
      states: one board each, on one grid, of the analyst's rules.
      simulations: of each search; the analyst's own by default.
      excluded: a public action of each position that its search must not choose, or None.
      is_only: the search must choose these actions instead, and looks at no other.
      on_progress: called with the simulations done so far, summed over positions.
    """
    if not states:
        return []
    options = analyst.search
    if simulations is not None:
        options = dataclasses.replace(options, simulations=simulations)
    programs = _programs(analyst.evaluate, analyst.evaluate_root, options)
    found: list[SearchedPosition] = []
    while len(found) < len(states):
        first = len(found)
        batch = batch_size(len(states) - first, options.simulations, states[0])
        own = states[first : first + batch]
        barred = None if excluded is None else excluded[first : first + batch]

        def on_part(done: int, first: int = first, own: int = len(own)) -> None:
            on_progress(first * options.simulations + own * done)

        found += _search_batch(analyst, programs, own, (barred, is_only), batch, on_part)
    return found


def batch_size(positions: int, simulations: int, state: State) -> int:
    """Positions of a batch; there are few sizes, because each is compiled."""
    # A node has a float32 and at most a uint32 by slot.
    room = max(_TREE_BYTES // ((simulations + 1) * state.num_slots * 8), 1)
    most = 1 << (room.bit_length() - 1)
    enough = next((size for size in _BATCHES if size >= positions), _BATCHES[-1])
    return min(most, enough)


def parts_of(simulations: int) -> int:
    """The number of equal parts that the simulations of a search are done in."""
    return max(part for part in range(1, _MOST_PARTS + 1) if simulations % part == 0)


class _Root(NamedTuple):
    tree: Tree
    legal: jax.Array  # bool[B, A]
    values: jax.Array  # float32[B, P], the mover's first


class _Found(NamedTuple):
    roots: RootReport  # [B]
    slots: jax.Array  # int32[B, K], the choice first, then by their share
    lines: jax.Array  # int32[B, K, D], NO_ACTION after the end of a line


class _Programs(NamedTuple):
    begin: Callable[[Any, State, jax.Array, bool], _Root]
    grow: Callable[[Any, State, jax.Array, Tree, jax.Array], Tree]
    finish: Callable[[State, jax.Array, jax.Array, Tree], _Found]
    parts: int
    simulations: int


def _search_batch(
    analyst: Analyst,
    programs: _Programs,
    states: Sequence[State],
    restriction: tuple[Sequence[int | None] | None, bool],
    batch: int,
    on_part: Callable[[int], None],
) -> list[SearchedPosition]:
    filled = [states[i % len(states)] for i in range(batch)]
    stacked: State = jax.tree.map(lambda *x: np.stack(x), *filled)
    excluded, is_only = restriction
    barred = np.full(batch, NO_ACTION, np.int32)
    if excluded is not None:
        own = [NO_ACTION if action is None else action for action in excluded]
        barred[: len(own)] = own
    tree, legal, values = programs.begin(analyst.variables, stacked, jnp.asarray(barred), is_only)
    size = programs.simulations // programs.parts
    for part in range(programs.parts):
        fresh = 1 + part * size + jnp.arange(size)
        tree = programs.grow(analyst.variables, stacked, legal, tree, fresh)
        jax.block_until_ready(tree.visits)
        on_part((part + 1) * size)
    found: _Found = fetch(programs.finish(stacked, values, legal, tree))
    scores, value = found.roots.scores, found.roots.slot_qvalues[np.arange(batch), found.roots.slot]
    mover, owner = stacked.position.player, [None] * batch
    if analyst.look is not None:
        owner = fetch(_owners(analyst.look)(analyst.variables, stacked))
        owner = owners_by_player(owner, mover).reshape(batch, -1, owner.shape[-1])
    before, after = by_player(scores, mover), by_player(share_value(scores, value), mover)
    return [
        SearchedPosition(
            mover=int(mover[i]),
            value=tuple(map(float, after[i])),
            network_value=tuple(map(float, before[i])),
            likeliest=int(found.roots.actions[i, found.roots.prior[i].argmax()]),
            candidates=_candidates(jax.tree.map(lambda x, i=i: x[i], found)),
            owner=owner[i],
        )
        for i in range(len(states))
    ]


@functools.cache
def _owners(look: EvaluateHeads) -> Callable[[Any, State], Any]:
    return jax.jit(lambda variables, states: chances_of_owners(look(variables, states)))


def _candidates(found: _Found) -> tuple[Candidate, ...]:
    """The choice and the slots with visits of one board."""
    roots = found.roots
    return tuple(
        Candidate(
            action=int(roots.actions[slot]),
            prior=float(roots.prior[slot]),
            policy=float(roots.policy[slot]),
            visits=int(roots.slot_visits[slot]),
            value=float(roots.slot_qvalues[slot]),
            line=tuple(int(action) for action in line if action != NO_ACTION),
        )
        for slot, line in zip(found.slots, found.lines, strict=True)
        if roots.slot_visits[slot] or slot == roots.slot
    )


@functools.cache
def _programs(evaluate: Evaluator, evaluate_root: Evaluator, options: SearchConfig) -> _Programs:
    play = make_play(evaluate, opponents=options.opponents)
    schedule = halving_schedule(options.max_considered_actions, options.simulations)

    @jax.jit
    def begin(variables: Any, states: State, excluded: jax.Array, is_only: bool) -> _Root:
        evaluation = evaluate_root(variables, states)
        slots = jax.vmap(actions.slot_of_action)(states, excluded)
        barred = jax.nn.one_hot(slots, evaluation.logits.shape[1], dtype=jnp.bool_)
        legal = jax.vmap(actions.legal_slots)(states)
        legal &= (excluded == NO_ACTION)[:, None] | (barred == is_only)
        prior = mask_logits(evaluation.logits, legal)
        tree = init_tree(
            prior, evaluation.value[:, 0], states.position, nodes=options.simulations + 1
        )
        return _Root(tree, legal, evaluation.value)

    @functools.partial(jax.jit, donate_argnums=3)
    def grow(variables: Any, states: State, legal: jax.Array, tree: Tree, fresh: jax.Array) -> Tree:
        game = variables, states.variant, states.position.player

        def at_root(keys: jax.Array | None, node: Node) -> jax.Array:
            del keys
            due = visits_due(node.visits, legal, schedule)
            return best_of_root(node, options, due, legal=legal)

        def below(keys: jax.Array | None, node: Node) -> jax.Array:
            del keys
            return slot_below(node, completed_values(node, options))

        return simulate(
            tree,
            None,
            at_root=at_root,
            below=below,
            play=functools.partial(play, game),
            fresh=fresh,
        )

    @jax.jit
    def finish(states: State, values: jax.Array, legal: jax.Array, tree: Tree) -> _Found:
        node = root_view(tree)
        policy = improved_policy(node, options, legal)
        most = node.slot_visits.max(axis=1)
        chosen = best_of_root(node, options, most, legal=legal)
        # The choice first, then what was visited, by its share.
        rank = jnp.where(node.slot_visits > 0, 1.0, 0.0) + policy
        rank = jnp.where(legal, rank, -1.0).at[jnp.arange(len(chosen)), chosen].set(3.0)
        slots = jax.lax.top_k(rank, CANDIDATES)[1]
        found = report_roots(node, states, values, chosen, policy)
        return _Found(found, slots, lines_below(tree, states.variant, slots))

    return _Programs(begin, grow, finish, parts_of(options.simulations), options.simulations)
