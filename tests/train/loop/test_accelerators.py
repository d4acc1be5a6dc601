"""The programs of a run compile for accelerators: nothing in them needs the host.

Lowering needs no accelerator, so these programs are those that a GPU or TPU would be given, down to
the compiler's input; what a device makes of it is not tested here.
"""

import functools
import re

import jax
import pytest

from tests.support.compiling import ROOT
from tests.support.equations import inside
from tests.support.learner import tiny
from train.config import read_config
from train.data.selfplay import first_boards
from train.loop import programs
from train.loop.batches import sample
from train.loop.stages import selfplay_of, simulations_of
from train.loop.tables import tables_of, variants_of
from train.runtime.devices import all_devices, tracing_for
from train.search.search import cast_own_weights

PLATFORMS = ("cuda", "tpu")
# Each moves data between host and device while a program runs, or stands for a call of Python.
FORBIDDEN = ("callback", "infeed", "outfeed", "send", "recv", "f64", "complex<")


@pytest.fixture
def on_an_accelerator():
    """Programs are traced as they are where the default backend is no CPU; other tests find none of
    these traces."""
    with tracing_for("gpu"):
        yield


def _assert_runs_alone(text: str) -> None:
    calls = "\n".join(
        re.findall(r"(?:stablehlo|mhlo|chlo)\.\w+|custom_call @\w+|tensor<\S+>", text)
    )
    assert "stablehlo.while" in calls  # or the words are no longer found as they stand in it
    for word in FORBIDDEN:
        found = re.search(rf"\b\w*{re.escape(word)}\w*", calls)
        assert found is None, found


def _programs_of(config):
    """Self-play of the last stage, and a step that samples and learns, with their arguments."""
    tables, variants = tables_of(config, all_devices(1)), variants_of(config)
    key, weights = jax.random.key(0), programs.network_of(tables.learn).shapes
    boards = jax.eval_shape(first_boards, variants)
    simulations = simulations_of(config, config.iterations - 1)
    selfplay = selfplay_of(tables.play, simulations)

    def play(weights, variant, boards, key):
        return selfplay(cast_own_weights(weights, config.network), variant, boards, key)

    yield play, (weights, variants, boards, key)

    def learn(state, replay_state, variant, key):
        drawn = sample(tables.learn, replay_state, variant, key)
        return programs.learner_of(tables.learn).update(state, drawn, key)

    like = programs.state_like(tables, variants)
    held = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), (like.learner, like.replay_state)
    )
    yield learn, (*held, variants, key)


_OPTIONS = (
    *("--network.blocks=T", "--network.reply=true", "--learner.value_mix=0.5"),
    "--selfplay.full_search_prob=0.5",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", pytest.param("gpu", marks=pytest.mark.slow)])
def test_programs_run_without_the_host(name, on_an_accelerator):
    """The tiny run has options of network and self-play that `gpu.toml` has not."""
    config = tiny.config(*_OPTIONS)
    if name != "tiny":
        config = read_config(ROOT / "configs" / f"{name}.toml")
    for program, arguments in _programs_of(config):
        _assert_runs_alone(
            jax.jit(program).trace(*arguments).lower(lowering_platforms=PLATFORMS).as_text()
        )


def _loops(jaxpr, platform: str) -> int:
    """Number of loops that a program begins on a platform and that end by their data, those inside
    a scan counted every time. A GPU's host waits for the condition of each of their turns."""
    count = 0
    for equation in jaxpr.eqns:
        times = equation.params["length"] if equation.primitive.name == "scan" else 1
        count += equation.primitive.name == "while"
        count += times * sum(_loops(inner, platform) for inner in inside(equation, platform))
    return count


@functools.cache
def _traced_selfplay(words: tuple[str, ...]):
    config = tiny.config(*words, "--search.max_considered_actions=16", "--selfplay.plies=1")
    selfplay, arguments = next(iter(_programs_of(config)))
    return jax.make_jaxpr(selfplay)(*arguments).jaxpr


def _loops_of_selfplay(platform: str, *words: str) -> int:
    return _loops(_traced_selfplay(words), platform)


@pytest.mark.slow
def test_a_simulation_begins_two_loops(on_an_accelerator):
    """The way down and the way up; floods and largest regions have a fixed length."""
    found = {}
    for platform in (*PLATFORMS, "cpu"):
        few, more = (
            _loops_of_selfplay(platform, "--search.simulations", str(number)) for number in (8, 9)
        )
        found[platform] = more - few
    assert found["cuda"] == found["tpu"] == 2
    assert found["cpu"] > 3  # or these are no longer the loops that are counted


@pytest.mark.slow
def test_rounds_begin_fewer_loops(on_an_accelerator):
    words = ("--search.simulations", "8")
    by_simulations = _loops_of_selfplay("cuda", *words)
    by_rounds = _loops_of_selfplay("cuda", *words, "--search.rounds", "true")
    # What a move needs besides its visits is the same: a visit, or a round, begins two loops.
    steps = 1
    assert by_simulations - by_rounds == 2 * (8 - steps)
    assert by_rounds < 2 * (steps + 2)


def test_self_play_casts_each_weight_once():
    """Before the first ply, not in every simulation."""
    config = tiny.config("--network.dtype=bfloat16", "--network.width=24")
    program, arguments = next(iter(_programs_of(config)))
    text = jax.jit(program).trace(*arguments).lower().as_text()
    shapes = [
        "x".join(map(str, leaf.shape))
        for path, leaf in jax.tree.leaves_with_path(arguments[0].params)
        if path[-1].key == "kernel"
    ]
    casts = {x: text.count(f"(tensor<{x}xf32>) -> tensor<{x}xbf16>") for x in shapes}
    assert all(casts[shape] <= shapes.count(shape) for shape in shapes), casts
    # No move reads the heads of ownership and margin.
    assert sum(casts.values()) >= len(shapes) - 4
