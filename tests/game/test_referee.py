"""The referee's verbs: illegal actions, turns, ends of games, rewards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.game import board_text, harness
from tests.support.game.board_text import go, place
from wallgo_jax.game import referee
from wallgo_jax.game import state as state_lib
from wallgo_jax.game.rules import Rules

BOTH_ORDERS = (("region", "mover_loses"), ("mover_loses", "region"))


def draw(drawing, *, grid: int, players: int = 2, **options):
    """A drawn position with the room for stones of the grid's shared program."""
    shapes = {(side, seats): stones for side, seats, stones in harness.SHAPES}
    return board_text.draw(
        drawing, grid=grid, players=players, room=shapes[grid, players], **options
    )


def play_on(state, *played: int) -> harness.Shown:
    """`Shown` [T] of plies on one position."""
    shown = harness.replay_on(harness.stack([state]), [played])
    return jax.tree.map(lambda leaf: leaf[:, 0], shown)


def paid(shown: harness.Shown) -> list[float]:
    """The rewards of the last ply (the last row shows the position after it)."""
    return pytest.approx(shown.rewards[-2].tolist())


# Illegal actions.

MIDGAME = (
    "R . . .!.",
    " + +-+ + ",
    ". R|B . .",
    " + + +=+ ",
    ". . . . .",
    "-+ + + + ",
    ". . .!. .",
    " + + + + ",
    "B . . . .",
)


@pytest.mark.parametrize("phase", ["play", "setup"])
def test_every_illegal_action_ends_the_game_with_the_board_unchanged(phase):
    grid = 5
    state = draw(MIDGAME, player=1, grid=grid)
    if phase == "setup":
        # The last stone of Blue is still to be placed.
        stones = state.position.stones.copy()
        stones[1, 1] = state_lib.NOT_PLACED
        state = state._replace(position=state.position._replace(stones=stones, ply=np.int16(3)))
    legal = np.flatnonzero(play_on(state).actions[0])
    assert len(legal) > 20
    ids = [*range(-3, grid**2 * 53 + 3), 10**9, -(10**9)]
    illegal = [action for action in ids if action not in legal]
    after_end = [place("C3", grid=grid), 0]
    shown = harness.replay_on(
        harness.stack([state] * len(illegal)),
        [(action, *after_end) for action in illegal],
    )
    np.testing.assert_array_equal(shown.rewards[0], [[1.0, -1.0]] * len(illegal))
    assert shown.terminated[1:].all()
    assert not shown.rewards[1:].any()
    before = state.position._replace(terminated=np.bool_(True))
    for name, expected in before._asdict().items():
        seen = getattr(shown.state.position, name)
        assert seen.dtype == expected.dtype
        np.testing.assert_array_equal(seen[1:], np.broadcast_to(expected, seen[1:].shape), name)


# Turns.

CORNERED = (
    "B R .",
    "-+ + ",
    ". . .",
    " + + ",
    ". . .",
)


def test_stuck_player_is_skipped():
    state = draw(CORNERED, player=0, grid=5, stay_needs_room=True)
    shown = play_on(state, go("B1", "B1", "right", grid=5))
    assert not shown.terminated[1]
    assert shown.player[1] == 0


def test_stone_that_may_stay_without_room_is_not_stuck():
    state = draw(CORNERED, player=0, grid=5)
    shown = play_on(state, go("B1", "B1", "right", grid=5))
    assert shown.player[1] == 1
    # The one side without a border or a wall is the one towards Red's stone.
    assert np.flatnonzero(shown.actions[1]).tolist() == [go("A1", "A1", "right", grid=5)]


SPENT = (
    "R . .",
    " +=+-",
    ".!. .",
    " + + ",
    ". . B",
)


def test_player_without_walls_is_skipped():
    drawing = ("R . .", " +=+ ", *SPENT[2:])
    state = draw(drawing, player=0, grid=5, walls=2)
    red_twice = go("A1", "A1", "right", grid=5), go("A1", "A3", "up", grid=5)
    shown = play_on(state, *red_twice)
    assert shown.player[:2].tolist() == [0, 0]
    assert shown.terminated.tolist() == [False, False, True]
    assert shown.state.position.walls_left.tolist() == [[2, 0], [1, 0], [0, 0]]


def test_player_with_a_wall_left_is_not_skipped():
    state = draw(SPENT, player=0, grid=5, walls=3)
    both = go("A1", "A1", "right", grid=5), go("C3", "C3", "up", grid=5)
    shown = play_on(state, *both)
    assert shown.player.tolist() == [0, 1, 0]
    assert not shown.terminated.any()
    assert shown.state.position.walls_left.tolist() == [[2, 1], [1, 1], [1, 0]]


