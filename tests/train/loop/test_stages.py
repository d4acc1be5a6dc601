"""Self-play of a run: the player of each iteration, the rules of each board, and its figures."""

import functools
import json
from typing import NamedTuple

import chex
import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.refusals import refusal
from train.data.best_slots import KEPT, BestSlots, spread_out
from train.data.diversity import Mean, OpeningDiversity
from train.data.selfplay import (
    POLICY_DTYPE,
    BoardSums,
    SeatSums,
    SelfPlaySums,
    first_boards,
    plies_like,
)
from train.loop import programs
from train.loop.iteration_row import figures_by_rules, selfplay_figures
from train.loop.programs import IterationFigures
from train.loop.stages import BOOTSTRAP, evaluations_of_rows, simulations_of
from train.loop.tables import (
    make_teacher,
    rule_set_of_boards,
    rules_of_board,
    tables_of,
    variants_of,
)
from train.runtime.devices import all_devices
from wallgo_jax.game import actions
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.state import State, make_variant


def test_stages_follow_the_config():
    config = tiny.config(
        "--iterations=6",
        "--selfplay.bootstrap_iterations=2",
        "--search.simulations=8",
        "--search.first_simulations=4",
    )
    found = [simulations_of(config, iteration) for iteration in range(6)]
    assert found == [BOOTSTRAP, BOOTSTRAP, 4, 8, 8, 8]


def test_evaluations_of_a_run_are_those_of_its_stages_and_a_teachers_are_none():
    config = tiny.config(
        "--iterations=6",
        "--selfplay.bootstrap_iterations=2",
        "--selfplay.cheap_simulations=2",
        "--search.simulations=8",
        "--search.first_simulations=4",
    )
    rows = [
        {"iteration": number, "positions": 100, "full_search_share": 0.25} for number in range(1, 5)
    ]
    # Of 100 positions 25 take the root and 4 or 8 simulations, 75 the root and 2.
    assert evaluations_of_rows(config, rows[:2]) == 0
    assert evaluations_of_rows(config, rows) == (25 * 5 + 75 * 3) + (25 * 9 + 75 * 3)


def test_every_stage_makes_the_plies_that_the_replay_is_compiled_for():
    config = tiny.config("--selfplay.bootstrap_iterations=1", "--learner.value_mix=0.5")
    tables, variants = tables_of(config, all_devices(1)), variants_of(config)
    weights = programs.network_of(tables.learn).shapes
    for simulations in (BOOTSTRAP, simulations_of(config, 1)):
        boards = jax.eval_shape(first_boards, variants)
        play = functools.partial(programs.play, tables.play, simulations)
        _, plies, _ = jax.eval_shape(play, weights, variants, boards, jax.random.key(0))
        expected = plies_like(variants, config.selfplay, has_root_value=True)
        chex.assert_trees_all_equal_shapes_and_dtypes(plies, expected)


class Bootstrapped(NamedTuple):
    """The plies of a bootstrap's self-play, each board's first ones."""

    states: State  # [T * B], before each ply
    policy: BestSlots  # [T * B], what is learned
    slot: np.ndarray  # [T * B], what was played


def bootstrapped(player: str) -> Bootstrapped:
    config = tiny.config(
        "--selfplay.bootstrap_iterations=1",
        f"--selfplay.bootstrap_player={player}",
        "--selfplay.plies=4",
        "--selfplay.boards=16",
    )
    tables = tables_of(config, all_devices(1))
    variant = jax.device_get(tiny.variants(config.rules, config.selfplay.boards))
    boards = jax.jit(first_boards)(variant)
    played = programs.play(tables.play, BOOTSTRAP, (), variant, boards, jax.random.key(3))
    plies = jax.device_get(played[1])
    many = jax.tree.map(lambda x: np.broadcast_to(x, (4, *x.shape)), variant)
    states = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), State(many, plies.position))
    policy = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), plies.policy)
    return Bootstrapped(states, policy, plies.slot.reshape(-1))


def test_the_bootstrap_is_the_player_that_the_config_names():
    """Its policies are the random player's, even over the legal slots, and its plies are among
    them; the greedy player is what a config names by itself."""
    assert tiny.config().selfplay.bootstrap_player == "greedy"
    played = bootstrapped("random")
    assert (played.states.position.ply == np.repeat(range(4), 16)).all()
    legal = np.asarray(jax.jit(jax.vmap(actions.legal_slots))(played.states))
    even = (legal / legal.sum(axis=1, keepdims=True)).astype(POLICY_DTYPE)
    known = np.asarray(spread_out(played.policy, legal.shape[1]))
    np.testing.assert_allclose(known, np.where(known > 0, even, 0), rtol=1e-3)
    assert ((known > 0).sum(axis=1) == np.minimum(legal.sum(axis=1), KEPT)).all()
    np.testing.assert_allclose(known.sum(axis=1) + played.policy.rest, 1, rtol=1e-2)
    assert legal[np.arange(len(played.slot)), played.slot].all()


@pytest.mark.parametrize(
    ("player", "said"),
    [
        ("net:runs/a", "player 'net:runs/a': allowed are players without weights, and searches"),
        ("wjy", "player 'wjy': unknown; did you mean wjx?"),
    ],
)
def test_a_player_that_cannot_be_the_bootstrap_is_refused_in_a_line(player, said):
    config = tiny.config(f"--selfplay.bootstrap_player={player}")
    assert refusal(make_teacher, config).startswith(f"selfplay.bootstrap_player: {said}")


MIX = ("--rules", "hkoi=2,wallzero-empty,wallzero-4stone=5")


