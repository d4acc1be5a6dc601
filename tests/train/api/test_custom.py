"""Functions of one's own in a run: network, planes, search, loss, targets; trained and resumed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import train
from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train import functions
from train.network.build import channels_of, observer_for
from wallgo_jax.game.state import initial_state


def init(key, planes):
    return {"w": 0.1 * jax.random.normal(key, (planes.shape[-1], 53)), "v": jnp.zeros(9)}


def linear(params, planes):
    x = planes.astype(jnp.float32)
    return x @ params["w"], jnp.tanh(x[..., 0].reshape(len(x), -1) @ params["v"])


def late(state):
    shown = jnp.broadcast_to(state.position.ply > 2, (state.grid, state.grid))
    return jnp.stack([shown, ~shown], axis=-1)


def one_ply(evaluate, states, key, *, simulations, explores):
    """The likeliest slot after a look at every reply; draws where it explores."""
    found = evaluate(states)
    slot = jax.random.categorical(key, found.logits) if explores else found.logits.argmax(-1)
    one = jax.tree.map(lambda leaf: leaf[0], states)
    assert train.legal_slots(one).shape == train.legal_slots(states).shape[1:]
    _, rewards = train.step(states, slot)
    value = jnp.take_along_axis(rewards, states.position.player[:, None], axis=1)[:, 0]
    return slot, jax.nn.softmax(found.logits / (1 + simulations)), value


def five(output, targets):
    return 5.0 + 0.0 * output.value.sum()


def nobody_wins(targets):
    return targets._replace(outcome=jnp.zeros_like(targets.outcome))


ALL = {
    "network": (init, linear),
    "planes": late,
    "search": one_ply,
    "loss": five,
    "targets": nobody_wins,
}


def start(tmp_path, **given):
    config = train.make_config(tiny.PATH, {"evaluation.every": 0}, iterations=2)
    return train.start(config, runs=tmp_path, **given)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run with all of them, closed after one of two iterations."""
    with start(tmp_path_factory.mktemp("whole"), **ALL) as run:
        next(run)
    return run


@pytest.mark.slow
def test_a_run_goes_on_with_the_same_functions(whole):
    assert len(channels_of(whole.config.network, 2)) == 8 + 2
    shown = observer_for(whole.config.network)(initial_state(tiny.RULES), None)
    assert shown[..., -2:].sum() == 9
    with train.resume(whole.directory, **ALL) as run:
        (row,) = run
        assert set(run.weights.params) == {"w", "v"}
    assert row["iteration"] == 2
    usual = row["policy_loss"] + row["value_loss"]
    np.testing.assert_allclose(row["loss"], usual + 5, rtol=1e-4)
    assert row["custom_loss"] == 5
    # Networks begin with a value of 0, which is now right.
    assert row["value_loss"] < 1e-3


def test_the_checkpoint_names_them_and_a_new_process_must_tell_them(whole, monkeypatch):
    monkeypatch.setattr(functions, "_known", {})
    saved = train.make_config(whole.directory)
    assert saved.network.custom == functions.Function("linear", None)
    reason = "the run has a function '(linear|late)' of its own, which Python passes"
    with pytest.raises(train.UsageError, match=reason):
        train.make_player(str(whole.directory))
    with pytest.raises(train.UsageError, match=reason):
        train.resume(whole.directory)
    assert "which Python passes" in complaint(command("match", whole.directory, "random"))
    assert "which Python passes" in complaint(command("run", "--resume", whole.directory))
    train.use_functions(**ALL)
    assert train.make_player(str(whole.directory)).rules == tiny.RULES


def test_a_run_with_a_network_of_its_own_is_exported(whole, tmp_path):
    made = train.export(whole.directory, tmp_path / "model").network
    assert made.config.network == whole.config.network
    kept = jax.tree.leaves(train.make_player(f"{tmp_path / 'model'}@1").trained.variables)
    for leaf, own in zip(kept, jax.tree.leaves(whole.weights), strict=True):
        np.testing.assert_array_equal(leaf, own)


def test_a_run_that_exists_says_how_to_go_on_with_its_functions(whole):
    given = "network=..., planes=..., search=..., loss=..., targets=..."
    with pytest.raises(train.UsageError) as refused:
        start(whole.directory.parent, **ALL)
    goes_on = f"to go on with it: train.resume({str(whole.directory)!r}, {given})"
    assert goes_on in str(refused.value)

    def other(targets):
        return targets

    with pytest.raises(train.UsageError, match=r"learner\.custom_targets was 'nobody_wins'"):
        train.resume(whole.directory, **(ALL | {"targets": other}))


