"""Distance heuristics: positions worked out by hand, a plain breadth-first search, players."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner.plain_heuristics import (
    plain_score,
    plain_score_among,
    plain_weights,
    random_games,
    referee_at,
    replies,
)
from tests.support.learner.searching import stack
from tests.support.reference.referee import Game
from train.config.run import HeuristicConfig, HeuristicsConfig
from train.network import MASKED
from train.players import heuristics
from wallgo_jax.formats import diagram
from wallgo_jax.game import actions, symmetry
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import replay_actions

WJX, ETHEN = HeuristicConfig(), HeuristicConfig(formula="ethen")
TINY = Rules(size=3, stones=1, order=(0, 1))
TWO = Rules(size=4, stones=2, order=(0, 1, 1, 0))
THREE = Rules(size=4, players=3, stones=1, order=(0, 1, 2), walls=6, stay_needs_room=True)
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


def replayed(record):
    """The rules, the actions and the states of a game of the slow referee."""
    rules, played = Rules.from_dict(record["rules"]), record["actions"]
    return rules, played, replay_actions(rules, played).states


@functools.partial(jax.jit, static_argnames="configs")
def scores_of(states, *, configs):
    """float[B, C, P]: scores by several configs in one program."""
    players = jnp.arange(states.position.stones.shape[1])

    def of_board(state):
        by_config = [functools.partial(heuristics.score, state, config=c) for c in configs]
        return jnp.stack([jax.vmap(of_player)(players) for of_player in by_config])

    return jax.vmap(of_board)(states)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            OPEN,
            {
                # A1 as if semi-sure, A2 and C2 half sure, C1 a third; the others are as near to
                # both.
                WJX: (0.8 + 0.45 - 0.45 - 0.3 - 0.75, 0.8 + 0.45 + 0.3 - 0.45 - 0.75),
                ETHEN: (0.8 + 0.54 - 0.54 - 0.405 - 0.75, 0.8 + 0.54 + 0.405 - 0.54 - 0.75),
            },
        ),
        (
            CLOSED,
            {
                # A1 is sure; A2 and C2 cancel out.
                WJX: (0.9 + 0.8 - 2 * 0.75, -0.85 + 2 * 0.8 - 0.75),
                # Round stones the other side's own cells are sure as well.
                HeuristicConfig(stones_block=True): (2 * 0.9 - 2 * 0.85, 2 * 0.9 - 2 * 0.85),
            },
        ),
    ],
    ids=["open", "closed"],
)
def test_scores_by_hand(text, wanted):
    (found,) = scores_of(stack([diagram.parse(text)]), configs=(*wanted,))
    np.testing.assert_allclose(found, [*wanted.values()], atol=1e-5)


# A plain reference: cells one by one, on the slow referee's boards.

CONFIGS = (
    WJX,
    HeuristicConfig(stones_block=True, boundary=1),
    HeuristicConfig("ethen", 1.0, -0.9, 0.35, -0.4, boundary=3, guess_weight=0.7),
)
BOARDS = 32


def test_scores_and_maps_of_random_games_are_the_plain_ones(conformance):
    rules, played, states = replayed(conformance["wallzero-4stone"][0])
    plies = np.linspace(0, len(played), BOARDS).astype(int)
    boards = stack([states[ply] for ply in plies])
    red = functools.partial(heuristics.cell_weights, player=jnp.int32(0), config=CONFIGS[0])
    found = jax.device_get((scores_of(boards, configs=CONFIGS), jax.jit(jax.vmap(red))(boards)))
    for ply, scores, weights in zip(plies, *found, strict=True):
        board = referee_at(rules, played[:ply]).board
        wanted = [[plain_score(board, player, c) for player in range(2)] for c in CONFIGS]
        np.testing.assert_allclose(scores, wanted, atol=1e-4)
        plain = plain_weights(board, 0, CONFIGS[0])
        np.testing.assert_allclose(weights.ravel(), [*plain.values()], atol=1e-6)


def test_scores_do_not_know_north(conformance):
    *_, states = replayed(conformance["wallzero-4stone"][1])
    states = states[4:50:12]
    turn = jax.jit(jax.vmap(symmetry.turn_state))
    turned = turn(stack([state for state in states for _ in range(8)]), np.arange(BOARDS) % 8)
    found = np.asarray(scores_of(turned, configs=CONFIGS))[:, 2].reshape(4, 8, 2)
    assert (found == found[:, :1]).all()
    assert len(np.unique(found)) > 3


def test_three_sides_are_scored_as_the_plain_ones(conformance):
    rules, played, states = replayed(conformance["playwallgo-3p"][0])
    config = CONFIGS[2]
    found = np.asarray(scores_of(stack(states[::4]), configs=(config,)))[:, 0]
    for plies, scores in zip(range(0, 99, 4), found, strict=False):
        board = referee_at(rules, played[:plies]).board
        wanted = [plain_score_among(board, player, config) for player in range(3)]
        np.testing.assert_allclose(scores, wanted, atol=1e-4)


@pytest.mark.parametrize("rules", [TWO, THREE], ids=["two players", "three players"])
def test_slots_are_scored_by_what_comes_after(rules):
    (played, *_) = random_games(rules, 3, games=1)
    score_slots = jax.jit(lambda state: heuristics.slot_scores(state, WJX))
    slot_of = jax.jit(actions.slot_of_action)
    score_of = plain_score if rules.players == 2 else plain_score_among
    states, decided = replay_actions(rules, played).states, 0
    for plies in (0, 1, len(rules.order), len(played) - 4, len(played) - 1):
        game, state = referee_at(rules, played[:plies]), states[plies]
        wanted = np.full(actions.num_slots(rules.stones, grid=4), -np.inf, np.float32)
        for action, after, paid in replies(game):
            won = 1000 * paid[game.player]
            value = won if after.over else score_of(after.board, game.player, WJX)
            wanted[int(slot_of(state, np.int32(action)))] = value
            decided += after.over
        np.testing.assert_allclose(score_slots(state), wanted, atol=1e-4)
    assert decided > 0


# Players, on 3x3; the second looks into every ply.

SHALLOW = heuristics.make_heuristic_player("one", WJX)
DEEP = heuristics.make_two_ply_player("two", dataclasses.replace(WJX, top_k=52))
both_players = pytest.mark.parametrize("player", [SHALLOW, DEEP], ids=["one ply", "two plies"])


def act(player, states, seed=0) -> list[int]:
    slots = player.act(player.variables, states, jax.random.key(seed))
    assert slots.dtype == jnp.int32
    return np.asarray(slots).tolist()


@both_players
def test_players_are_legal_and_rest_on_finished_boards(player):
    states = [
        state
        for played in random_games(TINY, 4, games=10)
        for state in replay_actions(TINY, played).states
    ]
    states = stack([*states[: BATCH - 1], states[-1]])
    slots = act(player, states)
    assert np.asarray(legal_slots(states))[range(BATCH), slots].all()
    over = np.asarray(states.position.terminated)
    assert over.any()
    assert not np.asarray(slots)[over].any()


@both_players
def test_first_stone_goes_to_the_middle_and_a_win_is_taken_at_once(player):
    assert set(act(player, stack([replay_actions(TINY, []).states[-1]] * BATCH))) == {4}
    assert set(act(player, stack([diagram.parse(WON)] * BATCH))) == {LEFT_AND_WALL_UP}


def wins(game: Game) -> bool:
    """Whether the player to move can win at once."""
    return any(paid[game.player] > 0 for _, _, paid in replies(game))


def safe(game: Game) -> set[int]:
    """The actions after which the game goes on and the next player cannot win at once."""
    return {action for action, after, _ in replies(game) if not after.over and not wins(after)}


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
            set(np.asarray(to_public(states, np.asarray(act(p, states)))).tolist())
            for p in (SHALLOW, DEEP)
        )
        assert deep <= wanted
        dangers += 1
        blunders += not shallow <= wanted
    assert dangers >= 3
    assert blunders >= 1


# In place of a network.


def test_evaluator_judges_like_a_network_and_sees_a_win():
    (played, *_) = random_games(TINY, 6, games=1)
    states = [*replay_actions(TINY, played).states]
    states = stack([*states, *[diagram.parse(WON)] * (BATCH - len(states))])
    found = jax.jit(heuristics.make_heuristic_evaluator(WJX))((), states)
    legal = legal_slots(states)
    np.testing.assert_array_equal(np.asarray(found.logits) == MASKED, ~np.asarray(legal))
    value = np.asarray(found.value)
    assert value.shape == (BATCH, 2)
    assert (np.abs(value) <= 1).all()
    np.testing.assert_allclose(value.sum(axis=1), 0, atol=1e-6)
    assert len(np.unique(value[:, 0])) > 5
    assert value[-1, 0] > 0.99
    assert np.asarray(found.logits)[-1].argmax() == LEFT_AND_WALL_UP


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"formula": "manhattan"}, "formula"),
        ({"semi_sure_own": 0.95}, "sure_own"),
        ({"semi_sure_other": -0.9}, "sure_other"),
        ({"sure_other": float("nan")}, "sure_other"),
        ({"boundary": 0}, "boundary"),
        ({"scale": float("inf")}, "scale"),
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
