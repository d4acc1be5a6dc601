"""The measured parts: core, env, peers, searches over public actions, self-play; the bytes of a
node of a search tree, as both engines allocate it; counts and times, by a game counted by hand."""

import functools
import importlib.util
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.counting_game import counting_game
from train.bench import alphazero, games, search, timing, trainer
from train.bench.timing import CHECKSUM
from train.config import RunConfig
from train.network.config import NetworkConfig
from train.network.parts import sum_equations
from train.runtime.devices import all_devices
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from train.search.evaluator import make_play
from train.search.search import make_engine
from train.search.tree import Root, init_tree
from wallgo_jax import PRESETS
from wallgo_jax import planes as planes_lib
from wallgo_jax.game.state import State, sizes_of

RULES, BOARDS = PRESETS["wallzero-4stone"], 3


def test_core_plays_whole_games():
    bench = games.make_bench(games.core_game(tiny.RULES, on_bits=True), 8, all_devices(1))
    found = bench.run(40)
    assert found["plies"] == 320
    # A placed stone each, then a wall a ply: 12 edges inside, and two corners take 2 to close.
    assert 320 / 14 - 8 <= found["games"] <= 320 / 4
    assert found[CHECKSUM] > 0


@pytest.mark.skipif(importlib.util.find_spec("pgx") is None, reason="needs pgx")
@pytest.mark.filterwarnings("ignore")
def test_peers_play_whole_games():
    found = games.peer_games("tic_tac_toe")
    assert [game.name for game in found] == ["pgx tic_tac_toe", "pgx tic_tac_toe, planes"]
    found = games.make_bench(found[1], 4, all_devices(1)).run(18)
    # A game has 5 to 9 plies.
    assert found["plies"] == 72 and 72 / 9 - 4 <= found["games"] <= 72 / 5


def test_the_network_of_pgx_has_the_blocks_of_the_config():
    """A block string tells blocks once and how often they are repeated."""
    network = NetworkConfig(blocks="R3(RRT)", width=8)
    made = jax.eval_shape(lambda key: alphazero.init(key, network, (3, 3, 2), 9), jax.random.key(0))
    assert len(made.blocks) == 10


def test_peers_without_pgx_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(UsageError, match=r"needs pgx: pip install 'wallgo-jax\[bench\]'"):
        games.peer_games("othello")


def first_states(variants) -> State:
    return State(variants, jax.vmap(search.initial_position)(variants))


def test_public_evaluator_allows_what_is_legal():
    evaluate = search.make_uniform_evaluator(is_public=True)
    found = jax.jit(lambda variants: evaluate((), first_states(variants)))
    legal = np.asarray(found(tiny.variants(tiny.RULES, 2)).logits) == 0
    # Only the nine placements, the last of the ids.
    np.testing.assert_array_equal(legal, np.broadcast_to(np.arange(477) >= 468, (2, 477)))


def test_planes_alone_cost_what_planes_cost():
    """Both evaluators give zeros at the same slots; one of them has worked out the planes."""
    config, variants = tiny.config("--network.planes", "BTR"), tiny.variants(tiny.RULES, 2)
    uniform = search.make_uniform_evaluator()
    found, operations = [], []
    for evaluate in (uniform, search.make_planes_evaluator(config.network, players=2)):
        program = jax.jit(functools.partial(lambda e, v: e((), first_states(v)), evaluate))
        compiled = program.lower(variants).compile()
        found.append(compiled(variants))
        operations.append(compiled.cost_analysis()["flops"])
    jax.tree.map(np.testing.assert_array_equal, *found)
    assert operations[1] > 2 * operations[0]


def test_self_play_counts_roots_and_leaves():
    """A full search of 16 simulations makes 17 evaluations, a cheap one of 4 makes 5."""
    config = RunConfig()
    assert trainer.evaluations(config, 3, 10) == 3 * 17 + 7 * 5


def test_self_play_is_that_of_a_run():
    """4 boards of 8 plies, each searched in full by 2 simulations; as often as it is asked."""
    config = tiny.config("--selfplay.full_search_prob", "1")
    found = trainer.make_selfplay_bench(config, 4, all_devices(1)).run(2)
    assert (found["positions"], found["evaluations"]) == (64, 64 * 3)
    assert found["games"] > 0 and found[CHECKSUM] > 0


def test_steady_config_has_one_program():
    words = ["--search.first_simulations", "1", "--selfplay.bootstrap_iterations", "2"]
    config = tiny.config(*words, "--search.prior_boost", '["stay=2"]')
    found = trainer.steady(config, 12, 2)
    assert (found.selfplay.boards, found.learner.batch) == (12, 2)
    assert (found.selfplay.bootstrap_iterations, found.search.first_simulations) == (0, 0)
    assert found.search.prior_boost == ()


def node_bytes(make_tree, nodes: int) -> float:
    """Bytes of the arrays [BOARDS, nodes, ...] of a tree, a node; others are of the roots."""
    arrays = [
        x for x in jax.tree.leaves(jax.eval_shape(make_tree)) if x.shape[:2] == (BOARDS, nodes)
    ]
    return sum(x.dtype.itemsize * x.size for x in arrays) / BOARDS / nodes


def roots():
    states = first_states(tiny.variants(RULES, BOARDS))
    return states, search.make_uniform_evaluator()((), states)