def test_wrong_shapes_and_linen_modules_with_statistics_are_refused(tmp_path):
    def narrow(params, planes):
        policy, value = linear(params, planes)
        return policy[..., :50], value

    class Normed(linen.Module):
        @linen.compact
        def __call__(self, planes):
            x = linen.BatchNorm(use_running_average=True)(planes.astype(jnp.float32))
            return linen.Dense(53)(x), jnp.tanh(x.mean((1, 2, 3)))

    shape = r"network: its policy has the shape .*50\), not"
    for network, word in (((init, narrow), shape), (Normed(), "batch_stats")):
        with pytest.raises(train.UsageError, match=word):
            start(tmp_path, network=network)


def wide(output, targets):
    return jnp.square(output.value).sum(1)


def nothing(*given):
    return None


def short(targets):
    return targets._replace(outcome=targets.outcome[:1])


def flat(state):
    return jnp.zeros(state.grid)


def slots_alone(evaluate, states, key, **options):
    return evaluate(states).logits.argmax(-1)


def wide_value(evaluate, states, key, **options):
    found = evaluate(states)
    return found.logits.argmax(-1), found.logits, found.value


@pytest.mark.parametrize(
    ("kind", "function", "reason"),
    [
        ("loss", wide, r"loss 'wide': gave float32\[\d+\], not a number"),
        ("loss", nothing, "loss 'nothing': gave None, not a number"),
        ("targets", short, r"targets 'short': gave .*, not .* as its outcome"),
        ("targets", nothing, r"gave None, not train\.TrainingTargets"),
        ("planes", flat, r"planes 'flat': gave float32\[7\], not bool\[7,7,C\]"),
        ("search", slots_alone, r"search 'slots_alone': gave .*, not \(slots, policy, values\)"),
        ("search", wide_value, r"gave float32\[2,2\], not values float32\[2\]"),
    ],
)
def test_what_functions_return_is_refused_in_one_line(tmp_path, kind, function, reason):
    with pytest.raises(train.UsageError, match=reason), start(tmp_path, **{kind: function}) as run:
        next(run)


class LinenNet(linen.Module):
    """A policy and a value by a layer each."""

    width: int = 4

    @linen.compact
    def __call__(self, planes):
        x = linen.relu(linen.Dense(self.width)(planes.astype(jnp.float32)))
        return linen.Dense(53)(x), jnp.tanh(linen.Dense(1)(x.mean((1, 2)))[:, 0])


class NnxNet(nnx.Module):
    """The same, with batch norm and dropout."""

    def __init__(self, planes: int, *, width: int = 4, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(planes, width, rngs=rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.policy, self.value = nnx.Linear(width, 53, rngs=rngs), nnx.Linear(width, 1, rngs=rngs)

    def __call__(self, planes):
        x = self.dropout(nnx.relu(self.norm(self.first(planes.astype(jnp.float32)))))
        return self.policy(x), jnp.tanh(self.value(x.mean((1, 2)))[:, 0])


@pytest.mark.parametrize("kind", ["linen", "nnx"])
def test_a_module_of_flax_is_a_network_as_it_is(kind, tmp_path):
    planes = len(channels_of(tiny.config().network, 2))
    made = {
        "linen": [LinenNet(), LinenNet(8)],
        "nnx": [NnxNet(planes, width=width, rngs=nnx.Rngs(0)) for width in (4, 8)],
    }
    network, other = made[kind]
    config = train.make_config(tiny.PATH, {"learner.ema_decay": 0.9}, iterations=3, name=kind)
    with train.start(config, runs=tmp_path, network=network) as run:
        before = jax.tree.map(np.array, run.weights)
        next(run), next(run)
        assert any(
            (a != b).any()
            for a, b in zip(*map(jax.tree.leaves, (before, run.weights)), strict=True)
        )
        if kind == "nnx":
            assert (
                before.batch_stats["norm"]["mean"] != run.weights.batch_stats["norm"]["mean"]
            ).any()
    assert train.match(run, "random", games=2).first == f"{kind}/2@2"
    # A wider one has another name, and does not go on with the run.
    with pytest.raises(train.UsageError, match=f"{type(network).__name__}-"):
        train.resume(tmp_path / kind, network=other)
    with train.resume(tmp_path / kind, network=network) as again:
        next(again)
    assert again.iterations == 3


def test_modules_of_equal_weights_share_programs():
    planes = len(channels_of(tiny.config().network, 2))

    def told(seed):
        module = NnxNet(planes, rngs=nnx.Rngs(seed))
        return train.use_functions(network=module)["network.custom"], module

    (one, module), (same, _), (other, _) = told(0), told(0), told(1)
    assert one == same == train.use_functions(network=module)["network.custom"] != other
    module.dropout.rate = 0.5
    assert one != train.use_functions(network=module)["network.custom"]
