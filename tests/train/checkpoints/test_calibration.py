"""Values become win chances, by the calibration of a card or a file."""

import json
import re

import numpy as np
import pytest

from tests.support.refusals import refusal
from train.checkpoints.exported import calibration_of_card, read_calibration
from train.search.evaluator import Calibration, win_chance


def test_chances_of_two_players_add_up_to_one():
    value = np.linspace(-1, 1, 9)
    for factor in (1.0, 0.5, 2.0):
        chance = win_chance(value, players=2, factor=factor)
        assert chance + win_chance(-value, players=2, factor=factor) == pytest.approx(1)
        assert chance[[0, 4, 8]] == pytest.approx([0, 0.5, 1])
    assert win_chance(value, players=2) == pytest.approx((1 + value) / 2)


def test_a_draw_of_more_players_is_an_equal_share():
    assert win_chance([1.0, -0.5, 0.0], players=3) == pytest.approx([1, 0, 1 / 3])
    assert win_chance([1.0, -1 / 3, 0.0], players=4) == pytest.approx([1, 0, 1 / 4])


def test_a_calibration_is_read_again(tmp_path):
    made = Calibration(0.5, 0.75, 64)
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps({"calibration": made._asdict(), "player": "x"}))
    assert read_calibration(path) == made


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "JSON"),
        ("[]", "calibration"),
        ('{"calibration": {"network": -1, "search": 1}}', "network: .*greater than 0 .*-1"),
    ],
)
def test_a_wrong_calibration_is_refused_in_one_line(tmp_path, text, word):
    path = tmp_path / "calibration.json"
    path.write_text(text)
    message = refusal(read_calibration, path)
    assert message.startswith(str(path)) and re.search(word, message)


def test_a_card_without_a_calibration_leaves_chances_as_they_are():
    assert calibration_of_card({}, where="x") == Calibration(1.0, 1.0, None)
    kept = {"network": 0.5, "search": 0.75, "simulations": 64}
    assert calibration_of_card({"calibration": kept}, where="x") == Calibration(0.5, 0.75, 64)
    assert "calibration" in refusal(calibration_of_card, {"calibration": 3}, where="x")
