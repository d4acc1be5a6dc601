"""Every form of a player's name makes that player; unknown names are refused in one line."""

import dataclasses
import functools
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.saved import save_run
from train import functions
from train.checkpoints.exported import write_model
from train.checkpoints.store import save_checkpoint
from train.config import config_to_dict
from train.config.run import HeuristicConfig, HeuristicsConfig
from train.network.build import network_for
from train.players import registry
from train.players.basic import act_by
from train.players.names import read_name
from train.players.networks import load_network
from train.players.registry import (
    make_evaluating_player,
    make_frozen_opponent,
    make_player,
    make_teacher,
)
from train.players.searching import PROBE, simulations_in
from train.runtime.errors import UsageError
from train.search.config import MAX_SIMULATIONS, SearchConfig
from train.search.evaluator import evaluator_for
from train.search.search import make_search
from wallgo_jax.game import actions
from wallgo_jax.game.rules import PRESETS, Rules

RULES = tiny.RULES


def complaint(name: str) -> str:
    with pytest.raises(UsageError) as caught:
        make_player(name, RULES)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run whose newest checkpoint is of iteration 10."""
    return save_run(tmp_path_factory.mktemp("runs") / "one", seeds={9: 0, 10: 1})


@pytest.fixture(scope="module")
def other_run(tmp_path_factory) -> Path:
    return save_run(tmp_path_factory.mktemp("runs") / "two", seeds={3: 2})


@pytest.mark.parametrize("form", ["random", "greedy", "wjx", "net:{run}"])
def test_every_name_form_plays_legally(run, states, form):
    """Tests of their own play those that search."""
    legal = np.asarray(jax.jit(jax.vmap(actions.legal_slots))(states))
    name = form.format(run=run)
    player = make_player(name, RULES)
    assert player.name == name
    slots = np.asarray(player.act(player.variables, states, jax.random.key(0)))
    assert slots.shape == legal.shape[:1]
    assert legal[np.arange(len(slots)), slots].all()


def test_checkpoints_of_one_shape_share_a_program(run, other_run):
    for name in ("net:{}", "search:{}@2"):
        one, other = (make_player(name.format(path), RULES) for path in (run, other_run))
        assert one.act is other.act
        leaves = zip(jax.tree.leaves(one.variables), jax.tree.leaves(other.variables), strict=True)
        assert any((np.asarray(a) != np.asarray(b)).any() for a, b in leaves)
    assert make_player("wjx", RULES).act is make_player("wjx", RULES).act
    weights = HeuristicsConfig(wjx=HeuristicConfig(formula="wjx", boundary=3))
    assert make_player("wjx", RULES, heuristics=weights).act is not make_player("wjx", RULES).act
    plain, said, other = (make_player(f"search:{run}{n}", RULES) for n in ("", "@64", "@65"))
    assert plain.act is said.act is not other.act


def test_one_symmetry_is_the_player_itself_and_more_are_others(run):
    for form in ("net:{}", "search:{}@2"):
        plain = make_player(form.format(run), RULES)
        same = make_player(f"{form.format(run)}?symmetries=1", RULES)
        more = [make_player(f"{form.format(run)}?symmetries={n}", RULES) for n in (2, 8, 8)]
        assert (same.name, same.act) == (plain.name, plain.act)
        assert plain.act is not more[0].act is not more[1].act is more[2].act
        assert more[1].name == f"{plain.name}?symmetries=8"


class Machine:
    """A clock that searches of known cost move on; the first call of each compiles."""

    def __init__(self, *, root: float, simulation: float) -> None:
        self.time, self.root, self.simulation = 0.0, root, simulation
        self.asked: list[int] = []

    def clock(self) -> float:
        return self.time

    def make_act(self, simulations: int):
        self.asked.append(simulations)
        calls = []

        def act(variables, states, key):
            assert states.position.ply.shape == (1,)
            self.time += (0 if calls else 100) + self.root + simulations * self.simulation
            calls.append(1)
            return states.position.ply

        return act


@pytest.mark.parametrize(
    ("seconds", "root", "expected", "searches"),
    [
        (0.0641, 0.0, 64, 1),  # near the probe: one search is enough
        (0.1005, 0.0, 100, 1),
        (1.0005, 0.0, 1000, 2),
        (1.2999, 0.0, 1200, 2),  # 1299 to two digits
        (0.0121, 0.008, 4, 2),  # the root costs as much as eight simulations
        (0.0001, 0.0, 1, 2),  # never less
        (0.0085, 0.008, 1, 2),
        (600, 0.0, MAX_SIMULATIONS, 2),
    ],
)
def test_seconds_become_simulations(seconds, root, expected, searches):
    machine = Machine(root=root, simulation=0.001)
    how = {"clock": machine.clock}
    assert simulations_in(seconds, machine.make_act, (), tiny.RULES, **how) == expected
    assert machine.asked[0] == PROBE and len(machine.asked) == searches


def test_time_becomes_simulations_once(run, other_run, monkeypatch, capsys):
    measure = Mock(side_effect=range(101, 106))
    monkeypatch.setattr(registry, "simulations_in", measure)
    monkeypatch.setattr(registry, "_SIMULATIONS", {})
    first, again, other = (make_player(f"{p}@0.5s", RULES) for p in (run, run, other_run))
    measure.assert_called_once()
    assert capsys.readouterr().out == (
        f"search:{run}@0.5s: 101 simulations a move here, by one board; played as "
        f"search:{run}@101?rounds=true\n"
    )
    # The player is that of the simulations, so its games and records can be repeated.
    assert first.name == again.name == f"search:{run}@101?rounds=true"
    assert other.name == f"search:{other_run}@101?rounds=true"
    assert first.act is other.act is make_player(f"{run}@101?rounds=true", RULES).act
    turned = make_player(f"{run}@0.5s?symmetries=8", RULES)
    assert turned.name == f"search:{run}@102?symmetries=8&rounds=true"
    plain = make_player(f"{run}@0.5s?rounds=false", RULES)
    assert plain.name == f"search:{run}@103?rounds=false"
    heuristic = make_player("heuristic-search:wjx@2s", RULES)
    assert heuristic.name == "heuristic-search:wjx@104?rounds=true"
    asked = [(seconds, rules) for (seconds, *_, rules), _ in measure.call_args_list]
    assert asked == 3 * [(0.5, RULES)] + [(2.0, RULES)]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert make_player("heuristic-search:wjx@2s", RULES).name == "heuristic-search:wjx@105"


def test_rounds_of_a_search_without_rounds_are_refused():
    name = read_name("heuristic-search:wjx@4?rounds=true")
    with pytest.raises(UsageError, match="its search is puct, which has no rounds"):
        registry.with_named_options(SearchConfig(kind="puct"), name)
    assert registry.with_named_options(SearchConfig(), name).rounds


def own_search(evaluate, states, key, *, simulations, explores):
    found = evaluate(states)
    return found.logits.argmax(-1), jax.nn.softmax(found.logits), found.value[:, 0]


def test_options_that_a_search_of_ones_own_does_not_read_are_refused(tmp_path):
    custom = functions.tell("search.custom", own_search)
    config = tiny.config()
    config = dataclasses.replace(config, search=dataclasses.replace(config.search, custom=custom))
    run = save_run(tmp_path / "run", seeds={1: 0}, config=config)
    for option in ("symmetries=8", "opponents=maxn", "rounds=false"):
        name = f"search:{run}@2?{option}"
        assert "takes no options" in complaint(name)
        with pytest.raises(UsageError) as caught:
            make_frozen_opponent(name, RULES)
        assert str(caught.value) == complaint(name)
        assert make_evaluating_player(name).name == name  # sessions search otherwise
    # Raw policies read symmetries.
    assert make_player(f"search:{run}@2?symmetries=1", RULES).name == f"search:{run}@2"
    assert make_player(f"net:{run}?symmetries=8", RULES).name == f"net:{run}?symmetries=8"


def test_other_rules_are_refused_unless_transfer_is_asked_for(run):
    larger = dataclasses.replace(RULES, size=4)
    with pytest.raises(UsageError, match=r"3x3, .* 4x4; `transfer=True`"):
        make_player(f"net:{run}", larger)
    assert make_player(f"net:{run}", larger, transfer=True).name == f"net:{run}"


def test_run_of_a_config_that_is_no_longer_valid(tmp_path):
    config = config_to_dict(tiny.config())
    config["network"]["blocks"] = "RQ"
    network = network_for(tiny.config().network, 2)
    save_checkpoint(tmp_path, 1, tiny.new_weights(network), {"nothing": np.zeros(1)}, config)
    assert "saved config: network: Value error, blocks" in complaint(f"net:{tmp_path}")


POLICY = jnp.array([0.8, 0.0, 0.2])


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.8), (0.5, 0.64 / 0.68), (2.0, 2 / 3)])
def test_slots_are_drawn_by_the_policy_at_a_temperature(temperature, share):
    def report(variables, states, key):
        return SimpleNamespace(policy=jnp.tile(POLICY, (4000, 1)))

    act = act_by(report, temperature)
    drawn = np.asarray(act((), None, jax.random.key(0)))
    assert set(drawn) == {0, 2}
    assert (drawn == 0).mean() == pytest.approx(share, abs=0.03)


# As opponents that do not learn.


TEACHER = functools.partial(make_teacher, heuristics=HeuristicsConfig())


@pytest.mark.parametrize(
    ("make", "name", "said"),
    [
        (make_player, "external: ", "names no command"),
        (make_frozen_opponent, "greedy", "with a network"),
        (make_frozen_opponent, "runs/nobody", "no network here"),
        (make_frozen_opponent, "pretrained:wallzero-4stone@1s", "seconds"),
        (TEACHER, "net:pretrained:wallzero-4stone", "exported weights"),
        (TEACHER, "pretrained:wallzero-4stone@4?symmetries=8", "exported weights"),
        (TEACHER, "runs/a@4", "exported weights"),
        (TEACHER, "external:echo", "without weights"),
        (TEACHER, "heuristic-search:wjx@1s", "seconds"),
        (TEACHER, "heuristic-search:greedy", "of the form"),
        (TEACHER, "exact", "two players"),
    ],
)
def test_wrong_names_of_players_opponents_and_teachers_are_refused_in_one_line(make, name, said):
    with pytest.raises(UsageError, match=said) as error:
        make(name, PRESETS["wallzero-4stone"])
    assert "\n" not in str(error.value)


def test_an_opponent_of_other_rules_is_refused(run):
    wider = dataclasses.replace(tiny.RULES, walls=3)
    for rules in (wider, Rules(size=3, players=3, stones=1, order=(0, 1, 2))):
        with pytest.raises(UsageError, match=f"player '{run}': learned "):
            make_frozen_opponent(str(run), rules)


def test_a_network_of_several_rule_sets_is_an_opponent_of_each(tmp_path):
    learned = [tiny.RULES, Rules(size=4, stones=1, order=(0, 1))]
    words = ["--rules", json.dumps([{"rules": rules.to_dict()} for rules in learned])]
    config = tiny.config(*words, "--network.planes", "BTRV", "--network.playable", "true")
    mixed = save_run(tmp_path / "mixed", seeds={1: 0}, config=config)
    for rules in learned:
        assert make_frozen_opponent(f"net:{mixed}", rules).trained.config.learned == (*learned,)
    with pytest.raises(UsageError, match=r"3x3, .* 4x4, .* hkoi"):
        make_frozen_opponent(f"net:{mixed}", PRESETS["hkoi"])


def test_a_name_says_how_it_searches(run):
    found = make_frozen_opponent(f"{run}@3", tiny.RULES)
    assert (found.name, found.simulations) == (f"search:{run}@3", 3)
    assert found.trained.about["iteration"] == 10
    assert {type(leaf) for leaf in jax.tree.leaves(found.trained.variables)} == {np.ndarray}
    assert make_frozen_opponent(f"net:{run}/checkpoints/9", tiny.RULES).simulations == 0
    assert make_frozen_opponent(str(run), tiny.RULES).simulations == 64


def test_kept_weights_stand_for_those_of_the_name(run, tmp_path):
    kept = shutil.copytree(run, tmp_path / "kept")
    shutil.rmtree(kept / "checkpoints" / "10")
    found = make_frozen_opponent(f"{run}@3", tiny.RULES, kept=kept)
    assert (found.name, found.trained.about["iteration"]) == (f"search:{run}@3", 9)


# As searches that self-play begins with.


def test_exported_weights_teach_by_the_search_of_their_run(run, states, tmp_path):
    """The learner's variables are not read, and the weights are found also where it is traced."""
    trained, key = load_network(str(run)), jax.random.key(1)
    write_model(tmp_path / "teacher", trained.variables, trained.config, {})
    name = f"{tmp_path / 'teacher'}@4"
    found = jax.jit(lambda states, key: TEACHER(name, tiny.RULES)(None, states, key))(states, key)
    options = dataclasses.replace(trained.config.search, simulations=4)
    evaluate = evaluator_for(trained.config.network, tiny.RULES)
    search = jax.jit(make_search(evaluate, options, explores=True))
    expected = search(trained.variables, states, key)
    np.testing.assert_array_equal(found.slot, expected.slot)
    np.testing.assert_allclose(found.policy, expected.policy, rtol=1e-5)
    assert found.policy.std() > 0


