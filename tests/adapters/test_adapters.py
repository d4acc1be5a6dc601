"""Other libraries drive the game: pgx's own API test and auto-reset, PettingZoo's own API test."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import api_test as pettingzoo_api_test
from pgx._src import api_test as pgx_api_test
from pgx.experimental.wrappers import auto_reset

import wallgo_jax
from tests.support.game.pgx_adapter import ENV_ID, PgxWallGo
from wallgo_jax.adapters.pettingzoo import WallGoAEC

slow = pytest.mark.slow
TWO_PLAYERS = ["wallzero-4stone", "wallzero-empty", "hkoi", "playwallgo-2p"]
SMALL = wallgo_jax.Rules(size=3, stones=1, order=(0, 1))
MORE = [pytest.param(name, marks=slow, id=name) for name in TWO_PLAYERS]


def act_randomly(key: jax.Array, mask: jax.Array) -> jax.Array:
    """pgx's function with an axis that also fits one board."""
    return jax.random.categorical(key, jnp.log(mask.astype(jnp.float32)), axis=-1)


@pytest.mark.parametrize("rules", [pytest.param(SMALL, id="small"), *MORE])
def test_pgx_accepts_the_env(rules, monkeypatch):
    # pgx 2.6.0 under JAX 0.10: its own choice wants two axes, and its list of ids is closed.
    monkeypatch.setattr(pgx_api_test, "act_randomly", jax.jit(act_randomly))
    monkeypatch.setattr(pgx_api_test, "EnvId", Literal["wallgo"])
    pgx_api_test.api_test(PgxWallGo(rules), num=2)


def test_an_illegal_action_costs_what_pgx_says():
    env = PgxWallGo(SMALL)
    state = jax.jit(lambda key: env.step(env.init(key), jnp.int32(0)))(jax.random.key(0))
    assert ENV_ID == env.id
    assert bool(state.terminated)
    assert state.rewards.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("rules", "most_plies"),
    [
        pytest.param(SMALL, 2 + 12, id="small"),
        pytest.param("wallzero-4stone", 4 + 84, marks=slow, id="wallzero-4stone"),
    ],
)
def test_pgx_resets_boards_that_are_over(rules, most_plies):
    """No game is longer than its placements and the inner edges of its board."""
    env, boards, steps = PgxWallGo(rules), 16, 200
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
    assert (over.sum(axis=0) >= steps // most_plies).all()
    assert (counts[over] == 0).all() and (counts[~over] > 0).all()
    assert np.asarray(is_fresh)[over].all()
    assert (rewards[~over] == 0).all()
    assert {tuple(pair) for pair in rewards[over].tolist()} <= {(1, -1), (-1, 1), (0, 0)}
    assert {(1, -1), (-1, 1)} <= {tuple(pair) for pair in rewards[over].tolist()}
    for board in over.T:
        assert np.diff(np.flatnonzero(board)).max() <= most_plies


@pytest.mark.parametrize(
    ("name", "planes"),
    [
        ("playwallgo-3p", "B"),
        *(pytest.param(name, "B", marks=slow) for name in [*TWO_PLAYERS, "playwallgo-4p"]),
        pytest.param("wallzero-4stone", "BTRH", marks=slow),
    ],
)
def test_pettingzoo_accepts_the_env(name, planes, capsys):
    env = WallGoAEC(name, planes=planes, render_mode="ansi")
    pettingzoo_api_test(env, num_cycles=60)
    assert "Passed API test" in capsys.readouterr().out
    env.close()


def test_pettingzoo_plays_a_recorded_game(conformance):
    """Agents take turns, and the accumulated rewards are, as the conformance game says."""
    game = conformance["playwallgo-3p"][0]
    env, paid = WallGoAEC("playwallgo-3p", planes="B"), {}
    env.reset()
    turns = []
    for agent in env.agent_iter():
        _, reward, terminated, _, info = env.last()
        paid[agent] = paid.get(agent, 0.0) + reward
        if terminated:
            env.step(None)
            continue
        turns.append(int(agent.removeprefix("player_")))
        assert info["action_mask"].sum() == game["legal_counts"][len(turns) - 1]
        env.step(game["actions"][len(turns) - 1])
    assert turns == game["turns"]
    assert [paid[f"player_{p}"] for p in range(3)] == pytest.approx(game["rewards"], abs=1e-5)


@pytest.mark.parametrize(("mode", "begins"), [("ansi", "     A   B"), ("svg", "<svg ")])
def test_pettingzoo_renders(mode, begins):
    env = WallGoAEC(SMALL, planes="B", render_mode=mode)
    env.reset()
    assert env.render().startswith(begins)


def test_pettingzoo_prints_for_people(capsys):
    env = WallGoAEC(SMALL, planes="B", render_mode="human")
    env.reset()
    assert env.render() is None
    assert "Red to place a stone." in capsys.readouterr().out
