"""The search of the page's engine visits what train/search visits, with exact numbers and with
networks; trees are kept from move to move."""

import functools

import jax
import numpy as np
import pytest

from tests.support import table_evaluator
from tests.train.ui.engine.games import positions, random_games
from tests.train.ui.engine.test_network import write
from train.checkpoints import pretrained
from train.checkpoints.weights import load_network
from train.config.run import HeuristicsConfig
from train.engine import pool
from train.engine.pool import Searching
from train.players.heuristics import make_heuristic_evaluator
from train.search.config import SearchConfig, as_player
from train.search.evaluator import evaluator_for
from train.search.sequential_halving import halving_dues
from train.search.tree import root_view
from wallgo_jax.game import actions
from wallgo_jax.game.rules import PRESETS, Rules

_DUEL = Rules(size=5, stones=2, order=(0, 1, 1, 0))
_TRIO = Rules(size=5, players=3, stones=1, order=(0, 1, 2), walls=6)
_OPTIONS = {
    "wide values": SearchConfig(value_scale=0.3, rescale_values=False),
    "rescaled": SearchConfig(value_scale=0.1, visit_offset=20.0),
}


def options_of(config: SearchConfig) -> dict:
    """The options as a card has them."""
    names = ("value_scale", "visit_offset", "rescale_values")
    return {name: getattr(config, name) for name in names} | {"least_spread": config.spread}


@functools.partial(jax.jit, static_argnums=0)
def _search(how, variables, states, dues):
    """Visits [B, A] and slots [B] of searches by the programs of engine sessions."""
    trees = pool.begin(how, variables, states, None, nodes=dues.shape[1] + 1)
    return _grow(how, variables, trees, dues)


def _grow(how, variables, trees, dues):
    rows = np.arange(len(dues))
    grown = pool.grow(how, variables, trees, rows, dues, np.int32(dues.shape[1]))
    root = root_view(grown.tree)
    slot, _ = pool.make_selection(how.config).result(root, grown.base)
    return grown, root.slot_visits, slot, root.value


def dues_of(states, config, simulations):
    legal = np.asarray(jax.jit(jax.vmap(actions.legal_slots))(states)).sum(axis=1)
    most = as_player(config, simulations).max_considered_actions
    table = [halving_dues(min(int(count), most), simulations) for count in legal]
    return np.array(table, np.int32)


