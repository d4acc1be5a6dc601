"""Players act on states and search them; a search says what it found; wrong input is one line."""

import dataclasses
import functools
from unittest.mock import Mock

import jax
import numpy as np
import pytest

import train
import wallgo_jax
from tests.support.learner import tiny
from tests.support.learner.saved import save_run
from train.api import players
from train.api.players import player_of_weights
from train.api.states import check_rules
from train.network.build import network_for
from train.players import registry, searching
from train.solver import exact_player
from train.solver.alphabeta import AlphaBeta
from wallgo_jax.game import actions
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.notation import parse_action
from wallgo_jax.view.game_replay import replay_actions

ENV = wallgo_jax.make(tiny.RULES, planes="B")


@functools.cache
def states():
    """Three positions of a game: before the first ply, and after one and three."""
    step, state = jax.jit(ENV.step), jax.jit(ENV.init)()
    found = [state]
    for _ in range(3):
        state = step(state, np.asarray(state.legal_action_mask).argmax())
        found.append(state)
    return jax.device_get([found[0], found[1], found[3]])


def batch():
    return jax.tree.map(lambda *x: np.stack(x), *states())


@pytest.fixture(scope="module")
def player():
    return train.make_player("heuristic-search:wjx@12", tiny.RULES)


@pytest.fixture(scope="module")
def found(api_run):
    """A network's search that considers every move of these boards."""
    return api_run.player(simulations=12).search(batch(), max_considered_actions=16)


