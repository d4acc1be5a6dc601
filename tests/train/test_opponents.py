"""Players by name as opponents: on the host, in a traced program, and refused."""

import jax
import numpy as np
import pytest

import wallgo_jax
from train.opponents import make_opponent, make_wallgo_env
from train.players.registry import make_player
from train.runtime.errors import UsageError
from wallgo_jax.adapters.gymnax import WallGoGymnax

SMALL = wallgo_jax.Rules(size=3, stones=1, order=(0, 1))


def test_players_by_name_play_whole_games():
    env = make_wallgo_env(["random", "exact"], SMALL, seat=1, planes="B", render_mode="ansi")
    assert env.render_mode == "ansi"
    drawn = set()
    for seed in range(6):
        _, info = env.reset(seed=seed)
        env.action_space.seed(seed)
        terminated = False
        while not terminated:
            action = env.action_space.sample(info["action_mask"])
            _, reward, terminated, _, info = env.step(action)
        assert (info["seat"], info["players"][1]) == (1, "learner")
        assert np.shape(info["action_mask"]) == (477,)
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


@pytest.mark.parametrize(
    ("name", "word"), [("nobody", "nobody"), ("exact@3", "exact"), ("search:no/such", "no/such")]
)
def test_an_unknown_player_is_refused(name, word):
    with pytest.raises(UsageError, match=word):
        make_wallgo_env(["random", name], SMALL)


def test_rules_are_those_that_an_opponent_has_learned():
    learned = make_wallgo_env(["random", "pretrained:wallzero-4stone@2"], planes="B")
    assert learned.unwrapped.rules == wallgo_jax.PRESETS["wallzero-4stone"]
    assert make_wallgo_env("random", "hkoi").unwrapped.rules == wallgo_jax.PRESETS["hkoi"]
    with pytest.raises(UsageError, match="learned"):
        make_opponent("pretrained:wallzero-4stone@2", SMALL)
