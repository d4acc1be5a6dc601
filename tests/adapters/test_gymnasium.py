"""Gymnasium drives the game: its own checks, seats, opponents, rewards, renders."""

import pickle

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import wallgo_jax.adapters.gymnasium as adapter
from tests.support.game.board_text import place
from tests.support.game.small import GAME, SMALL, THREE
from wallgo_jax.adapters.gymnasium import ENV_ID, WallGoEnv
from wallgo_jax.adapters.opponents import play_randomly


def reader(game):
    """An opponent that plays a recorded game's actions, whichever seat it has."""
    return lambda state, key: game[int(state._step_count)]


def play_out(env: WallGoEnv, seed: int) -> tuple[float, dict]:
    """Play any legal action until the end; the reward and the last info."""
    _, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    while True:
        action = env.action_space.sample(info["action_mask"])
        _, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        if terminated:
            return reward, info
        assert reward == 0.0


@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
def test_gymnasium_accepts_the_env(mode, capsys):
    """Warnings are errors here; the checks render every mode of an env that has a spec."""
    env = gymnasium.make(ENV_ID, rules=SMALL, planes="B", render_mode=mode)
    check_env(env.unwrapped, skip_render_check=False)


def test_gymnasium_accepts_a_game_of_three():
    check_env(WallGoEnv(THREE, planes="B"), skip_render_check=True)


def test_a_recorded_game_against_two_opponents(conformance):
    """Seat 1 meets the positions and gets the reward that the conformance game says."""
    game = conformance["playwallgo-3p"][0]
    env = WallGoEnv("playwallgo-3p", reader(game["actions"]), seat=1, planes="B")
    _, info = env.reset(seed=0)
    assert (info["seat"], info["players"]) == (1, ("<lambda>", "learner", "<lambda>"))
    total, turns = 0.0, [ply for ply, player in enumerate(game["turns"]) if player == 1]
    for ply in turns:
        assert info["action_mask"].sum() == game["legal_counts"][ply]
        assert (info["action_mask"].dtype, env.action_masks().dtype) == (np.int8, bool)
        assert np.array_equal(env.action_masks(), info["action_mask"])
        _, reward, terminated, _, info = env.step(game["actions"][ply])
        total += reward
    assert terminated
    assert total == pytest.approx(game["rewards"][1], abs=1e-5)


@pytest.mark.parametrize(("seat", "reward"), [(0, -1.0), (1, 1.0)])
def test_reward_and_observation_are_the_learners(seat, reward):
    """Planes of B: own stones, the others'; own horizontal walls, the others'; vertical; turn."""
    env = WallGoEnv(SMALL, reader(GAME), planes="B")
    seen, info = env.reset(seed=0, options={"seat": seat})
    assert info["seat"] == seat
    assert (seen[..., 0].any(), seen[..., 1].any()) == (False, seat == 1)
    assert seen[..., 6].all() and not seen[..., 7].any()
    results = [env.step(action)[:3] for action in GAME[seat::2]]
    assert [result[1] for result in results] == [0.0] * (len(results) - 1) + [reward]
    assert [result[2] for result in results] == [False] * (len(results) - 1) + [True]
    own, other = [(0, 0), (2, 2)][seat], [(2, 2), (0, 0)][seat]
    assert np.argwhere(results[-1][0][..., 0]).tolist() == [list(own)]
    assert np.argwhere(results[-1][0][..., 1]).tolist() == [list(other)]
    with pytest.raises(ResetNeeded, match="no game is running"):
        env.step(GAME[0])


@pytest.mark.parametrize("action", [0, -1, 9 * 53, 2**40, -(2**40)])
def test_an_illegal_action_costs_one(action):
    env = WallGoEnv(SMALL, planes="B", seat=1)
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated) == (-1.0, True)
    assert info["action_mask"].all()


def test_seeds_draw_seats_and_opponents():
    def first(state, key):
        return state.legal_action_mask.argmax()

    env = WallGoEnv(THREE, [first, play_randomly], planes="B")
    outcomes = [play_out(env, seed) for seed in range(12)]
    for seed, (reward, info) in enumerate(outcomes[:3]):
        again, same = play_out(env, seed)
        assert (again, same["seat"], same["players"]) == (reward, info["seat"], info["players"])
    infos = [info for _, info in outcomes]
    assert {info["seat"] for info in infos} == {0, 1, 2}
    drawn = set()
    for info in infos:
        players = list(info["players"])
        assert players.pop(info["seat"]) == "learner"
        drawn.add(tuple(players))
    assert len(drawn) >= 3
    assert {name for pair in drawn for name in pair} == {"first", "play_randomly"}
    assert {reward for reward, _ in outcomes} <= {1.0, 0.0, -0.5}


