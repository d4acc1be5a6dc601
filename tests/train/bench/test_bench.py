"""The bench: counts, claims, and what is said; much of it on a game counted by hand."""

import dataclasses
import functools
import importlib.util
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from tests.support import tiny
from train.bench import report, scaling, suite
from train.bench.harness import peak, play, program, timing
from train.bench.harness.play import Game
from train.bench.harness.program import ProgramStats
from train.bench.harness.timing import CHECKSUM, Row
from train.bench.parts import games, learn, memory, peers, search, selfplay
from train.bench.parts.public import make_public_network_evaluator
from train.bench.suite import Figures, Ratio, Request
from train.cli.bench import Bench
from train.config import RunConfig
from train.network.build import network_for
from train.runtime.devices import all_devices
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from train.search.engine import Root
from train.search.evaluator import evaluator_for, make_play
from train.search.search import make_engine
from train.search.tree import init_tree
from wallgo_jax import PRESETS
from wallgo_jax import planes as planes_lib
from wallgo_jax.game import actions
from wallgo_jax.game.state import State, sizes_of

ROOT = Path(__file__).parents[3]
GAME_PLIES = 3


def counting_game(*, per_step: int = 1) -> Game:
    """A game of GAME_PLIES plies with one action, 5, and nothing else; each ply reads 7."""
    return Game(
        name="counting",
        first=lambda key: jnp.int32(0),
        act=lambda state, bits: jnp.int32(5),
        step=lambda state, action: state + per_step,
        is_over=lambda state: state >= GAME_PLIES,
        steps=lambda state: state,
        read=lambda state, action, after: (action + 2).astype(jnp.uint32),
    )


def first_states(boards: int) -> State:
    """Games of the tiny run before their first ply."""
    variant = tiny.variants(tiny.RULES, boards)
    return State(variant, jax.jit(jax.vmap(search.initial_position))(variant))


def row(name: str, batch: int, **rates: float) -> Row:
    stats = ProgramStats(1.5, True, 1234, 2_000_000)
    return Row(name, batch, 1, (1.0,), rates, 0xABC, stats)


def printed(thing) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(thing)
    return text.getvalue()


def test_equations_of_loops_are_counted():
    def function(x):
        return jax.lax.scan(lambda c, _: (jnp.sin(c) * c, None), jnp.cos(x), None, length=4)[0]

    # cos, the scan, and in it sin and the product.
    assert program.count_equations(jax.make_jaxpr(function)(1.0)) == 4


def test_compiled_program_tells_what_it_needs():
    array = jnp.zeros((256,), jnp.float32)
    call, stats = program.compile_program(lambda x: x + 1, (array,))
    assert stats.peak_bytes is not None and stats.peak_bytes >= 2 * 4 * 256
    np.testing.assert_array_equal(call(array), np.ones(256))
    donated = program.compile_program(lambda x: x + 1, (array,), donate=(0,)).stats
    assert donated.peak_bytes == stats.peak_bytes - 4 * 256


def test_runs_take_turns_and_give_medians(monkeypatch):
    """A clock that the benches push: 1 s a unit, or 2 s, and one slow run of each."""
    clock, order = [0.0], []

    def bench(name: str, unit: float) -> timing.Bench:
        def run(length: int) -> dict[str, float]:
            order.append(name)
            slow = 10 if order.count(name) == 4 else 1
            clock[0] += unit * length * slow
            return {"plies": 6.0 * length, CHECKSUM: 2**32 - 1}

        return timing.Bench(name, 1, run, None)

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
    (found,) = timing.take_turns([timing.Bench("a", 1, run, None)], seconds=0.5, repeats=1)
    assert 50 <= found.length <= 56


@pytest.mark.parametrize("length", [5, 64, 65, 2401, 20_000])
def test_every_set_entry_is_counted(length):
    array = np.random.default_rng(length).random(length) < 0.9
    assert int(jax.jit(play.count_set)(array)) == array.sum()


