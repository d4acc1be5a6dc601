"""Distance heuristics: positions worked out by hand, a plain breadth-first search, players."""

import copy
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner.plain_heuristics import (
    both_sides,
    plain_score,
    plain_score_among,
    random_games,
    referee_at,
)
from tests.support.reference.referee import Game
from train.arena.match import MatchOptions, play_match
from train.network import MASKED
from train.players import heuristics
from train.players.basic import make_greedy_player
from train.players.config import HeuristicConfig, HeuristicsConfig
from train.players.heuristics import UNREACHED
from wallgo_jax.formats import diagram
from wallgo_jax.game import actions, symmetry
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.view.game_replay import replay_actions

WJX, ETHEN = HeuristicConfig(), HeuristicConfig(formula="ethen")
TINY = Rules(size=3, stones=1, order=(0, 1))
TWO = Rules(size=4, stones=2, order=(0, 1, 1, 0))
THREE = Rules(size=4, players=3, stones=1, order=(0, 1, 2), walls=6, stay_needs_room=True)
BOTH = [TWO, pytest.param(THREE, marks=pytest.mark.slow)]
BATCH = 64

OPEN = """
    rules: {"size": 3, "players": 2, "stones": 1, "order": [0, 1]}
    turn: B
         A   B   C
       +---+---+---+
     1 | R r .   . |
       +   +   +   +
     2 | .   .   . |
       +=r=+   +   +
     3 | .   . b B |
       +---+---+---+
"""
# Red is alone at A1, nobody gets to B1.
CLOSED = """
    rules: {"size": 3, "players": 2, "stones": 2, "order": [0, 1, 1, 0]}
    turn: R
         A   B   C
       +---+---+---+
     1 | R r . b B |
       +=r=+=b=+   +
     2 | .   .   . |
       +   +   +   +
     3 | R   .   B |
       +---+---+---+
"""
# Red steps to A2 and closes A1: eight cells to one.
WON = """
    rules: {"size": 3, "players": 2, "stones": 1, "order": [0, 1]}
    turn: R
         A   B   C
       +---+---+---+
     1 | B r .   . |
       +   +   +   +
     2 | .   R   . |
       +   +   +   +
     3 | .   .   . |
       +---+---+---+
"""
LEFT_AND_WALL_UP = 3 * 4 + 0

legal_slots = jax.jit(jax.vmap(actions.legal_slots))


score = jax.jit(heuristics.score, static_argnames="config")
distances = jax.jit(heuristics.distances, static_argnames="stones_block")


def score_of(state, player, config) -> float:
    return float(score(state, jnp.int32(player), config))


def test_distances_lead_round_walls():
    found = distances(diagram.parse(OPEN), jnp.int32(0), stones_block=False)
    np.testing.assert_array_equal(found[0], [0, 3, 4, 1, 2, 3, 4, 3, 4])
    np.testing.assert_array_equal(found[1], [4, 3, 2, 3, 2, 1, 4, 3, 0])


@pytest.mark.parametrize(
    ("stones_block", "red", "blue"),
    [
        (False, [0, -1, 4, 1, 2, 3, 0, 1, 2], [-1, -1, 0, 3, 2, 1, 2, 1, 0]),
        (True, [0, -1, -1, 1, 2, 3, 0, 1, -1], [-1, -1, 0, 3, 2, 1, -1, 1, 0]),
    ],
)
def test_what_is_out_of_reach(stones_block, red, blue):
    state = diagram.parse(CLOSED)
    found = distances(state, jnp.int32(1), stones_block=stones_block)
    assert UNREACHED == -1
    np.testing.assert_array_equal(found, [blue, red])


