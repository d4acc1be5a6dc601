"""Logits, values and heads of the page's network, and its heuristics, equal those of JAX."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.train.ui.engine.games import positions, random_games
from train.checkpoints import pretrained
from train.checkpoints.weights import TrainedNetwork, load_network
from train.config.run import HeuristicsConfig
from train.network import NetworkConfig, network_for, observer_for
from train.players.heuristics import make_heuristic_evaluator
from train.search.evaluator import evaluator_for
from train.ui import web
from wallgo_jax.game.rules import Rules

_DUEL = Rules(size=5, stones=2, order=(0, 1, 1, 0))
_TRIO = Rules(size=5, players=3, stones=1, order=(0, 1, 2), walls=6)
_SHAPES = {
    "all parts": (
        "WRT",
        dict(
            margin=True,
            destination_head=True,
            heads=2,
            playable=True,
        ),
        _DUEL,
    ),
    "without norms": ("WR", dict(norm="none", mover_first=False, ownership=False), _DUEL),
    "layer norms, three players": ("WRT", dict(norm="layer", value="wdl", width=6, heads=3), _TRIO),
}


def write(folder, trained: TrainedNetwork) -> TrainedNetwork:
    """Write a network's files; returns the network with weights rounded as they are."""
    card, data = web.pack_model(trained)
    (folder / "net.json").write_text(json.dumps(card))
    (folder / "net.bin").write_bytes(data)
    rounded = jax.tree.map(
        lambda x: web.round_weights(np.asarray(x)).astype(np.float32), trained.variables
    )
    return trained._replace(variables=rounded)


def check(engine, trained, rules, folder, *, count, tolerance):
    trained = write(folder, trained)
    games, states = random_games(engine, rules, seed=5, count=count)
    whole, _ = positions(games, states)
    config = trained.config.network
    network, observe = network_for(config, rules.players), observer_for(config)
    evaluate = evaluator_for(config, rules)

    @jax.jit
    def look(variables, states):
        planes = jax.vmap(lambda state: observe(state, None))(states)
        return network.evaluate(variables, planes), evaluate(variables, states)

    heads, evaluation = jax.device_get(look(trained.variables, whole))
    answer = engine.ask("look", fields=rules.to_dict(), games=games, evaluator=str(folder / "net"))
    found = [each for game in answer for each in game]
    assert len(found) == len(evaluation.value)
    apart, size = [], []
    for place, each in enumerate(found):
        slots = each["slots"]
        pairs = [
            (each["logits"], evaluation.logits[place, slots]),
            (each["values"], evaluation.value[place]),
        ]
        if heads.ownership is not None:
            owners = jax.nn.softmax(heads.ownership[place], axis=-1)
            pairs.append((each["owners"], np.asarray(owners).reshape(len(each["owners"]), -1)))
        if heads.margin is not None:
            pairs.append((each["margin"], heads.margin[place] * rules.size**2))
        for mine, theirs in pairs:
            apart.append(np.abs(np.asarray(mine) - theirs).max())
            size.append(np.abs(theirs).max())
    apart, size = np.array(apart), np.array(size)
    print(
        f"{trained.name}: {apart.max():.2g} apart, largest {size.max():.3g}, {len(found)} positions"
    )
    # Numbers in the hundreds have three digits less behind the point.
    assert (apart <= tolerance + 1e-6 * size).all()
    return len(found)


@pytest.mark.parametrize("shape", _SHAPES)
def test_networks_of_all_parts_are_equal(engine, tmp_path, shape):
    blocks, options, rules = _SHAPES[shape]
    options = {"width": 8, "planes": "BTR", "value_width": 5} | options
    network = NetworkConfig(blocks=blocks, **options)
    config = dataclasses.replace(tiny.config(), network=network, rules=rules)
    variables = tiny.random_weights(network, rules.players)
    # Small weights: those of numbers near 1 leave features in the thousands.
    variables = variables._replace(params=jax.tree.map(lambda x: 0.3 * x, variables.params))
    trained = TrainedNetwork(config, variables, "net", "test", None, {})
    check(engine, trained, rules, tmp_path, count=2, tolerance=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", pretrained.models())
def test_shipped_networks_are_equal(engine, tmp_path, name):
    trained = load_network(pretrained.folder_of(name))
    # A thousand positions of those that pages offer; fewer of their predecessors.
    count, least = (6, 250) if "-v" in name else (24, 1000)
    number = check(engine, trained, trained.config.rules, tmp_path, count=count, tolerance=1e-4)
    assert number >= least


@pytest.mark.parametrize(("formula", "rules"), [("wjx", _DUEL), ("ethen", _TRIO)])
def test_heuristics_are_equal(engine, formula, rules):
    games, states = random_games(engine, rules, seed=7, count=2)
    whole, _ = positions(games, states)
    evaluate = make_heuristic_evaluator(getattr(HeuristicsConfig(), formula))
    expected = jax.device_get(jax.jit(evaluate)((), whole))
    answer = engine.ask("look", fields=rules.to_dict(), games=games, evaluator=formula)
    found = [each for game in answer for each in game]
    for place, each in enumerate(found):
        np.testing.assert_allclose(each["logits"], expected.logits[place, each["slots"]], atol=1e-4)
        np.testing.assert_allclose(each["values"], expected.value[place], atol=1e-5)


def test_greed_is_that_of_the_package(engine):
    from train.players.basic import _greedy_slots

    games, states = random_games(engine, _DUEL, seed=9, count=2)
    whole, _ = positions(games, states)
    expected = np.asarray(jax.jit(jax.vmap(_greedy_slots))(whole))
    answer = engine.ask("look", fields=_DUEL.to_dict(), games=games, evaluator="greedy")
    found = [each for game in answer for each in game]
    for place, each in enumerate(found):
        best = [s for s, logit in zip(each["slots"], each["logits"], strict=True) if logit == 0]
        assert best == np.flatnonzero(expected[place]).tolist()
