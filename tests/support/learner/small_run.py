"""A run on a 4x4 board with a stone each, small enough to be compiled as users compile theirs."""

from train.config import EvaluationConfig, RunConfig
from train.data.config import ReplayConfig, SelfPlayConfig
from train.learning.config import LearnerConfig
from train.network import NetworkConfig
from train.search.config import SearchConfig
from wallgo_jax import Rules

RULES = Rules(size=4, stones=1, order=(0, 1))
CONFIG = RunConfig(
    name="tiny",
    iterations=6,
    rules=RULES,
    network=NetworkConfig(width=8, value_width=8),
    search=SearchConfig(simulations=4),
    selfplay=SelfPlayConfig(boards=8, plies=12),
    replay=ReplayConfig(positions=400),
    learner=LearnerConfig(batch=32, steps=2),
    evaluation=EvaluationConfig(every=0),
)
