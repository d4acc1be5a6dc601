"""Every public function of the env and of the adapters takes states of NumPy and of JAX, compiled
or not, and gives the same."""

import chex
import jax
import jax.numpy as jnp

from tests.support.game import small
from tests.support.game.small import GAME, SMALL, read_game
from wallgo_jax.adapters.gymnasium import WallGoEnv
from wallgo_jax.adapters.gymnax import RANDOM_SEAT, EnvParams, EnvState, WallGoGymnax
from wallgo_jax.adapters.opponents import play_randomly
from wallgo_jax.adapters.pettingzoo import WallGoAEC
from wallgo_jax.adapters.pgx import WallGoPgx

ENV = small.env()
PGX = WallGoPgx(SMALL, planes="B")
SELF_PLAY = WallGoGymnax(SMALL, planes="B")
PLIES = 2


def calls():
    """Name, function, arguments as arrays of JAX; keys stay what they are."""
    key, action, seat = jax.random.key(1), jnp.int32(GAME[PLIES]), jnp.int32(1)
    params = EnvParams(jnp.int32(99), jnp.int32(0))
    state = small.states()[PLIES]
    yield "step", ENV.step, state, action
    yield "step_auto_reset", ENV.step_auto_reset, state, action
    yield "observe", ENV.observe, state, seat
    yield "random_action", ENV.random_action, state, key
    yield "territory", ENV.territory, state
    yield "legal_slots", ENV.legal_slots, state
    yield "state_of", ENV.state_of, state.game
    yield "actions of one state", jax.vmap(ENV.step, (None, 0)), state, jnp.int32([3, 9])
    yield "play_randomly", play_randomly, state, key
    first = PGX.init(key)
    yield "pgx step", PGX.step, first, jnp.int32(GAME[0])
    yield "pgx observe", PGX.observe, first
    board = EnvState(jnp.int32(PLIES), jnp.int32(RANDOM_SEAT), state)
    yield "gymnax step", SELF_PLAY.step, key, board, action, params
    yield "gymnax step_env", SELF_PLAY.step_env, key, board, action, params
    yield "gymnax get_obs", SELF_PLAY.get_obs, board
    yield "gymnax observe", SELF_PLAY.observe, key, board, action
    yield "gymnax is_terminated", SELF_PLAY.is_terminated, board
    yield "gymnax is_truncated", SELF_PLAY.is_truncated, board, params
    yield "gymnax discount", SELF_PLAY.discount, board


@jax.numpy_dtype_promotion("strict")
def test_numpy_and_jax_states_compiled_and_not():
    for name, function, *arrays in calls():
        compiled = jax.jit(function)
        with jax.transfer_guard("disallow"):
            expected = jax.device_get(compiled(*arrays))
        of_numpy = jax.device_get(arrays)
        with jax.disable_jit():
            interpreted = function(*of_numpy)
        for found in (compiled(*of_numpy), interpreted):
            chex.assert_trees_all_equal(jax.device_get(found), expected, custom_message=name)


def test_steps_on_the_host_without_compiling():
    single, turns = WallGoEnv(SMALL, read_game, seat=0, planes="B"), WallGoAEC(SMALL, planes="B")
    with jax.disable_jit():
        single.reset(seed=0)
        single.step(GAME[0])
        turns.reset()
        turns.step(GAME[0])
    first, second = small.states()[1:3]
    assert single.action_masks().tolist() == second.legal_action_mask.tolist()
    assert turns.infos["player_1"]["action_mask"].tolist() == first.legal_action_mask.tolist()
