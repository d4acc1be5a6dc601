"""Gumbel search over the native tree: sequential halving at the root, an improved policy.

After Danihelka, Guez, Schrittwieser, Silver, "Policy improvement by planning with Gumbel" (ICLR
2022). It finds what `mctx.gumbel_muzero_policy` finds from the same key.

With `search.rounds` all visits of a round of sequential halving are one simulation.
Sequential halving visits each considered slot of a phase equally often, and visits to different
slots of the root touch different subtrees. So none of the visits of a round waits for another: a
round is one way down, one evaluation of boards x slots, one way up, and needs no virtual loss. 16
simulations among 16 slots are one round; 64 among 16 are 15.

The slots of a round are those that sequential halving would choose one after another, but chosen
at the start of the round: its later choices see values of its earlier ones, these do not. Where the
round visits all slots that are due, both choose the same.

A round has room for as many visits as it takes where `max_considered_actions` slots are legal. A
board with fewer keeps its own schedule and makes the visits that the rounds have room for.

B boards, K visits a round, R = K * B rows, N nodes, A slots.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.devices import backend
from train.search.arrays import read, unpack
from train.search.config import SearchConfig
from train.search.sequential_halving import (
    NO_CHANCE,
    completed_values,
    halving_dues,
    halving_schedule,
    mask_logits,
    root_score,
    select_by_halving,
    visits_due,
)
from train.search.simulation import backup, copy_to_root, expand, select_leaf, simulate
from train.search.tree import (
    NO_CHILD,
    ROOT,
    Budget,
    Choice,
    Choose,
    Node,
    Play,
    Root,
    Select,
    Step,
    Tree,
    init_tree,
    root_view,
    simulations_of,
    where_explored,
)

_ROWS_AT_ONCE = 256
"""Rows that a CPU steps and evaluates at once: more would not stay in its cache."""


def make_gumbel(
    config: SearchConfig, budgets: Sequence[Budget], *, has_model: bool = False
) -> Choose:
    """The native engine's Gumbel search, whose policy is the improved one.

    Args:
      config: options of the search, but for its simulations.
      budgets: of which a search gets one; one alone with `config.rounds`. Those that explore draw
        the Gumbel noise; without it nothing is drawn and the move is the strongest.
      has_model: as in `init_tree`.
    """
    considered, most = config.max_considered_actions, max(each.simulations for each in budgets)
    schedules = _schedules(considered, [each.simulations for each in budgets])
    rounds = round_schedule(considered, most)

    def choose(key: jax.Array, root: Root, play: Play) -> Choice:
        prior = mask_logits(root.logits, root.legal)
        gumbel = jnp.zeros_like(prior)
        if any(each.explores for each in budgets):
            # mctx draws from the same half of the key, which keeps the two engines equal.
            drawn = jax.random.gumbel(jax.random.split(key)[1], prior.shape, prior.dtype)
            gumbel = where_explored(budgets, root.budget, drawn, gumbel)
        schedule = schedules[0] if root.budget is None else jnp.asarray(schedules)[root.budget]
        selection = select_by_halving(config, root.legal, gumbel)

        def at_root(keys: jax.Array | None, node: Node) -> jax.Array:
            return selection.at_root(node, 0, visits_due(node.visits, root.legal, schedule))

        def below(keys: jax.Array | None, node: Node) -> jax.Array:
            return selection.below(node)

        tree = init_tree(prior, root.value, root.position, nodes=most + 1, has_model=has_model)
        if config.rounds:
            grown = simulate_rounds(
                tree,
                rounds,
                legal=root.legal,
                score=lambda node: root_score(node.logits, completed_values(node, config), gumbel),
                below=below,
                play=play,
            )
        else:
            count = simulations_of(budgets, root.budget)
            grown = simulate(tree, None, at_root=at_root, below=below, play=play, count=count)
        searched = root_view(grown)
        slot, policy = selection.result(searched, 0)
        return Choice(slot, policy, searched.value, grown, searched.slot_visits)

    return choose


def _schedules(considered: int, simulations: Sequence[int]) -> np.ndarray:
    """int32[budgets, considered + 1, the most simulations]: a schedule each, zeros behind it."""
    schedules = np.zeros((len(simulations), considered + 1, max(simulations)), np.int32)
    for schedule, count in zip(schedules, simulations, strict=True):
        schedule[:, :count] = halving_schedule(considered, count)
    return schedules


def rounds_pay_for_one_board(config: SearchConfig) -> bool:
    """Whether rounds search a single board faster here: on a CPU they nearly double its speed
    (docs/speed.md); elsewhere nobody has measured it. False where the search has no rounds."""
    has_rounds = config.kind == "gumbel" and config.engine == "native" and not config.custom
    return has_rounds and config.opponents != "maxn" and jax.default_backend() == "cpu"


class RoundSchedule(NamedTuple):
    """The rounds of a search. S simulations, C considered slots at most."""

    due: np.ndarray  # int32[C + 1, S + 1]: by slots considered and visits made, as `visits_due`
    left: np.ndarray  # int32[C + 1, S + 1], visits left of the round that is under way, then 0
    rounds: tuple[tuple[int, int], ...]  # (visits a round, number of such rounds), in order


def round_schedule(considered: int, simulations: int) -> RoundSchedule:
    """The rounds of sequential halving, for each number of considered slots.

    Args:
      considered: C, the most slots that are considered.
      simulations: S.
    """
    due = np.zeros((considered + 1, simulations + 1), np.int32)
    left = np.zeros_like(due)
    for slots in range(1, considered + 1):
        lengths = _lengths(slots, simulations)
        due[slots, :simulations] = halving_dues(slots, simulations)
        left[slots, :simulations] = [rest for length in lengths for rest in range(length, 0, -1)]
    lengths = _lengths(considered, simulations)
    rounds = tuple((length, len(list(same))) for length, same in itertools.groupby(lengths))
    return RoundSchedule(due, left, rounds)


def _lengths(considered: int, simulations: int) -> list[int]:
    """The visits of each round: a slot is due once in a round."""
    return [len(list(same)) for _, same in itertools.groupby(halving_dues(considered, simulations))]


Score = Callable[[Node], jax.Array]
"""The root -> scores float32[B, A], by which slots that are due are chosen."""


def simulate_rounds(
    tree: Tree,
    schedule: RoundSchedule,
    *,
    legal: jax.Array,
    score: Score,
    below: Select,
    play: Play,
) -> Tree:
    """Grow a tree of the root alone by the rounds of a schedule.

    Args:
      tree: as `init_tree` makes it, with room for a node a simulation.
      schedule: of the rounds.
      legal: bool[B, A], at the root.
      score: scores the slots of the root.
      below: as in `simulate`, and so is `play`.
    """
    considered = jnp.minimum(legal.sum(axis=1), len(schedule.due) - 1)

    def one_round(tree: Tree, room: int) -> Tree:
        root = root_view(tree)
        visits = root.visits - 1
        due = jnp.asarray(schedule.due)[considered, visits]
        count = jnp.minimum(jnp.asarray(schedule.left)[considered, visits], room)
        is_due = legal & (root.slot_visits == due[:, None])
        # A visit that is not made goes to an illegal slot, below which nothing is walked.
        others = jnp.where(legal, -jnp.inf, 2.0 * NO_CHANCE)
        ranked = jnp.where(is_due, jnp.maximum(score(root), NO_CHANCE), others)
        slots = jax.lax.top_k(ranked, min(room, ranked.shape[1]))[1].T
        is_visit = jnp.arange(len(slots), dtype=jnp.int32)[:, None] < count[None]
        return visit_leaves(tree, slots, is_visit, below=below, play=play)

    for room, number in schedule.rounds:
        tree = jax.lax.scan(
            lambda tree, _, room=room: (one_round(tree, room), None), tree, length=number
        )[0]
    return tree


def visit_leaves(
    tree: Tree, slots: jax.Array, is_visit: jax.Array, *, below: Select, play: Play
) -> Tree:
    """One visit of each board below each of some slots of the root.

    Args:
      tree: a visit makes the node whose number is the root's visits, if it makes one.
      slots: int32[K, B], different ones in each column.
      is_visit: bool[K, B], whether the visit is made; those of a board that are come first.
      below: as in `simulate`, and so is `play`.
    """
    visits, boards = slots.shape
    rows = jnp.tile(jnp.arange(boards, dtype=jnp.int32), visits)
    made = is_visit.reshape(-1)
    first = slots.reshape(-1)
    # The writes of visits that are not made go past the last node or slot, each to another place.
    number = jnp.repeat(jnp.arange(visits, dtype=jnp.int32), boards)
    nowhere, fresh = tree.visits.shape[1] + number, tree.visits[rows, ROOT] + number
    _, (parent, slot, child) = select_leaf(
        tree, None, root_view(tree, rows), rows, lambda keys, node: first, below
    )
    node = jnp.where(child == NO_CHILD, fresh, child)
    position = unpack(read(tree.positions.words, parent, rows), tree.positions.layout)
    step = _play_rows(play, slot, position, boards)
    node, parent = (jnp.where(made, x, nowhere) for x in (node, parent))
    tree = expand(tree, (parent, slot, node), fresh, step, rows)
    tree, top, value, _ = backup(tree, node, jnp.where(made, step.value, 0.0), None, rows, made)
    returns = read(tree.rewards, top, rows) + read(tree.discounts, top, rows) * value
    # One after another, as simulations count.
    count, mean = tree.visits[:, ROOT], tree.values[:, ROOT]
    for each, is_made in zip(returns.reshape(visits, boards), is_visit, strict=True):
        mean = jnp.where(is_made, (mean * count + each) / (count + 1.0), mean)
        count = count + is_made
    tree = tree._replace(
        visits=tree.visits.at[:, ROOT].set(count), values=tree.values.at[:, ROOT].set(mean)
    )
    return copy_to_root(tree, jnp.where(made, first, tree.root_visits.shape[1] + number), rows)


def _play_rows(play: Play, slot: jax.Array, position: Node, boards: int) -> Step:
    """Steps of rows [R], which `play` takes by the boards."""
    by_visit = jax.tree.map(lambda x: x.reshape(-1, boards, *x.shape[1:]), (slot, position))
    visits = len(slot) // boards
    at_once = visits
    if backend() == "cpu":
        at_once = max(1, min(visits, _ROWS_AT_ONCE // boards))
    if at_once == visits:
        steps = jax.vmap(play)(*by_visit)
    else:
        steps = jax.lax.map(lambda each: play(*each), by_visit, batch_size=at_once)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), steps)