@pytest.mark.parametrize(("simulations", "child"), [(64, 1), (300, 2)])
def test_a_node_keeps_a_prior_and_a_child_for_each_slot(simulations, child):
    """208 slots of a prior of four bytes and a child's number; seven words a node; of the position
    stones 8, walls 32, walls left 4, trail 12, and player, ply, end a word each."""

    def tree():
        states, evaluation = roots()
        value = evaluation.value[:, 0]
        return init_tree(evaluation.logits, value, states.position, nodes=simulations + 1)

    assert node_bytes(tree, simulations + 1) == (4 + child) * 208 + 28 + 68


def test_a_node_of_mctx_keeps_six_words_for_each_action():
    """Five words a node; the position's player, ply and end are 1, 2 and 1 bytes."""
    config = SearchConfig(simulations=5, engine="mctx")
    evaluate = search.make_uniform_evaluator()

    def tree():
        states, (logits, value) = roots()
        root = Root(logits, value[:, 0], states.position, logits == 0)
        play = functools.partial(make_play(evaluate), ((), states.variant, states.position.player))
        return make_engine(config, explores=True)(jax.random.key(0), root, play).tree

    assert sizes_of(RULES).num_slots == 208
    assert node_bytes(tree, 6) == 24 * 208 + 20 + 60


def test_compiled_program_tells_what_it_needs():
    array = jnp.zeros((256,), jnp.float32)
    call, stats = timing.compile_traced(lambda: jax.jit(lambda x: x + 1).trace(array))
    assert stats.peak_bytes is not None and stats.peak_bytes >= 2 * 4 * 256
    np.testing.assert_array_equal(call(array), np.ones(256))
    jitted = jax.jit(lambda x: x + 1, donate_argnums=0)
    donated = timing.compile_traced(lambda: jitted.trace(array)).stats
    assert donated.peak_bytes == stats.peak_bytes - 4 * 256


def test_runs_take_turns_and_give_medians(monkeypatch):
    """A clock that the benches push: 1 s a unit, or 2 s, and one slow run of each."""
    clock, order = [0.0], []

    def bench(name: str, unit: float) -> timing.Benchmark:
        def run(length: int) -> dict[str, float]:
            order.append(name)
            slow = 10 if order.count(name) == 4 else 1
            clock[0] += unit * length * slow
            return {"plies": 6.0 * length, CHECKSUM: 2**32 - 1}

        return timing.Benchmark(name, 1, run, None)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    first, second = timing.take_turns([bench("a", 1.0), bench("b", 2.0)], seconds=1.0, repeats=3)
    assert (first.length, second.length) == (1, 1)
    assert order == ["a"] * 2 + ["b"] * 2 + ["a", "b"] * 3
    assert (first.rates, second.rates) == ({"plies": 6.0}, {"plies": 3.0})
    assert first.seconds == (1.0, 10.0, 1.0)
    assert first.checksum == (3 * (2**32 - 1)) % 2**32


def test_run_lasts_as_long_as_asked(monkeypatch):
    clock = [0.0]

    def run(length: int) -> dict[str, float]:
        clock[0] += 0.01 * length
        return {"plies": 1.0, CHECKSUM: 0}

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    (found,) = timing.take_turns([timing.Benchmark("a", 1, run, None)], seconds=0.5, repeats=1)
    assert 50 <= found.length <= 56


@pytest.mark.parametrize("length", [5, 65, 20_000])
def test_every_set_entry_is_counted(length):
    array = np.random.default_rng(length).random(length) < 0.9
    assert int(jax.jit(timing.count_set)(array)) == array.sum()


def test_the_count_of_many_boards_is_a_small_program():
    # The plies of an iteration of 1,024 boards; compiling a slice for each 64 of them took 10 GB.
    plies = jax.ShapeDtypeStruct((8, 1024, 53 * 49), bool)
    assert sum_equations(jax.make_jaxpr(timing.count_set)(plies), lambda equation: 1) < 2000


def test_plies_games_and_checksum_are_those_played():
    assert all_devices().count == 2
    for devices in (all_devices(1), all_devices()):
        bench = games.make_bench(counting_game(), 4, devices)
        # 4 boards, 7 plies: each ends 2 games, and stands one ply into its third.
        assert bench.run(7) == {"plies": 28, "games": 8, CHECKSUM: 7 * 28}
        # It goes on from there: after 2 more plies the third game is over.
        assert bench.run(2) == {"plies": 8, "games": 4, CHECKSUM: 7 * 8}


def test_plies_that_were_not_played_are_refused():
    """A game that makes two steps at once is found out by its own count."""
    bench = games.make_bench(counting_game(per_step=2), 4, all_devices(1))
    with pytest.raises(RuntimeError, match="counting: 16 plies were played, not 8"):
        bench.run(2)


def test_multiply_adds_are_those_of_the_layers():
    """Counts by hand for 9 cells and a width of 8: convolutions of 9 taps, heads per cell and on
    pooled features."""
    config = tiny.config()
    planes = len(planes_lib.channels("B", 2))
    stem, block = 81 * planes * 8, 2 * 81 * 8 * 8
    policy, value, ownership = 9 * 8 * 53 + 16 * 53, 16 * 8 + 8, 9 * 8 * 3 + 16 * 3
    counted = [part.multiply_adds for part in trainer.census_of(config)]
    assert sorted(counted) == sorted([stem, block, policy, value, ownership])
