"""What holds in every position that can come up, whatever the rules and the players do."""

import functools

import hypothesis
import jax
import numpy as np
from hypothesis import strategies as st

from tests import harness
from tests.comparison import walls_of_words
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.rules import Rules

# Boards of 3x3 to 6x6 in a grid of 6; three players, two stones each.
GRID, PLAYERS, STONES = 6, 3, 2
BOARDS, PLIES = 16, 64


@st.composite
def rule_sets(draw) -> Rules:
    """Any rules of three players with two stones."""
    size = draw(st.integers(3, GRID))
    owners = draw(st.permutations([0, 0, 1, 1, 2, 2]))
    placed = draw(st.integers(1, len(owners)))
    cells = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    count = len(owners) - placed
    taken = draw(st.lists(cells, min_size=count, max_size=count, unique=True))
    return Rules(
        size=size,
        players=PLAYERS,
        stones=STONES,
        start=[(*cell, owner) for cell, owner in zip(taken, owners[placed:], strict=True)],
        order=owners[:placed],
        walls=draw(st.none() | st.integers(1, 12)),
        stay_needs_room=draw(st.booleans()),
        tie=draw(st.lists(st.sampled_from(("region", "mover_loses")), unique=True)),
    )


@functools.cache
def random_plies():
    """A jitted `(states [B], bits [T, B]) -> (positions, is_legal) [T, B]` of uniform play."""

    def ply(state, bits):
        slot = chance.choose_bit(bits, actions.legal_words(state, grid=GRID))
        after, _ = referee.play(state, slot, grid=GRID)
        return after, (state.position, actions.is_legal(state, slot, grid=GRID))

    return jax.jit(lambda states, bits: jax.lax.scan(jax.vmap(ply), states, bits))


@hypothesis.settings(max_examples=10)
@hypothesis.given(
    st.lists(rule_sets(), min_size=BOARDS, max_size=BOARDS), st.integers(0, 2**32 - 1)
)
def test_stones_and_walls_stay_where_they_may(rules, seed):
    bits = jax.random.bits(jax.random.key(seed), (PLIES, BOARDS))
    states = harness.new_games(rules, GRID)
    _, (positions, is_legal) = jax.device_get(random_plies()(states, bits))
    np.testing.assert_array_equal(is_legal, ~positions.terminated)
    sizes = np.array([each.size for each in rules])
    rows, columns = np.divmod(np.arange(GRID**2), GRID)
    inside = (rows < sizes[:, None]) & (columns < sizes[:, None])  # [B, N]

    cells = positions.stones.reshape(PLIES, BOARDS, -1)
    stones_at = (cells[..., None] == np.arange(GRID**2)).sum(axis=2)  # [T, B, N]
    assert (stones_at <= 1).all()
    assert not stones_at[:, ~inside].any()
    np.testing.assert_array_equal(stones_at.sum(axis=-1), (cells >= 0).sum(axis=-1))

    walls = walls_of_words(positions.walls, GRID)  # [T, B, P, 2, N]
    built = walls.sum(axis=2)
    assert (built <= 1).all(), "an edge walled twice"
    has_below = inside & (rows < sizes[:, None] - 1)
    has_right = inside & (columns < sizes[:, None] - 1)
    assert not built[:, :, 0][:, ~has_below].any(), "a wall on the lower border"
    assert not built[:, :, 1][:, ~has_right].any(), "a wall on the right border"
    used = np.asarray(states.variant.walls)[:, None] - positions.walls_left
    np.testing.assert_array_equal(walls.sum(axis=(3, 4)), used)
    assert (positions.walls_left >= 0).all()

    plays = positions.ply - np.array([len(each.order) for each in rules])
    np.testing.assert_array_equal(used.sum(axis=-1), np.maximum(plays, 0))
    assert (positions.ply[1:] - positions.ply[:-1] == ~positions.terminated[:-1]).all()
    assert ((positions.player >= 0) & (positions.player < PLAYERS)).all()
    assert positions.terminated[-1].mean() > 0.2, "hardly a game ended"
