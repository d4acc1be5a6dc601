"""Block strings give their blocks; wrong ones are refused in one line."""

import pytest

from train.network.config import MAX_BLOCKS, parse_blocks


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


WRONG = "RRxT, -2R, R², 2R(T3(RU)), 2(R))T, (R2)T, R(2(T), 2(R3()), R00(T), 0R, 2(3)R, 2(R3"


@pytest.mark.parametrize("text", [*WRONG.split(", "), 300 * "(", "", "R T", "R\n"])
def test_wrong_strings_are_refused_in_a_line(text):
    with pytest.raises(ValueError, match="R, T and W, counts and brackets") as caught:
        parse_blocks(text)
    message = str(caught.value)
    assert message.startswith(f"blocks: {text!r}") and "\n" not in message


@pytest.mark.parametrize(
    "text", ["201R", "3(2(40R))", "99999999999999999999R", 9 * "999(" + "R" + 9 * ")"]
)
def test_there_may_be_too_many_blocks(text):
    with pytest.raises(ValueError, match="more than 200 blocks"):
        parse_blocks(text)
