"""The gymnax adapter: recorded games, auto-reset, seats, cut-off, gymnax's own wrappers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.game.small import GAME, SMALL, read_game
from wallgo_jax.adapters import spaces
from wallgo_jax.adapters.gymnax import WallGoGymnax

KEY = jax.random.key(0)


def step(env, state, action: int, params, key=KEY):
    """One step of a NumPy integer, so that all integers share a program."""
    return env.step(key, state, np.int32(action), params)


@pytest.fixture(scope="module")
def selfplay() -> WallGoGymnax:
    return WallGoGymnax(SMALL, planes="B")


@pytest.fixture(scope="module")
def against_reader() -> WallGoGymnax:
    return WallGoGymnax(SMALL, planes="B", opponent=read_game)


def test_the_env_says_what_it_is(selfplay):
    assert (selfplay.name, selfplay.num_actions) == ("WallGo-custom", 477)
    assert WallGoGymnax("hkoi").name == "WallGo-hkoi"
    params = selfplay.default_params
    actions, observations = selfplay.action_space(params), selfplay.observation_space(params)
    assert (actions.n, observations.shape) == (477, (3, 3, 8))
    drawn = actions.sample(KEY)
    assert drawn.dtype == jnp.int32 and bool(actions.contains(drawn))
    assert not actions.contains(477) and not actions.contains(-1)
    obs, state = selfplay.reset(KEY, params)
    jax.eval_shape(selfplay.step, KEY, state, np.int32(0))  # parameters may be left out
    assert obs.dtype == observations.dtype and bool(observations.contains(obs))
    assert bool(observations.contains(observations.sample(KEY)))
    assert not observations.contains(obs + 1)
    assert selfplay == WallGoGymnax(SMALL, planes="B") != WallGoGymnax(SMALL, planes="BT")


def test_without_opponent_the_reward_is_the_actors(selfplay):
    """A game, and the first ply of the next: the loser makes the last move and is paid -1."""
    params = selfplay.default_params
    obs, state = selfplay.reset(KEY, params)
    first = obs
    for index, action in enumerate(GAME):
        is_last = index == len(GAME) - 1
        obs, state, reward, terminated, truncated, info = step(selfplay, state, action, params)
        assert (float(reward), bool(terminated)) == (-1.0 if is_last else 0.0, is_last)
        assert info["rewards"].tolist() == ([-1.0, 1.0] if is_last else [0.0, 0.0])
        assert float(info["discount"]) == (0.0 if is_last else 1.0)
        assert not truncated
    assert np.array_equal(obs, first)
    assert not np.array_equal(info["final_observation"], first)
    assert (int(state.time), int(info["current_player"])) == (0, 0)
    assert np.flatnonzero(info["action_mask"]).tolist() == list(range(9 * 52, 9 * 53))
    obs, state, *_ = step(selfplay, state, GAME[0], params)
    assert np.argwhere(obs[..., 1]).tolist() == [[0, 0]]  # Blue sees Red's stone second.
    assert not obs[..., 0].any() and obs[..., 6].all()


@pytest.mark.parametrize(("seat", "reward"), [(0, -1.0), (1, 1.0)])
def test_against_an_opponent_all_is_the_learners(against_reader, seat, reward):
    env = against_reader
    params = env.default_params.replace(seat=seat)
    _, state = env.reset(KEY, params)
    assert int(state.board._step_count) == seat
    own, other = [(0, 0), (2, 2)][seat], [(2, 2), (0, 0)][seat]
    for action in GAME[seat::2]:
        assert int(state.board.current_player) == seat
        _, state, paid, terminated, _, info = step(env, state, action, params)
    assert (float(paid), bool(terminated)) == (reward, True)
    assert np.argwhere(info["final_observation"][..., 0]).tolist() == [list(own)]
    assert np.argwhere(info["final_observation"][..., 1]).tolist() == [list(other)]
    assert (int(state.time), int(state.board._step_count)) == (0, seat)
    assert int(info["current_player"]) == seat


@pytest.mark.parametrize("seat", [2, -2, np.int32(3), jnp.int32(2)])
def test_a_seat_that_is_none_is_refused(against_reader, seat):
    env = against_reader
    params = env.default_params.replace(seat=seat)
    _, state = env.reset(KEY, env.default_params)
    for call in (env.reset, jax.jit(lambda key, _: env.reset(key, params))):
        with pytest.raises(ValueError, match=f"seat: {seat} is not a player from 0 to 1"):
            call(KEY, params)
    with pytest.raises(ValueError, match=f"seat: {seat} is not a player from 0 to 1"):
        step(env, state, GAME[0], params)


def test_what_is_no_key_is_refused_by_name(selfplay):
    keys = jax.random.split(jax.random.key(0), 2)
    spaces = selfplay.action_space(), selfplay.observation_space()
    for take in (selfplay.reset, lambda key: selfplay.step(key, None, 0)):
        with pytest.raises(TypeError, match=r"key: the int 0, not a key"):
            take(0)
        with pytest.raises(ValueError, match=r"takes one key; for a batch: jax\.vmap\(env\."):
            take(keys)
    if type(spaces[0]).__module__.startswith("wallgo_jax"):  # else gymnax's own
        for space in spaces:
            with pytest.raises(TypeError, match="not a key"):
                space.sample(0)


def test_a_seat_may_be_traced(against_reader):
    env = against_reader
    play = jax.jit(lambda seat: env.reset(KEY, env.default_params.replace(seat=seat))[1].seat)
    assert [int(play(seat)) for seat in range(2)] == [0, 1]


def test_an_illegal_action_costs_one(selfplay, against_reader):
    for env in (selfplay, against_reader):
        params = env.default_params.replace(seat=1)
        _, state = env.reset(KEY, params)
        for action in (0, -1, 477):
            _, after, reward, terminated, *_ = step(env, state, action, params)
            assert (float(reward), bool(terminated), int(after.time)) == (-1.0, True, 0)


def test_a_game_is_cut_off(selfplay):
    params = selfplay.default_params.replace(max_steps_in_episode=2)
    _, state = selfplay.reset(KEY, params)
    ends = []
    for action in (*GAME[:2], *GAME[:2]):
        _, state, _, terminated, truncated, info = step(selfplay, state, action, params)
        ends.append((bool(terminated), bool(truncated), float(info["discount"]), int(state.time)))
    assert ends == [(False, False, 1, 1), (False, True, 1, 0)] * 2


def test_each_game_draws_a_seat_by_default(against_reader):
    env = against_reader
    params = env.default_params
    _, first = env.reset(KEY, params)
    seats = {0: set(), 1: set()}
    for seed in range(12):
        _, state, _, terminated, *_ = step(env, first, -1, params, key=jax.random.key(seed))
        assert terminated and int(state.board._step_count) == int(state.seat)
        seats[int(first.seat)].add(int(state.seat))
        first = state
    assert seats == {0: {0, 1}, 1: {0, 1}}


def test_legacy_step_returns_one_done():
    env = WallGoGymnax(SMALL, planes="B", legacy_step=True)
    params = env.default_params.replace(max_steps_in_episode=1)
    _, state = env.reset(KEY, params)
    for given, expected in ((env.default_params, False), (params, True)):
        _, _, reward, done, info = step(env, state, GAME[0], given)
        assert (float(reward), bool(done), bool(info["terminated"])) == (0.0, expected, False)


def test_gymnax_wrappers_accept_the_env(selfplay):
    """gymnax is not among the test's requirements: it holds Gymnasium back and draws pandas."""
    wrappers = pytest.importorskip("gymnax.wrappers")
    env = wrappers.LogWrapper(wrappers.FlattenObservationWrapper(selfplay))
    obs, state = env.reset(KEY, selfplay.default_params)
    assert obs.shape == env.observation_space(selfplay.default_params).shape == (72,)
    for action in GAME:
        *_, info = step(env, state, action, selfplay.default_params)
        _, state, *_ = step(env, state, action, selfplay.default_params)
    assert (float(info["returned_episode_returns"]), int(info["returned_episode_lengths"])) == (
        -1,
        5,
    )
    assert not isinstance(selfplay.action_space(), spaces.Discrete)
