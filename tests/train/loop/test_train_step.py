"""The functions of an iteration, compiled: sums over devices, samples of either memory, the order
of sampling and learning, the number of steps."""

import functools
import re
import types
from typing import Any

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.data import replay
from train.data.config import SelfPlayConfig
from train.data.selfplay import first_boards, make_selfplay
from train.loop.numbers import numbers_of
from train.loop.run_replay import FinishedPlies
from train.loop.train_step import RunPrograms, make_run_programs, steps_due
from train.loop.training import run_iteration
from train.players.basic import make_random_search
from train.runtime.devices import all_devices

SIZE, PLIES = 64, 16
WORDS = (
    *("--learner.value_mix=0.5", "--learner.td_steps=2", f"--learner.batch={SIZE}"),
    f"--selfplay.plies={PLIES}",
)
_COLLECTIVES = re.compile(
    r" (all-reduce|all-gather|all-to-all|collective-permute|collective-broadcast|reduce-scatter)"
    r"(?:-start)?\("
)


def test_devices_sum_what_they_learn():
    """Gradients, losses, and the statistics of each normalisation on the way there and back: no
    weights, samples or moves are gathered, and no parameter has a sum of its own."""
    programs = make_run_programs(tiny.config())
    found = _COLLECTIVES.findall(programs.learning.compiled.as_text())
    assert set(found) == {"all-reduce"} and len(found) <= 12


@functools.cache
def numbered_plies(boards: int) -> replay.Trajectory:
    """Plies [T, B] of random games, whose values of searches count them, row by row."""
    play = make_selfplay(make_random_search(), SelfPlayConfig(plies=PLIES), has_root_value=True)
    variants = tiny.variants(tiny.RULES, boards)

    @jax.jit
    def first_plies(variants):
        return play((), variants, first_boards(variants), jax.random.key(0))[1]

    plies = jax.device_get(first_plies(variants))
    numbers = np.arange(plies.terminated.size, dtype=np.float32)
    return plies._replace(root_value=numbers.reshape(plies.terminated.shape))


@functools.partial(jax.jit, static_argnames="size")
def own_values(replay_state, variant, key, *, size: int) -> replay.Sample:
    """`replay.sample` of the values that the plies' own searches found, by the same key."""
    return replay.sample(replay_state, variant, jax.random.fold_in(key, 0), size=size)


@pytest.mark.parametrize("memory", ["device", "host"])
def test_values_of_samples_are_those_of_td_steps_later(memory):
    config = tiny.config(*WORDS, f"--replay.memory={memory}")
    programs = make_run_programs(config, all_devices(1))
    plies, key = numbered_plies(config.selfplay.boards), jax.random.key(1)
    replay_state, finished = programs.replay.write(programs.init().replay_state, plies)
    assert int(finished.all) > 10
    draw = jax.jit(programs.replay.sample)
    found = jax.device_get(draw(replay_state, programs.variants, key))
    own = jax.device_get(
        own_values(jax.device_get(replay_state), programs.variants, key, size=config.learner.batch)
    )
    row = own.root_value // plies.terminated.shape[1]
    np.testing.assert_array_equal(found.position.ply, own.position.ply)
    is_over = np.isnan(found.root_value)
    assert 0 < is_over.sum() < is_over.size
    later = row[~is_over] + 2
    np.testing.assert_array_equal(
        np.abs(found.root_value[~is_over]) // plies.terminated.shape[1], later
    )


@pytest.mark.parametrize("memory", ["device", "host"])
def test_validation_is_of_games_that_no_step_has_seen_and_changes_nothing(memory):
    """Every second iteration has its figures: the losses, by the weights that played, of a batch of
    the games that ended in it."""
    words = ("--learner.ema_decay=0.5", f"--replay.memory={memory}")

    def run(every: int):
        programs = make_run_programs(tiny.config(*words, f"--learner.validation_every={every}"))
        state, rows, drawn = programs.init(), [], None
        for iteration in range(4):
            player = jax.device_get(state.learner.player)
            state, row = run_iteration(programs, state, iteration)
            rows.append(row)
        draw = jax.jit(programs.replay.held_out_batch)
        keys = jax.device_get(programs.keys(3).learn)
        drawn = draw(jax.device_get(state.replay_state), programs.variants, keys)
        check = programs.make_learner(numbers_of(programs.config)).validation_losses
        return state.learner.player, rows, jax.device_get(jax.jit(check)(player, drawn))

    learned, rows, expected = run(2)
    assert ["validation_loss" in row for row in rows] == [False, True, False, True]
    for name in ("loss", "policy_loss", "value_loss", "ownership_loss"):
        found = rows[-1][f"validation_{name}"]
        np.testing.assert_allclose(found, getattr(expected, name), rtol=1e-4)
    plain, others, _ = run(0)
    assert not any("validation_loss" in row for row in others)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(learned), jax.device_get(plain))


@pytest.fixture
def events(monkeypatch):
    """What happens, in order."""
    happened = []
    monkeypatch.setattr(jax, "block_until_ready", lambda seen: happened.append(f"await {seen}"))
    return happened


def learned(events, steps: int) -> tuple[str, list[str]]:
    """`RunPrograms.learn` from a host's replay, by functions that note their calls."""

    def draw(index: int) -> str:
        events.append(f"sample {index}")
        return f"batch {index}"

    def learn_from(shared, state: str, batch: str, index: int) -> tuple[str, str]:
        events.append(f"learn from {batch}")
        return f"{state}{index}", f"step {index}"

    programs: Any = types.SimpleNamespace(
        **{"_numbers": {}, "variant": "", "_is_one_call": False, "learning": learn_from},
        replay=types.SimpleNamespace(host="cpu", batches=lambda *_: draw),
    )
    state: Any = "state "
    nothing: Any = None
    found: Any = RunPrograms.learn(programs, state, nothing, nothing, steps)
    return found


def test_the_next_batch_is_sampled_before_a_step_is_waited_for(events):
    assert learned(events, 3) == ("state 012", ["step 0", "step 1", "step 2"])
    assert events == [
        "sample 0",
        "learn from batch 0",
        "sample 1",
        "learn from batch 1",
        "sample 2",
        "await step 0",
        "learn from batch 2",
        "await step 1",
    ]


@pytest.mark.parametrize("steps", [0, 1])
def test_no_batch_is_sampled_in_vain(events, steps):
    _, seen = learned(events, steps)
    assert len(seen) == steps
    assert [event for event in events if "sample" in event] == ["sample 0"] * steps


@pytest.mark.parametrize(
    ("every", "least", "expected"),
    [(0, 0, 0), (5, 0, 0), (1, 1, 1), (31, 10, 1), (64, 30, 4), (128, 60, 8), (900, 400, 8)],
)
def test_few_finished_plies_make_few_steps(every, least, expected):
    """Eight steps for the 128 plies of an iteration; none while a device has no finished game."""
    config = tiny.config("--selfplay.boards=16", "--learner.steps=8")
    assert steps_due(config, FinishedPlies(every, least, 0)) == expected
