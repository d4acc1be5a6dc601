"""Self-play uses the search given, the cheap one at random, and a frozen opponent's."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.random_search import random_search
from tests.support.learner.small_run import RULES
from train.data.config import SelfPlayConfig
from train.data.frozen_opponent import search_some
from train.data.selfplay import PlayoutCapSearch, first_boards, make_selfplay, surprise_weights
from train.loop.stages import BOOTSTRAP, selfplay_of
from train.loop.tables import tables_of
from train.runtime.devices import all_devices
from train.search.evaluator import WithOpponentVariables
from train.search.search import SearchResult
from wallgo_jax.game import actions
from wallgo_jax.game.state import State

start, weights = jax.jit(first_boards), jax.jit(surprise_weights)
legal_slots = jax.jit(jax.vmap(jax.vmap(lambda v, p: actions.legal_slots(State(v, p))), (None, 0)))


COINS = SelfPlayConfig(plies=40, full_search_prob=0.5)


def by_coin(full, cheap) -> PlayoutCapSearch:
    """One of two searches."""
    return PlayoutCapSearch(
        lambda variables, states, key, budget: jax.lax.cond(
            budget == 0, full, cheap, variables, states, key
        )
    )


def last_search(variables, states: State, key: jax.Array):
    """Chooses the last legal slot; stands in for a cheap search."""
    found = random_search()(variables, states, key)
    legal = jax.vmap(actions.legal_slots)(states)
    last = legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1)
    return found._replace(slot=last.astype(jnp.int32))


def surprised_search(variables, states: State, key: jax.Array):
    """Chooses any legal slot; its surprise in nats is the number of plies played, its value that of
    a game that player 0 wins."""
    found = random_search()(variables, states, key)
    value = jnp.where(states.position.player == 0, 1.0, -1.0)
    return found._replace(surprise=states.position.ply.astype(jnp.float32), value=value)


@functools.cache
def play(*, share: float | None = None, cheap: float | None = None, has_root_value=False):
    """40 plies of 6 boards, half of them searched in full."""
    variant = tiny.variants(RULES, 6)
    options = dataclasses.replace(COINS, policy_surprise_weight=share, cheap_policy_weight=cheap)
    search = by_coin(surprised_search, last_search)
    selfplay = make_selfplay(search, options, has_root_value=has_root_value)
    _, plies, sums = jax.jit(selfplay)((), variant, start(variant), jax.random.key(2))
    return variant, *jax.device_get((plies, sums))


def test_one_coin_a_ply_decides_how_all_boards_are_searched():
    variant, plies, sums = play()
    weight = np.asarray(plies.policy_weight)
    assert weight.dtype == np.float32
    is_full = weight[:, 0] == 1
    np.testing.assert_array_equal(weight, np.broadcast_to(is_full[:, None], weight.shape))
    assert 10 < is_full.sum() < 30
    assert float(sums.full) == is_full.sum() * 6
    mask = np.asarray(legal_slots(variant, plies.position))
    last = mask.shape[-1] - 1 - mask[..., ::-1].argmax(axis=-1)
    is_last = np.asarray(plies.slot) == last
    assert is_last[~is_full].all()
    assert is_last[is_full].mean() < 0.3


def test_a_coin_key_decides_the_coins_and_nothing_else_does():
    variant = tiny.variants(RULES, 2)
    selfplay = jax.jit(make_selfplay(by_coin(surprised_search, last_search), COINS))
    coins, slots = {}, {}
    for key, coin_key in ((0, 5), (1, 5), (1, 6)):
        _, plies, _ = selfplay(
            (), variant, start(variant), jax.random.key(key), jax.random.key(coin_key)
        )
        coins[key, coin_key] = np.asarray(plies.policy_weight)[:, 0].tolist()
        slots[key, coin_key] = np.asarray(plies.slot).tolist()
    assert coins[0, 5] == coins[1, 5] != coins[1, 6]
    assert slots[0, 5] != slots[1, 5]


def test_without_a_cheap_search_there_is_no_coin():
    variant, options = tiny.variants(RULES, 2), dataclasses.replace(COINS, plies=2)
    given = (), variant, start(variant), jax.random.key(0)
    alone, either = (
        str(jax.make_jaxpr(make_selfplay(search, options))(*given))
        for search in (last_search, by_coin(random_search(), last_search))
    )
    assert ("bernoulli" in alone, "bernoulli" in either) == (False, True)
    assert alone.count(" cond[") < either.count(" cond[")


def test_weight_goes_by_surprise_among_plies_in_full():
    """That self-play weighs so, cheap plies too, is shown below."""
    _, plies, _ = play()
    is_full, nats = plies.policy_weight == 1, plies.position.ply.astype(np.float32)
    weight = np.asarray(weights(plies.policy_weight, nats, share=0.5))
    assert (weight[~is_full] == 0).all()
    assert weight[is_full].mean() == pytest.approx(1.0, rel=1e-5)
    expected = 0.5 + 0.5 * nats / nats[is_full].mean()
    np.testing.assert_allclose(weight[is_full], expected[is_full], rtol=1e-5)


def test_cheap_policies_are_learned_with_their_weight():
    _, plain, _ = play()
    _, plies, _ = play(cheap=0.25, has_root_value=True)
    is_full = np.asarray(plain.policy_weight) == 1
    np.testing.assert_array_equal(plies.policy_weight, np.where(is_full, 1.0, 0.25))
    np.testing.assert_array_equal(plies.slot, plain.slot)
    _, surprised, _ = play(cheap=0.25, share=0.5)
    weight, surprise = np.where(is_full, 1.0, 0.25), np.zeros(is_full.shape)
    surprise[is_full] = plain.position.ply[is_full]  # the cheap search has none
    relative = surprise / np.average(surprise, weights=weight)
    expected = weight * (0.5 + 0.5 * relative)
    np.testing.assert_allclose(surprised.policy_weight, expected, rtol=1e-5)
    assert surprised.policy_weight.sum() == pytest.approx(weight.sum(), rel=1e-5)


def test_values_of_searches_are_kept_where_they_are_learned():
    _, plain, _ = play()
    assert plain.root_value is None
    _, plies, _ = play(cheap=0.25, has_root_value=True)
    is_full = np.asarray(plies.policy_weight) == 1
    of_mover = np.where(plies.position.player == 0, 1.0, -1.0)
    np.testing.assert_array_equal(plies.root_value, np.where(is_full, of_mover, 0.0))
    assert plies.root_value.dtype == np.float32


def test_bootstrap_has_no_values():
    config = tiny.config("--selfplay.bootstrap_iterations=1", "--learner.value_mix=0.5")
    variant = tiny.variants(config.rules, 2)
    selfplay = selfplay_of(tables_of(config, all_devices(1)).play, BOOTSTRAP)
    _, plies, _ = jax.jit(selfplay)((), variant, start(variant), jax.random.key(0))
    assert np.isnan(plies.root_value).all()


def test_weights_of_no_surprise_and_of_no_ply_in_full():
    is_full = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert weights(is_full, np.zeros((2, 2)), share=1.0).tolist() == is_full.tolist()
    assert weights(np.zeros((2, 2)), np.ones((2, 2)), share=0.5).tolist() == [[0, 0], [0, 0]]


# Against a frozen opponent: whose moves are played, what they teach, who won.

BOARDS = 6


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
def play_against(**exploration):
    """40 plies of 6 boards; the learner takes the last legal slot, its opponent the first."""
    variant = tiny.variants(tiny.RULES, BOARDS)
    selfplay = make_selfplay(
        learner_search,
        SelfPlayConfig(plies=40, policy_surprise_weight=0.5, **exploration),
        has_root_value=True,
        opponent=ranked_search,
    )
    boards = jax.jit(functools.partial(first_boards, has_opponent=True))(variant)
    after, plies, sums = jax.jit(selfplay)(RANKS, variant, boards, jax.random.key(1))
    return jax.device_get((after, plies, sums, legal_slots(variant, plies.position)))


def seats_of(plies) -> np.ndarray:
    """int[T, B]: the learner's player, by the games that ended before on its board."""
    ended = np.cumsum(plies.terminated, axis=0) - plies.terminated
    return (np.arange(BOARDS)[None] + ended) % 2


