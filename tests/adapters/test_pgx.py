"""pgx drives the game: its own API test and auto-reset, sides, seats, pictures."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pgx._src import api_test as pgx_api_test
from pgx.experimental.wrappers import auto_reset

import wallgo_jax
from tests.support.game.small import GAME, SMALL, THREE
from wallgo_jax.adapters.pgx import WallGoPgx

MOST_PLIES = 2 + 12
"""No game of `SMALL` is longer than its placements and the inner edges of its board."""


@pytest.fixture(scope="module")
def env() -> WallGoPgx:
    return WallGoPgx(SMALL, planes="B")


@pytest.fixture(scope="module")
def step(env):
    jitted = jax.jit(env.step)
    return lambda state, action: jitted(state, np.int32(action))


@pytest.fixture(scope="module")
def games(env, step):
    """For each id that may be Red, the states of `GAME`."""
    init, found = jax.jit(env.init), {}
    for seed in range(8):
        states = [init(jax.random.key(seed))]
        for action in GAME:
            states.append(step(states[-1], action))
        found[int(states[0].current_player)] = states
    assert sorted(found) == [0, 1]
    return found


def act_randomly(key: jax.Array, mask: jax.Array) -> jax.Array:
    """pgx's function with an axis that also fits one board."""
    return jax.random.categorical(key, jnp.log(mask.astype(jnp.float32)), axis=-1)


def test_pgx_accepts_the_env(env, monkeypatch):
    # The choice of pgx 2.6.0 fails on one board under JAX 0.10, whatever the game.
    monkeypatch.setattr(pgx_api_test, "act_randomly", jax.jit(act_randomly))
    pgx_api_test.api_test(env, num=2)


@pytest.mark.parametrize(
    ("action", "error", "reason"),
    [
        (1.0, TypeError, "action: the float 1.0, not an integer"),
        (np.array([1, 2]), ValueError, r"action: int64\[2\], but step takes one .*jax.vmap"),
    ],
)
def test_what_is_no_action_is_refused_by_name(env, games, action, error, reason):
    with pytest.raises(error, match=reason):
        env.step(games[0][0], action)


def test_what_is_no_key_is_refused_by_name(env):
    with pytest.raises(TypeError, match=r"key: the int 0, not a key"):
        env.init(0)


def test_the_env_says_what_it_is(env, games):
    assert (env.id, env.version, env.num_players) == ("wallgo", wallgo_jax.make(SMALL).version, 2)
    assert (env.num_actions, env.observation_shape) == (9 * 53, (3, 3, 8))
    assert games[0][0].env_id == env.id
    assert env == WallGoPgx(SMALL, planes="B") != WallGoPgx(SMALL, planes="BT")
    assert "Red to place a stone." in str(games[0][0])


@pytest.mark.parametrize("red", [0, 1])
def test_the_key_draws_who_is_red(games, red):
    """The id that is Red moves first, and loses."""
    states, blue = games[red], 1 - red
    assert [int(s.current_player) for s in states[:-1]] == [red, blue, red, blue, red]
    assert [bool(s.terminated) for s in states] == [False] * 5 + [True]
    assert [int(s._step_count) for s in states] == [0, 1, 2, 3, 4, 5]
    assert not any(s.rewards.any() for s in states[:-1])
    assert (float(states[-1].rewards[red]), float(states[-1].rewards[blue])) == (-1, 1)


@pytest.mark.parametrize("red", [0, 1])
def test_a_player_sees_its_own_colour_first(env, games, red):
    """Planes of B: own stones, the other's; own horizontal walls, the other's; vertical; turn."""
    states = games[red]
    corner, other = np.zeros((3, 3), bool), np.zeros((3, 3), bool)
    corner[0, 0] = other[2, 2] = True
    for state, own, theirs in ((states[2], corner, other), (states[3], other, corner)):
        assert np.array_equal(state.observation[..., 0], own)
        assert np.array_equal(state.observation[..., 1], theirs)
        assert state.observation[..., 6].all() and not state.observation[..., 7].any()
    after_wall = states[3].observation  # Red has walled the lower side of A1, Blue is to move.
    assert np.array_equal(after_wall[..., 3], corner) and not after_wall[..., 2].any()
    with pytest.warns(DeprecationWarning, match="player_id"):
        seen_by_red = env.observe(states[3], jnp.int32(red))
    assert np.array_equal(seen_by_red[..., 2], corner) and seen_by_red[..., 7].all()