@pytest.mark.parametrize("length", [9, 65, 2597])
def test_legal_entries_are_chosen_evenly(length):
    mask = np.zeros(length, bool)
    mask[[0, length // 2, length - 1]] = True
    bits = jax.random.bits(jax.random.key(1), (3000,), jnp.uint32)
    chosen = jax.jit(jax.vmap(lambda b: play.choose(b, jnp.asarray(mask))))(bits)
    found, counts = np.unique(chosen, return_counts=True)
    np.testing.assert_array_equal(found, np.flatnonzero(mask))
    # Five deviations of a binomial of 3000 and 1/3.
    assert abs(counts - 1000).max() < 5 * 26


def test_plies_games_and_checksum_are_those_played():
    bench = play.make_bench(counting_game(), 4, all_devices(1))
    # 4 boards, 7 plies: each ends 2 games, and stands one ply into its third.
    assert bench.run(7) == {"plies": 28, "games": 8, CHECKSUM: 7 * 28}
    # It goes on from there: after 2 more plies the third game is over.
    assert bench.run(2) == {"plies": 8, "games": 4, CHECKSUM: 7 * 8}


def test_plies_that_were_not_played_are_refused():
    """A game that makes two of its steps at once is found out by its own count."""
    bench = play.make_bench(counting_game(per_step=2), 4, all_devices(1))
    with pytest.raises(RuntimeError, match="counting: 16 plies were played, not 8"):
        bench.run(2)


def test_core_plays_whole_games():
    bench = play.make_bench(games.core_game(tiny.RULES, on_bits=True), 8, all_devices(1))
    found = bench.run(40)
    assert found["plies"] == 320
    # A placed stone each, then a wall a ply: 12 edges inside, and two corners take 2 to close.
    assert 320 / 14 - 8 <= found["games"] <= 320 / 4
    assert found[CHECKSUM] > 0


def test_two_devices_play_as_many_plies():
    devices = all_devices()
    assert devices.count == 2
    found = play.make_bench(counting_game(), 4, devices).run(7)
    assert found == {"plies": 28, "games": 8, CHECKSUM: 196}


def test_devices_that_cannot_share_a_batch_stay_idle(monkeypatch):
    monkeypatch.setattr(suite.jax, "device_count", lambda: 4)
    monkeypatch.setattr(suite, "all_devices", lambda count: count)
    assert [suite.devices_for(batch) for batch in (1, 2, 6, 8)] == [1, 2, 2, 4]


@pytest.mark.skipif(importlib.util.find_spec("pgx") is None, reason="needs pgx")
@pytest.mark.filterwarnings("ignore")
def test_peers_play_the_same_way():
    plain, with_planes = peers.peer_games(("tic_tac_toe",))
    assert (plain.name, with_planes.name) == ("pgx tic_tac_toe", "pgx tic_tac_toe, planes")
    one, other = (play.make_bench(game, 4, all_devices(1)).run(18) for game in (plain, with_planes))
    # A game has 5 to 9 plies.
    assert 72 / 9 - 4 <= one["games"] <= 72 / 5
    assert (one["plies"], one["games"]) == (other["plies"], other["games"])
    assert one[CHECKSUM] != other[CHECKSUM]


def test_peers_without_pgx_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(UsageError, match=r"needs pgx: pip install 'wallgo-jax\[bench\]'"):
        peers.peer_games()


def test_pgx_is_othello_unless_others_are_named(monkeypatch):
    named = []
    monkeypatch.setattr(suite.peers, "peer_games", lambda names: named.append(list(names)) or [])
    for against in (("pgx",), ("pgx-hex", "pgx"), (suite.MCTX_PUBLIC,)):
        list(suite._env(Request(config=tiny.config(), against=against), 4))
    assert named == [["othello"], ["hex", "othello"]]


def test_node_of_the_standard_board():
    """208 slots: 5 bytes each, 28 a node; stones 8, walls 32, walls left 4, trail 12, player 1,
    ply 2, end 1. mctx: 24 bytes an action, 20 a node."""
    rules = PRESETS["wallzero-4stone"]
    assert memory.position_bytes(rules) == 60
    assert memory.node_bytes(rules, 64) == 5 * 208 + 28 + 60
    assert memory.node_bytes(rules, 300) == 6 * 208 + 28 + 60
    assert memory.mctx_node_bytes(rules, 2597) == 24 * 2597 + 20 + 60


def test_node_is_what_a_tree_keeps():
    rules, boards, simulations = tiny.RULES, 3, 300

    def planted():
        states = jax.vmap(lambda variant: State(variant, search.initial_position(variant)))(
            tiny.variants(rules, boards)
        )
        evaluation = search.make_uniform_evaluator(players=2)((), states)
        return init_tree(
            evaluation.logits, evaluation.value[:, 0], states.position, nodes=simulations + 1
        )

    kept = jax.tree.leaves(jax.eval_shape(planted))
    nodes = [x for x in kept if x.shape[:2] == (boards, simulations + 1)]
    at_root = [x for x in kept if x.shape == (boards, sizes_of(rules).num_slots)]
    assert len(nodes) + len(at_root) == len(kept)
    assert _bytes(nodes) == boards * (simulations + 1) * memory.node_bytes(rules, simulations)
    assert _bytes(at_root) == boards * memory.root_bytes(rules)


def _bytes(arrays) -> int:
    return sum(x.dtype.itemsize * x.size for x in arrays)


def test_node_is_what_mctx_keeps():
    boards, config = 3, SearchConfig(simulations=5, engine="mctx")
    evaluate = search.make_uniform_evaluator(players=2)

    def tree(key):
        states = jax.vmap(lambda variant: State(variant, search.initial_position(variant)))(
            tiny.variants(tiny.RULES, boards)
        )
        evaluation = evaluate((), states)
        root = Root(
            evaluation.logits, evaluation.value[:, 0], states.position, evaluation.logits == 0
        )
        game = ((), states.variant, states.position.player)
        play = functools.partial(make_play(evaluate), game)
        return make_engine(config, explores=True)(key, root, play).tree

    found = jax.eval_shape(tree, jax.random.key(0))
    nodes = (boards, config.simulations + 1)
    kept = [x for x in jax.tree.leaves(found) if x.shape[:2] == nodes]
    slots = sizes_of(tiny.RULES).num_slots
    assert _bytes(kept) == np.prod(nodes) * memory.mctx_node_bytes(tiny.RULES, slots)


def test_memory_is_that_of_the_engine():
    native, by_mctx = tiny.config(), tiny.config("--search.engine", "mctx")
    assert memory.engine_node_bytes(native, 4) == memory.node_bytes(tiny.RULES, 4)
    assert memory.engine_node_bytes(by_mctx, 4) == memory.mctx_node_bytes(tiny.RULES, 52)


def test_public_evaluator_allows_what_is_legal():
    evaluate = jax.jit(search.make_public_evaluator(players=2))
    legal = np.asarray(evaluate((), first_states(2)).logits) == 0
    # Nothing but the nine placements, the last of the ids.
    np.testing.assert_array_equal(legal, np.broadcast_to(np.arange(477) >= 468, (2, 477)))


def test_public_network_says_of_an_action_what_it_says_of_its_slot():
    """The same logits as over slots, wherever an action is legal, in setup and in play."""
    config = tiny.config()
    network = network_for(config.network, 2)
    variables = tiny.new_weights(network)
    _, positions = search.spread_boards(tiny.RULES, 16, all_devices(1))
    states = State(tiny.variants(tiny.RULES, 16), positions)

    def both(variables, states):
        in_slots = evaluator_for(config.network, tiny.RULES)(variables, states)
        evaluate = make_public_network_evaluator(network, planes=config.network.planes)
        legal = jax.vmap(lambda s: actions.legal_actions(s))(states)
        slots = jax.vmap(
            jax.vmap(lambda s, a: actions.slot_of_action(s, a), in_axes=(None, 0)),
            in_axes=(0, None),
        )(states, jnp.arange(legal.shape[1]))
        return in_slots, evaluate(variables, states), legal, slots

    in_slots, in_actions, legal, slots = jax.device_get(jax.jit(both)(variables, states))
    assert legal[:, :468].any() and legal[:, 468:].any()
    expected = np.take_along_axis(in_slots.logits, np.where(legal, slots, 0), axis=1)
    np.testing.assert_allclose(in_actions.logits[legal], expected[legal], rtol=1e-5)
    assert np.ptp(expected[legal]) > 0.01
    assert (in_actions.logits[~legal] < -1e30).all()
    np.testing.assert_allclose(in_actions.value, in_slots.value, rtol=1e-5)


def test_operations_are_those_of_the_layers():
    """By hand, 9 cells and a width of 8: convolutions of 9 taps, heads of a cell and of what is
    pooled. The search reads neither ownership nor what is not there; a step has all thrice, but for
    the stem's, whose planes need no gradient."""
    config = tiny.config()
    planes = len(planes_lib.channels("B", 2))
    stem, block = 81 * planes * 8, 2 * 81 * 8 * 8
    policy, value, ownership = 9 * 8 * 53 + 16 * 53, 16 * 8 + 8, 9 * 8 * 3 + 16 * 3
    assert peak.forward_operations(config) == 2 * (stem + block + policy + value)
    every = stem + block + policy + value + ownership
    assert peak.step_operations(config) == 2 * (3 * every - stem)


def test_products_are_counted(monkeypatch):
    monkeypatch.setattr(peak, "CPU_SIDE", 8)
    found = peak.make_product_bench(tiny.config(), 4, all_devices(1)).run(3)
    assert found == {peak.OPERATIONS: 3 * 2 * 8**3, CHECKSUM: 64}


def test_steps_of_the_env_are_compiled_alone():
    found = dict(games.compiled_steps(tiny.RULES, 2, planes="B"))
    assert list(found) == ["env.step", "env.step_auto_reset"]
    assert found["env.step"].equations < found["env.step_auto_reset"].equations


def test_search_that_does_not_fit_is_named():
    request = Request(config=RunConfig(), batches=(64, 8192), against=(suite.MCTX_PUBLIC,))
    assert [suite._fits_public(request, batch) for batch in request.batches] == [True, False]
    said = suite._left_out(request, 8192)
    assert said.startswith("left out: mctx over public actions at batch 8,192, whose tree takes 16")
    assert suite._fits_public(dataclasses.replace(request, against=()), 8192)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [search.PUBLIC, search.PUBLIC_NETWORK])
def test_public_search_finds_a_legal_slot(kind):
    config = tiny.config()
    found = search.searcher(kind, config, 4)
    states = first_states(4)
    result = jax.jit(found.search)(found.variables, states, jax.random.key(0))
    legal = jax.jit(jax.vmap(actions.legal_slots))(states)
    assert np.take_along_axis(np.asarray(legal), np.asarray(result.slot)[:, None], 1).all()
    assert result.policy.shape == (4, 477)
    np.testing.assert_allclose(result.policy.sum(axis=1), 1, rtol=1e-5)


def test_self_play_counts_roots_and_leaves():
    """16 simulations in full and 4 in little: 17 and 5 looks."""
    config = RunConfig()
    metrics = SimpleNamespace(full=np.float32(3), positions=np.float32(10))
    assert selfplay.evaluations(config, metrics) == 3 * 17 + 7 * 5


def test_steady_config_has_one_program():
    config = tiny.config("--search.first_simulations", "1", "--selfplay.bootstrap_iterations", "2")
    found = selfplay.steady(config, 12)
    assert found.selfplay.boards == 12
    assert (found.selfplay.bootstrap_iterations, found.search.first_simulations) == (0, 0)


def test_ratios_are_of_times_and_of_better_batches():
    found = list(
        suite.ratios(
            [
                row(selfplay.SELFPLAY, 64, evaluations=80.0),
                row(selfplay.FORWARD, 64, evaluations=100.0, operations=70.0),
                row(peak.PRODUCT, 64, operations=80.0),
                row(learn.LEARNER, 64, steps=5.0),
                row(learn.BACKWARD, 64, steps=6.0, operations=60.0),
                row(games.CORE, 64, plies=300.0),
                row(games.CORE, 128, plies=200.0),
                row("env, BTRH", 64, plies=90.0),
                row("pgx othello", 64, plies=50.0),
                row("pgx othello", 128, plies=60.0),
                row("pgx othello, planes", 64, plies=45.0),
                row(search.UNIFORM, 64, simulations=40.0),
                row(search.NETWORK, 64, simulations=20.0),
                row(search.PUBLIC, 64, simulations=4.0),
                row(search.PUBLIC_NETWORK, 64, simulations=2.5),
            ]
        )
    )
    assert found == [
        Ratio("time of self-play over network alone", 64, 1.25),
        Ratio("operations of network alone over matrix product", 64, 0.875),
        Ratio("time of learner over network forward and backward", 64, 1.2),
        Ratio("operations of network forward and backward over matrix product", 64, 0.75),
        Ratio("plies of core over pgx othello", 0, 5.0),
        Ratio("plies of env, BTRH over pgx othello, planes", 0, 2.0),
        Ratio(f"simulations of {search.UNIFORM} over {search.PUBLIC}", 0, 10.0),
        Ratio(f"simulations of {search.NETWORK} over {search.PUBLIC_NETWORK}", 0, 8.0),
    ]


def test_knee_is_the_first_near_the_best():
    points = [scaling.Point(*x) for x in ((1, 1.0), (16, 79.0), (64, 81.0), (256, 100.0))]
    assert scaling.knee_of(points) == (64, 81.0)


def test_goals_are_compared_with_figures():
    fast = Figures((("env", row(games.CORE_BITS, 64, plies=2e8)),), (), None)
    wide = Figures(
        (("selfplay", row(selfplay.SELFPLAY, 64, evaluations=2.7e6)),),
        (
            Ratio("time of self-play over network alone", 64, 1.6),
            Ratio("time of self-play over network alone", 256, 1.4),
        ),
        None,
    )
    found = [(goal.measured, goal.is_met) for goal in report.goals(fast, wide)]
    assert found == [(2e8, True), (2.7e6, False), (1.4, True), (None, None)]


def figures() -> Figures:
    tree = memory.TreeMemory(4096, 64, 208, 5072, 5080.4, 1_900_000_000)
    rows = (("env", row(games.CORE, 64, plies=1.25e6)), ("learn", row(learn.LEARNER, 8, steps=2.0)))
    return Figures(rows, (Ratio("time of learner over x", 8, 1.3),), tree)


def test_table_holds_every_figure():
    text = printed(report.bench_report(figures()))
    for part in ("1.25 M plies", "1.5 (cache)", "1,234", "2.0", "00000abc", "batch 8: 1.30"):
        assert part in text
    assert "5,072 bytes a node by formula, 5,080 a board and simulation" in text
    assert "1.90 GB by memory analysis, within 2 GB" in text


def test_record_is_json():
    record = report.bench_record(Request(config=tiny.config()), figures(), [scaling.Point(4, 2.5)])
    again = json.loads(json.dumps(record))
    assert again["rows"][0]["rates"] == {"plies": 1.25e6}
    assert again["rows"][0]["stats"]["equations"] == 1234
    assert again["memory"]["total"] == 1_900_000_000
    assert again["environment"]["versions"]["jax"] == jax.__version__
    assert again["scaling"] == [{"batch": 4, "plies": 2.5}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"what": "env,fun"}, "--what 'fun' is unknown; allowed: env, search, selfplay, learn"),
        ({"what": ","}, "--what names nothing"),
        (
            {"against": "gym"},
            "--against 'gym' is unknown; allowed: pgx, pgx-chess, pgx-hex, pgx-go_9x9, mctx-public",
        ),
        ({"batch": "0"}, "--batch '0' must be numbers"),
        ({"batch": "many"}, "--batch 'many' must be numbers"),
        ({"repeats": 0}, r"--repeats \(0\) must be at least 1"),
        ({"simulations": 0}, r"--simulations \(0\) must be at least 1"),
        ({"seconds": 0.0}, r"--seconds \(0.0\) must be above 0"),
        ({"fit": "4096"}, "--fit must be boards, then simulations"),
    ],
)
def test_wrong_option_is_named(options, said):
    with pytest.raises(UsageError, match=f"^bench: {said}"):
        Bench(**options).run([])


