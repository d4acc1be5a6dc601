"""The whole machine learns: a fixed small budget on a small board, from a fixed seed."""

from pathlib import Path

import jax
import pytest

from tests.support.learner.loop import Loop
from train.analysis.accuracy import value_kept
from train.arena.match import MatchOptions, play_match
from train.config import EvaluationConfig, RunConfig, read_config
from train.data.config import ReplayConfig, SelfPlayConfig
from train.learning.config import LearnerConfig
from train.network import NetworkConfig
from train.players.basic import make_random_player
from train.players.searching import network_player
from train.search.config import KINDS, SearchConfig
from train.solver.exact_player import tables_of
from train.solver.positions import reachable_levels
from wallgo_jax import Rules

TINY = Path(__file__).parents[3] / "configs" / "tiny.toml"
CONFIG = RunConfig(
    name="learning",
    seed=1,
    iterations=16,
    rules=Rules(size=4, stones=1, order=(0, 1)),
    network=NetworkConfig(width=16, value_width=16),
    search=SearchConfig(simulations=12),
    selfplay=SelfPlayConfig(boards=64, plies=16),
    replay=ReplayConfig(positions=8192),
    learner=LearnerConfig(batch=128, steps=24, learning_rate=1e-2, warmup=20),
    evaluation=EvaluationConfig(every=0),
)
GAMES = 200


@pytest.mark.slow
def test_training_beats_random_by_a_margin():
    """The raw policy plays, so that learning wins, not search. Before training it takes the first
    legal slot every time."""
    config, rules = CONFIG, CONFIG.rules
    loop = Loop(config)
    player = network_player("raw", None, config, rules)
    opponent = make_random_player()

    def win_rate(variables) -> float:
        return play_match(
            (player._replace(variables=variables), opponent),
            rules,
            MatchOptions(games=GAMES),
            key=jax.random.key(0),
        ).win_rate

    before = win_rate(loop.state.learner.variables)
    losses = []
    for iteration in range(config.iterations):
        row = loop.iterate(iteration)
        losses.append(row.get("value_loss"))
        owners = (row.get("ownership_loss"), row.get("ownership_constant"))
    after = win_rate(loop.state.learner.variables)
    assert owners[0] < owners[1] - 0.1, owners
    assert before < 0.65
    assert after >= 0.85
    assert losses[-1] < 0.8 * next(loss for loss in losses if loss is not None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_solved_board_is_learned(as_users_compile, kind):
    """A player trained for 14 of the 200 iterations of `configs/tiny.toml` keeps the value of
    nearly every position, of which every sixteenth is asked about."""
    config = read_config(TINY, ["--iterations", "14", "--search.kind", kind])
    loop = Loop(config)
    for iteration in range(config.iterations):
        loop.iterate(iteration)
    variables = loop.state.learner.variables
    player = network_player("tiny", variables, config, config.rules, simulations=64)
    levels = [jax.tree.map(lambda x: x[::16], level) for level in reachable_levels(config.rules)]
    found = value_kept(
        player, config.rules, tables_of(config.rules), levels, key=jax.random.key(0), batch=512
    )
    assert len(found.kept) > 69_138 / 16
    assert found.kept.mean() >= 0.99
