"""Human notation against ids worked out by hand, and the reasons given for illegal moves."""

import numpy as np
import pytest

from tests.support.game.small import MOVES, SMALL
from wallgo_jax import notation
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import NotatedMove
from wallgo_jax.view.game_replay import replay_actions, replay_moves
from wallgo_jax.view.illegality import broken_rule
from wallgo_jax.view.snapshot import take_snapshot

FIRST_PLACEMENT = 49 * 52
B6 = 5 * 7 + 1

# Moves 0 to 12 from D4, by where the numbering in RULES.md draws them.
ENDS_FROM_D4 = "D4 D3 D5 C4 E4 D2 D6 B4 F4 C3 E3 C5 E5".split()


def test_placement():
    assert notation.parse_action("C3", grid=7) == NotatedMove(FIRST_PLACEMENT + 2 * 7 + 2, None)
    assert notation.format_action(FIRST_PLACEMENT + 2 * 7 + 2, grid=7) == "C3"


def test_play():
    up_then_wall_above = B6 * 52 + 1 * 4 + 0
    assert notation.parse_action("R B6->B5:W0", grid=7) == NotatedMove(up_then_wall_above, 0)
    assert notation.parse_action("b6->b5:w0", grid=7) == NotatedMove(up_then_wall_above, None)
    assert notation.format_action(up_then_wall_above, grid=7, player=1) == "B B6->B5:up"


SIDES = {
    0: ("W0", "up", "↑"),
    1: ("W1", "right", "→"),
    2: ("W2", "down", "↓"),
    3: ("W3", "left", "←"),
}


@pytest.mark.parametrize(("side", "names"), SIDES.items())
def test_sides_have_three_names(side, names):
    action = B6 * 52 + 1 * 4 + side
    for name in (*names, names[1].upper()):
        assert notation.parse_action(f"B6->B5:{name}", grid=7) == NotatedMove(action, None)
    assert notation.parse_action(f"B6→B5:{names[2]}", grid=7) == NotatedMove(action, None)
    kinds = (notation.CANONICAL_SIDES, notation.SIDE_WORDS, notation.SIDE_ARROWS)
    for name, sides in zip(names, kinds, strict=True):
        assert notation.format_action(action, grid=7, sides=sides) == f"B6->B5:{name}"


@pytest.mark.parametrize(("move", "end"), list(enumerate(ENDS_FROM_D4)))
def test_every_move_ends_where_it_is_drawn(move, end):
    for side in range(4):
        action = (3 * 7 + 3) * 52 + move * 4 + side
        assert notation.format_action(action, grid=7) == f"D4->{end}:{SIDES[side][1]}"


@pytest.mark.parametrize("grid", [3, 7, 9])
def test_every_action_on_the_grid_comes_back(grid):
    on_the_grid = 0
    for action in range(grid * grid * 53):
        try:
            text = notation.format_action(action, grid=grid)
        except ValueError as error:
            assert "moves off the grid" in str(error)
            continue
        on_the_grid += 1
        assert notation.parse_action(text, grid=grid) == NotatedMove(action, None)
    stays, single, double, diagonal = (
        grid**2,
        4 * grid * (grid - 1),
        4 * grid * (grid - 2),
        4 * (grid - 1) ** 2,
    )
    assert on_the_grid == grid**2 + 4 * (stays + single + double + diagonal)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "move"),
        ("H1", "cell"),
        ("A8", "cell"),
        ("A0", "cell"),
        ("A¹", "cell"),
        ("B6->B5", "play"),
        ("B6->B5:W4", "side"),
        ("B6->B5:W", "side"),  # west, or a digit that is missing
        ("B6->B5:", "side"),
        ("B6->B5:l", "side"),
        ("B6->B5:up:left", "side"),
        ("B6->B5:W0up", "side"),
        ("B6->B3:W0", "two steps"),
        ("B6->D5:W0", "two steps"),
        ("Q B6->B5:W0", "colour"),
        ("R B6 B5", "move"),
    ],
)
def test_a_wrong_move_is_refused(text, word):
    with pytest.raises(ValueError, match=word):
        notation.parse_action(text, grid=7)


@pytest.mark.parametrize("action", [-1, 49 * 53])
def test_an_id_out_of_range_is_refused(action):
    with pytest.raises(ValueError, match=f"action {action} is not between 0 and 2596"):
        notation.format_action(action, grid=7)


