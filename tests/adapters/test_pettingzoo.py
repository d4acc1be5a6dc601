"""PettingZoo drives the game: its own API test, a recorded game, renders."""

import numpy as np
import pytest
from pettingzoo.test import api_test as pettingzoo_api_test

from tests.support.game.small import SMALL
from wallgo_jax.adapters.pettingzoo import WallGoAEC


def test_pettingzoo_accepts_the_env(capsys):
    env = WallGoAEC("playwallgo-3p", planes="B", render_mode="ansi")
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


@pytest.mark.parametrize("action", ["C3", 1.0, True, np.array([1])], ids=str)
def test_pettingzoo_refuses_what_is_no_action(action):
    env = WallGoAEC(SMALL, planes="B")
    env.reset()
    with pytest.raises(TypeError, match=r"action: .* is not an integer"):
        env.step(action)
    assert not any(env.terminations.values())


@pytest.mark.parametrize(
    ("mode", "begins"), [("ansi", "     A   B"), ("svg", "<svg "), ("human", None)]
)
def test_pettingzoo_renders(mode, begins, capsys):
    env = WallGoAEC(SMALL, planes="B", render_mode=mode)
    env.reset()
    assert capsys.readouterr().out.count("Ply 0: Red to place a stone.") == (mode == "human")
    shown = env.render()
    assert shown.startswith(begins) if begins else shown is None
