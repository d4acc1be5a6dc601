"""Players by name as opponents: on the host, in a traced program, and refused in one line."""

import jax
import numpy as np
import pytest

import wallgo_jax
from train.opponents import make_opponent, make_wallgo_env
from train.registry import make_player
from train.runtime.errors import UsageError
from wallgo_jax.adapters.gymnax import WallGoGymnax

SMALL = wallgo_jax.Rules(size=3, stones=1, order=(0, 1))


def test_players_by_name_play_whole_games():
    env = make_wallgo_env(["random", "exact"], SMALL, planes="B")
    drawn = set()
    for seed in range(6):
        _, info = env.reset(seed=seed)
        env.action_space.seed(seed)
        terminated = False
        while not terminated:
            action = env.action_space.sample(info["action_mask"])
            _, reward, terminated, _, info = env.step(action)
        drawn |= set(info["players"])
        assert reward in (-1.0, 0.0, 1.0)
    assert drawn == {"random", "exact", "learner"}


def test_an_opponent_plays_what_its_player_plays():
    """The player's slot is read off the table of slots and actions that the env shows."""
    env = wallgo_jax.make(SMALL, planes="B")
    state, key = jax.device_get(jax.jit(env.init)()), jax.random.key(3)
    player = make_player("random", SMALL)
    batch = jax.tree.map(lambda leaf: leaf[None], state.game)
    slot = int(player.act(player.variables, batch, key)[0])
    assert int(make_opponent("random", SMALL)(state, key)) == 9 * 52 + slot


def test_a_player_is_an_opponent_in_a_traced_program():
    env = WallGoGymnax(SMALL, planes="B", opponent=make_opponent("greedy", SMALL))
    shapes = jax.eval_shape(env.reset, jax.random.key(0))
    assert shapes[0].shape == (3, 3, 8)


@pytest.mark.parametrize("name", ["nobody", "exact@3", "search:no/such/run"])
def test_an_unknown_player_is_refused(name):
    with pytest.raises(UsageError) as error:
        make_wallgo_env(["random", name], SMALL)
    assert name.partition("@")[0].partition(":")[2] in str(error.value)
    assert "\n" not in str(error.value)


def test_rules_are_those_that_an_opponent_has_learned():
    learned = make_wallgo_env(["random", "pretrained:wallzero-4stone@2"], planes="B")
    assert learned.unwrapped.rules == wallgo_jax.PRESETS["wallzero-4stone"]
    assert make_wallgo_env("random", "hkoi").unwrapped.rules == wallgo_jax.PRESETS["hkoi"]
    with pytest.raises(UsageError, match="learned"):
        make_opponent("pretrained:wallzero-4stone@2", SMALL)


def test_options_reach_the_env():
    env = make_wallgo_env("random", SMALL, seat=1, planes="B", render_mode="ansi")
    _, info = env.reset()
    assert (info["seat"], env.render_mode) == (1, "ansi")
    assert info["players"] == ("random", "learner")
    assert np.shape(info["action_mask"]) == (477,)