@pytest.fixture
def counted(monkeypatch):
    """All parts measure the counting game, which compiles at once."""
    makers = {
        part: lambda request, batch: iter(
            [lambda: play.make_bench(counting_game(), batch, all_devices(1))]
        )
        for part in suite.PARTS
    }
    monkeypatch.setattr(suite, "_MAKERS", makers)
    monkeypatch.setattr(scaling.games, "core_game", lambda rules, on_bits: counting_game())
    tree = memory.TreeMemory(4, 4, 52, 1, 1.0, 1)
    monkeypatch.setattr(suite.memory, "tree_memory", lambda config, **fit: tree)


QUICK = {"seconds": 1e-4, "repeats": 2, "batch": "4,8", "scaling": "1,2,4"}


def test_command_writes_json_and_plot(counted, tmp_path, capsys):
    bench = Bench(tiny.PATH, what="env", json=tmp_path / "a" / "b.json", plot=tmp_path / "p.png")
    assert dataclasses.replace(bench, **QUICK).run(["--seed", "3"]) == 0
    record = json.loads((tmp_path / "a" / "b.json").read_text())
    assert [(x["part"], x["name"], x["batch"]) for x in record["rows"]] == [
        ("env", "counting", 4),
        ("env", "counting", 8),
    ]
    assert record["config"]["seed"] == 3
    assert [x["batch"] for x in record["scaling"]] == [1, 2, 4]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "counting" in capsys.readouterr().out


