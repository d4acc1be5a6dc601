"""What a search says of positions: priors, visits, values, the improved policy, lines, owners.

B boards, A slots, N nodes, K lines, D plies of a line, P players, H W cells.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.api.common.tables import check_whole, key_of, to_dataframe
from train.api.states import States, batch_of
from train.config import config_from_dict
from train.engine.trees.guide import chances_of_owners
from train.functions import refuse_functions
from train.players.basic import EvaluateHeads, Player
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.search.config import MAX_SIMULATIONS, SearchConfig, as_player
from train.search.engine import Root
from train.search.evaluator import Evaluator, make_play, make_symmetric_evaluator
from train.search.report import (
    by_player,
    lines_below,
    owners_by_player,
    report_roots,
    share_value,
)
from train.search.search import make_engine
from train.search.sequential_halving import completed_values
from train.search.tree import root_view
from wallgo_jax import render
from wallgo_jax.game import actions
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.notation import format_action

LINES = 6
_SHOWN = 8
_MOST = 2**30
"""More visits than a slot has."""


@dataclasses.dataclass(frozen=True, repr=False)
class SearchReport:
    """A search of one board; of a batch, every array has a leading axis [B].

    Values are expected rewards from -1 to 1, **for the player to move** but for `values`.

    Attributes:
      player: name of the player that searched.
      rules: of the game.
      state: the position.
      simulations: of the search; 0 shows what the network says.
      actions: int32[A], public actions of the slots.
      legal: bool[A].
      action: int32[], the chosen public action.
      prior: float32[A], chances by the network's policy, 0 at illegal slots.
      visits: int32[A].
      qvalues: float32[A], values of the visited slots, 0 elsewhere.
      completed: float32[A], values of all slots: those without visits get the mean of the network's
        value and the visited ones, as in Danihelka et al., "Policy improvement by planning with
        Gumbel", appendix D.
      policy: float32[A], the improved policy of a Gumbel search, the shares of visits of PUCT.
      value: float32[], after the search.
      network_value: float32[], before it.
      values: float32[P], after the search, of each player, player 0 first.
      lines: int32[K, D] public actions, the chosen one's line first, then those of the most visits;
        NO_ACTION behind the end of a line, and in lines beyond the visited moves.
      owners: float32[H, W, P + 1], chances of each cell's final owners, player 0 first, nobody
        last; None without a head for them.
    """

    player: str
    rules: Rules
    state: State
    simulations: int
    actions: np.ndarray
    legal: np.ndarray
    action: np.ndarray
    prior: np.ndarray
    visits: np.ndarray
    qvalues: np.ndarray
    completed: np.ndarray
    policy: np.ndarray
    value: np.ndarray
    network_value: np.ndarray
    values: np.ndarray
    lines: np.ndarray
    owners: np.ndarray | None

    @property
    def is_batch(self) -> bool:
        """Whether it is of several boards."""
        return self.value.ndim > 0

    def __len__(self) -> int:
        """Number of boards of a batch."""
        if not self.is_batch:
            raise TypeError("a search of one board has no length")
        return len(self.value)

    def __getitem__(self, board: int) -> "SearchReport":
        """The search of one board of a batch."""
        if not self.is_batch:
            raise TypeError("a search of one board has no boards to choose from")
        picked = {
            field.name: jax.tree.map(lambda x: x[board], getattr(self, field.name))
            for field in dataclasses.fields(self)
            if field.name not in ("player", "rules", "simulations")
        }
        return dataclasses.replace(self, **picked)

    @property
    def best(self) -> str:
        """The chosen move in notation."""
        return self._name(int(self._one().action))

    @property
    def line(self) -> tuple[str, ...]:
        """The principal variation: the chosen move and what the search expects after it."""
        return self._line(self._one().lines[0])

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

    def to_dataframe(self) -> Any:
        """`rows` as a table of pandas."""
        return to_dataframe(self.rows())

    def svg(self, *, theme: str = "light") -> str:
        """Draw the board: arrows are shares of the improved policy, heat is the expected owner."""
        one, heat = self._one(), None
        if one.owners is not None:
            red, rest = one.owners[..., 0], one.owners[..., 1:-1].sum(axis=-1)
            heat = (red - rest).ravel()
        best = np.argsort(-one.policy)[:_SHOWN]
        arrows = {int(one.actions[s]): float(one.policy[s]) for s in best if one.policy[s] > 0.01}
        return render.svg(
            one.state, heat=heat, heat_label="Red's share of the cell", arrows=arrows, theme=theme
        )

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
        from html import escape

        one = self[0] if self.is_batch else self
        return f"{one.svg()}<pre>{escape(str(one))}</pre>"

    def _one(self) -> "SearchReport":
        if self.is_batch:
            raise UsageError("search: has several boards; choose one, such as found[0]")
        return self

    def _name(self, action: int) -> str:
        return format_action(action, grid=self.state.grid)

    def _line(self, line: np.ndarray) -> tuple[str, ...]:
        return tuple(self._name(int(action)) for action in line if action != NO_ACTION)


def change_search(search: SearchConfig, options: Mapping[str, Any]) -> SearchConfig:
    """Options of a player's search, changed as in the config's table `search`; the number of
    considered actions is the player's.

    Raises:
      UsageError: there is no such key, or its value is not allowed.
    """
    refuse_functions({}, {"search": options}, where="search")
    considered = options.get("max_considered_actions", search.player_max_considered_actions)
    fields = {
        **dataclasses.asdict(search),
        "player_max_considered_actions": considered,
        **options,
    }
    return config_from_dict({"search": fields}, where="search").search


def search_states(
    guide: Player,
    rules: Rules,
    states: States,
    *,
    simulations: int | None = None,
    seed: int | None = None,
) -> SearchReport:
    """Search boards; see `SearchReport`.

    Args:
      guide: what the search asks.
      rules: of the boards.
      states: one board or a batch.
      simulations: of each board; by default the guide's own.
      seed: of noise; None for none.

    Raises:
      UsageError: a game is over, or no number of simulations is known.
    """
    batch, is_one = batch_of(states, rules)
    count = guide.simulations if simulations is None else simulations
    if count is not None:
        check_whole("search", simulations=count)
    if count is None or not 0 <= count <= MAX_SIMULATIONS:
        raise UsageError(f"search: simulations ({count}) must be from 0 to {MAX_SIMULATIONS}")
    if np.asarray(batch.position.terminated).any():
        raise UsageError("states: a game is over; there is nothing to search or evaluate")
    # Both engines find the same, and the native tree can be read.
    options = dataclasses.replace(as_player(guide.search, max(count, 1)), engine="native")
    how = _How(guide.symmetries, searches=count > 0, explores=seed is not None)
    program = _program(guide.evaluate, options, guide.evaluate_heads, how)
    key = key_of("search", 0 if seed is None else seed)
    roots, network_value, completed, lines, owners = fetch(program(guide.variables, batch, key))
    mover = np.asarray(batch.position.player)
    report = SearchReport(
        player=guide.name,
        rules=rules,
        state=fetch(batch),
        simulations=count,
        actions=roots.actions,
        legal=roots.legal,
        action=lines[:, 0, 0],
        prior=roots.prior,
        visits=roots.slot_visits,
        qvalues=roots.slot_qvalues,
        completed=completed,
        policy=roots.policy,
        value=roots.value,
        network_value=network_value,
        values=by_player(share_value(roots.scores, roots.value), mover),
        lines=lines,
        owners=None if owners is None else owners_by_player(owners, mover),
    )
    return report[0] if is_one else report


class _How(NamedTuple):
    symmetries: int
    searches: bool  # False shows the network's policy
    explores: bool


@functools.cache
def _program(
    evaluate: Evaluator, options: SearchConfig, look: EvaluateHeads | None, how: _How
) -> Any:
    choose = make_engine(options, explores=how.explores)
    play = make_play(evaluate, opponents=options.opponents)
    evaluate_root = make_symmetric_evaluator(evaluate, how.symmetries)

    @jax.jit
    def search(variables: Any, states: State, key: jax.Array) -> Any:
        evaluation = evaluate_root(variables, states)
        legal = jax.vmap(actions.legal_slots)(states)
        root = Root(evaluation.logits, evaluation.value[:, 0], states.position, legal)
        game = variables, states.variant, states.position.player
        choice = choose(key, root, functools.partial(play, game))
        node = root_view(choice.tree)
        completed = _values_of(node, options)
        slot, policy = choice.slot, choice.policy
        # Without the noise that a search with PUCT adds.
        node = node._replace(logits=evaluation.logits)
        if not how.searches:
            slot = evaluation.logits.argmax(axis=1)
            policy = jnp.where(legal, jax.nn.softmax(evaluation.logits, axis=1), 0.0)
            completed = evaluation.value[:, :1]
            none = jnp.zeros_like(node.slot_visits)
            node = node._replace(
                value=root.value, slot_visits=none, slot_qvalues=none.astype(jnp.float32)
            )
        found = report_roots(node, states, evaluation.value, slot, policy)
        # The chosen slot may have no visit.
        most = jnp.argsort(-found.slot_visits.at[jnp.arange(len(slot)), slot].set(_MOST), axis=1)
        slots = most[:, :LINES].astype(jnp.int32)
        is_seen = jnp.take_along_axis(found.slot_visits, slots, axis=1) > 0
        lines = lines_below(choice.tree, states.variant, slots)
        lines = jnp.where(is_seen.at[:, 0].set(True)[..., None], lines, NO_ACTION)
        owners = None if look is None else chances_of_owners(look(variables, states))
        return found, root.value, jnp.where(legal, completed, 0.0), lines, owners

    return search


def _values_of(node: Any, options: SearchConfig) -> jax.Array:
    """float32[B, A]: completed values as expected rewards."""
    plain = dataclasses.replace(options, value_scale=1.0, visit_offset=1.0, rescale_values=False)
    most = node.slot_visits.max(axis=1, keepdims=True)
    return completed_values(node, plain) / (1.0 + most)