@pytest.mark.slow
def test_a_search_is_of_all_simulations(found):
    assert found.simulations == 12
    np.testing.assert_array_equal(found.visits.sum(axis=1), 12)
    np.testing.assert_allclose(found.policy.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(found.prior.sum(axis=1), 1, atol=1e-5)
    for part in (found.policy, found.prior, found.visits, found.completed):
        assert (part[~found.legal] == 0).all()


def test_values_are_the_movers_and_each_players(found):
    mover = batch().current_player
    assert set(mover.tolist()) == {0, 1}
    np.testing.assert_allclose(found.values.sum(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(found.values[np.arange(3), mover], found.value, atol=1e-6)
    # The mean of the network's value and those of all simulations.
    mean = (found.network_value + (found.visits * found.qvalues).sum(axis=1)) / 13
    np.testing.assert_allclose(found.value, mean, atol=1e-5)


def test_completed_values_are_those_of_the_paper(found):
    for board in range(3):
        one = found[board]
        seen = one.visits > 0
        weight = np.where(seen, one.prior, 0).astype(np.float64)
        mean = (weight * one.qvalues).sum() / weight.sum()
        mixed = (one.network_value + one.visits.sum() * mean) / (1 + one.visits.sum())
        expected = np.where(seen, one.qvalues, mixed)
        np.testing.assert_allclose(one.completed[one.legal], expected[one.legal], atol=1e-5)


def test_lines_can_be_played(found):
    played = [[], [int(x) for x in np.flatnonzero(states()[0].legal_action_mask)[:1]]]
    for board, before in enumerate(played):
        assert found[board].lines[0, 0] == found.action[board]
        for line in found[board].lines[:3]:
            moves = [int(action) for action in line if action != NO_ACTION]
            replay_actions(tiny.RULES, [*before, *moves])
    for board in range(3):
        one = found[board]
        shown = [int(line[0]) for line in one.lines if line[0] != NO_ACTION]
        assert len(shown) == min(len(one.lines), (one.visits > 0).sum()) > 1
        assert set(shown) <= set(one.actions[one.visits > 0].tolist())
    one = found[0]
    assert one.best == one.line[0]
    assert parse_action(one.best, grid=3).action == int(one.action)


def test_tables_and_pictures(found):
    table = found[0].to_dataframe()
    assert len(table) == 9
    assert table["visits"].sum() == 12
    assert table["visits"].is_monotonic_decreasing
    assert set(found.to_dataframe()["board"]) == {0, 1, 2}
    assert found[0].svg().startswith("<svg")
    assert "simulations" in found[0]._repr_html_()
    assert str(found).count("line: ") == 3
    with pytest.raises(train.UsageError, match="has several boards"):
        found.svg()


def test_a_networks_search_shows_owners_and_without_simulations_its_policy(api_run, found):
    assert found.owners.shape == (3, 3, 3, 3)
    np.testing.assert_allclose(found.owners.sum(axis=-1), 1, atol=1e-5)
    named = train.make_player(f"search:{api_run.directory}@12")
    assert named.rules == tiny.RULES
    same = named.search(batch(), max_considered_actions=16)
    np.testing.assert_array_equal(same.policy, found.policy)
    raw = named.search(batch(), simulations=0)
    np.testing.assert_array_equal(raw.policy, raw.prior)
    np.testing.assert_array_equal(raw.value, raw.network_value)
    likeliest = np.take_along_axis(raw.actions, raw.prior.argmax(axis=1)[:, None], axis=1)[:, 0]
    assert raw.action.tolist() == likeliest.tolist() == raw.lines[:, 0, 0].tolist()
    assert (raw.lines[:, 1:] == NO_ACTION).all()


def test_a_player_keeps_the_weights_and_the_name_that_it_was_made_with(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "simulations_in", lambda *_: 7)
    monkeypatch.setattr(registry, "_SIMULATIONS", {})
    run = save_run(tmp_path / "run", seeds={1: 0})
    plain, timed = train.make_player(f"{run}@3"), train.make_player(f"{run}@0.5s")
    save_run(run, seeds={2: 1})
    newer = train.make_player(f"{run}@3")
    for made in (plain, timed):
        own = made.registered.variables
        assert made.trained.variables is own
        assert any((a != b).any() for a, b in zip(*map(leaves, (made, newer)), strict=True))
    assert (plain.searching.simulations, timed.searching.simulations) == (3, 7)
    assert timed.searching.search.rounds and timed.searching.name == timed.name


def leaves(player):
    return jax.tree.leaves(player.registered.variables)


def first_legal(states, key):
    return jax.vmap(actions.legal_slots)(states).argmax(axis=1)


def alike():
    """Another function of the same name."""
    return functools.wraps(first_legal)(lambda states, key: first_legal(states, key))


def floats(states, key):
    return jax.numpy.zeros((1, 53))


def test_a_function_is_a_player():
    player = train.make_player(first_legal, tiny.RULES)
    assert player.name == "first_legal"
    expected = [int(state.legal_action_mask.argmax()) for state in states()]
    played = [player.act(state) for state in states()]
    assert played == player.act(batch()).tolist() == expected
    assert {type(action) for action in played} == {int}


BOTH, TRIO = ["random", "greedy"], "playwallgo-3p"


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: train.make_player("wxj"), "wjx"),
        (lambda: train.make_player(3), "callable"),
        (lambda: train.match("random", ["greedy"]), "a name, a run, a player or callable"),
        (lambda: train.match("random", "greedy", sprt="x,20"), "^sprt: elo0"),
        (lambda: train.find_puzzles(level=2), "^find_puzzles: level: "),
        (lambda: train.bench_speed(parts=["learn"], against=["pgx"]), "^bench: `against='pgx'` "),
        (lambda: train.make_player("random", "hkio"), "hkio"),
        (lambda: train.make_player("random", tiny.RULES).search(states()[0]), "evaluate"),
        (lambda: train.make_player(first_legal, tiny.RULES).search(states()[0]), "evaluate"),
        (lambda: train.make_player(first_legal, tiny.RULES).trained, "network"),
        (lambda: train.make_player(floats, tiny.RULES).act(states()[0]), "float32"),
        (lambda: train.make_player("random").act(states()[0]), "3x3"),
        (lambda: train.make_player("random").act(3), "state"),
        (lambda: train.match(*BOTH, games=0), "games"),
        (lambda: train.match(*BOTH, games="many"), "integer"),
        (lambda: train.match(*BOTH, seed=-1), "seed"),
        (lambda: train.match(*BOTH, "wjx"), "3 players"),
        (lambda: train.selfplay("random", explores=True), "evaluate"),
        (lambda: train.selfplay("random", simulations=64), "explores"),
        (lambda: train.load_game("nothing here"), "nothing"),
        (lambda: train.accuracy("random", rules="hkoi"), "3x3|table|solve"),
        (lambda: train.tournament(["random", "random"], rules=tiny.RULES), "random"),
        (lambda: train.tournament("random"), "Sequence"),
        (lambda: train.tournament(BOTH, form="swiss"), "swiss"),
        (lambda: train.elo(["random"], rules=tiny.RULES), "at least 2"),
        (lambda: train.elo([], rules=tiny.RULES), "at least 2"),
        (lambda: train.elo(BOTH, rules=tiny.RULES, zero="x"), "zero"),
        (lambda: train.elo(["random"], checkpoints=1), "checkpoints"),
        (lambda: train.elo([first_legal, alike(), "random"], rules=TRIO), "twice"),
        (lambda: train.match(*["random"] * 4, rules=TRIO), "4"),
        (lambda: train.match(first_legal, alike(), "random", rules=TRIO), "two"),
        (lambda: train.tournament(BOTH, rules=TRIO), "3"),
        (lambda: train.watch([], every=0), "every"),
        (lambda: train.make_config(3), "path"),
        (lambda: train.make_config(None, ["seed"]), "dict"),
        (lambda: train.use_functions(search=lambda: 0), "name"),
        (lambda: train.use_functions(loss=3), "loss: Input should be callable"),
        (lambda: train.use_functions(network=max), "pair"),
        (lambda: train.play(level="weak"), "beginner"),
        (lambda: train.play(colour="Green"), "Blue"),
        (lambda: train.play(rules="chess"), "chess"),
        (lambda: train.play(player="random"), "random"),
        (lambda: train.play(player="heuristic-search:wjx@512"), "without simulations"),
    ],
)
def test_wrong_input_is_one_line(call, word):
    with pytest.raises(train.UsageError, match=word) as found:
        call()
    assert "\n" not in str(found.value)