def compare(engine, rules, evaluate, name, config, *, simulations, seed, count, variables=()):
    """The share of equal choices, the mean difference of visits in shares, and the number of
    searches with equal visits, of all."""
    games, states = random_games(engine, rules, seed=seed, count=-(-count // 8))
    whole, places = positions(games, states)
    some = np.sort(np.random.default_rng(seed).permutation(len(places))[:count])
    chosen = jax.tree.map(lambda x: x[some], whole)
    dues = dues_of(chosen, config, simulations)
    how = Searching(evaluate, config, 1, None)
    _, visits, slots, values = jax.device_get(_search(how, variables, chosen, dues))
    found = engine.ask(
        "search",
        fields=rules.to_dict(),
        games=[{"actions": games[game][:ply]} for game, ply in places[some]],
        evaluator=name,
        simulations=simulations,
        options=options_of(config),
    )
    mine = np.array([each[0]["visits"] for each in found])
    choices = np.array([each[0]["slot"] for each in found])
    equal = (mine == visits).all(axis=1)
    if name == "table":
        same_values = np.array([each[0]["value"] for each in found])[equal]
        np.testing.assert_allclose(same_values, values[equal], atol=1e-5)
    moved = np.abs(mine - visits).sum(axis=1) / 2 / simulations
    return (choices == slots).mean(), moved.mean(), equal.sum(), len(some)


@pytest.mark.parametrize(("options", "rules"), [("wide values", _DUEL), ("rescaled", _TRIO)])
def test_exact_numbers_give_equal_visits(engine, options, rules):
    same, _, equal, count = compare(
        engine,
        rules,
        table_evaluator.evaluate,
        "table",
        _OPTIONS[options],
        simulations=16,
        seed=1,
        count=24,
    )
    assert (same, equal) == (1.0, count)


@pytest.mark.slow
@pytest.mark.parametrize("simulations", [16, 64])
@pytest.mark.parametrize("options", _OPTIONS)
@pytest.mark.parametrize("name", ["wallzero-4stone", "playwallgo-3p"])
def test_many_searches_of_exact_numbers_are_equal(engine, name, options, simulations):
    same, _, equal, count = compare(
        engine,
        PRESETS[name],
        table_evaluator.evaluate,
        "table",
        _OPTIONS[options],
        simulations=simulations,
        seed=2,
        count=300,
    )
    assert (same, equal, count) == (1.0, 300, 300)


def test_heuristics_choose_equal_moves(engine):
    evaluate = make_heuristic_evaluator(HeuristicsConfig().wjx)
    same, moved, _, _ = compare(
        engine, _DUEL, evaluate, "wjx", SearchConfig(), simulations=16, seed=4, count=24
    )
    assert same >= 0.98
    assert moved < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wallzero-4stone", "wallzero-empty", "wallzero-4stone-v1"])
def test_networks_choose_equal_moves(engine, tmp_path, name):
    trained = write(tmp_path, load_network(pretrained.folder_of(name)))
    rules = trained.config.rules
    # Values of a node that differ by rounding alone are spread over 0 to 1 where a card rescales
    # them, and then the order of two sums decides a move. So all networks search with wide values;
    # tables with exact numbers test what rescales.
    own = trained.config.search
    config = as_player(_OPTIONS["wide values"] if own.rescale_values else own, 64)
    same, moved, equal, count = compare(
        engine,
        rules,
        evaluator_for(trained.config.network, rules),
        str(tmp_path / "net"),
        config,
        simulations=64,
        seed=6,
        count=50,
        variables=trained.variables,
    )
    print(f"{name}: same {same:.4f}, visits {moved:.4f}, equal {equal} of {count}")
    assert same >= 0.98
    assert moved < 0.02


@pytest.mark.parametrize("rules", [_DUEL, _TRIO])
def test_trees_are_kept(engine, rules):
    """A search after moves finds what the pool of an engine finds on the kept tree."""
    games, states = random_games(engine, rules, seed=8, count=4)
    start, ply, simulations, config = 4, 2, 16, _OPTIONS["wide values"]
    how, rows = Searching(table_evaluator.evaluate, config, 1, None), np.arange(1)
    for game, played in enumerate(games):
        state, between, later = (_state_at(states, game, start + ahead) for ahead in range(3))
        slots = [
            int(_slot_of(at, np.int32(action))[0])
            for at, action in zip((state, between), played[start:], strict=False)
        ]
        path = np.full((1, 8), pool.END, np.int32)
        path[0, :ply] = slots
        steps, room = np.int32(simulations), np.full(1, simulations, np.int32)
        trees = pool.begin(how, (), state, None, nodes=64)
        trees = pool.grow(how, (), trees, rows, dues_of(state, config, simulations), steps)
        trees = pool.resume(how, (), trees, rows, np.ones(1, bool), path, room, later)
        kept = int(trees.used[0])
        trees = pool.grow(how, (), trees, rows, dues_of(later, config, simulations), steps)
        root = jax.device_get(root_view(trees.tree))
        found = engine.ask(
            "search",
            fields=rules.to_dict(),
            games=[{"actions": played[:start], "again": [slots]}],
            evaluator="table",
            simulations=simulations,
            options=options_of(config),
        )[0][1]
        # With more players a tree is that of the player at its root; a pool leaves that to others.
        if rules.players == 2 or state.position.player[0] == later.position.player[0]:
            assert found["visits"] == root.slot_visits[0].tolist()
            assert found["nodes"] == int(trees.used[0]) >= kept
        else:
            assert sum(found["visits"]) == simulations


_slot_of = jax.jit(jax.vmap(actions.slot_of_action, (0, None)))


def _state_at(states, game, ply):
    """[1]: a state of a game."""
    return jax.tree.map(lambda x: np.asarray(x)[ply, game][None], states)
