"""What a search says of positions: each move's share, each player's value, lines and cells.

B boards, A slots, K lines, D plies of a line, P players, H W cells.
"""

import dataclasses
import functools
import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.game import NO_ACTION, Rules, State, Variant, action_of_slot
from train.network import MASKED, Output
from train.runtime.display import to_dataframe
from train.runtime.errors import UsageError
from train.search.arrays import Boards
from train.search.config import SearchConfig
from train.search.evaluator import (
    Calibration,
    Evaluation,
    Evaluator,
    Numbers,
    by_player,
    make_play,
    make_symmetric_evaluator,
)
from train.search.search import make_engine
from train.search.sequential_halving import expected_values
from train.search.tree import NO_CHILD, ROOT, Choice, Play, Root, Tree, init_tree, root_view
from wallgo_jax.notation import CANONICAL_SIDES, format_action
from wallgo_jax.view.snapshot import NOBODY, take_snapshot

if TYPE_CHECKING:
    import pandas


LINES, MOST_LINES, LINE_PLIES = 6, 24, 8
"""K where nothing else is asked for, K for all that a search has visited, D."""
_SHOWN = 8
_LEAST_ARROW = 0.01
EvaluateHeads = Callable[[Any, State], Output]
"""(variables, states [B]) -> the outputs of all heads."""


class Candidate(NamedTuple):
    """A move that a search has looked at, from the side of the player who makes it."""

    action: int  # public id
    prior: float
    policy: float
    visits: int  # those kept from earlier searches included
    value: float  # expected reward after it
    win_chance: float
    line: tuple[int, ...]  # public ids: the move and those most visited after it
    moves: tuple[str, ...]  # of the line, in the canonical notation, such as `B6->B5:W0`

    @property
    def move(self) -> str:
        """The move in the canonical notation."""
        return self.moves[0]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False)