def first_board(rules, **more):
    return jax.jit(wallgo_jax.make(rules, **more).init)()


def test_a_network_refuses_boards_of_rules_that_it_has_not_learned():
    config = tiny.config()
    weights = tiny.new_weights(network_for(config.network, 2))
    player = player_of_weights("mine", weights, config, config.rules, simulations=0)
    walled = first_board(dataclasses.replace(config.rules, walls=3))
    turned = first_board(dataclasses.replace(config.rules, order=config.rules.order[::-1]))
    mixed = jax.tree.map(lambda *x: np.stack(x), states()[0].game, walled.game)
    for state, word in ((walled, "walls"), (turned, "net:mine"), (mixed, "walls")):
        with pytest.raises(train.UsageError, match=word):
            player.act(state)
    # The same board in a larger grid is the same game.
    larger = jax.tree.map(lambda x: np.asarray(x)[None], first_board(config.rules, grid=5).game)
    check_rules(larger, config.rules, player.name)


def test_questions_that_the_solver_does_not_answer_are_one_line(
    monkeypatch, failed_programs_are_forgotten
):
    monkeypatch.setattr(exact_player, "AlphaBeta", functools.partial(AlphaBeta, node_limit=5))
    rules = wallgo_jax.Rules(size=4, stones=1, order=(1, 0), tie=())
    player = train.make_player("exact", rules, transfer=True)
    other = dataclasses.replace(rules, tie=("mover_loses",))
    for asked, word in ((rules, "^solver: .* 5 nodes"), (other, "tie")):
        with pytest.raises(train.UsageError, match=word) as caught:
            player.act(first_board(asked))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("measure", "given"),
    [
        (train.match, BOTH),
        (train.tournament, [BOTH]),
        (train.elo, [BOTH]),
        (train.accuracy, ["random"]),
        (train.selfplay, ["random"]),
    ],
)
def test_refusals_inside_programs_are_one_line(measure, given, monkeypatch):
    error = jax.errors.JaxRuntimeError("INTERNAL: at\na.b.UsageError: too large\n")
    monkeypatch.setattr(registry, "make_player", Mock(side_effect=error))
    with pytest.raises(train.UsageError, match=r"^too large$"):
        measure(*given, rules=tiny.RULES)