@pytest.mark.parametrize(
    "name", ["random", "greedy", "wjx", pytest.param("exact", marks=pytest.mark.slow)]
)
def test_a_teacher_plays_and_its_policy_is_legal(states, name):
    teacher = jax.jit(TEACHER(name, tiny.RULES))
    legal = np.asarray(jax.jit(jax.vmap(actions.legal_slots))(states))
    found = jax.device_get(teacher((), states, jax.random.key(1)))
    boards = np.arange(len(legal))
    assert legal[boards, found.slot].all()
    np.testing.assert_allclose(found.policy.sum(axis=1), 1, rtol=1e-5)
    assert (found.policy[~legal] == 0).all()
    assert (found.prior[~legal] < -1e30).all()
    assert (found.policy[boards, found.slot] > 0).all()
    if name not in ("greedy", "wjx"):
        return
    # The policy is even over all moves that the player of that name makes, and no others.
    player, seen = make_player(name, tiny.RULES), np.zeros(found.policy.shape, bool)
    for key in jax.random.split(jax.random.key(2), 60):
        seen[boards, np.asarray(player.act((), states, key))] = True
    assert (seen <= (found.policy > 0)).all()
    few = (found.policy > 0).sum(axis=1) <= 5
    assert few.any()
    np.testing.assert_array_equal(seen[few], found.policy[few] > 0)