class SearchReport:
    """A search of one board; of a batch, every array has a leading axis [B].

    Values are expected rewards from -1 to 1, **for the player to move** but for `values`,
    `best_values` and `network_values`, which are each player's, player 0 first. They are as
    searched; a calibration corrects win chances alone. Slots that are not visited have `completed`
    values: the mean of the network's value and the visited ones (Danihelka et al., "Policy
    improvement by planning with Gumbel", appendix D).

    The chosen action's line comes first, then those of the most visits, of equal visits the
    likeliest by the policy; NO_ACTION stands behind the end of a line, and in lines beyond the
    visited moves.
    """

    state: State
    actions: np.ndarray  # int32[A], public actions of the slots
    legal: np.ndarray  # bool[A], slots that the search could choose
    action: np.ndarray  # int32[], the chosen public action; NO_ACTION after the end of a game
    prior: np.ndarray  # float32[A], chances by the network's policy, 0 at illegal slots
    visits: np.ndarray  # int32[A], those kept from earlier searches included
    qvalues: np.ndarray  # float32[A], values of the visited slots, 0 elsewhere
    completed: np.ndarray  # float32[A], values of all slots
    policy: np.ndarray  # float32[A], improved by a Gumbel search; the shares of visits of PUCT
    value: np.ndarray  # float32[], the mean of all visits
    root_visits: np.ndarray  # int32[], of the position, one of them before any of its slots
    values: np.ndarray  # float32[P], of that mean
    best_values: np.ndarray  # float32[P], of the position after the chosen action
    network_values: np.ndarray  # float32[P], before the search
    slots: np.ndarray  # int32[K], of the lines
    lines: np.ndarray  # int32[K, D], public actions
    owners: np.ndarray | None
    """float32[H, W, P + 1], chances of each cell's final owners, player 0 first, nobody last; None
    without a head for them."""
    margin: np.ndarray | None
    """float32[], cells that player 0 is expected to lead the best other by; None where neither a
    margin head nor owners say."""
    player: str = dataclasses.field(default="", metadata={"static": True})
    rules: Rules | None = dataclasses.field(default=None, metadata={"static": True})
    simulations: int = dataclasses.field(default=0, metadata={"static": True})
    """Of this search; 0 shows what the network says."""
    calibration: Calibration = dataclasses.field(default=Calibration(), metadata={"static": True})

    @property
    def is_batch(self) -> bool:
        """Whether it is of several boards."""
        return self.value.ndim > 0

    def __len__(self) -> int:
        """Number of boards of a batch."""
        return len(self.value)

    def __getitem__(self, board: int) -> "SearchReport":
        """The search of one board of a batch."""
        return jax.tree.map(lambda x: x[board], self)

    def of_player(self, player: Any, rules: Rules | None, simulations: int) -> "SearchReport":
        """The report with the names of the `Player` that searched, and its calibration."""
        calibration = player.calibration
        return dataclasses.replace(
            self, player=player.name, rules=rules, simulations=simulations, calibration=calibration
        )

    @property
    def mover(self) -> Numbers:
        """int8[]: the player to move."""
        return self.state.position.player

    @property
    def network_value(self) -> np.ndarray:
        """float32[]: the value before the search."""
        mover = np.asarray(self.mover, int)[..., None]
        return np.take_along_axis(self.network_values, mover, axis=-1)[..., 0]

    @property
    def likeliest(self) -> np.ndarray:
        """int32[]: the public action that the network's policy would play."""
        slot = self.prior.argmax(axis=-1)[..., None]
        return np.take_along_axis(self.actions, slot, axis=-1)[..., 0]

    def chance(self, value: Numbers | float, *, is_searched: bool = True) -> np.ndarray:
        """Win chances of values, in their shape, each of the side whose value it is."""
        players = self.values.shape[-1]
        return self.calibration.chance(value, players=players, is_searched=is_searched)

    @property
    def win_chance(self) -> float:
        """Of the player to move, by the mean of all visits, 0 to 1."""
        return float(self.chance(self._one().value, is_searched=self._is_searched))

    @property
    def win_chances(self) -> list[float]:
        """Each player's after the best move, 1 in sum."""
        one = self._one()
        chances = self.chance(one.best_values, is_searched=self._is_searched)
        # Values of more than two may lie below what a loser gets, which counts as no chance. The
        # mover's is what the search knows, so the others share the rest.
        others = np.arange(len(chances)) != int(one.mover)
        chances[others] *= (1 - chances[~others]) / max(chances[others].sum(), 1e-9)
        return chances.tolist()

    @property
    def best(self) -> str:
        """The chosen move in notation."""
        return self._name(int(self._one().action))

    @property
    def line(self) -> tuple[str, ...]:
        """The principal variation: the chosen move and what the search expects after it."""
        return tuple(self._name(int(x)) for x in self._one().lines[0] if x != NO_ACTION)

    @functools.cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The moves of the lines: the chosen one, then the likeliest by the policy."""
        one, candidates = self._one(), []
        for slot, actions in zip(one.slots, one.lines, strict=True):
            line = tuple(int(action) for action in actions if action != NO_ACTION)
            value = (one.qvalues if one.visits[slot] else one.completed)[slot]
            candidate = Candidate(
                action=int(actions[0]),
                prior=float(one.prior[slot]),
                policy=float(one.policy[slot]),
                visits=int(one.visits[slot]),
                value=float(value),
                win_chance=float(one.chance(value)),
                line=line,
                moves=tuple(canonical_move(action, grid=one.state.grid) for action in line),
            )
            candidates += [candidate] * bool(line)
        return (*candidates[:1], *sorted(candidates[1:], key=lambda each: -each.policy))

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each legal move: those of the most visits first, then by policy."""
        if self.is_batch:
            parts = (self[board].rows() for board in range(len(self)))
            return [{"board": b} | row for b, rows in enumerate(parts) for row in rows]
        slots = np.flatnonzero(self.legal)
        order = slots[np.lexsort((-self.policy[slots], -self.visits[slots]))]
        return [
            {
                "move": self._name(int(self.actions[slot])),
                "action": int(self.actions[slot]),
                "prior": float(self.prior[slot]),
                "visits": int(self.visits[slot]),
                "value": float(self.qvalues[slot]) if self.visits[slot] else None,
                "completed": float(self.completed[slot]),
                "policy": float(self.policy[slot]),
            }
            for slot in order
        ]

    def to_dataframe(self) -> "pandas.DataFrame":
        """`rows` as a table of pandas."""
        return to_dataframe(self.rows())

    def svg(self, *, theme: str = "light") -> str:
        """Draw the board: arrows are shares of the improved policy, heat is the expected owner."""
        from wallgo_jax import render

        one, heat = self._one(), None
        if one.owners is not None:
            heat = (one.owners[..., 0] - one.owners[..., 1:-1].sum(axis=-1)).ravel()
        first = np.argsort(-one.policy)[:_SHOWN]
        shares = {int(one.actions[slot]): float(one.policy[slot]) for slot in first}
        arrows = {action: share for action, share in shares.items() if share > _LEAST_ARROW}
        label = "Red's share less the others'"
        return render.svg(one.state, heat=heat, heat_label=label, arrows=arrows, theme=theme)

    def __str__(self) -> str:
        if self.is_batch:
            return "\n\n".join(str(self[board]) for board in range(len(self)))
        head = (
            f"{self.player}, {self.simulations} simulations: value {float(self.value):+.3f} for "
            f"the player to move (network {float(self.network_value):+.3f})"
        )
        lines = [head, "move            prior visits   value  policy"]
        for row in self.rows()[:_SHOWN]:
            value = "     -" if row["value"] is None else f"{row['value']:+6.3f}"
            chances = f"{row['prior']:6.1%} {row['visits']:6}  {value} {row['policy']:7.1%}"
            lines.append(f"{row['move']:14} {chances}")
        return "\n".join([*lines, f"line: {' '.join(self.line)}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Draw the search, or the first of a batch, for a notebook."""
        one = self[0] if self.is_batch else self
        return f"{one.svg()}<pre>{html.escape(str(one))}</pre>"

    @property
    def _is_searched(self) -> bool:
        return bool(self.root_visits != 1)

    def _one(self) -> "SearchReport":
        if self.is_batch:
            raise UsageError("search: has several boards; choose one, such as found[0]")
        return self

    def _name(self, action: int) -> str:
        return format_action(action, grid=self.state.grid)


def report_search(
    choice: Choice,
    states: State,
    evaluation: Evaluation,
    *,
    heads: Output | None = None,
    lines: int = LINES,
    boards: Boards = None,
) -> SearchReport:
    """Make the report of searches, without the fields that name a search.

    Args:
      choice: of an engine of trees, whose positions are those of the game.
      states: [B], the roots.
      evaluation: of the roots, as the searches began.
      heads: outputs of the network's further heads at the roots.
      lines: K at most.
      boards: int32[B], the trees that are reported; all in turn by default.
    """
    root = root_view(choice.tree, boards)._replace(logits=evaluation.logits)
    each, variant, mover = jnp.arange(len(choice.slot)), states.variant, states.position.player
    legal, seen, scores = root.logits > MASKED, root.slot_visits > 0, evaluation.value
    completed = expected_values(root)
    # A choice without visits leads, and no share of a policy outweighs a visit.
    rank = (root.slot_visits + 0.5 * choice.policy).at[each, choice.slot].set(jnp.inf)
    slots = jax.lax.top_k(rank, min(lines, rank.shape[1]))[1].astype(jnp.int32)
    is_shown = jnp.take_along_axis(seen, slots, axis=1).at[:, 0].set(True)
    moves = lines_below(choice.tree, variant, slots, boards)
    moves = jnp.where(is_shown[..., None], moves, NO_ACTION)
    owners, margin = (None, None) if heads is None else _owners_and_margin(heads, states)
    public = jax.vmap(jax.vmap(action_of_slot, (None, 0)), (0, None))
    report: Any = SearchReport  # On the device; its arrays are NumPy's once they are fetched.
    return report(
        state=states,
        actions=public(states, jnp.arange(states.num_slots)),
        legal=legal,
        action=moves[:, 0, 0],
        prior=jnp.where(legal, jax.nn.softmax(root.logits, axis=1), 0.0),
        visits=root.slot_visits,
        qvalues=root.slot_qvalues,
        completed=jnp.where(legal, completed, 0.0),
        policy=choice.policy,
        value=root.value,
        root_visits=root.visits,
        values=by_player(share_value(scores, root.value), mover),
        best_values=by_player(share_value(scores, completed[each, choice.slot]), mover),
        network_values=by_player(scores, mover),
        slots=slots,
        lines=moves,
        owners=owners,
        margin=margin,
    )


def _owners_and_margin(heads: Output, states: State) -> tuple[jax.Array | None, jax.Array | None]:
    """The fields `owners` and `margin` of a report, by the outputs of a network's heads."""
    mover, owners, margin = states.position.player, None, None
    if heads.ownership is not None:
        owners = owners_by_player(jax.nn.softmax(heads.ownership, axis=-1), mover)
        cells = owners[..., :-1].sum(axis=(1, 2))
        margin = cells[:, 0] - cells[:, 1:].max(axis=1)
    if heads.margin is not None and states.position.stones.shape[1] == 2:
        lead = heads.margin * states.variant.size.astype(jnp.float32) ** 2
        margin = jnp.where(mover == 0, lead, -lead)
    return owners, margin


@functools.cache
def make_reporting_search(
    evaluate: Evaluator,
    config: SearchConfig,
    *,
    simulations: int,
    explores: bool = False,
    symmetries: int = 1,
    evaluate_heads: EvaluateHeads | None = None,
) -> Callable[..., SearchReport]:
    """A search by the native engine as a jitted function of (variables, states [B], key, allowed
    bool[B, A] or None): slots that are not allowed are no moves at the root, unless that leaves
    none.

    Args:
      evaluate: evaluates roots and leaves.
      config: options of the search, but for its simulations.
      simulations: 0 shows what the evaluator says.
      explores: searches with the noise of self-play.
      symmetries: turned copies of the root, as in `make_search`.
      evaluate_heads: gives the outputs that owners and margin are read from.
    """
    # Both engines find the same, and the native tree can be read.
    config = dataclasses.replace(config, engine="native", simulations=max(simulations, 1))
    choose = make_engine(config, explores=explores) if simulations else _choose_likeliest
    play = make_play(evaluate, opponents=config.opponents)
    evaluate_root = make_symmetric_evaluator(evaluate, symmetries)

    @jax.jit
    def search(
        variables: Any, states: State, key: jax.Array, allowed: jax.Array | None = None
    ) -> SearchReport:
        evaluation = evaluate_allowed(evaluate_root, variables, states, allowed)
        logits, (variant, position) = evaluation.logits, states
        root = Root(logits, evaluation.value[:, 0], position, logits > MASKED)
        game = variables, variant, position.player
        choice = choose(key, root, functools.partial(play, game))
        heads = evaluate_heads and evaluate_heads(variables, states)
        return report_search(choice, states, evaluation, heads=heads)

    return search


def evaluate_allowed(
    evaluate: Evaluator, variables: Any, states: State, allowed: jax.Array | None
) -> Evaluation:
    """An evaluation with logits MASKED at slots that are illegal or not allowed; where no legal
    slot is allowed, all legal ones are."""
    evaluation = evaluate(variables, states)
    if allowed is None:
        return evaluation
    legal = evaluation.logits > MASKED
    some = legal & allowed
    legal = jnp.where(some.any(axis=1, keepdims=True), some, legal)
    return evaluation._replace(logits=jnp.where(legal, evaluation.logits, MASKED))


def _choose_likeliest(key: jax.Array, root: Root, play: Play) -> Choice:
    """The raw policy in place of an engine's search."""
    policy = jnp.where(root.legal, jax.nn.softmax(root.logits, axis=1), 0.0)
    tree = init_tree(root.logits, root.value, root.position, nodes=1)
    return Choice(root.logits.argmax(axis=1), policy, root.value, tree)


def report_finished_game(state: State, rewards: tuple[float, ...]) -> SearchReport:
    """Report one board whose game is over, NumPy arrays: its result and its territory."""
    snapshot, players = take_snapshot(state), len(rewards)
    owner = np.array([players if who == NOBODY else who for who in snapshot.owner])
    shares, none = np.array(rewards, np.float32), np.zeros(state.num_slots, np.float32)
    return SearchReport(
        state=state,
        actions=np.full(len(none), NO_ACTION, np.int32),
        legal=none > 0,
        action=np.array(NO_ACTION, np.int32),
        prior=none,
        visits=none.astype(np.int32),
        qvalues=none,
        completed=none,
        policy=none,
        value=shares[int(state.position.player)],
        root_visits=np.array(0, np.int32),
        values=shares,
        best_values=shares,
        network_values=shares,
        slots=np.zeros(0, np.int32),
        lines=np.zeros((0, LINE_PLIES), np.int32),
        owners=np.eye(players + 1, dtype=np.float32)[owner].reshape(state.grid, state.grid, -1),
        margin=np.array(snapshot.territory[0] - max(snapshot.territory[1:]), np.float32),
    )


def canonical_move(action: int, *, grid: int) -> str:
    """A public action in the canonical notation, such as `B6->B5:W0`."""
    return format_action(action, grid=grid, sides=CANONICAL_SIDES)


def lines_below(tree: Tree, variant: Variant, slots: jax.Array, boards: Boards = None) -> jax.Array:
    """int32[B, K, D]: public actions of slots of the roots, each followed by those of the most
    visits, of equal visits that of the highest value; NO_ACTION behind the end of a line.

    Args:
      tree: its positions are those of the game.
      variant: [B].
      slots: int32[B, K].
      boards: int32[B], the tree's boards; all in turn by default.
    """
    rows = (jnp.arange(len(slots)) if boards is None else boards)[:, None]
    variants = jax.tree.map(
        lambda x: jnp.broadcast_to(x[:, None], (*slots.shape, *x.shape[1:])), variant
    )

    def step(walk: tuple[jax.Array, ...], _: None) -> tuple[tuple[jax.Array, ...], jax.Array]:
        node, slot, goes_on = walk
        there = State(variants, tree.positions[rows, node])
        action = jax.vmap(jax.vmap(action_of_slot))(there, slot)
        child = tree.children[rows, node, slot].astype(jnp.int32)
        below = tree.children[rows, child].astype(jnp.int32)  # [B, K, A]
        visits = jnp.where(below != NO_CHILD, tree.visits[rows[..., None], below], 0)
        most = visits.max(axis=-1, keepdims=True)
        value = jnp.where(visits == most, tree.qvalues[rows[..., None], below], -jnp.inf)
        # Nothing is below the end of a game.
        further = (child != NO_CHILD) & (most[..., 0] > 0)
        walk = child, value.argmax(axis=-1).astype(slot.dtype), goes_on & further
        return walk, jnp.where(goes_on, action, NO_ACTION)

    start = jnp.full_like(slots, ROOT), slots, jnp.ones(slots.shape, jnp.bool_)
    return jnp.moveaxis(jax.lax.scan(step, start, None, length=LINE_PLIES)[1], 0, -1)


def share_value(scores: Numbers, value: Numbers) -> jax.Array:
    """float32[B, P]: each player's value, once a search has found the mover's, which comes first.

    Rewards add up to zero. A search of more than two players knows the mover's alone: the others
    share the change equally.

    Args:
      scores: float32[B, P], as evaluated before the search, the mover first.
      value: float32[B], the mover's after it.
    """
    shares = jnp.asarray(scores).at[:, 0].set(value)
    rest = shares.sum(axis=1, keepdims=True) / (shares.shape[1] - 1)
    return shares.at[:, 1:].add(-rest)


def owners_by_player(owners: Numbers, mover: Numbers) -> jax.Array:
    """[B, ..., P + 1]: chances of owners from the movers [B] on, nobody last, by `by_player`."""
    return jnp.concatenate([by_player(owners[..., :-1], mover), owners[..., -1:]], axis=-1)


def draw_place(policy: Numbers, temperature: float, uniform: float) -> int:
    """A place with chances policy^(1 / temperature), [A], by a number from 0 to below 1."""
    policy = np.asarray(policy, np.float64)
    logits = np.log(np.maximum(policy, 1e-300)) / temperature
    chances = np.where(policy > 0, np.exp(logits - logits.max()), 0.0)
    below = (chances / chances.sum()).cumsum()
    return int((below / below[-1]).searchsorted(uniform, side="right"))
