"""The loop of a run written out, without files: what `train.loop.iterations` does."""

from typing import Any

from train.config import RunConfig
from train.learning.learner import check_finite, split_steps
from train.loop import programs
from train.loop.compiling import compile_run
from train.loop.iteration_row import learning_row, selfplay_row
from train.loop.opponent_weights import load_opponent, place_opponent
from train.loop.programs import TrainState
from train.loop.stages import BOOTSTRAP, simulations_of, variables_of
from train.loop.tables import tables_of, variants_of
from train.runtime.devices import BY_BOARD, Devices
from train.runtime.host import fetch


class Loop:
    """A run that is iterated in memory."""

    def __init__(
        self, config: RunConfig, devices: Devices | None = None, *, weights: Any = None
    ) -> None:
        opponent = load_opponent(config)
        self.config = config
        self.tables = tables_of(config, devices, opponent)
        self.opponent = place_opponent(opponent, self.tables)
        self.devices = self.tables.learn.place.devices
        self.variant = self.devices.place(variants_of(config), BY_BOARD)
        self.state = programs.init(self.tables, self.variant, config.seed, weights)

    @property
    def like(self) -> TrainState:
        """Shapes of the state."""
        return programs.state_like(self.tables, self.variant)

    def compile(self, done: int = 0) -> float:
        """As the run does."""
        return compile_run(
            self.config, self.tables, self.like, self.variant, self.opponent, None, done=done
        )

    def keys(self, iteration: int) -> programs.Keys:
        """Of an iteration."""
        return programs.iteration_keys(self.tables.learn, self.config.seed, iteration)

    def play(self, iteration: int, boards: Any = None) -> Any:
        """Self-play of an iteration, on the run's boards or on others, which are consumed."""
        weights = self.state.learner.weights
        return programs.play(
            self.tables.play,
            simulations_of(self.config, iteration),
            variables_of(self.config, weights, iteration, self.opponent),
            self.variant,
            self.state.boards if boards is None else boards,
            self.keys(iteration).play,
        )

    def reanalyse(self, iteration: int, replay: Any) -> Any:
        """Search the replay again, which is consumed, by the weights that play in an iteration."""
        options = self.config.replay
        return programs.reanalyse(
            self.tables.play,
            options.reanalyse,
            options.reanalyse_simulations,
            variables_of(self.config, self.state.learner.weights, iteration),
            self.variant,
            replay,
            self.keys(iteration).reanalyse,
        )

    def iterate(self, iteration: int) -> dict[str, Any]:
        """Run an iteration and return its row, without times."""
        learn, learner = self.tables.learn, self.state.learner
        boards, plies, played = self.play(iteration)
        replay, finished = programs.write(learn.place, self.state.replay_state, plies)
        figures = {}
        if self.config.replay.reanalyse and simulations_of(self.config, iteration) != BOOTSTRAP:
            replay, surprise = self.reanalyse(iteration, replay)
            figures = {"reanalyse_surprise": float(fetch(surprise))}
        played, finished = fetch((played, finished))
        row = selfplay_row(self.config, iteration, played, finished, self.tables.rows) | figures
        keys, every = self.keys(iteration).learn, self.config.learner.validation_every
        held_out, seen = [], []
        if every and (iteration + 1) % every == 0 and finished.newest > 0:
            weights = learner.weights
            held_out = [programs.validate(learn, weights, replay, self.variant, keys)]
        if row["steps"]:
            learner, seen = programs.learn(learn, learner, replay, self.variant, keys, row["steps"])
        seen, held_out = fetch((seen, held_out))
        seen = split_steps(seen)[: row["steps"]]
        check_finite(seen, learner, iteration)
        self.state = TrainState(learner, boards, replay, self.state.iterations + 1)
        return {"iteration": iteration + 1, **row, **learning_row(seen, held_out)}
