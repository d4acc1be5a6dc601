"""What an open run says of its own end."""

import pytest

from train import make_config
from train.loop.reporting import seconds_of_final_matches

CONFIG = make_config(
    {
        "evaluation.opponents": ["wjx", "greedy"],
        "evaluation.final_games": 100,
        "evaluation.simulations": 64,
        "selfplay.full_search_prob": 0.25,
        "selfplay.cheap_simulations": 4,
    }
)
ROW = {
    "positions": 8000,
    "mean_length": 40.0,
    "simulations": 16,
    "full_search_share": 0.25,
    "selfplay_seconds": 7.0,
}


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        # 8000 positions of 16/4 + 4 x 3/4 = 7 simulations in 7 s; 200 games of 20 x 64 simulations.
        ({}, 32.0),
        ({"simulations": 2}, 200 * 20 * 64 / (8000 * 2 / 7)),  # cheap searches have no more
        ({"simulations": 0}, 0.0),  # a teacher without search plays
        ({"mean_length": None}, 0.0),
    ],
)
def test_seconds_of_the_final_matches(changed, seconds):
    assert seconds_of_final_matches(CONFIG, ROW | changed) == pytest.approx(seconds)


def test_learning_from_records_knows_no_speed_of_games():
    assert seconds_of_final_matches(CONFIG, {"positions": 512}) == 0.0