def test_without_shuffle_an_id_is_a_colour():
    env = WallGoPgx(SMALL, planes="B", shuffle=False)
    init = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), 8))
    assert init.current_player.tolist() == [0] * 8


@pytest.mark.parametrize("action", [0, -1, 9 * 53, 2**30])
def test_an_illegal_action_costs_what_pgx_says(games, step, action):
    for loser, states in games.items():
        state = step(states[0], action)
        assert bool(state.terminated) and bool(state.legal_action_mask.all())
        assert (float(state.rewards[loser]), float(state.rewards[1 - loser])) == (-1, 1)


def test_three_players_share_what_an_illegal_action_pays():
    env = WallGoPgx(THREE, planes="B")

    @jax.jit
    @jax.vmap
    def play(key):
        state = env.init(key)
        return state.current_player, env.step(state, 0).rewards

    losers, rewards = map(np.asarray, play(jax.random.split(jax.random.key(0), 6)))
    expected = np.where(np.arange(3) == losers[:, None], -1.0, 0.5)
    np.testing.assert_array_equal(rewards, expected)
    assert len({*losers.tolist()}) > 1


def test_pgx_resets_boards_that_are_over(env):
    boards, steps = 16, 200
    init = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), boards))
    step = jax.vmap(auto_reset(env.step, env.init))

    def ply(state, key):
        act_key, step_key = jax.random.split(key)
        action = act_randomly(act_key, state.legal_action_mask)
        state = step(state, action, jax.random.split(step_key, boards))
        is_fresh = (state.legal_action_mask == init.legal_action_mask).all(axis=-1)
        return state, (state.terminated, state.rewards, state._step_count, is_fresh)

    keys = jax.random.split(jax.random.key(1), steps)
    _, (over, rewards, counts, is_fresh) = jax.jit(lambda s: jax.lax.scan(ply, s, keys))(init)
    over, rewards, counts = np.asarray(over), np.asarray(rewards), np.asarray(counts)
    assert (over.sum(axis=0) >= steps // MOST_PLIES).all()
    assert (counts[over] == 0).all() and (counts[~over] > 0).all()
    assert np.asarray(is_fresh)[over].all()
    assert (rewards[~over] == 0).all()
    assert {tuple(pair) for pair in rewards[over].tolist()} <= {(1, -1), (-1, 1), (0, 0)}
    assert {(1, -1), (-1, 1)} <= {tuple(pair) for pair in rewards[over].tolist()}
    for board in over.T:
        assert np.diff(np.flatnonzero(board)).max() <= MOST_PLIES


def sizes(svg: str) -> list[float]:
    return [float(size) for size in re.findall(r'^<svg [^>]*?width="(.*?)" height="(.*?)"', svg)[0]]


def test_pictures_have_pgx_options(games, tmp_path):
    state = games[0][3]
    plain = state.to_svg()
    assert sizes(state.to_svg(scale=2.0)) == [2 * size for size in sizes(plain)]
    dark = state.to_svg(color_theme="dark")
    assert dark != plain and sizes(dark) == sizes(plain)
    state.save_svg(tmp_path / "board.svg", color_theme="dark")
    assert (tmp_path / "board.svg").read_text("utf-8") == dark
    assert state._repr_html_() == plain
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *games[0])
    assert batch.to_svg().count("<svg") == 1 + len(games[0])
    assert sizes(batch.to_svg()) > sizes(plain)
    with pytest.raises(ValueError, match=r"'board\.png' does not end in \.svg"):
        state.save_svg("board.png")