@pytest.mark.parametrize(("tie", "pays"), [((), [0, 0]), (("mover_loses",), [-1, 1])])
def test_game_ends_when_nobody_has_a_wall_left(tie, pays):
    state = draw(SPENT, player=0, grid=5, walls=2, tie=tie)
    shown = play_on(state, go("A1", "A1", "right", grid=5))
    assert shown.terminated.tolist() == [False, True]
    assert shown.territory[1].tolist() == [0, 0]
    assert paid(shown) == pays


def test_first_player_starts_after_setup_whoever_placed_last():
    rules = Rules(size=3, stones=1, order=(1, 0))
    shown = harness.replay([rules], [[place("A1", grid=5), place("C3", grid=5)]], grid=5)
    assert shown.player[:, 0].tolist() == [1, 0, 0]


def test_first_player_starts_after_setup_and_is_skipped_if_stuck():
    # Red's last placement shuts its own stones in: only Blue can step, into the free corner.
    rules = Rules(size=3, stones=4, order=(0, 1) * 4, stay_needs_room=True)
    around = ["C2", "A2", "B2", "B1", "A3", "C1", "B3", "C3"]
    played = [place(name, grid=7) for name in around]
    shown = harness.replay([rules], [played], grid=7)
    assert shown.player[:, 0].tolist() == [0, 1] * 4 + [1]
    assert not shown.terminated.any()


def test_first_player_stuck_at_the_start_is_skipped():
    red, blue = ((1, 1), (1, 2), (2, 1), (2, 2)), ((0, 1), (1, 0), (0, 2), (2, 0))
    start = [(*cell, player) for player, own in enumerate((red, blue)) for cell in own]
    rules = Rules(size=3, stones=4, start=start, order=(), stay_needs_room=True)
    always = Rules(size=3, stones=4, start=start, order=())
    assert harness.new_games([rules, always], 7).position.player.tolist() == [1, 0]


def test_separation_before_the_last_placement_is_no_end():
    rules = Rules(size=3, stones=1, start=[(0, 0, 0)], order=(1,))
    shown = harness.replay([rules], [[place("C3", grid=5)]], grid=5)
    assert not shown.terminated.any()
    rules = Rules(size=3, stones=1, order=(0, 1))
    shown = harness.replay([rules], [[place("A1", grid=5), place("C3", grid=5)]], grid=5)
    assert not shown.terminated.any()
    assert shown.territory[:, 0].tolist() == [[0, 0], [9, 0], [0, 0]]


# Ties, by the board after the last wall: a column of cells a letter, walled off where the letter
# changes or a bar stands.

TWO_REGIONS_TO_ONE = (
    "R|.|B .",
    " + + + ",
    ".|.|. .",
    " + + + ",
    ".|R|. .",
    " + + + ",
    ".|. . B",
)
ONE_REGION_EACH = (
    "R .|B .",
    " + + + ",
    ". .|. .",
    " + + + ",
    ". R|. .",
    " + + + ",
    ". . . B",
)
RED_CLOSES, BLUE_CLOSES = go("B3", "B4", "right", grid=5), go("D4", "C4", "left", grid=5)


@pytest.mark.parametrize(
    ("drawing", "tie", "red_closes", "blue_closes"),
    [
        (TWO_REGIONS_TO_ONE, (), [0, 0], [0, 0]),
        (TWO_REGIONS_TO_ONE, ("region",), [-1, 1], [-1, 1]),
        (TWO_REGIONS_TO_ONE, ("mover_loses",), [-1, 1], [1, -1]),
        (TWO_REGIONS_TO_ONE, ("region", "mover_loses"), [-1, 1], [-1, 1]),
        (TWO_REGIONS_TO_ONE, ("mover_loses", "region"), [-1, 1], [1, -1]),
        (ONE_REGION_EACH, (), [0, 0], [0, 0]),
        (ONE_REGION_EACH, ("region",), [0, 0], [0, 0]),
        (ONE_REGION_EACH, ("mover_loses",), [-1, 1], [1, -1]),
        (ONE_REGION_EACH, ("region", "mover_loses"), [-1, 1], [1, -1]),
        (ONE_REGION_EACH, ("mover_loses", "region"), [-1, 1], [1, -1]),
    ],
)
def test_tie_rules_of_two_players(drawing, tie, red_closes, blue_closes):
    for player, closing, expected in ((0, RED_CLOSES, red_closes), (1, BLUE_CLOSES, blue_closes)):
        shown = play_on(draw(drawing, player=player, grid=5, tie=tie), closing)
        assert shown.terminated.tolist() == [False, True]
        assert shown.territory[1].tolist() == [8, 8]
        assert paid(shown) == expected


THREE_LEVEL = (
    "R|R|B .|. .",
    " + + + + + ",
    ".|.|. .|. .",
    " + + + + + ",
    ".|.|. .|. .",
    " + + + + + ",
    ".|.|. .|. .",
    " + + + + + ",
    ".|.|. .|G .",
    " + + + + + ",
    ".|.|. B . G",
)


