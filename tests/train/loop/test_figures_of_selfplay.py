"""The names in a row of metrics that figures of self-play get."""

import jax
import numpy as np
import pytest

from tests.support.learner import tiny
from train.data.diversity import ClassShares, Mean, OpeningDiversity, PolicyEntropies
from train.data.selfplay import SeatSums, SelfPlayMetrics
from train.loop.train_step import SelfPlayFigures
from train.loop.training import selfplay_figures

FIGURES = SelfPlayFigures(
    sums=SelfPlayMetrics(
        games=20.0,
        positions=400.0,
        full=100.0,
        length=380.0,
        red_wins=9.0,
        draws=4.0,
        drawn=30.0,
        entropies=PolicyEntropies(
            all=Mean(10.0, 4.0),
            placement=Mean(11.0, 4.0),
            opening=Mean(12.0, 4.0),
            middle=Mean(13.0, 4.0),
            late=Mean(14.0, 4.0),
            steps=Mean(15.0, 4.0),
            wall=Mean(16.0, 4.0),
            stay=Mean(17.0, 4.0),
            one_step=Mean(18.0, 4.0),
            two_steps=Mean(19.0, 4.0),
        ),
        shares=ClassShares(stay=Mean(1.0, 10.0), one_step=Mean(2.0, 10.0), two_steps=Mean(7.0, 10)),
        seats=SeatSums(games=np.array([8.0, 16.0]), points=np.array([3.0, 10.0])),
    ),
    setups=OpeningDiversity(games=50.0, distinct=31.0, mode=3.0),
    openings=OpeningDiversity(games=25.0, distinct=22.0, mode=2.0),
    by_board=None,
)
"""Made up, so that no two figures of a row are the same."""

ROW = {
    "games": 20,
    "positions": 400,
    "mean_length": 19,
    "red_win_rate": 0.55,
    "simulations": 2,
    "full_search_share": 0.25,
    "drawn_share": 0.075,
    "policy_entropy": 2.5,
    "policy_entropy_placement": 2.75,
    "policy_entropy_opening": 3,
    "policy_entropy_middle": 3.25,
    "policy_entropy_late": 3.5,
    "policy_entropy_steps": 3.75,
    "policy_entropy_wall": 4,
    "policy_entropy_stay": 4.25,
    "policy_entropy_one_step": 4.5,
    "policy_entropy_two_steps": 4.75,
    "policy_share_stay": 0.1,
    "policy_share_one_step": 0.2,
    "policy_share_two_steps": 0.7,
    "distinct_setups": 0.62,
    "commonest_setups": 0.06,
    "distinct_openings": 0.88,
    "commonest_openings": 0.08,
    "learner_win_rate": 13 / 24,
    "learner_win_rate_red": 0.375,
    "learner_win_rate_blue": 0.625,
}


def test_each_figure_has_its_name():
    row = selfplay_figures(tiny.config(), FIGURES, 0)
    assert row == pytest.approx(ROW)


def test_a_draw_of_three_is_a_third_of_a_win():
    """Red has won 9 of 20 games and drawn 4 of them."""
    config = tiny.config("--rules", "playwallgo-3p")
    row = selfplay_figures(config, FIGURES, 0)
    assert row["red_win_rate"] == pytest.approx(31 / 60)


def test_figures_of_no_game_are_none():
    nothing = jax.tree.map(np.zeros_like, FIGURES)
    sums = nothing.sums._replace(positions=400.0)
    row = selfplay_figures(tiny.config(), nothing._replace(sums=sums), 0)
    numbers = {"games", "positions", "simulations", "full_search_share", "drawn_share"}
    assert {name for name, value in row.items() if value is not None} == numbers
    assert row.keys() == ROW.keys()
