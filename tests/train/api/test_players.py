"""Players act on states and search them; a search says what it found."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
import wallgo_jax
from tests.support.learner import tiny
from tests.support.learner.saved import save_run
from train.api import games, measures
from train.api.players import player_of_weights
from train.api.states import check_rules
from train.network.build import network_for
from train.registry import make_player as registered
from train.registry import players as registered_players
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
    step, state = jax.jit(ENV.step), ENV.init()
    found = [state]
    for _ in range(3):
        state = step(state, state.legal_action_mask.argmax())
        found.append(state)
    return [found[0], found[1], found[3]]


def batch():
    return jax.tree.map(lambda *x: jnp.stack(x), *states())


@pytest.fixture(scope="module")
def player():
    return train.make_player("heuristic-search:wjx@12", tiny.RULES)


@pytest.fixture(scope="module")
def found(player):
    return player.search(batch())


@pytest.mark.slow
def test_actions_are_those_of_the_registry_one_by_one_and_in_a_batch(player):
    made = registered("heuristic-search:wjx@12", tiny.RULES)
    slots = made.act(made.variables, batch().game, jax.random.key(0))
    expected = jax.vmap(actions.action_of_slot)(batch().game, slots).tolist()
    assert player.act(batch()).tolist() == expected
    assert player.act(batch().game).tolist() == expected
    assert [type(player.act(state)) for state in states()] == [int] * 3
    for state in states():
        assert state.legal_action_mask[player.act(state)]


@pytest.mark.slow
def test_a_search_finds_what_the_player_plays(player, found):
    assert found.action.tolist() == player.act(batch()).tolist()
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


@pytest.mark.slow
def test_a_networks_search_shows_owners_and_without_simulations_its_policy(api_run):
    player = api_run.player(simulations=4)
    found = player.search(batch())
    assert found.owners.shape == (3, 3, 3, 3)
    np.testing.assert_allclose(found.owners.sum(axis=-1), 1, atol=1e-5)
    raw = player.search(states()[1], simulations=0)
    np.testing.assert_array_equal(raw.policy, raw.prior)
    assert raw.value == raw.network_value
    assert raw.action == raw.actions[raw.prior.argmax()] == raw.lines[0, 0]
    assert (raw.lines[1:] == NO_ACTION).all()
    named = train.make_player(f"search:{api_run.directory}@4")
    assert named.rules == tiny.RULES
    np.testing.assert_array_equal(named.search(batch()).policy, found.policy)


def test_a_player_keeps_the_weights_and_the_name_that_it_was_made_with(tmp_path, monkeypatch):
    monkeypatch.setattr(registered_players, "simulations_in", lambda *_: 7)
    monkeypatch.setattr(registered_players, "_SIMULATIONS", {})
    run = save_run(tmp_path / "run", seeds={1: 0})
    plain, timed = train.make_player(f"{run}@3"), train.make_player(f"{run}@0.5s")
    save_run(run, seeds={2: 1})
    newer = train.make_player(f"{run}@3")
    for made in (plain, timed):
        own = made.registered.variables
        assert made.guide.variables is own and made.trained.variables is own
        assert made.guide is made.guide and made.trained is made.trained
        assert any((a != b).any() for a, b in zip(*map(leaves, (made, newer)), strict=True))
    assert (plain.guide.simulations, timed.guide.simulations) == (3, 7)
    assert timed.guide.search.rounds and timed.guide.name == timed.name


def leaves(player):
    return jax.tree.leaves(player.registered.variables)


def first_legal(states, key):
    return jax.vmap(actions.legal_slots)(states).argmax(axis=1)


def floats(states, key):
    return jax.numpy.zeros((1, 53))


def test_a_function_is_a_player():
    player = train.make_player(first_legal, tiny.RULES)
    assert player.name == "first_legal"
    for state in states():
        assert player.act(state) == int(state.legal_action_mask.argmax())
    result = train.match(first_legal, "random", rules=tiny.RULES, games=4)
    assert result.first == "first_legal"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: train.make_player("wxj"), "unknown; did you mean wjx"),
        (lambda: train.make_player(3), "is neither a name nor a function"),
        (lambda: train.make_player("random", "hkio"), "hkio"),
        (lambda: train.make_player("random", tiny.RULES).search(states()[0]), "cannot evaluate"),
        (lambda: train.make_player(first_legal, tiny.RULES).search(states()[0]), "is a function"),
        (lambda: train.make_player("random").act(states()[0]), "its boards are of 3x3 cells"),
        (lambda: train.make_player("random").act(3), "int is no state of the env"),
        (lambda: train.match("random", "greedy", games=3), "must be an even number"),
        (lambda: train.match("random", "greedy", seed=-1), "seed"),
        (lambda: train.match("random", "greedy", rules="playwallgo-3p"), "a match is for 2"),
        (lambda: train.selfplay("random", explores=True), "cannot evaluate"),
        (lambda: train.selfplay("random", simulations=64), "are of a search that explores: say"),
        (lambda: train.load_game("nothing here"), "nothing here"),
        (lambda: train.accuracy("random", rules="hkoi"), "3x3|table|solve"),
        (lambda: train.tournament(["random", "random"], rules=tiny.RULES), "random"),
        (lambda: train.elo(["random"], rules=tiny.RULES), "fewer than 2"),
        (lambda: train.elo([], rules=tiny.RULES), "too few"),
        (lambda: train.elo(["random", "greedy"], rules=tiny.RULES, zero="x"), "zero 'x' is not"),
        (lambda: train.elo(["random"], checkpoints=1), r"elo: checkpoints \(1\) must be 0, or at"),
        (lambda: train.elo(["random"], checkpoints=-1), r"checkpoints \(-1\) must be 0, or at"),
        (lambda: train.watch([], every=0), r"watch: every \(0\) must be at least 1"),
        (lambda: train.match("random", "greedy", games="20"), r"games \('20'\) must be a whole"),
        (lambda: train.match("random", "greedy", seed=0.5), r"seed \(0.5\) must be a whole"),
        (lambda: train.tournament("random"), "players must be a list, not 'random'"),
        (lambda: train.tournament(["random", "greedy"], form="swiss"), "form 'swiss' is not one"),
        (lambda: train.make_config(3), "3 is no file"),
        (lambda: train.make_config(None, ["seed"]), "must be a dict of dotted keys"),
        (lambda: train.make_player(floats, tiny.RULES).act(states()[0]), r"gave float32\[1, 53\]"),
        (lambda: train.make_player(first_legal, tiny.RULES).trained, "has no network"),
    ],
)
def test_wrong_input_is_one_line(call, reason):
    with pytest.raises(train.UsageError, match=reason) as found:
        call()
    assert "\n" not in str(found.value)


def test_a_network_refuses_boards_of_rules_that_it_has_not_learned():
    config = tiny.config()
    weights = tiny.new_weights(network_for(config.network, 2))
    player = player_of_weights("mine", weights, config, config.rules, simulations=0)
    placements = dataclasses.replace(config.rules, order=config.rules.order[::-1])
    for rules in (dataclasses.replace(config.rules, walls=3), placements):
        state = wallgo_jax.make(rules).init()
        with pytest.raises(train.UsageError, match="a board has other rules than net:mine"):
            player.act(state)
    with pytest.raises(train.UsageError, match=r"\(walls differs\)"):
        walled = wallgo_jax.make(dataclasses.replace(config.rules, walls=3)).init()
        player.act(jax.tree.map(lambda *x: jnp.stack(x), ENV.init().game, walled.game))
    # The same board in a larger grid is the same game.
    check_rules(
        jax.tree.map(
            lambda x: np.asarray(x)[None], wallgo_jax.make(config.rules, grid=5).init()
        ).game,
        config.rules,
        player.name,
    )


@pytest.mark.slow
def test_the_exact_player_refuses_boards_of_other_rules_and_plays_its_own_in_a_larger_grid():
    player = train.make_player("exact", tiny.RULES, transfer=True)
    other = dataclasses.replace(tiny.RULES, tie=("mover_loses",))
    assert other != tiny.RULES
    with pytest.raises(train.UsageError) as caught:
        player.act(wallgo_jax.make(other).init())
    said = "state: a board has other rules than exact was made for (tie differs)"
    assert str(caught.value) == said
    # One of the nine cells that lie in the corner of the grid.
    action = player.act(wallgo_jax.make(tiny.RULES, grid=5).init())
    assert action - 5**2 * 52 in {5 * row + column for row in range(3) for column in range(3)}


@pytest.mark.parametrize(
    "ask",
    [
        lambda rules: train.make_player("exact", rules).act(wallgo_jax.make(rules).init()),
        lambda rules: train.selfplay("exact", rules=rules, games=2),
    ],
    ids=["act", "selfplay"],
)
def test_a_question_too_large_for_the_solver_is_one_line(
    ask, monkeypatch, failed_programs_are_forgotten
):
    monkeypatch.setattr(exact_player, "AlphaBeta", functools.partial(AlphaBeta, node_limit=5))
    rules = wallgo_jax.Rules(size=4, stones=1, order=(1, 0), tie=())
    said = "^solver: a position with [0-9] walls on 4x4 cells needs more than 5 nodes of [a-z-]+ se"
    with pytest.raises(train.UsageError, match=said) as caught:
        ask(rules)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("measure", [train.match, train.tournament, train.elo, train.accuracy])
def test_refusals_inside_programs_are_one_line(measure, monkeypatch):
    def fail(*given, **named):
        raise jax.errors.JaxRuntimeError("INTERNAL: at\na.b.UsageError: too large\n")

    monkeypatch.setattr(games, "make_players", fail)
    monkeypatch.setattr(measures, "make_player", fail)
    players = {train.match: ("exact", "random"), train.accuracy: ("exact",)}
    with pytest.raises(train.UsageError, match=r"^too large$"):
        measure(*players.get(measure, (["exact", "random"],)), rules=tiny.RULES)


@pytest.mark.slow
def test_a_search_may_differ_from_the_players(player, found):
    puct = player.search(batch(), kind="puct")
    np.testing.assert_allclose(puct.policy, puct.visits / 12, atol=1e-5)
    one, same, other = (player.search(batch(), seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.visits, same.visits)
    assert (one.visits != other.visits).any()
    with pytest.raises(train.UsageError, match=r"search: unknown key search\.kid; did you mean"):
        player.search(batch(), kid="puct")