def test_a_game_written_down():
    text = """
    # a comment
    1. R C3   2. B D4,
    E5 R   A1  # another
    """
    cells = [(2 * 7 + 2, 0), (3 * 7 + 3, 1), (4 * 7 + 4, None), (0, 0)]
    wanted = [NotatedMove(FIRST_PLACEMENT + cell, player) for cell, player in cells]
    assert notation.parse_moves(text, grid=7) == wanted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("C3 D4 E9", "ply 3: 'E9' is not a cell; cells are A1 to G7"),
        ("C3 R", "ply 2: the move after 'R' is missing"),
        ("C3 Z D4", "ply 2: 'Z' is not a colour"),
    ],
)
def test_a_fault_in_a_game_is_named_by_its_ply(text, reason):
    with pytest.raises(ValueError, match=reason):
        notation.parse_moves(text, grid=7)


TWO_STONES = Rules(size=3, stones=2, order=(0, 1, 0, 1), stay_needs_room=True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("R A1 R B2", "ply 2: Blue is to move, not Red"),
        ("A1 A1", "ply 2: A1: Red already stands on A1"),
        ("A1 A1->A2:W1", "ply 2: A1->A2:right: a stone has to be placed; write C3"),
        ("A1 D1", "ply 2: D1: D1 lies outside the 3x3 board"),
        ("A1 C3 B2", "ply 3: B2: every stone is placed; write B6->B5:up"),
        ("A1 C3 C3->C2:W0", "ply 3: C3->C2:up: Red has no stone on C3; its stones: A1"),
        ("A1 A2 A1->A2:W1", "ply 3: A1->A2:right: Blue already stands on A2"),
        ("A1 A2 A1->A3:W1", "ply 3: A1->A3:right: walls or stones block the way to A3"),
        (
            "A1 C3 A1->A1:W0",
            "ply 3: A1->A1:up: the upper side of A1 is the border; free there: right, down",
        ),
        (
            "A1 C3 A1->A1:W1 C3->C3:W0 A1->A1:W1",
            "ply 5: A1->A1:right: the right side of A1 is a wall; free there: down",
        ),
        (f"{MOVES} C3->C3:W3", "ply 6: C3->C3:left: the game is over"),
        (
            "A1 A2 C3 C1 A1->A1:W1 C1->C1:W3 A1->A1:W2",
            "ply 7: A1->A1:down: the stone on A1 has no room to step out and back",
        ),
    ],
)
def test_why_a_ply_is_not_allowed(text, reason):
    """The last one by the rules of two stones, which need room to stay."""
    rules = TWO_STONES if text.startswith("A1 A2 C3 C1") else SMALL
    with pytest.raises(ValueError) as error:
        replay_moves(rules, notation.parse_moves(text, grid=9), grid=9)
    assert str(error.value) == reason


@pytest.mark.parametrize("grid", [2, 10])
def test_a_grid_that_does_not_hold_the_board(grid):
    with pytest.raises(ValueError, match=f"grid: {grid} is not between the board's size 3 and 9"):
        replay_actions(SMALL, [], grid=grid)


@pytest.mark.parametrize(
    ("rules", "grid"),
    [
        (TWO_STONES, 3),
        (Rules(size=3, stones=2, order=(0, 1) * 2, walls=2), 3),
        (Rules(size=4, players=3, stones=2, order=(0, 1, 2) * 2), 7),
    ],
)
def test_broken_rules_are_those_that_the_referee_forbids(rules, grid):
    rng, played = np.random.default_rng(5), []
    snapshot = take_snapshot(replay_actions(rules, [], grid=grid).states[0])
    while snapshot.legal and len(played) < 25:
        explained = {a for a in range(grid**2 * 53) if is_explained(snapshot, a)}
        assert explained == set(range(grid**2 * 53)) - snapshot.legal
        played.append(int(rng.choice(sorted(snapshot.legal))))
        snapshot = take_snapshot(replay_actions(rules, played, grid=grid).states[-1])
    assert len(played) > len(rules.order)


def is_explained(snapshot, action):
    try:
        notation.format_action(action, grid=snapshot.grid)
    except ValueError:
        return True
    return broken_rule(snapshot, action) is not None
