"""Block strings give their blocks; wrong ones are refused in one line."""

import pytest

from train.network.blocks import MAX_BLOCKS, parse_blocks


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("RTW", "RTW"),
        ("2(2WT)R", "WWTWWTR"),
        ("2R1T2R1T", "RRTRRT"),
        ("R3(RRT)", "RRRTRRTRRT"),
        ("10R", "RRRRRRRRRR"),
        ("2(R3(2TR))T", "RTTRTTRTTRRTTRTTRTTRT"),
        ("((R)(T))", "RT"),
        ("002R", "RR"),
        (f"{MAX_BLOCKS}R", 200 * "R"),
    ],
)
def test_meaning(text, blocks):
    assert parse_blocks(text) == blocks


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("RRxT", "'x' at place 3 "),
        ("R T", "' ' at place 2 "),
        ("-2R", "'-' at place 1 "),
        ("R²", "'²' at place 2 "),
        ("2R(T3(RU))", "'U' at place 8 "),
        ("2(R))T", "')' at place 5 "),
        ("(R2)T", "')' at place 4 "),
        ("R(2(T)", "'(' at place 2 "),
        ("2(R3())", "'(' at place 5 "),
        ("R00(T)", "'0' at place 2 "),
        (300 * "(", "'(' at place 201 "),
        ("", "names no block"),
        ("2(R3", "ends after a count"),
        ("201R", "more than 200 blocks"),
        ("3(2(40R))", "more than 200 blocks"),
        ("99999999999999999999R", "more than 200 blocks"),
    ],
)
def test_wrong_strings_are_refused_in_a_line(text, told):
    with pytest.raises(ValueError) as caught:
        parse_blocks(text)
    message = str(caught.value)
    assert message.startswith(f"blocks: {text!r}") and told in message
    assert "\n" not in message
