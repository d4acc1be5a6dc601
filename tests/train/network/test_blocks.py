"""Block strings give their blocks; wrong ones are refused in one line."""

import pytest

from train.network.blocks import MAX_BLOCKS, parse_blocks


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("R", "R"),
        ("T", "T"),
        ("W", "W"),
        ("2(2WT)R", "WWTWWTR"),
        ("RRTRRT", "RRTRRT"),
        ("2R1T2R1T", "RRTRRT"),
        ("R3(RRT)", "RRRTRRTRRT"),
        ("10R", "RRRRRRRRRR"),
        ("(RT)", "RT"),
        ("2(R)3(T)", "RRTTT"),
        ("2(R3(2TR))T", "RTTRTTRTTRRTTRTTRTTRT"),
        ("2(2(2(R)T))", "RRTRRTRRTRRT"),
        ("((R)(T))", "RT"),
        ("002R", "RR"),
        ("200R", 200 * "R"),
    ],
)
def test_meaning(text, blocks):
    assert parse_blocks(text) == blocks


@pytest.mark.parametrize(
    ("text", "character", "place"),
    [
        ("X", "X", 1),
        ("RRxT", "x", 3),
        ("r", "r", 1),
        ("WwT", "w", 2),
        ("R T", " ", 2),
        ("R,T", ",", 2),
        ("-2R", "-", 1),
        ("R²", "²", 2),
        ("2R(T3(RU))", "U", 8),
        ("R)", ")", 2),
        ("2(R))T", ")", 5),
        ("R3)", ")", 3),
        ("(R2)T", ")", 4),
        ("2(RT", "(", 2),
        ("R(2(T)", "(", 2),
        ("2(R3(T)", "(", 2),
        ("R(T(", "(", 4),
        ("R()", "(", 2),
        ("2(R3())", "(", 5),
        ("0R", "0", 1),
        ("R00(T)", "0", 2),
        (300 * "(", "(", 201),
    ],
)
def test_wrong_character_and_its_place_are_named(text, character, place):
    with pytest.raises(ValueError) as caught:
        parse_blocks(text)
    message = str(caught.value)
    assert message.startswith(f"blocks: {text!r}: {character!r} at place {place} ")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no block"),
        ("R2", "ends after a count"),
        ("2(R3", "ends after a count"),
        ("201R", "more than 200 blocks"),
        ("100R101T", "more than 200 blocks"),
        ("3(2(40R))", "more than 200 blocks"),
        ("99999999999999999999R", "more than 200 blocks"),
    ],
)
def test_wrong_strings_are_named(text, reason):
    with pytest.raises(ValueError) as caught:
        parse_blocks(text)
    assert str(caught.value).startswith(f"blocks: {text!r} ")
    assert reason in str(caught.value)


def test_limit_is_what_the_messages_say():
    assert MAX_BLOCKS == 200
