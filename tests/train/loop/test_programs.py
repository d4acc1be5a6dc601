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
from tests.support.learner.loop import Loop
from train.data import replay
from train.data.config import SelfPlayConfig
from train.data.selfplay import first_boards, make_selfplay
from train.loop import batches, programs
from train.loop.iteration_row import steps_due
from train.loop.programs import FinishedPlies, learner_of
from train.loop.tables import ReplayPlace
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
    loop = Loop(tiny.config())
    state, keys = loop.state, loop.keys(0).learn
    traced = programs.trace_learning(
        loop.tables.learn, state.learner, state.replay_state, loop.variant, keys
    )
    found = _COLLECTIVES.findall(traced.lower().compile().as_text())
    assert set(found) == {"all-reduce"} and len(found) <= 12


@functools.cache
def numbered_plies(boards: int) -> replay.StoredPlies:
    """Plies [T, B] of random games, whose values of searches count them, row by row."""
    play = make_selfplay(make_random_search(), SelfPlayConfig(plies=PLIES), has_root_value=True)
    variants = tiny.variants(tiny.RULES, boards)

    @jax.jit
    def first_plies(variants):
        return replay.stored(play((), variants, first_boards(variants), jax.random.key(0))[1])

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
    loop = Loop(config, all_devices(1))
    plies = numbered_plies(config.selfplay.boards)
    keys = jax.random.key(1)[None]
    learn, replay_state = loop.tables.learn, loop.state.replay_state
    replay_state, finished = programs.write(learn.place, replay_state, plies)
    assert int(finished.all) > 10
    variant, index = jax.device_get(loop.variant), np.int32(0)
    found = jax.device_get(batches.draw_batch(learn, replay_state, variant, keys, index))
    key = jax.random.split(keys[0])[0]
    own = jax.device_get(
        own_values(jax.device_get(replay_state), variant, key, size=config.learner.batch)
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
        loop = Loop(tiny.config(*words, f"--learner.validation_every={every}"))
        rows, weights = [], None
        for iteration in range(4):
            weights = jax.device_get(loop.state.learner.weights)
            rows.append(loop.iterate(iteration))
        learn, keys = loop.tables.learn, jax.device_get(loop.keys(3).learn)
        replay_state, variant = jax.device_get((loop.state.replay_state, loop.variant))
        drawn = batches.draw_held_out(learn, replay_state, variant, keys)
        check = jax.jit(learner_of(learn).validation_losses)
        return loop.state.learner.weights, rows, jax.device_get(check(weights, drawn))

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


@pytest.fixture
def learned(events, monkeypatch):
    """`learn` from a host's replay, by functions that note their calls."""

    def draw(tables, source, drawn_by, index: int) -> str:
        events.append(f"sample {index}")
        return f"batch {index}"

    def learn_from(tables, state: str, batch: str, variant, keys, index) -> tuple[str, str]:
        events.append(f"learn from {batch}")
        return f"{state}{index}", f"step {index}"

    monkeypatch.setattr(programs, "draw", draw)
    monkeypatch.setattr(programs, "learn_step", learn_from)
    host = jax.local_devices(backend="cpu")[0]
    tables: Any = types.SimpleNamespace(place=ReplayPlace(all_devices(1), host))
    nothing: Any = None
    return lambda steps: programs.learn(tables, "state ", nothing, nothing, nothing, steps)


def test_the_next_batch_is_sampled_before_a_step_is_waited_for(events, learned):
    assert learned(3) == ("state 012", ["step 0", "step 1", "step 2"])
    assert events == [
        "sample 0",
        "learn from batch 0",
        "sample 1",
        "learn from batch 1",
        "sample 2",
        "await step 0",
        "learn from batch 2",
    ]


@pytest.mark.parametrize("steps", [0, 1])
def test_no_batch_is_sampled_in_vain(events, learned, steps):
    _, seen = learned(steps)
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
