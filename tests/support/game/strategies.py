"""Rules and games that hypothesis draws."""

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from tests.support.reference.games import Record, random_game
from wallgo_jax.game.rules import TIE_RULES, Rules


@st.composite
def rule_sets(draw, *, sizes: Sequence[int], players: int, stones: int) -> Rules:
    """Any rules of one shape: some stones placed beforehand, the others in any order."""
    total = players * stones
    size = draw(st.sampled_from([size for size in sizes if size**2 >= total]))
    owners = draw(st.permutations([player for player in range(players) for _ in range(stones)]))
    placed = draw(st.just(total) | st.integers(0, total))
    cells = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    count = total - placed
    taken = draw(st.lists(cells, min_size=count, max_size=count, unique=True))
    nobody_could_step = count == size**2
    return Rules(
        size=size,
        players=players,
        stones=stones,
        start=[(*cell, owner) for cell, owner in zip(taken, owners[placed:], strict=True)],
        order=owners[:placed],
        walls=draw(st.none() | st.integers(1, 2 * size)),
        stay_needs_room=not nobody_could_step and draw(st.booleans()),
        tie=draw(st.lists(st.sampled_from(TIE_RULES), unique=True)),
    )


@st.composite
def games(
    draw, *, sizes: Sequence[int], players: int, stones: int, grids: Sequence[int | None] = (None,)
) -> Record:
    """A whole game of the slow referee on any rules, in one of the grids; None is the board's."""
    rules = draw(rule_sets(sizes=sizes, players=players, stones=stones))
    grid = draw(st.sampled_from(grids)) or rules.size
    seed = draw(st.integers(0, 2**32 - 1))
    return random_game(random.Random(seed), rules.to_dict(), grid=grid)
