"""Games of a search against itself to their ends: the first game of each board of self-play.

N games, T plies of the longest, P players, A slots.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.data.config import SelfPlayConfig
from train.data.exploration import draw_legal
from train.data.selfplay import Boards, first_boards, make_selfplay
from train.game import NO_ACTION, Rules, State, Variant, action_of_slot, make_variant
from train.runtime.devices import broadcast_boards
from train.runtime.host import fetch
from train.search.search import Search, SearchResult

NOBODY = -1
"""The mover behind the end of a game."""
_PLIES = 8  # of an iteration; after each the host reads whether all games are over
_SALT = 2**21
"""Folded into a ply's key, whose own parts the search uses."""


class WholeGames(NamedTuple):
    """Finished games, as NumPy arrays; zeros behind the end where nothing else is said."""

    actions: Any  # int32[N, T] public actions, NO_ACTION behind the end
    movers: Any  # int8[N, T], NOBODY behind the end
    lengths: Any  # int32[N], plies
    rewards: Any  # float32[N, P]
    policies: Any  # float32[N, T, A], what the search would teach; None where not asked for
    values: Any  # float32[N, T], the search's, for the player to move; None likewise


class _WholePlies(NamedTuple):
    """Plies of all boards [T, N], of their first games and of later ones."""

    action: Any
    mover: Any
    terminated: Any
    rewards: Any
    policy: Any
    value: Any


def make_whole_games(
    search: Search,
    rules: Rules,
    *,
    games: int,
    opening_plies: int = 0,
    has_policies: bool = True,
) -> Callable[..., WholeGames]:
    """Make a function that plays games, all at once, until each board has ended one.

    Args:
      search: decides the moves of all sides.
      rules: of the games.
      games: N.
      opening_plies: random plies that each game begins with.
      has_policies: whether policies and values are kept.

    Returns:
      (variables, key, on_progress) -> the games; the key is consumed, and `on_progress` is called
      with the number of games that are over.
    """
    variant = broadcast_boards(jax.tree.map(jnp.asarray, make_variant(rules)), games)
    selfplay = make_selfplay(
        _with_opening(search, opening_plies), SelfPlayConfig(plies=_PLIES), has_root_value=True
    )

    @jax.jit
    def play(
        variables: Any, variant: Variant, boards: Boards, key: jax.Array
    ) -> tuple[Boards, _WholePlies]:
        boards, plies, _ = selfplay(variables, variant, boards, key)
        return boards, _WholePlies(
            action=_public_actions(State(variant, plies.position), plies.slot),
            mover=plies.position.player,
            terminated=plies.terminated,
            rewards=plies.outcome.rewards,
            policy=plies.policy if has_policies else None,
            value=plies.root_value if has_policies else None,
        )

    def play_all(variables: Any, key: jax.Array, on_progress: Callable[[int], None]) -> WholeGames:
        boards, pieces, is_over = first_boards(variant), [], np.zeros(games, bool)
        while not is_over.all():
            own_key = jax.random.fold_in(key, len(pieces))
            boards, piece = play(variables, variant, boards, own_key)
            pieces.append(fetch(piece))
            is_over |= pieces[-1].terminated.any(axis=0)
            on_progress(int(is_over.sum()))
        return _first_games(jax.tree.map(lambda *x: np.concatenate(x), *pieces))

    return play_all


def _public_actions(states: State, slots: jax.Array) -> jax.Array:
    """int32[T, N]: the actions of slots int16[T, N]; the variant [N] is the same at each ply."""
    act = jax.vmap(action_of_slot)
    of_ply = jax.vmap(lambda position, slot: act(State(states.variant, position), slot))
    return of_ply(states.position, slots.astype(jnp.int32)).astype(jnp.int32)


def _with_opening(search: Search, plies: int) -> Search:
    """The search, but for the first plies of each game, which are drawn."""

    def choose(variables: Any, states: State, key: jax.Array) -> SearchResult:
        result = search(variables, states, key)
        drawn = draw_legal(jax.random.fold_in(key, _SALT), states)
        return result._replace(slot=jnp.where(states.position.ply < plies, drawn, result.slot))

    return choose if plies else search


def _first_games(plies: _WholePlies) -> WholeGames:
    """The plies [T, N] of each board up to its first end, by games."""
    ends = plies.terminated.cumsum(axis=0)
    is_first = ends - plies.terminated == 0  # [T, N]
    lengths = is_first.sum(axis=0).astype(np.int32)

    def by_game(x: Any, behind: int = 0) -> Any:
        cut = x[: lengths.max()]
        mask = is_first[: len(cut)].reshape(*cut.shape[:2], *[1] * (cut.ndim - 2))
        return np.moveaxis(np.where(mask, cut, np.asarray(behind, cut.dtype)), 0, 1)

    policies, values = plies.policy, plies.value
    if policies is not None:
        # Self-play keeps halves; what they round off is shared out again.
        policies = by_game(policies.astype(np.float32))
        policies /= np.maximum(policies.sum(axis=-1, keepdims=True), 1e-6)
        values = by_game(values)
    return WholeGames(
        actions=by_game(plies.action, NO_ACTION),
        movers=by_game(plies.mover, NOBODY),
        lengths=lengths,
        rewards=by_game(plies.rewards).sum(axis=1),
        policies=policies,
        values=values,
    )
