"""Choices of players without a network, checked by the slow referee."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np

from tests.support.learner.plain_heuristics import random_games, referee_at, replies
from tests.support.learner.searching import stack
from tests.support.reference.referee import Game
from train.players.basic import Player, make_greedy_player, make_random_player
from wallgo_jax.game import actions
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.view.game_replay import replay_actions

GRID, DRAWS = 4, 256
ORDER = (0, 1, 2, 2, 1, 0)
RULES = Rules(size=GRID, players=3, stones=2, order=ORDER, walls=6, stay_needs_room=True)


RANDOM, GREEDY = make_random_player(), make_greedy_player()


def positions(rules: Rules, seed: int, *, games: int) -> list[list[int]]:
    """Actions from the start to a position, for one position of each phase of a few games: setup,
    opening, and the ply before the end."""
    found = []
    for played in random_games(rules, seed, games=games):
        setup = len(rules.order)
        middle = (setup + len(played)) // 2
        found += [played[:plies] for plies in (setup - 1, setup, middle, -1)]
    return found


def leads(game: Game) -> dict[int, int]:
    """The mover's cells less the best other's, after each legal action."""
    found = {}
    for action, after, _ in replies(game):
        cells = after.territory()
        found[action] = cells.pop(game.player) - max(cells)
    return found


def choices(player: Player, rules: Rules, played: list[int], *, seed: int = 0) -> Counter[int]:
    """Counts of the public actions chosen in a position, over a batch of equal boards."""
    states = stack([replay_actions(rules, played).states[-1]] * DRAWS)
    slots = player.act(player.variables, states, jax.random.key(seed))
    assert (slots.shape, slots.dtype) == ((DRAWS,), jnp.int32)
    return Counter(np.asarray(_public(states, slots)).tolist())


@jax.jit
def _public(states: State, slots: jax.Array) -> jax.Array:
    return jax.vmap(actions.action_of_slot)(states, slots)


def test_greedy_takes_a_largest_lead_and_any_of_them():
    unequal = 0
    for played in positions(RULES, 1, games=4):
        lead = leads(referee_at(RULES, played))
        best = {action for action, cells in lead.items() if cells == max(lead.values())}
        chosen = choices(GREEDY, RULES, played)
        assert set(chosen) <= best
        if len(best) <= 20:
            assert set(chosen) == best
        unequal += len(best) < len(lead)
    assert unequal >= 4


def test_greedy_prefers_no_equal():
    # Before the last placement of the first game every free cell is as good as the others.
    played = positions(RULES, 1, games=1)[0]
    lead = leads(referee_at(RULES, played))
    assert len(set(lead.values())) == 1
    chosen = choices(GREEDY, RULES, played) + choices(GREEDY, RULES, played, seed=1)
    mean = 2 * DRAWS / len(lead)
    assert len(lead) == GRID**2 - 5
    assert max(abs(count - mean) for count in chosen.values()) < 5 * np.sqrt(mean)


def test_random_is_legal_and_leaves_nothing_out():
    for played in positions(RULES, 2, games=3):
        legal = referee_at(RULES, played).legal()
        chosen = choices(RANDOM, RULES, played)
        assert set(chosen) <= set(legal)
        if len(legal) <= 20:
            assert set(chosen) == set(legal)


def test_random_is_uniform():
    played = positions(RULES, 2, games=1)[1]
    legal = referee_at(RULES, played).legal()
    total = sum((choices(RANDOM, RULES, played, seed=s) for s in range(40)), Counter())
    mean = 40 * DRAWS / len(legal)
    assert set(total) == set(legal)
    assert max(abs(count - mean) for count in total.values()) < 5 * np.sqrt(mean)


def test_finished_boards_get_slot_0():
    (played,) = random_games(RULES, 5, games=1)
    states = stack([replay_actions(RULES, played).states[-1]] * DRAWS)
    for player in (RANDOM, GREEDY):
        assert not np.asarray(player.act((), states, jax.random.key(6))).any()
