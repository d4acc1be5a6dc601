"""The contest's replay code: its printed example, codes worked out by hand, and refusals."""

from pathlib import Path

import pytest

from wallgo_jax.formats import hkoi_code
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import format_action, parse_moves
from wallgo_jax.view.game_replay import replay_actions, replay_moves
from wallgo_jax.view.snapshot import take_snapshot

EXAMPLE = (Path(__file__).parents[1] / "data" / "hkoi-example.txt").read_text().strip()
DIGITS = "0123456789abcdefghijklmnopqrstuv"
UP, DOWN, LEFT, RIGHT = 1, 2, 3, 4
# Red's stones on the corners and D3, Blue's in between: room for every kind of move round D3.
SETUP = "R A1 B B1 B F1 R G1 R D3 B A7 B G7 R D7"
SETUP_CODE = "00100120052106112312602266236313"


def move(player, piece, first, second, wall):
    """Three digits, the least significant first."""
    value = (((player * 8 + piece) * 8 + first) * 8 + second) * 8 + wall
    return DIGITS[value % 32] + DIGITS[value // 32 % 32] + DIGITS[value // 1024]


WALLS = move(0, 2, 0, 0, DOWN) + move(1, 0, 0, 0, DOWN)


def game(text):
    return replay_moves(PRESETS["hkoi"], parse_moves(f"{SETUP} {text}", grid=7))


@pytest.fixture(scope="module")
def example():
    return hkoi_code.decode(EXAMPLE)


def test_the_printed_example_ends_exactly_at_its_last_move(example):
    assert len(example.actions) == 8 + 44
    assert [bool(state.position.terminated) for state in example.states] == [False] * 52 + [True]
    assert take_snapshot(example.states[-1]).territory == (26, 11)
    assert example.rewards == (1.0, -1.0)


def test_the_printed_example_read_by_hand(example):
    placed = [format_action(action, grid=7) for action in example.actions[:8]]
    assert placed == "D6 C6 C3 D3 A3 B3 F1 G1".split()
    assert example.movers[:9] == (0, 1, 1, 0, 0, 1, 1, 0, 0)
    # 2k1 is 2 + 32 * 20 + 1024 = 0b11_010_000_010: Red, piece 3, down, no more, wall below.
    assert format_action(example.actions[8], grid=7) == "G1->G2:down"


def test_the_example_written_again_is_the_same_game(example):
    again = hkoi_code.encode(example)
    assert hkoi_code.decode(again).actions == example.actions
    assert len(again) == len(EXAMPLE)
    assert hkoi_code.decode("\n".join([EXAMPLE[:40], EXAMPLE[40:].upper()])) is not None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("D3->D3:W0", move(0, 2, 0, 0, UP)),
        ("D3->E3:W1", move(0, 2, RIGHT, 0, RIGHT)),
        ("D3->B3:W3", move(0, 2, LEFT, LEFT, LEFT)),
        ("D3->D1:W2", move(0, 2, UP, UP, DOWN)),
        # Both corners are open: the vertical step first.
        ("D3->E4:W1", move(0, 2, DOWN, RIGHT, RIGHT)),
        ("D3->C2:W1", move(0, 2, UP, LEFT, RIGHT)),
        # Red's wall under D3 leaves only the other corner.
        ("D3->D3:W2 B1->B1:W2 D3->E4:W1", WALLS + move(0, 2, RIGHT, DOWN, RIGHT)),
    ],
)
def test_moves_worked_out_by_hand(text, code):
    played = game(text)
    assert hkoi_code.encode(played) == f"{SETUP_CODE}_{code}"
    assert hkoi_code.decode(f"{SETUP_CODE}_{code}").actions == played.actions


def test_a_step_out_and_back_stays():
    code = f"{SETUP_CODE}_{move(0, 2, UP, DOWN, LEFT)}"
    assert hkoi_code.decode(code).actions == game("D3->D3:W3").actions


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", "code: 0 digits stand before '_', not 32"),
        (EXAMPLE.replace("_", ""), "digits stand before '_', not 32"),
        (EXAMPLE[:-1], "code: the last move has 2 digits, not 3"),
        ("9" + EXAMPLE[1:], "placement 1: row '9' is not a digit from 0 to 6"),
        ("5330" + EXAMPLE[4:], "placement 1: player '3' is not a digit from 1 to 2"),
        ("5314" + EXAMPLE[4:], "placement 1: piece '4' is not a digit from 0 to 3"),
        ("53105210" + EXAMPLE[8:], "placement 2: Red's piece 0 is placed twice"),
        ("53205220" + EXAMPLE[8:], "placement 2: Blue's piece 0 is placed twice"),
        ("53105320" + EXAMPLE[8:], "placement 2: D6: Red already stands on D6"),
        ("52205310" + EXAMPLE[8:], "placement 1: Red is to move, not Blue"),
        # The letter as the slides print it: the 18th move, with a digit for a letter.
        (EXAMPLE.replace("2l4", "214"), "move 18: a second step without a first"),
        (EXAMPLE[:36] + "z" + EXAMPLE[37:], "move 2: .* has a digit that is not 0-9 or a-v"),
        (f"{SETUP_CODE}_{move(0, 2, 0, 0, 0)}", "move 1: wall digit 0 is not a side; 1 up, 2 down"),
        (f"{SETUP_CODE}_{move(0, 2, 0, 0, 5)}", "move 1: wall digit 5 is not a side"),
        (f"{SETUP_CODE}_{move(0, 2, 5, 0, UP)}", "move 1: first step 5 is not a digit"),
        (f"{SETUP_CODE}_{move(0, 2, UP, 5, UP)}", "move 1: second step 5 is not a digit"),
        (f"{SETUP_CODE}_{move(0, 4, 0, 0, UP)}", "move 1: piece 4 is not a digit from 0 to 3"),
        (f"{SETUP_CODE}_{move(2, 0, 0, 0, UP)}", "move 1: player 2 is not a digit from 0 to 1"),
        (f"{SETUP_CODE}_{move(1, 0, 0, 0, UP)}", "move 1: Red is to move, not Blue"),
        (f"{SETUP_CODE}_{move(0, 0, UP, 0, UP)}", "move 1: A1 steps off the board"),
        (f"{SETUP_CODE}_{move(0, 0, RIGHT, 0, UP)}", "move 1: A1->B1:up: Blue already stands"),
        # A way through a wall, where a detour is open.
        (
            f"{SETUP_CODE}_{WALLS}{move(0, 2, DOWN, RIGHT, RIGHT)}",
            "move 3: step 1, over the lower side, is blocked",
        ),
    ],
)
def test_what_is_refused(code, reason):
    with pytest.raises(ValueError, match=reason):
        hkoi_code.decode(code)


def test_other_games_have_no_code():
    for rules, grid in [
        (PRESETS["wallzero-4stone"], None),
        (PRESETS["playwallgo-3p"], None),
        (Rules(size=8), None),
    ]:
        with pytest.raises(ValueError, match="only games of 2 players with 4 stones each"):
            hkoi_code.encode(replay_actions(rules, [], grid=grid))
    with pytest.raises(ValueError, match="larger grid"):
        hkoi_code.encode(replay_actions(PRESETS["hkoi"], [], grid=9))
    with pytest.raises(ValueError, match="0 plies; a code needs all 8 placements"):
        hkoi_code.encode(replay_actions(PRESETS["hkoi"], []))