def options_of(player, monkeypatch, **given):
    """Options of a player's search, whether it explores, and the bits of its key."""
    make = Mock(return_value=Mock(side_effect=KeyboardInterrupt))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(players, "make_reporting_search", make)
        player.search(batch(), **given)
    (_, options), how = make.call_args
    *_, key = make.return_value.call_args.args
    return options, how["explores"], jax.random.key_data(key).tolist()


def test_a_search_may_differ_from_the_players(player, monkeypatch):
    plain, noisy, _ = options_of(player, monkeypatch)
    puct, *_ = options_of(player, monkeypatch, kind="puct", simulations=3)
    assert (plain.kind, plain.simulations, noisy) == ("gumbel", 12, False)
    fewer = {"simulations": 3, "max_considered_actions": 2}
    assert puct == dataclasses.replace(plain, kind="puct", **fewer)
    asked, *_ = options_of(player, monkeypatch, max_considered_actions=7)
    assert asked.max_considered_actions == 7
    one, same, other = (options_of(player, monkeypatch, seed=seed) for seed in (1, 1, 2))
    assert one == same != other and one[1]
    with pytest.raises(train.UsageError, match="kind"):
        player.search(batch(), kid="puct")


def test_a_player_acts_by_the_search_that_it_shows(monkeypatch):
    """Of 11 simulations, which no other test asks for: players of equal options are made once."""
    player = train.make_player("heuristic-search:wjx@12", tiny.RULES)
    shown, explores, _ = options_of(player, monkeypatch, simulations=11)
    make = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(searching, "make_search", make)
    with pytest.raises(KeyboardInterrupt):
        train.make_player("heuristic-search:wjx@11", tiny.RULES).act(batch())
    (_, acted), how = make.call_args
    assert shown == dataclasses.replace(acted, engine="native")
    assert explores is how["explores"] is False


def test_an_evaluation_has_plain_arrays_for_slots_actions_and_players(api_run):
    """One board and a batch; public actions in place of slots; Blue to move."""
    player = api_run.player(simulations=0)
    env = player.env
    first = env.init()
    second = env.step(first, int(np.flatnonzero(first.legal_action_mask)[2]))
    states = jax.tree.map(lambda *x: np.stack(x), first, second)
    found, by_action = player.evaluate(states), player.evaluate(states, public=True)
    shown = player.search(states, simulations=0)
    np.testing.assert_array_equal(found.policy, shown.prior)
    np.testing.assert_array_equal(found.values, shown.values)
    np.testing.assert_allclose(by_action.policy.sum(axis=1), 1, rtol=1e-5)
    assert by_action.policy.shape == (2, env.num_actions)
    assert not by_action.policy[~np.asarray(states.legal_action_mask)].any()
    board, slot = 1, int(found.policy[1].argmax())
    action = int(shown.actions[board, slot])
    assert by_action.policy[board, action] == found.policy[board, slot]
    np.testing.assert_allclose(player.evaluate(second).values, found.values[1], atol=1e-6)
    assert found.owners is None or found.owners.shape[:3] == (2, 3, 3)
    # The network by itself: its value is the mover's, its planes are those that it names.
    network = player.network
    planes = network.observe(states.game)
    assert planes.shape == (2, 3, 3, len(network.channels))
    assert {"stone Red", "stone Blue"} <= {*network.channels}
    value = network.evaluate(network.weights, planes).value[:, 0]
    np.testing.assert_allclose(value, shown.network_value, atol=1e-5)
    hidden = network.evaluate(network.weights, jax.numpy.zeros_like(planes)).value[:, 0]
    assert not np.allclose(value, hidden)