def test_each_side_plays_its_own_moves_and_only_the_learner_teaches_policies():
    assert jax.eval_shape(first_boards, tiny.variants(tiny.RULES, 2)).seat is None
    after, plies, _, legal = play_against()
    is_own = plies.position.player == seats_of(plies)
    first, last = legal.argmax(axis=-1), legal.shape[-1] - 1 - legal[..., ::-1].argmax(axis=-1)
    assert 0.3 < is_own.mean() < 0.7 and plies.terminated.sum() > 10
    np.testing.assert_array_equal(plies.slot, np.where(is_own, last, first))
    np.testing.assert_array_equal(plies.policy_weight, is_own.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(plies.root_value), ~is_own)
    next_seat = (np.arange(BOARDS) + plies.terminated.sum(axis=0)) % 2
    np.testing.assert_array_equal(after.seat, next_seat)


def test_wins_are_counted_by_the_learners_side():
    _, plies, sums, _ = play_against()
    seat, ended = seats_of(plies), plies.terminated
    rewards = np.take_along_axis(plies.outcome.rewards, seat[..., None], axis=-1)[..., 0]
    for player in (0, 1):
        own = rewards[ended & (seat == player)]
        assert sums.seats.games[player] == len(own) > 3
        points = (own > 0).sum() + (own == 0).sum() / 2
        assert sums.seats.points[player] == points


def test_exploration_touches_the_opponent_in_openings_alone():
    """Drawn plies of both sides teach no policy; a temperature is the learner's."""
    _, plies, _, legal = play_against(opening_plies=3, temperature=5.0)
    is_own = plies.position.player == seats_of(plies)
    is_late = plies.position.ply >= len(tiny.RULES.order) + 3
    first = legal.argmax(axis=-1)
    np.testing.assert_array_equal(plies.slot[is_late & ~is_own], first[is_late & ~is_own])
    assert (plies.policy_weight[~is_own] == 0).all()
    is_searched = is_late | (plies.position.ply < len(tiny.RULES.order))
    assert (plies.policy_weight[is_own & is_searched] > 0).all()


def test_boards_are_searched_in_as_many_parts_as_it_takes():
    """Two parts of which the second begins earlier, one, or none."""
    plies = play_against()[1]
    # Six boards of different plies.
    position = jax.tree.map(lambda x: x[range(BOARDS), range(BOARDS)], plies.position)
    states = State(jax.device_get(tiny.variants(tiny.RULES, BOARDS)), position)

    @jax.jit
    def both(where: jax.Array) -> tuple[SearchResult, SearchResult]:
        given = RANKS.own, jax.tree.map(jnp.asarray, states), jax.random.key(0)
        return search_some(ranked_search, *given, where, part=4), ranked_search(*given)

    for where in ([1] * 6, [0] * 6, [0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1]):
        where = np.array(where, bool)
        found = map(jax.tree.leaves, jax.device_get(both(where)))
        for mine, other in zip(*found, strict=True):
            np.testing.assert_array_equal(mine[where], other[where])