@pytest.mark.parametrize(
    ("boards", "shares"), [(8, [2, 1, 5]), (16, [4, 2, 10]), (3, [1, 1, 1]), (4, [1, 1, 2])]
)
def test_boards_are_shared_by_weight_and_each_set_has_one(boards, shares):
    config = tiny.config(*MIX, "--selfplay.boards", str(boards))
    assert np.bincount(rule_set_of_boards(config)).tolist() == shares


def test_neighbours_have_nearly_the_shares_of_all():
    config = tiny.config(*MIX, "--selfplay.boards", "64")
    parts = np.split(rule_set_of_boards(config), 4)
    for part in parts:
        assert (np.abs(np.bincount(part, minlength=3) - [4, 2, 10]) <= 1).all()


def test_each_board_has_its_rules_in_a_common_grid():
    four = Rules(size=4, stones=1, order=(0, 1))
    rules = json.dumps(["hkoi", {"rules": four.to_dict()}])
    config = tiny.config(
        *("--rules", rules, "--network.playable", "true", "--network.planes", "BTRV")
    )
    variants = variants_of(config)
    for board in range(config.selfplay.boards):
        own = rules_of_board(config, board)
        assert own in (PRESETS["hkoi"], four)
        found = jax.tree.map(lambda x, b=board: x[b], variants)
        jax.tree.map(np.testing.assert_array_equal, found, make_variant(own, grid=7, stones=4))


@pytest.mark.parametrize(
    ("rules", "red"),
    [
        (("hkoi", "wallzero-empty"), 0.25 + 0.5 / 2),
        (("playwallgo-3p", "three"), 0.25 + 0.5 / 3),
    ],
)
def test_figures_are_sums_of_the_boards_of_a_rule_set(rules, red):
    """Red wins a quarter of the games, half of them are drawn."""
    three = {"players": 3, "stones": 2, "order": [0, 1, 2, 0, 1, 2]}
    listed = [{"rules": three, "name": name} if name == "three" else name for name in rules]
    config = tiny.config("--rules", json.dumps(listed), "--selfplay.boards", "4")
    owner = rule_set_of_boards(config)
    games = np.array([1.0, 2.0, 0.0, 4.0], np.float32)
    sums = BoardSums(games, 10 * games, games / 4, games / 2)
    found = figures_by_rules(config, sums)
    for number, name in enumerate(rules):
        own = games[owner == number].sum()
        assert found[name]["games"] == own
        assert found[name]["mean_length"] == (10 if own else None)
        assert found[name]["red_win_rate"] == (pytest.approx(red) if own else None)
        assert found[name]["draw_rate"] == (0.5 if own else None)


def test_shares_of_plies_follow_the_weights_and_not_the_lengths_of_games():
    config = tiny.config("--rules", "hkoi=3,wallzero-empty", "--selfplay.boards", "4")
    owner, plies = rule_set_of_boards(config), config.selfplay.plies
    games = np.where(owner == 0, 1, 7).astype(np.float32)
    nothing = np.zeros(4, np.float32)
    found = figures_by_rules(config, BoardSums(games, plies / games, nothing, nothing))
    assert [found[name]["positions"] for name in ("hkoi", "wallzero-empty")] == [3 * plies, plies]


CLASSES = ("stay", "one_step", "two_steps")
ENTROPIES = ("", "_placement", "_opening", "_middle", "_late", "_steps", "_wall")
ENTROPIES += tuple(f"_{name}" for name in CLASSES)
FIGURES = IterationFigures(
    sums=SelfPlaySums(
        positions=400.0,
        full=100.0,
        drawn=30.0,
        policies={
            **{f"policy_entropy{name}": Mean(10.0 + i, 4.0) for i, name in enumerate(ENTROPIES)},
            **{f"policy_share_{x}": Mean(y, 10.0) for x, y in zip(CLASSES, (1, 2, 7), strict=True)},
        },
        seats=SeatSums(games=np.array([8.0, 16.0]), points=np.array([3.0, 10.0])),
    ),
    setups=OpeningDiversity(games=50.0, distinct=31.0, mode=3.0),
    openings=OpeningDiversity(games=25.0, distinct=22.0, mode=2.0),
    by_board=BoardSums(*(np.array([x - 1.0, 1.0], np.float32) for x in (20, 380, 9, 4))),
)
"""Made up, so that no two figures of a row are the same."""

ROW = {
    "games": 20,
    "positions": 400,
    "mean_length": 19,
    "red_win_rate": 0.55,
    "simulations": 2,
    "full_search_share": 0.25,
    "drawn_share": 0.075,
    **{f"policy_entropy{name}": 2.5 + 0.25 * i for i, name in enumerate(ENTROPIES)},
    **{f"policy_share_{x}": share for x, share in zip(CLASSES, (0.1, 0.2, 0.7), strict=True)},
    "distinct_setups": 0.62,
    "commonest_setups": 0.06,
    "distinct_openings": 0.88,
    "commonest_openings": 0.08,
    "learner_win_rate": 13 / 24,
    "learner_win_rate_red": 0.375,
    "learner_win_rate_blue": 0.625,
}


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ((), {}),
        # Red has won 9 of 20 games and drawn 4 of them; a draw of three is a third of a win.
        (("--rules", "playwallgo-3p"), {"red_win_rate": 31 / 60}),
    ],
)
def test_each_figure_has_its_name(words, changes):
    row = selfplay_figures(tiny.config(*words), FIGURES, 0)
    assert row == pytest.approx(ROW | changes)


def test_figures_of_no_game_are_none():
    nothing = jax.tree.map(np.zeros_like, FIGURES)
    sums = nothing.sums._replace(positions=400.0)
    row = selfplay_figures(tiny.config(), nothing._replace(sums=sums), 0)
    numbers = {"games", "positions", "simulations", "full_search_share", "drawn_share"}
    assert {name for name, value in row.items() if value is not None} == numbers
    assert row.keys() == ROW.keys()
