"""Stages of self-play: the player of each iteration."""

import functools
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from train.data.selfplay import POLICY_DTYPE, first_boards
from train.programs import selfplay as selfplay_programs
from train.programs.assembly import make_parts
from train.programs.selfplay import (
    BOOTSTRAP,
    Stage,
    StageKind,
    make_bootstrap,
    make_selfplay_programs,
    selfplay_of,
    stage_at,
    stages_from,
)
from train.registry import make_teacher
from train.runtime.devices import all_devices
from train.runtime.errors import UsageError
from train.search.search import Search
from wallgo_jax.game.state import State


def test_stages_follow_the_config():
    config = tiny.config(
        "--iterations=6",
        "--selfplay.bootstrap_iterations=2",
        "--search.simulations=8",
        "--search.first_simulations=4",
    )
    stages = [stage_at(config, iteration) for iteration in range(6)]
    assert stages[:2] == [BOOTSTRAP, BOOTSTRAP]
    assert {stage.kind for stage in stages[2:]} == {StageKind.SEARCH}
    assert [stage.simulations for stage in stages[2:]] == [4, 8, 8, 8]


@pytest.mark.parametrize("iterations", [1, 5, 12])
@pytest.mark.parametrize(("first", "simulations"), [(0, 8), (1, 8), (3, 100)])
@pytest.mark.parametrize("bootstrap", [0, 1, 20])
def test_later_stages_are_those_of_the_later_iterations(iterations, first, simulations, bootstrap):
    config = tiny.config(
        f"--iterations={iterations}",
        f"--selfplay.bootstrap_iterations={bootstrap}",
        f"--search.simulations={simulations}",
        f"--search.first_simulations={first}",
    )
    each = [stage_at(config, iteration) for iteration in range(iterations)]
    for iteration in range(iterations + 1):
        assert stages_from(config, iteration) == tuple(dict.fromkeys(each[iteration:]))


def _never_compiled(jitted):
    return SimpleNamespace(compile=lambda *like: None)


def test_a_long_run_is_not_gone_through_iteration_by_iteration(monkeypatch):
    """Making its programs asks for a few stages, and so does each of its iterations."""
    config = tiny.config(
        *("--iterations=1000000", "--search.simulations=8", "--search.first_simulations=2")
    )
    asked, parts = [], make_parts(config, all_devices(1))

    def count(config, iteration):
        asked.append(iteration)
        return stage_at(config, iteration)

    monkeypatch.setattr(selfplay_programs, "stage_at", count)
    monkeypatch.setattr(selfplay_programs, "Ahead", _never_compiled)
    monkeypatch.setattr(selfplay_programs, "_jitted", lambda *_: None)
    programs = make_selfplay_programs(config, parts.network, parts.variants, parts.devices)
    programs.at(400_000)
    assert 0 < len(asked) < 20


def test_the_bootstrap_is_no_search_of_few_simulations():
    """The kind of a stage decides, not its number of simulations."""
    assert BOOTSTRAP != Stage(StageKind.SEARCH, BOOTSTRAP.simulations)


@pytest.mark.parametrize(
    "word", ["--learner.value_mix=0", "--learner.value_mix=0.5", "--network.reply=true"]
)
def test_every_stage_makes_the_plies_that_the_replay_is_compiled_for(word):
    config = tiny.config("--selfplay.bootstrap_iterations=1", word)
    parts = make_parts(config, all_devices(1))
    for stage in (BOOTSTRAP, stage_at(config, 1)):
        boards = jax.eval_shape(first_boards, parts.variants)
        variables = () if stage == BOOTSTRAP else parts.network.shapes
        selfplay = selfplay_of(config, stage)
        _, plies, _ = jax.eval_shape(selfplay, variables, parts.variants, boards, jax.random.key(0))
        assert jax.tree.structure(plies) == jax.tree.structure(parts.plies)
        assert jax.tree.leaves(plies) == jax.tree.leaves(parts.plies)


class Bootstrapped(NamedTuple):
    """The plies of a bootstrap's self-play, each board's first ones."""

    states: State  # [T * B], before each ply
    policy: np.ndarray  # [T * B, A], what is learned
    slot: np.ndarray  # [T * B], what was played


@functools.cache
def bootstrapped(player: str) -> Bootstrapped:
    config = tiny.config(
        "--selfplay.bootstrap_iterations=1",
        f"--selfplay.bootstrap_player={player}",
        "--selfplay.plies=4",
        "--selfplay.boards=16",
    )
    variant = tiny.variants(config.rules, config.selfplay.boards)
    selfplay = jax.jit(selfplay_of(config, stage_at(config, 0)))
    _, plies, _ = selfplay((), variant, first_boards(variant), jax.random.key(3))
    many = jax.tree.map(lambda x: jnp.broadcast_to(x, (4, *x.shape)), variant)
    states = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), State(many, plies.position))
    policy, slot = (x.reshape(len(states.position.ply), -1) for x in (plies.policy, plies.slot))
    return Bootstrapped(states, np.asarray(policy), np.asarray(slot)[:, 0])


@functools.cache
def teacher(player: str) -> Search:
    return jax.jit(make_teacher(player, tiny.RULES, heuristics=tiny.config().heuristics))


def choices(player: str, states: State) -> np.ndarray:
    """float16[T * B, A]: what a player chooses, as the replay keeps it."""
    found = teacher(player)((), states, jax.random.key(0))
    return np.asarray(found.policy.astype(POLICY_DTYPE))


@pytest.mark.parametrize("player", ["greedy", "wjx"])
def test_the_bootstrap_is_the_player_that_the_config_names(player):
    """Its policies are the player's in the same positions, and its plies are among its choices."""
    played, other = bootstrapped(player), {"greedy": "wjx", "wjx": "greedy"}[player]
    assert (np.asarray(played.states.position.ply) == np.repeat(range(4), 16)).all()
    np.testing.assert_array_equal(played.policy, choices(player, played.states))
    assert (played.policy[np.arange(len(played.slot)), played.slot] > 0).all()
    assert (played.policy != choices(other, played.states)).any()


@pytest.mark.parametrize(
    ("player", "said"),
    [
        ("pretrained:wallzero-4stone", "player 'pretrained:wallzero-4stone': needs weights; allo"),
        ("net:no/run", "player 'net:no/run': needs weights; allowed: random, greedy, "),
        ("wjy", "player 'wjy': unknown; did you mean wjx?"),
    ],
)
def test_a_player_that_cannot_be_the_bootstrap_is_refused_in_a_line(player, said):
    with pytest.raises(UsageError) as caught:
        make_bootstrap(tiny.config(f"--selfplay.bootstrap_player={player}"))
    assert str(caught.value).startswith(f"selfplay.bootstrap_player: {said}")
    assert "\n" not in str(caught.value)
