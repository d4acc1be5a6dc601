"""The env's contract: fields, masks, illegal actions, auto-reset, batches of mixed rules."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import serialization

import wallgo_jax
from tests.support import compiling
from tests.support.forms import of_a_tpu
from tests.support.game.board_text import go, place
from tests.support.game.small import GAME, NUM_ACTIONS, SMALL
from wallgo_jax.game import state as state_lib
from wallgo_jax.game.rules import PRESETS

PLANES, CHANNELS = "BTRHDV", 13 + 36 + 8 + 12


@pytest.fixture(scope="module")
def env() -> wallgo_jax.WallGo:
    return wallgo_jax.make(SMALL, planes=PLANES)


@pytest.fixture(scope="module")
def init(env):
    return jax.jit(env.init)


@pytest.fixture(scope="module")
def step(env):
    """One trace serves the states of `init` and of `step`, whatever the integer."""
    chex.clear_trace_counter()
    jitted = jax.jit(chex.assert_max_traces(env.step, n=1))
    return lambda state, action: jitted(state, np.int32(action))


@pytest.fixture(scope="module")
def step_auto_reset(env):
    """One board, through a batch of one: `vmap` is part of the contract."""
    batched = jax.jit(jax.vmap(env.step_auto_reset))

    def one(state, action):
        wide = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
        after = batched(wide, np.array([action], np.int32))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[0], after)

    return one


@pytest.fixture(scope="module")
def game_states(init, step) -> list[wallgo_jax.State]:
    """The states of `GAME`, the first one before any ply."""
    states = [init()]
    for action in GAME:
        states.append(step(states[-1], action))
    return states


def assert_trees_equal(a, b):
    """Same structure, dtypes and values."""
    chex.assert_trees_all_equal_shapes_and_dtypes(a, b)
    chex.assert_trees_all_equal(a, b)


# The state.


def test_planes_taken_over_are_those_of_the_position(env, step, game_states):
    """A step shifts the past that it was shown; `observe` works it out from the trail. Whole game,
    a ply after its end, an illegal ply."""
    observe = jax.jit(env.observe)
    states = [*game_states, step(game_states[-1], GAME[0]), step(game_states[3], -1)]
    assert states[5].observation[..., 21:-12].any()
    for state in states:
        assert_trees_equal(observe(state), state.observation)
        assert_trees_equal(observe(state, np.int32(1)), state.observation)


def test_state_of_a_game_is_what_its_steps_have_shown(env, game_states):
    state_of = jax.jit(env.state_of)
    for state in game_states:
        assert_trees_equal(state_of(state.game), state.replace(rewards=np.zeros(2, np.float32)))
    assert state.terminated


def test_fields_dtypes_and_shapes(game_states):
    for state in game_states:
        fields = {
            "current_player": (np.int32, ()),
            "observation": (np.bool_, (3, 3, CHANNELS)),
            "rewards": (np.float32, (2,)),
            "terminated": (np.bool_, ()),
            "truncated": (np.bool_, ()),
            "legal_action_mask": (np.bool_, (NUM_ACTIONS,)),
            "final_observation": (np.bool_, (3, 3, CHANNELS)),
            "_step_count": (np.int32, ()),
            "_planes": (np.uint32, (1, CHANNELS)),
        }
        for name, (dtype, shape) in fields.items():
            leaf = getattr(state, name)
            assert (name, leaf.dtype, leaf.shape) == (name, dtype, shape)
        assert isinstance(state.game, state_lib.State)
        assert {field.name for field in dataclasses.fields(state)} == {*fields, "game"}


def test_state_is_a_frozen_pytree_with_replace(game_states):
    state = game_states[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.terminated = True
    changed = state.replace(rewards=np.ones(2))
    assert changed.rewards.tolist() == [1.0, 1.0]
    assert state.rewards.tolist() == [0.0, 0.0]
    leaves, treedef = jax.tree.flatten(state)
    assert_trees_equal(jax.tree.unflatten(treedef, leaves), state)
    paths = [path[0].name for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
    assert paths[:2] == ["current_player", "observation"]


def test_env_says_what_it_is(env):
    assert (env.id, env.num_players, env.num_actions, env.num_slots) == ("custom", 2, 477, 52)
    assert env.observation_shape == (3, 3, CHANNELS)
    assert len(env.channels) == CHANNELS
    assert isinstance(env.version, str)
    assert env.rules == SMALL
    hkoi = wallgo_jax.make("hkoi")
    assert wallgo_jax.make(hkoi.rules.to_dict()) == hkoi
    with pytest.raises(ValueError, match="unknown key 'sise'; known keys: size"):
        wallgo_jax.make({"sise": 5})
    assert (hkoi.id, hkoi.num_actions, hkoi.num_slots) == ("hkoi", 2597, 208)
    assert hkoi.observation_shape == (7, 7, 49) == jax.eval_shape(hkoi.init).observation.shape
    padded = wallgo_jax.make("playwallgo-3p", grid=9, planes="B")
    assert (padded.num_players, padded.num_actions, padded.num_slots) == (3, 4293, 104)
    assert padded.observation_shape == (9, 9, 13)
    assert padded.channels[-1].kind == "playable"
    assert wallgo_jax.make("hkoi", grid=7, planes="B").observation_shape == (7, 7, 9)


def test_init_is_the_empty_board_and_the_key_changes_nothing(init):
    states = [init(), init(jax.random.key(1)), init(jax.random.PRNGKey(2))]
    for state in states:
        assert_trees_equal(state, states[0])
        assert (int(state.current_player), int(state._step_count)) == (0, 0)
        assert not state.terminated
        assert np.flatnonzero(state.legal_action_mask).tolist() == list(range(9 * 52, 9 * 53))
        assert_trees_equal(state.final_observation, state.observation)


# A game.


def test_game_runs_to_its_end(env, game_states):
    assert [int(state.current_player) for state in game_states[:-1]] == [0, 1, 0, 1, 0]
    assert [bool(state.terminated) for state in game_states] == [False] * 5 + [True]
    assert [bool(state.legal_action_mask.all()) for state in game_states] == [False] * 5 + [True]
    slots = [int(jax.jit(env.legal_slots)(state).sum()) for state in game_states[:-1]]
    assert slots == [int(state.legal_action_mask.sum()) for state in game_states[:-1]]
    assert [int(state._step_count) for state in game_states] == [0, 1, 2, 3, 4, 5]
    assert not any(state.truncated for state in game_states)
    assert [state.rewards.tolist() for state in game_states] == [[0.0, 0.0]] * 5 + [[-1.0, 1.0]]
    assert jax.jit(env.territory)(game_states[-1]).tolist() == [1, 8]
    assert not np.array_equal(game_states[3].observation, game_states[4].observation)


def test_step_after_the_end_changes_nothing_and_pays_zeros(step, game_states):
    end = game_states[-1]
    for action in (0, GAME[0], GAME[-1], -1, NUM_ACTIONS):
        assert_trees_equal(step(end, action), end.replace(rewards=np.zeros(2, np.float32)))


@pytest.mark.parametrize(
    "action",
    [
        place("A1", grid=3),
        go("C3", "C3", "left", grid=3),
        go("A1", "A1", "up", grid=3),
        go("A1", "A3", "left", grid=3),
        -1,
        NUM_ACTIONS,
        2**31 - 1,
        -(2**31),
    ],
    ids=[
        *("placement in play", "stone of the other", "border", "wall outside"),
        *("minus one", "count", "largest", "smallest"),
    ],
)
def test_illegal_action_ends_the_game_against_the_offender(step, game_states, action):
    before = game_states[2]  # Red to move from A1
    after = step(before, action)
    assert after.rewards.tolist() == [-1.0, 1.0]
    assert after.terminated
    assert after.legal_action_mask.all()
    assert int(after._step_count) == 3
    position, old = after.game.position, before.game.position
    assert_trees_equal(position, old._replace(terminated=np.bool_(True)))
    assert_trees_equal(after.observation, before.observation)
    assert_trees_equal(step(after, GAME[2]), after.replace(rewards=np.zeros(2, np.float32)))


# Auto-reset.


def test_auto_reset_keeps_what_the_finished_game_paid(init, step, step_auto_reset, game_states):
    """And goes on with the new game."""
    state = init()
    for action, expected in zip(GAME[:-1], game_states[1:-1], strict=True):
        state = step_auto_reset(state, action)
        assert_trees_equal(state, expected)
    state = step_auto_reset(state, GAME[-1])
    end = game_states[-1]
    assert state.rewards.tolist() == [-1.0, 1.0]
    assert state.terminated
    assert not np.array_equal(state.final_observation, state.observation)
    fresh = init().replace(
        rewards=end.rewards, terminated=np.bool_(True), final_observation=end.observation
    )
    assert_trees_equal(state, fresh)
    assert_trees_equal(step_auto_reset(state, GAME[0]), step(init(), GAME[0]))


def test_auto_reset_after_an_illegal_action(init, step_auto_reset, game_states):
    state = step_auto_reset(game_states[3], -1)
    assert state.rewards.tolist() == [1.0, -1.0]
    assert state.terminated
    assert_trees_equal(state.final_observation, game_states[3].observation)
    assert_trees_equal(state.game, init().game)


def test_random_actions_are_legal_and_each_is_drawn(env, init, step):
    state = step(init(), GAME[0])  # eight cells are left for the second stone
    keys = jax.random.split(jax.random.key(0), 400)
    drawn = np.asarray(jax.jit(jax.vmap(env.random_action, (None, 0)))(state, keys))
    found, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(found, np.flatnonzero(state.legal_action_mask))
    # Five deviations of a binomial of 400 and 1/8.
    assert abs(counts - 50).max() < 5 * 6.7


# Transformations.


def test_whole_games_in_one_trace_under_jit_vmap_and_scan():
    env, boards = wallgo_jax.make(SMALL, planes="B"), 4

    def ply(states, key):
        logits = jnp.where(states.legal_action_mask, 0.0, -jnp.inf)
        action = jax.random.categorical(key, logits)
        keys = jax.random.split(key, boards)
        after = jax.vmap(env.step_auto_reset)(states, action, keys)
        return after, (after.terminated, after.rewards)

    @jax.jit
    @functools.partial(chex.assert_max_traces, n=1)
    def run(key):
        init_key, play_key = jax.random.split(key)
        states = jax.vmap(env.init)(jax.random.split(init_key, boards))
        return jax.lax.scan(ply, states, jax.random.split(play_key, 60))[1]

    chex.clear_trace_counter()
    for seed in range(3):
        terminated, rewards = jax.device_get(run(jax.random.key(seed)))
        assert terminated.any(axis=0).all()
        assert not rewards[~terminated].any()
        assert rewards.sum(axis=-1) == pytest.approx(0)


def test_state_restarts_by_its_own_rules(step_auto_reset):
    other = wallgo_jax.make(dataclasses.replace(SMALL, walls=1), planes=PLANES)
    first = state = jax.jit(other.init)()
    for action in GAME[:4]:
        assert not state.terminated
        state = step_auto_reset(state, action)  # of `env`, whose rules set no limit
    assert state.terminated
    assert state.rewards.tolist() == [0.0, 0.0]
    assert_trees_equal(state.game, first.game)


def test_outside_jit_nothing_is_compiled_at_a_second_call(env):
    key = jax.random.key(0)
    state = env.init(key)
    action = env.random_action(state, key)

    def call_all(action):
        after = env.step(state, action)
        env.step_auto_reset(state, action)
        env.observe(after), env.territory(after), env.legal_slots(after), env.state_of(after.game)
        env.init(key), env.random_action(after, key)

    call_all(action)
    with compiling.count_compilations() as count:
        call_all(action)
    assert count() == 0


def test_a_state_can_be_donated(env):
    """No two of its arrays share a buffer, at the start and after a step; NumPy arrays play on."""
    step = jax.jit(env.step, donate_argnums=0)
    state = env.init()
    for number in range(3):
        action = env.random_action(state, jax.random.key(number))
        expected = jax.device_get(env.step(jax.device_get(state), action))
        state = step(state, action)
        chex.assert_trees_all_equal(state, expected)


def test_a_batch_of_any_size_can_be_exported(env):
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(0), 3))
    actions = jax.vmap(env.random_action)(states, jax.random.split(jax.random.key(1), 3))
    (size,) = jax.export.symbolic_shape("size")
    like = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype), (states, actions)
    )

    def step(states, actions):
        return jax.tree.leaves(jax.vmap(env.step)(states, actions))

    exported = jax.export.export(jax.jit(step))(*like)
    for one, other in zip(exported.call(states, actions), step(states, actions), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_tpu_plays_the_same_games(env, game_states):
    with of_a_tpu():
        step = jax.jit(env.step)
        for before, action, after in zip(game_states[:-1], GAME, game_states[1:], strict=True):
            assert_trees_equal(step(before, np.int32(action)), after)


def test_flax_writes_and_reads_states(env):
    state = env.step(env.init(), int(np.flatnonzero(env.init().legal_action_mask)[0]))
    read = serialization.from_bytes(env.init(), serialization.to_bytes(state))
    chex.assert_trees_all_equal(read, jax.device_get(state))
    assert read.game.grid == state.game.grid
    with pytest.raises(ValueError, match="State"):
        serialization.from_state_dict(state, {"game": 1})


def test_nothing_depends_on_implicit_promotion_of_types():
    """For three players, with all planes."""
    rules = PRESETS["playwallgo-3p"]
    with jax.numpy_dtype_promotion("strict"):
        env = wallgo_jax.make(rules, planes="BTRHDLWV")
        state = env.init()
        action = env.random_action(state, jax.random.key(0))
        for play in (env.step, env.step_auto_reset):
            state = play(state, action)
        env.observe(state), env.territory(state), env.legal_slots(state)