def test_an_opponent_sees_who_moves_and_gets_keys():
    seen = []

    def spy(state, key):
        seen.append((int(state.current_player), int(state._step_count), key))
        return play_randomly(state, key)

    env = WallGoEnv(SMALL, spy, planes="B", seat=1)
    play_out(env, 3)
    assert [player for player, _, _ in seen] == [0] * len(seen)
    assert [count for _, count, _ in seen] == list(range(0, 2 * len(seen), 2))
    assert len({tuple(jax.random.key_data(key).tolist()) for *_, key in seen}) == len(seen)


def test_envs_are_pickled_and_vectorised():
    env = WallGoEnv(SMALL, planes="B")
    copied = pickle.loads(pickle.dumps(env))
    assert np.array_equal(copied.reset(seed=1)[0], env.reset(seed=1)[0])
    boards = gymnasium.make_vec(ENV_ID, num_envs=3, rules=SMALL, planes="B")
    observations, info = boards.reset(seed=0)
    assert observations.shape == (3, 3, 3, 8) and info["action_mask"].shape == (3, 477)
    assert {"learner", "play_randomly"} == {name for pair in info["players"] for name in pair}
    boards.close()


@pytest.mark.parametrize(
    ("action", "told"),
    [(9 * 52, "468 (A1)"), (0, "0 (A1->A1:up)"), (4, "4"), (-1, "-1"), (9 * 53, "477")],
)
def test_an_opponents_illegal_action_is_an_error(action, told):
    """Also a move off the grid, which has no text, and what is no action."""

    def cheat(state, key):
        return action

    env = WallGoEnv(SMALL, cheat, planes="B", seat=0)
    env.reset()
    with pytest.raises(ValueError) as error:
        env.step(place("A1", grid=3))
    assert str(error.value) == (
        f"opponent cheat: action {told} is illegal on ply 1; "
        "opponents must return a legal public action"
    )


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"seat": 2}, ValueError, "seat: 2 is not None or 0 to 1"),
        ({"opponents": []}, ValueError, "opponents: the list is empty"),
        ({"opponents": "wjx"}, TypeError, "opponents: 'wjx' is not a function (state, key) ->"),
        ({"render_mode": "svg"}, ValueError, "render_mode: 'svg' is not one of ansi, human, rgb"),
    ],
)
def test_wrong_arguments_are_named(options, kind, said):
    with pytest.raises(kind) as error:
        WallGoEnv(SMALL, **options)
    assert str(error.value).startswith(said)


def test_wrong_calls_are_named():
    env = WallGoEnv(SMALL, planes="B")
    for call in (lambda: env.step(0), env.action_masks):
        with pytest.raises(ResetNeeded, match="no game is running"):
            call()
    with pytest.raises(ValueError, match="options: 'seet' is unknown; known options: seat"):
        env.reset(options={"seet": 1})
    env.reset()
    for action in (1.0, "A1", None, True):
        with pytest.raises(TypeError, match=r"action: .* is not an integer"):
            env.step(action)


def test_renders(capsys):
    text, human, pixels = (
        WallGoEnv(SMALL, planes="B", seat=0, render_mode=mode)
        for mode in ("ansi", "human", "rgb_array")
    )
    for env in (text, human, pixels):
        env.reset()
    assert text.render().startswith("     A   B   C\n")
    assert capsys.readouterr().out.count("Ply 0: Red to place a stone.") == 1
    human.step(place("A1", grid=3))
    assert human.render() is None
    assert capsys.readouterr().out.count("Ply 2: Red to move.") == 1
    picture = pixels.render()
    assert (picture.dtype, picture.ndim, picture.shape[2]) == (np.uint8, 3, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 3
    assert WallGoEnv(SMALL).render() is None


def test_a_forked_process_is_told_to_be_spawned(monkeypatch):
    """What a fork runs in the child; one before any game is harmless."""
    env = adapter.WallGoEnv(SMALL)
    monkeypatch.setattr(adapter, "_played", False)
    adapter._note_fork()
    env.reset(seed=0)
    monkeypatch.setattr(adapter, "_is_forked", False)
    adapter._note_fork()
    with pytest.raises(RuntimeError, match="spawn"):
        env.reset(seed=0)