@pytest.mark.parametrize(
    ("text", "config", "red", "blue"),
    [
        # A1 as if semi-sure, A2 and C2 half sure, C1 a third; the others are as near to both.
        (OPEN, WJX, 0.8 + 0.45 - 0.45 - 0.3 - 0.75, 0.8 + 0.45 + 0.3 - 0.45 - 0.75),
        (OPEN, ETHEN, 0.8 + 0.54 - 0.54 - 0.405 - 0.75, 0.8 + 0.54 + 0.405 - 0.54 - 0.75),
        # Two cells that Blue is far from, three that Red is; both are from four.
        (OPEN, HeuristicConfig(boundary=3), 2 * 0.8 - 3 * 0.75, 3 * 0.8 - 2 * 0.75),
        # A1 is sure; A2 and C2 cancel out.
        (CLOSED, WJX, 0.9 + 0.8 - 2 * 0.75, -0.85 + 2 * 0.8 - 0.75),
        # Round stones the other side's own cells are sure as well.
        (CLOSED, HeuristicConfig(stones_block=True), 2 * 0.9 - 2 * 0.85, 2 * 0.9 - 2 * 0.85),
        (CLOSED, HeuristicConfig(guess_weight=0.5), 0.9 + 0.5 - 2 * 0.5, -0.85 + 2 * 0.5 - 0.5),
    ],
)
def test_scores_by_hand(text, config, red, blue):
    state = diagram.parse(text)
    assert score_of(state, 0, config) == pytest.approx(red, abs=1e-5)
    assert score_of(state, 1, config) == pytest.approx(blue, abs=1e-5)


# A plain reference: cells one by one, on the slow referee's boards.


def stack(states):
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *jax.device_get(states))


