"""The env names an argument that is not one board's while JAX traces, at no cost when it runs."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wallgo_jax
from wallgo_jax import arguments
from wallgo_jax.adapters.opponents import play_randomly

SMALL = wallgo_jax.Rules(size=3, stones=1, order=(0, 1))
ENV = wallgo_jax.make(SMALL, planes="B")
ALLOWED = "a public action is one integer from 0 to 476"


@pytest.fixture(scope="module")
def state() -> wallgo_jax.State:
    return jax.jit(ENV.init)()


@pytest.fixture(scope="module")
def batch(state) -> wallgo_jax.State:
    return jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), state)


def complaint(kind, function, *given) -> str:
    """What a call says, which must be one line."""
    with pytest.raises(kind) as error:
        function(*given)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("verb", ["step", "step_auto_reset"])
@pytest.mark.parametrize(
    ("action", "kind", "came"),
    [
        (1.0, TypeError, "the float 1.0"),
        (True, TypeError, "the bool True"),
        ("C3", TypeError, "the str 'C3'"),
        (None, TypeError, "None"),
        ([3], TypeError, "the list [3]"),
        (np.float32(3), TypeError, "float32[]"),
        (np.True_, TypeError, "bool[]"),
        (jax.random.key(0), TypeError, "key<fry>[]"),
        (np.zeros(4, np.int32), ValueError, "int32[4]"),
        (np.zeros((1, 1), np.int8), ValueError, "int8[1,1]"),
        (2**31, ValueError, "2147483648"),
        (np.int64(2**32 + 468), ValueError, "4294967764"),
        (np.array(-(2**31) - 1), ValueError, "-2147483649"),
        (np.uint32(2**32 - 1), ValueError, "4294967295"),
    ],
    ids=str,
)
def test_a_wrong_action_is_named(state, verb, action, kind, came):
    said = complaint(kind, getattr(ENV, verb), state, action)
    assert said.startswith(f"action: {came}")
    if kind is TypeError:
        assert said == f"action: {came}, not an integer; {ALLOWED}"
    elif came.startswith("int"):
        assert said.endswith(f"for a batch: jax.vmap(env.{verb})(states, actions)")
    else:
        assert said.endswith(f"does not fit int32; {ALLOWED}")


def test_a_wrong_action_is_named_inside_jit_and_vmap(state, batch):
    traced = jax.jit(ENV.step)
    assert complaint(TypeError, traced, state, 1.0).startswith("action: float32[], not an int")
    assert complaint(ValueError, traced, state, np.zeros(4, np.int32)).startswith(
        "action: int32[4]"
    )
    mapped = jax.vmap(ENV.step)
    assert complaint(TypeError, mapped, batch, np.zeros(4)).startswith("action: float32[]")
    pairs = np.zeros((4, 2), np.int32)
    assert complaint(ValueError, mapped, batch, pairs).startswith("action: int32[2], but step")


@pytest.mark.parametrize("action", [3, np.int8(3), np.uint16(3), np.array(3), -1, 2**31 - 1])
def test_every_integer_is_let_through(state, action):
    jax.eval_shape(lambda: ENV.step(state, action))


@pytest.mark.parametrize("verb", ["step", "step_auto_reset", "observe", "territory", "legal_slots"])
def test_a_batch_without_vmap_is_named(batch, verb):
    more = (np.zeros(4, np.int32),) if verb.startswith("step") else ()
    said = complaint(ValueError, getattr(ENV, verb), batch, *more)
    call = "(states, actions)" if more else "(states)"
    assert said == (
        f"state: a batch of shape (4,), but {verb} takes one board; "
        f"for a batch: jax.vmap(env.{verb}){call}"
    )
    jax.eval_shape(jax.vmap(getattr(ENV, verb)), batch, *more)


def test_a_state_of_another_env_or_class_is_named(state):
    other = wallgo_jax.make(SMALL, planes="BT")
    assert complaint(ValueError, other.step, state, 3) == (
        "state: has 477 actions and 8 channels of planes, this env has 477 and 11; "
        "it was made with another size, grid or planes"
    )
    said = complaint(TypeError, ENV.step, state.game, 3)
    assert said.startswith("state: a State, not a wallgo_jax.env.State, which env.init returns")
    assert complaint(TypeError, ENV.step, None, 3).startswith("state: None, not a wallgo_jax")


@pytest.mark.parametrize(
    ("key", "kind", "said"),
    [
        (0, TypeError, "key: the int 0, not a key; jax.random.key(0) makes one"),
        ("a", TypeError, "key: the str 'a', not a key"),
        (np.zeros(2), TypeError, "key: float64[2], not a key"),
        (
            jax.random.split(jax.random.key(0), 4),
            ValueError,
            "key: key<fry>[4], but init starts one",
        ),
        (
            jax.random.split(jax.random.PRNGKey(0), 4),
            ValueError,
            "key: uint32[4,2], but init starts",
        ),
    ],
    ids=["int", "text", "float", "keys", "legacy keys"],
)
def test_a_wrong_key_is_named(key, kind, said):
    found = complaint(kind, ENV.init, key)
    assert found.startswith(said)
    if kind is ValueError:
        assert found.endswith("for a batch: jax.vmap(env.init)(keys)")


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


def test_an_equal_env_is_the_same_static_argument(state):
    @functools.partial(jax.jit, static_argnums=0)
    @functools.partial(chex.assert_max_traces, n=1)
    def play(env, state, key):
        return env.step(state, play_randomly(state, key))

    chex.clear_trace_counter()
    for seed in range(2):
        play(wallgo_jax.make(SMALL, planes="B"), state, jax.random.key(seed))