@pytest.mark.parametrize(
    ("tie", "blue_closes", "green_closes"),
    [
        ((), [0, 0, 0], [0, 0, 0]),
        (("region",), [0, 0, 0], [0, 0, 0]),
        (("mover_loses",), [0, 0, 0], [0, 0, 0]),
        (("region", "mover_loses"), [-0.5, -0.5, 1], [-0.5, 1, -0.5]),
        (("mover_loses", "region"), [-0.5, -0.5, 1], [-0.5, 1, -0.5]),
    ],
)
def test_tie_rules_of_three_players(tie, blue_closes, green_closes):
    # Red's two columns are as many cells as the others' double columns, but two regions.
    closing = (
        (1, go("D6", "D6", "right", grid=7), blue_closes),
        (2, go("E5", "E6", "left", grid=7), green_closes),
    )
    for player, action, expected in closing:
        shown = play_on(draw(THREE_LEVEL, player=player, grid=7, players=3, tie=tie), action)
        assert shown.terminated.tolist() == [False, True]
        assert shown.territory[1].tolist() == [12, 12, 12]
        assert shown.largest[1].tolist() == [6, 12, 12]
        assert paid(shown) == expected


FOUR_PLAYERS = (
    "R R|B B",
    " + + + ",
    ". .|. .",
    "-+-+ + ",
    "G .|. .",
    " + + +-",
    "G .|Y Y",
)


def test_winner_of_four_takes_a_third_from_each_other():
    state = draw(FOUR_PLAYERS, player=1, grid=7, players=4)
    shown = play_on(state, go("C1", "C3", "down", grid=7))
    assert shown.terminated.tolist() == [False, True]
    assert shown.territory.tolist() == [[4, 0, 4, 0], [4, 6, 4, 2]]
    assert paid(shown) == [-1 / 3, 1, -1 / 3, -1 / 3]


@pytest.mark.parametrize(
    ("territory", "largest", "mover", "tie", "pays"),
    [
        ([5, 3], [5, 3], 0, (), [1, -1]),
        ([3, 5], [3, 2], 1, ("region", "mover_loses"), [-1, 1]),
        ([0, 0], [0, 0], 1, ("region", "mover_loses"), [1, -1]),
        ([4, 9, 2], [4, 5, 2], 1, ("mover_loses",), [-0.5, 1, -0.5]),
        ([4, 4, 2], [3, 2, 2], 2, ("mover_loses",), [0, 0, 0]),
        ([4, 4, 2], [3, 2, 2], 2, ("mover_loses", "region"), [1, -0.5, -0.5]),
        ([6, 6, 6], [6, 6, 5], 0, ("region", "mover_loses"), [-0.5, 1, -0.5]),
        ([6, 6, 6], [6, 5, 5], 0, ("mover_loses", "region"), [0, 0, 0]),
        ([7, 7, 7, 7], [7, 5, 5, 2], 0, ("region",), [1, -1 / 3, -1 / 3, -1 / 3]),
        ([1, 2, 3, 3], [1, 2, 3, 3], 3, ("mover_loses",), [-1 / 3, -1 / 3, 1, -1 / 3]),
        ([1, 2, 3, 3], [1, 2, 3, 3], 0, ("region", "mover_loses"), [0, 0, 0, 0]),
    ],
)
def test_payoff(territory, largest, mover, tie, pays):
    players = len(territory)
    rules = Rules(players=players, stones=1, order=tuple(range(players)), tie=tie)
    variant = state_lib.make_variant(rules)
    seen = _payoff(variant, np.array(territory), np.array(largest), np.int32(mover))
    assert seen.dtype == np.float32
    assert seen.tolist() == pytest.approx(pays)


_payoff = jax.jit(referee.payoff)


# The other verb.


def test_play_is_step_for_legal_slots(conformance):
    """A finished game is played on with a junk slot, which changes nothing."""
    games = conformance["5x5-2stones"]
    played = [game["actions"] for game in games]
    shown = harness.replay(harness.rules_of(games), played, grid=5)

    def body(states, slots):
        slots = jnp.where(states.position.terminated, 7, slots)
        states, rewards = jax.vmap(referee.play)(states, slots)
        return states, (states, rewards)

    start = jax.tree.map(lambda leaf: leaf[0], shown.state)
    _, (states, rewards) = jax.jit(lambda s, a: jax.lax.scan(body, s, a))(start, shown.slot)
    expected = jax.tree.map(lambda leaf: leaf[1:], shown.state)
    seen = jax.tree.map(lambda leaf: leaf[:-1], states)
    jax.tree.map(np.testing.assert_array_equal, seen, expected)
    np.testing.assert_array_equal(rewards[:-1], shown.rewards[:-1])