@pytest.mark.parametrize("engine", ["native", "mctx"])
def test_command_says_which_engine_searched(counted, engine, capsys):
    bench = dataclasses.replace(Bench(tiny.PATH, what="selfplay"), **QUICK)
    assert bench.run(["--search.engine", engine]) == 0
    assert f"search engine: {engine}\n" in capsys.readouterr().out


def test_report_is_written(counted, monkeypatch, tmp_path):
    trained = []

    def train(config: RunConfig, runs: Path, *, resume: bool) -> bool:
        trained.append((config.name, config.iterations, resume))
        (runs / config.name).mkdir(parents=True)
        rows = [
            {"games_per_second": x, "selfplay_seconds": 1.5, "learn_seconds": 0.5} for x in (1, 7)
        ]
        lines = "".join(json.dumps(each) + "\n" for each in rows)
        (runs / config.name / "metrics.jsonl").write_text(lines)
        return True

    monkeypatch.setattr("train.loop.training.train", train)
    bench = Bench(tiny.PATH, report=tmp_path / "out")
    assert dataclasses.replace(bench, **QUICK).run([]) == 0
    text = (tmp_path / "out" / "report.md").read_text()
    assert text.startswith("# Speed report")
    assert "| core, plies a second | ≥ 200 M | not measured |  |" in text
    assert "the last: 1.5 s of self-play, 0.5 s of learning, 7 games a second" in text
    assert trained == [("tiny-1", 3, False)]
    assert (tmp_path / "out" / "scaling.png").exists()
    assert "wide" in json.loads((tmp_path / "out" / "bench.json").read_text())


