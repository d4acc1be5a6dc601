"""The env refuses an argument that is not one board's while JAX traces, at no cost when it runs."""

import functools

import chex
import jax
import numpy as np
import pytest

import wallgo_jax
from tests.support.game import small
from tests.support.game.small import SMALL
from wallgo_jax import arguments

ENV = small.env()


@pytest.fixture(scope="module")
def state() -> wallgo_jax.State:
    return small.states()[0]


@pytest.fixture(scope="module")
def batch() -> wallgo_jax.State:
    return small.batch()


def refuse(kind, word, function, *given) -> None:
    """A call raises an error of one line with a word."""
    with pytest.raises(kind) as error:
        function(*given)
    assert word in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("verb", ["step", "step_auto_reset"])
@pytest.mark.parametrize(
    ("action", "kind", "word"),
    [
        (1.0, TypeError, "float"),
        (True, TypeError, "bool"),
        ("C3", TypeError, "str"),
        (None, TypeError, "None"),
        ([3], TypeError, "list"),
        (np.float32(3), TypeError, "float32"),
        (np.True_, TypeError, "bool"),
        (jax.random.key(0), TypeError, "key"),
        (np.zeros(4, np.int32), ValueError, "vmap"),
        (np.zeros((1, 1), np.int8), ValueError, "vmap"),
        (2**31, ValueError, "2147483648"),
        (np.int64(2**32 + 468), ValueError, "4294967764"),
        (np.array(-(2**31) - 1), ValueError, "-2147483649"),
        (np.uint32(2**32 - 1), ValueError, "4294967295"),
    ],
    ids=str,
)
def test_a_wrong_action_is_refused(state, verb, action, kind, word):
    refuse(kind, word, getattr(ENV, verb), state, action)


def test_a_wrong_action_is_refused_inside_jit_and_vmap(state, batch):
    traced, mapped = jax.jit(ENV.step), jax.vmap(ENV.step)
    refuse(TypeError, "float32", traced, state, 1.0)
    refuse(ValueError, "vmap", traced, state, np.zeros(4, np.int32))
    refuse(TypeError, "float32", mapped, batch, np.zeros(6))
    refuse(ValueError, "vmap", mapped, batch, np.zeros((6, 2), np.int32))


@pytest.mark.parametrize("action", [3, np.int8(3), np.uint16(3), np.array(3), -1, 2**31 - 1])
def test_every_integer_is_let_through(state, action):
    jax.eval_shape(lambda: ENV.step(state, action))


@pytest.mark.parametrize("verb", ["step", "step_auto_reset", "observe", "territory", "legal_slots"])
def test_a_batch_needs_vmap(batch, verb):
    more = (np.zeros(6, np.int32),) if verb.startswith("step") else ()
    refuse(ValueError, f"vmap(env.{verb})", getattr(ENV, verb), batch, *more)
    jax.eval_shape(jax.vmap(getattr(ENV, verb)), batch, *more)


def test_a_state_of_another_env_or_class_is_refused(state):
    refuse(ValueError, "planes", wallgo_jax.make(SMALL, planes="BT").step, state, 3)
    refuse(TypeError, "env.init", ENV.step, state.game, 3)
    refuse(TypeError, "None", ENV.step, None, 3)
    refuse(TypeError, "State", ENV.random_action, state.game, jax.random.key(0))


@pytest.mark.parametrize(
    ("key", "kind", "word"),
    [
        (0, TypeError, "jax.random.key(0)"),
        ("a", TypeError, "str"),
        (np.zeros(2), TypeError, "float64"),
        (jax.random.split(jax.random.key(0), 4), ValueError, "vmap"),
        (jax.random.split(jax.random.PRNGKey(0), 4), ValueError, "vmap"),
    ],
    ids=["int", "text", "float", "keys", "legacy keys"],
)
def test_a_wrong_key_is_refused(key, kind, word):
    refuse(kind, word, ENV.init, key)
    refuse(kind, word, ENV.random_action, small.states()[0], key)


def test_checks_leave_nothing_in_a_program(state, monkeypatch):
    checked = str(jax.make_jaxpr(lambda *board: ENV.step(*board))(state, 3))
    for name in ("check_action", "check_state"):
        monkeypatch.setattr(arguments, name, lambda *_, **__: None)
    assert str(jax.make_jaxpr(lambda *board: ENV.step(*board))(state, 3)) == checked


# Equal envs.


def test_envs_of_the_same_rules_are_equal():
    preset = wallgo_jax.PRESETS["hkoi"]
    env = wallgo_jax.make("hkoi")
    assert env == wallgo_jax.make(preset) and hash(env) == hash(wallgo_jax.make(preset))
    others = [
        wallgo_jax.make("wallzero-empty"),
        wallgo_jax.make("hkoi", planes="BT"),
        wallgo_jax.make("hkoi", grid=7),
        wallgo_jax.make("hkoi", grid=9),
    ]
    assert len({env, *others}) == 5
    assert env not in others and env != "hkoi"


def test_an_equal_env_is_the_same_static_argument():
    @functools.partial(jax.jit, static_argnums=0)
    @functools.partial(chex.assert_max_traces, n=1)
    def count(env, boards):
        return env.num_actions * boards

    chex.clear_trace_counter()
    for boards in range(2):
        assert count(wallgo_jax.make(SMALL, planes="B"), boards) == 477 * boards