CONFIGS = {
    "wjx": WJX,
    "ethen": ETHEN,
    "round stones": HeuristicConfig(stones_block=True),
    "odd": HeuristicConfig("ethen", 1.0, -0.9, 0.35, -0.4, boundary=3, guess_weight=0.7),
    "next to nothing": HeuristicConfig(boundary=1),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_scores_of_random_games_are_the_plain_ones(conformance, config):
    record = conformance["wallzero-4stone"][0]
    rules = Rules.from_dict(record["rules"])
    states = stack(replay_actions(rules, record["actions"]).states[::3])
    found = jax.jit(
        jax.vmap(lambda s: jax.vmap(lambda p: heuristics.score(s, p, config))(jnp.arange(2)))
    )(states)
    for plies, scores in zip(range(0, 99, 3), np.asarray(found), strict=False):
        board = referee_at(rules, record["actions"][:plies]).board
        wanted = [plain_score(board, player, config) for player in range(2)]
        np.testing.assert_allclose(scores, wanted, atol=1e-4)


@pytest.mark.parametrize("config", [WJX, HeuristicConfig(boundary=3, stones_block=True)])
@pytest.mark.parametrize("is_among", [True, False], ids=["nearest", "against all"])
def test_three_sides_are_scored_as_the_plain_ones(conformance, config, is_among):
    score_of = heuristics.score if is_among else heuristics.score_against_all
    plain = plain_score_among if is_among else plain_score
    record = conformance["playwallgo-3p"][0]
    rules = Rules.from_dict(record["rules"])
    states = list(replay_actions(rules, record["actions"]).states)[::4]
    stacked = jax.tree.map(lambda *x: np.stack(x), *states)
    found = jax.jit(jax.vmap(lambda s: jax.vmap(lambda p: score_of(s, p, config))(jnp.arange(3))))(
        stacked
    )
    for plies, scores in zip(range(0, 99, 4), np.asarray(found), strict=False):
        board = referee_at(rules, record["actions"][:plies]).board
        wanted = [plain(board, player, config) for player in range(3)]
        np.testing.assert_allclose(scores, wanted, atol=1e-4)


@pytest.mark.parametrize("stones_block", [False, True])
def test_distances_of_random_games_are_the_plain_ones(conformance, stones_block):
    record = conformance["playwallgo-3p"][0]
    rules = Rules.from_dict(record["rules"])
    config = HeuristicConfig(stones_block=stones_block)
    for plies, state in list(enumerate(replay_actions(rules, record["actions"]).states))[::4]:
        board = referee_at(rules, record["actions"][:plies]).board
        wanted = [
            [steps.get(cell, UNREACHED) for cell in board.cells()]
            for steps in both_sides(board, 1, config)
        ]
        found = distances(state, jnp.int32(1), stones_block=stones_block)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("rules", BOTH, ids=["two players", "three players"])
def test_slots_are_scored_by_what_comes_after(rules):
    (played, *_) = random_games(rules, 3, games=1)
    score_slots = jax.jit(lambda state: heuristics.slot_scores(state, WJX))
    slot_of = jax.jit(actions.slot_of_action)
    score_of = plain_score if rules.players == 2 else plain_score_among
    decided = 0
    for plies in (0, 1, len(rules.order), len(played) - 4, len(played) - 1):
        game, state = (
            referee_at(rules, played[:plies]),
            replay_actions(rules, played[:plies]).states[-1],
        )
        wanted = np.full(actions.num_slots(rules.stones, grid=4), -np.inf, np.float32)
        for action in game.legal():
            after = copy.deepcopy(game)
            reward = after.act(action)[game.player]
            value = 1000 * reward if after.over else score_of(after.board, game.player, WJX)
            wanted[int(slot_of(state, jnp.int32(action)))] = value
            decided += after.over
        np.testing.assert_allclose(score_slots(state), wanted, atol=1e-4)
    assert decided > 0


def test_scores_do_not_know_north(conformance):
    record = conformance["wallzero-4stone"][1]
    states = replay_actions(Rules.from_dict(record["rules"]), record["actions"]).states[4::9]

    @jax.jit
    @jax.vmap
    def scores(state):
        turned = jax.vmap(lambda g: symmetry.turn_state(state, g))(jnp.arange(8))
        return jax.vmap(lambda s: heuristics.score(s, s.position.player, ETHEN))(turned)

    found = np.asarray(scores(stack(states)))
    assert (found == found[:, :1]).all()
    assert len(np.unique(found)) > 3


# Players.

PLAYERS = {
    "one ply": heuristics.make_heuristic_player("wjx", WJX),
    "two plies": heuristics.make_two_ply_player("two", WJX),
}
ONE_OR_BOTH = [PLAYERS["one ply"], pytest.param(PLAYERS["two plies"], marks=pytest.mark.slow)]


def act(player, states, seed=0) -> list[int]:
    slots = player.act(player.variables, states, jax.random.key(seed))
    assert slots.dtype == jnp.int32
    return np.asarray(slots).tolist()


@pytest.mark.parametrize("player", ONE_OR_BOTH, ids=PLAYERS)
@pytest.mark.parametrize("rules", BOTH, ids=["two players", "three players"])
def test_players_are_legal_and_rest_on_finished_boards(player, rules):
    states = [
        s
        for played in random_games(rules, 4, games=8)
        for s in replay_actions(rules, played).states
    ]
    states = stack([*states[: BATCH - 1], states[-1]])
    legal = legal_slots(states)
    slots = act(player, states)
    assert all(np.asarray(legal)[range(BATCH), slots])
    over = np.asarray(states.position.terminated)
    assert over.any()
    assert not np.asarray(slots)[over].any()


@pytest.mark.parametrize("player", ONE_OR_BOTH, ids=PLAYERS)
def test_first_stone_goes_to_the_middle_and_any_of_it(player):
    slots = act(player, stack([replay_actions(TWO, []).states[-1]] * BATCH))
    assert set(slots) == {5, 6, 9, 10}


# On 3x3; the second looks into every ply.
SHALLOW = heuristics.make_heuristic_player("one", WJX)
DEEP = heuristics.make_two_ply_player("two", dataclasses.replace(WJX, top_k=52))


@pytest.mark.parametrize(
    "player",
    [
        pytest.param(SHALLOW, id="one ply"),
        pytest.param(DEEP, id="two plies", marks=pytest.mark.slow),
    ],
)
def test_win_is_taken_at_once(player):
    assert set(act(player, stack([diagram.parse(WON)] * BATCH))) == {LEFT_AND_WALL_UP}


def fork(game: Game) -> Game:
    """A game of its own from here on."""
    after = copy.copy(game)
    after.past, after.walls_left = list(game.past), list(game.walls_left)
    return after


def wins(game: Game) -> bool:
    """Whether the player to move can win at once."""
    for action in game.legal():
        after = fork(game)
        if after.act(action)[game.player] > 0:
            return True
    return False


def safe(game: Game) -> set[int]:
    """The actions after which the game goes on and the next player cannot win at once."""
    found = set()
    for action in game.legal():
        after = fork(game)
        after.act(action)
        if not after.over and not wins(after):
            found.add(action)
    return found


def test_two_plies_see_a_losing_reply_that_one_ply_does_not():
    to_public = jax.jit(jax.vmap(actions.action_of_slot))
    dangers = blunders = 0
    for played in random_games(TINY, 5, games=12):
        game = referee_at(TINY, played[:-3])
        wanted = safe(game)
        if len(played) < 6 or wins(game) or not 0 < len(wanted) < len(game.legal()):
            continue
        states = stack([replay_actions(TINY, played[:-3]).states[-1]] * BATCH)
        shallow, deep = (
            set(np.asarray(to_public(states, jnp.asarray(act(p, states)))).tolist())
            for p in (SHALLOW, DEEP)
        )
        assert deep <= wanted
        dangers += 1
        blunders += not shallow <= wanted
    assert dangers >= 3
    assert blunders >= 1


@pytest.mark.slow
def test_two_plies_look_into_any_of_equal_plies():
    # Sixteen first placements, of which four are best: with one look it is one of these four.
    player = heuristics.make_two_ply_player("two", dataclasses.replace(WJX, top_k=1))
    assert set(act(player, stack([replay_actions(TWO, []).states[-1]] * BATCH))) == {5, 6, 9, 10}


# In place of a network.


@pytest.mark.parametrize("rules", BOTH, ids=["two players", "three players"])
def test_evaluator_judges_like_a_network(rules):
    (played, *_) = random_games(rules, 6, games=1)
    states = stack(replay_actions(rules, played).states)
    found = jax.jit(heuristics.make_heuristic_evaluator(WJX))((), states)
    legal = legal_slots(states)
    np.testing.assert_array_equal(np.asarray(found.logits) == MASKED, ~np.asarray(legal))
    assert found.value.shape == (len(played) + 1, rules.players)
    assert (np.abs(found.value) <= 1).all()
    np.testing.assert_allclose(found.value.sum(axis=1), 0, atol=1e-6)
    assert len(np.unique(found.value[:, 0])) > 5


def test_evaluator_sees_a_win():
    evaluate = jax.jit(heuristics.make_heuristic_evaluator(WJX))
    found = evaluate((), stack([diagram.parse(WON)]))
    assert found.value[0, 0] > 0.99
    assert found.logits[0].argmax() == LEFT_AND_WALL_UP


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"formula": "manhattan"}, "formula 'manhattan' is not one of ethen, wjx"),
        ({"sure_own": 1.1}, "sure_own must be from 0 to 1"),
        ({"semi_sure_own": 0.95}, "from 0 to sure_own"),
        ({"semi_sure_other": -0.9}, "from sure_other to 0"),
        ({"sure_other": float("nan")}, "sure_other"),
        ({"boundary": 0}, "boundary must be from 1 to 20"),
        ({"guess_weight": 1.5}, "guess_weight must be from 0 to 1"),
        ({"top_k": 0}, "top_k must be at least 1"),
        ({"temperature": 0.0}, "temperature must be from"),
        ({"scale": float("inf")}, "scale must be from"),
    ],
)
def test_config_is_checked(wrong, said):
    with pytest.raises(ValueError, match=said):
        HeuristicConfig(**wrong)


def test_named_heuristics_hold_the_constants_of_the_deck():
    both = HeuristicsConfig()
    assert both.wjx == dataclasses.replace(both.ethen, formula="wjx")
    assert dataclasses.astuple(both.ethen)[:7] == ("ethen", 0.9, -0.85, 0.8, -0.75, 6, 0.9)
    assert both.ethen.top_k == 5


@pytest.mark.slow
def test_wjx_beats_greedy():
    result = play_match(
        heuristics.make_heuristic_player("wjx", WJX),
        make_greedy_player(),
        PRESETS["wallzero-4stone"],
        MatchOptions(games=40, batch=40, opening_plies=2),
        key=jax.random.key(1),
    )
    assert result.wins >= 36