@pytest.mark.slow
def test_selfplay_over_network_with_mctx(capsys):
    """One command gives the figure for an engine."""
    bench = Bench(tiny.PATH, what="selfplay", batch="4", repeats=2, seconds=0.02)
    assert bench.run(["--search.engine", "mctx"]) == 0
    said = capsys.readouterr().out
    assert "search engine: mctx" in said
    assert "time of self-play over network alone, batch 4: " in said


@pytest.mark.slow
def test_everything_at_tiny_size(tmp_path):
    """The whole command, the trainer's own programs in it."""
    bench = Bench(
        tiny.PATH,
        batch="4",
        scaling="1,4",
        repeats=2,
        seconds=0.02,
        simulations=2,
        fit="4,4",
        wide=8,
        against="mctx-public",
        report=tmp_path,
    )
    assert bench.run([]) == 0
    record = json.loads((tmp_path / "bench.json").read_text())
    names = {x["name"] for x in record["rows"]}
    assert {selfplay.SELFPLAY, selfplay.FORWARD, learn.LEARNER, search.PUBLIC} <= names
    assert len(record["ratios"]) == 6
    assert set(record["compiled"]) == {"env.step", "env.step_auto_reset"}
    found = record["memory"]
    assert found["measured"] == pytest.approx(found["formula"], rel=0.2)
