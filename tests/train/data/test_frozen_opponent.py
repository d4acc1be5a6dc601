"""Self-play against a frozen opponent: whose moves are played, what they teach, who won."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from tests.support.learner import tiny
from train.data.config import SelfPlayConfig
from train.data.frozen_opponent import search_some
from train.data.selfplay import first_boards, make_selfplay
from train.search.evaluator import WithOpponentVariables
from train.search.search import SearchResult
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

BOARDS, PLIES = 6, 40


def ranked_search(variables, states: State, key: jax.Array) -> SearchResult:
    """Takes the legal slot of the highest rank in its variables; its value is their first."""
    del key
    legal = jax.vmap(actions.legal_slots)(states)
    logits = jnp.where(legal, variables[None, : legal.shape[1]], -1e38)
    slot = logits.argmax(axis=1).astype(jnp.int32)
    value = jnp.broadcast_to(variables[0], slot.shape)
    return SearchResult(slot, jax.nn.one_hot(slot, legal.shape[1]), value, 1 + 0 * value, logits)


def learner_search(variables: WithOpponentVariables, states: State, key: jax.Array) -> SearchResult:
    """Gets both sets of variables and uses its own."""
    return ranked_search(variables.own, states, key)


RANKS = WithOpponentVariables(
    own=np.arange(300, dtype=np.float32), opponent=-np.arange(300, dtype=np.float32)
)


@functools.cache
def play(**exploration):
    """40 plies of 6 boards; the learner takes the last legal slot, its opponent the first."""
    variant = tiny.variants(tiny.RULES, BOARDS)
    selfplay = make_selfplay(
        learner_search,
        SelfPlayConfig(plies=PLIES, policy_surprise_weight=0.5, **exploration),
        has_root_value=True,
        opponent=ranked_search,
    )
    boards = jax.jit(functools.partial(first_boards, has_opponent=True))(variant)
    after, plies, sums = jax.jit(selfplay)(RANKS, variant, boards, jax.random.key(1))
    legal = jax.jit(jax.vmap(jax.vmap(lambda v, p: actions.legal_slots(State(v, p))), (None, 0)))
    legal = legal(variant, plies.position)
    return jax.device_get((after, plies, sums, legal))


def seats_of(plies) -> np.ndarray:
    """int[T, B]: the learner's player, by the games that ended before on its board."""
    ended = np.cumsum(plies.terminated, axis=0) - plies.terminated
    return (np.arange(BOARDS)[None] + ended) % 2


def test_each_side_plays_its_own_moves_and_only_the_learner_teaches_policies():
    after, plies, _, legal = play()
    is_own = plies.position.player == seats_of(plies)
    first, last = legal.argmax(axis=-1), legal.shape[-1] - 1 - legal[..., ::-1].argmax(axis=-1)
    assert 0.3 < is_own.mean() < 0.7 and plies.terminated.sum() > 10
    np.testing.assert_array_equal(plies.slot, np.where(is_own, last, first))
    np.testing.assert_array_equal(plies.policy_weight, is_own.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(plies.root_value), ~is_own)
    next_seat = (np.arange(BOARDS) + plies.terminated.sum(axis=0)) % 2
    np.testing.assert_array_equal(after.seat, next_seat)


def test_wins_are_counted_by_the_learners_side():
    _, plies, sums, _ = play()
    seat, ended = seats_of(plies), plies.terminated
    rewards = np.take_along_axis(plies.step_outcome.rewards, seat[..., None], axis=-1)[..., 0]
    for player in (0, 1):
        own = rewards[ended & (seat == player)]
        assert sums.seats.games[player] == len(own) > 3
        points = (own > 0).sum() + (own == 0).sum() / 2
        assert sums.seats.points[player] == points


def test_exploration_touches_the_opponent_in_openings_alone():
    """Drawn plies of both sides teach no policy; a temperature is the learner's."""
    _, plies, _, legal = play(opening_plies=3, temperature=5.0)
    is_own = plies.position.player == seats_of(plies)
    is_late = plies.position.ply >= len(tiny.RULES.order) + 3
    first = legal.argmax(axis=-1)
    np.testing.assert_array_equal(plies.slot[is_late & ~is_own], first[is_late & ~is_own])
    assert (plies.policy_weight[~is_own] == 0).all()
    is_searched = is_late | (plies.position.ply < len(tiny.RULES.order))
    assert (plies.policy_weight[is_own & is_searched] > 0).all()


def test_boards_are_searched_in_as_many_parts_as_it_takes():
    """Two parts of which the second begins earlier, one, or none."""
    plies = play()[1]
    # Six boards of different plies.
    position = jax.tree.map(lambda x: x[range(BOARDS), range(BOARDS)], plies.position)
    states = State(jax.device_get(tiny.variants(tiny.RULES, BOARDS)), position)

    @jax.jit
    def both(where: jax.Array) -> tuple[SearchResult, SearchResult]:
        given = RANKS.own, jax.tree.map(jnp.asarray, states), jax.random.key(0)
        return search_some(ranked_search, *given, where, part=4), ranked_search(*given)

    for where in ([1] * 6, [0] * 6, [0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1]):
        where = np.array(where, bool)
        for mine, other in zip(*jax.device_get(both(where)), strict=True):
            np.testing.assert_array_equal(mine[where], other[where])


def test_without_an_opponent_there_is_no_seat():
    variant = tiny.variants(tiny.RULES, 2)
    assert jax.eval_shape(first_boards, variant).seat is None
