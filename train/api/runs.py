"""A run as an object: iterated, looked at, stopped and gone on with."""

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import Field

from train.api.configs import (
    AnyRules,
    Functions,
    Source,
    make_config,
    read_rules,
    use_functions,
    with_functions,
)
from train.api.games import match
from train.api.players import AnyPlayer, Player, make_player, player_of_weights
from train.api.signatures import valid
from train.arena.result import MatchResult
from train.config import RunConfig
from train.data.replay import newest_games, position_bytes
from train.loop.iterations import Iteration, iterations
from train.loop.recorded import DEFAULT_VALIDATION, RecordFiles
from train.loop.reporting import save
from train.loop.run_directory import naming_last_good, plain_path, resumed_config
from train.loop.tables import rules_of_board, variants_of
from train.loop.training import write_game
from train.metrics.figure import Axis, metrics_figure
from train.metrics.rows import Row
from train.network import Variables
from train.players.networks import refuse_other_rules
from train.runtime.display import to_dataframe
from train.runtime.errors import UsageError
from train.runtime.fields import AtLeastOne, Real
from train.runtime.host import fetch
from train.runtime.interrupts import interrupts
from train.runtime.showing import sparing
from wallgo_jax.view.game_replay import Game, replay_actions

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


RUNS = "runs"


class ReplayStatistics(NamedTuple):
    """What a run's replay holds."""

    capacity: int  # positions
    held: int
    finished: int  # of finished games: what is sampled
    written: int  # since the run began
    bytes: int  # of all of it
    mean_ply: float | None  # of the positions held, by plies from the start of their game


_GAMES_KEPT = 16


class Run:
    """A run of training, which is iterated: each iteration plays, learns and gives its row.

    `train.start` and `train.resume` make runs. A run holds its directory until it is closed; then
    it keeps its weights, its rows and its newest games. It is a player wherever one is asked for.

    Attributes:
      config: of the run.
      directory: the run's.
      rows: metrics of every iteration so far, earlier starts included.
    """

    def __init__(
        self,
        config: RunConfig,
        directory: Path,
        *,
        is_resumed: bool,
        progress: bool,
        records: RecordFiles | None = None,
    ) -> None:
        """Open a run; see `start`, `resume` and `fit`."""
        self.config: RunConfig = config
        self.directory: Path = directory
        self._steps = iterations(
            config, directory, resume=is_resumed, records=records, is_quiet=not progress
        )
        self._records = records
        self._now: Iteration | None = next(self._steps)  # None once it is closed
        self._is_saved: bool = True
        self._kept: tuple[Variables, list[Game]] | None = None  # what a closed run still shows
        self.rows: list[Row] = list(self._now.run.rows)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        """Run an iteration and return its row.

        Raises:
          StopIteration: none is left.
          UsageError: the run is closed; a loss is NaN or infinite.
          KeyboardInterrupt: Ctrl-C came; the iteration is finished and saved.
        """
        self._opened()
        try:
            with interrupts("the iteration is saved", has_work=True) as is_interrupted:
                after = next(self._steps, None)
        except BaseException:
            # The state that the iteration consumed is gone.
            self._release()
            raise
        if after is None or after.row is None:
            raise StopIteration
        self._now = after
        self._is_saved = False
        self.rows.append(after.row)
        if is_interrupted():
            self.save()
            raise KeyboardInterrupt
        return after.row

    def __repr__(self) -> str:
        done = f"{self.iterations} of {self.config.iterations} iterations"
        return f"<train.Run {self.directory}, {done}{', closed' if self._now is None else ''}>"

    def _repr_png_(self) -> bytes | None:
        """Draw the curves for a notebook."""
        if not self.rows:
            return None
        buffer = io.BytesIO()
        self.figure().savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()

    @property
    def iterations(self) -> int:
        """Iterations done."""
        return self.rows[-1]["iteration"] if self.rows else 0

    @property
    def weights(self) -> Variables:
        """The weights that play, as NumPy arrays: averaged ones where the run averages them."""
        if self._kept is not None:
            return self._kept[0]
        return jax.tree.map(np.array, fetch(self._opened().state.learner.weights))

    @property
    def replay(self) -> ReplayStatistics:
        """Figures of the replay."""
        state = self._opened().state.replay_state
        rows, boards = state.plies.terminated.shape
        written, finished, ply = fetch((state.written, state.finished, state.plies.position.ply))
        held = min(int(written), rows)
        return ReplayStatistics(
            capacity=rows * boards,
            held=held * boards,
            finished=int(finished.sum()),
            written=int(written) * boards,
            bytes=rows * boards * position_bytes(state),
            mean_ply=float(ply[:held].mean()) if held else None,
        )

    def newest_games(self, count: int = 1) -> list[Game]:
        """The games of self-play that ended last and that the replay holds as a whole, the newest
        first; fewer where there are not as many. A run that is closed keeps the newest 16."""
        if self._kept is not None:
            return self._kept[1][:count]
        replay_state = self._opened().state.replay_state
        config = self.config
        games = newest_games(replay_state, variants_of(config), count)
        return [replay_actions(rules_of_board(config, board), actions) for board, actions in games]

    def player(self, simulations: int | None = None, *, rules: AnyRules | None = None) -> Player:
        """The newest weights as a player, which keeps them when the run goes on.

        Args:
          simulations: of a search, by default those of evaluation; 0 for the raw policy.
          rules: one of the run's rule sets, by default the first.

        Raises:
          UsageError: the run does not learn these rules.
        """
        played = self.config.rules if rules is None else read_rules(rules)
        refuse_other_rules(self.config.name, self.config.learned, played, transfer=False)
        budget = self.config.evaluation.simulations if simulations is None else simulations
        weights = jax.tree.map(jnp.asarray, self.weights)
        name = f"{self.config.name}/{self.iterations}"
        return player_of_weights(name, weights, self.config, played, simulations=budget)

    def evaluate(
        self,
        opponents: Sequence[AnyPlayer] | None = None,
        *,
        games: int | None = None,
        simulations: int | None = None,
        seed: int = 0,
        rules: AnyRules | None = None,
    ) -> list[MatchResult]:
        """Play the newest weights against each opponent; nothing is written.

        Args:
          opponents: players, of the config's heuristics where they are named; by default those of
            the config's evaluation.
          games: of each match; by default those of the final matches.
          simulations: as in `player`.
          seed: random seed.
          rules: as in `player`.

        Raises:
          UsageError: an opponent or a number is not allowed.
        """
        options, player = self.config.evaluation, self.player(simulations, rules=rules)

        return [
            match(
                player,
                make_player(opponent, player.rules, heuristics=self.config.heuristics),
                games=options.final_games if games is None else games,
                opening_plies=options.opening_plies,
                players_place=options.players_place,
                seed=seed,
            )
            for opponent in (options.opponents if opponents is None else opponents)
        ]

    def save(self) -> None:
        """Save a checkpoint now, unless this iteration has one."""
        now = self._opened()
        if not self._is_saved:
            with naming_last_good(now.run.directory):
                save(now.run, now.state, now.row)
            self._is_saved = True

    def finish(self) -> list[MatchResult]:
        """Run the iterations that are left, play the final matches, write them and close.

        Returns:
          The final matches, one for each of `evaluation.opponents`; of three and four players with
          the opponent at all other seats. A run of `fit` has none; its losses are written.
        """
        for _ in self:
            pass
        now = self._opened()
        with self:
            if self._records is not None:
                from train.loop.fit import report_losses

                report_losses(now)
                return []
            write_game(now.run, now.state)
            if not self.config.evaluation.opponents:
                return []
            from train.loop.evaluation import final_matches

            weights = now.state.learner.weights
            return final_matches(self.config, weights, self.directory, now.run.display)

    def close(self) -> None:
        """Save what is not saved and leave the directory to others; further calls do nothing."""
        if self._now is not None:
            try:
                self.save()
                games = [] if self._records else self.newest_games(_GAMES_KEPT)
                self._kept = self.weights, games
            finally:
                self._release()

    def to_dataframe(self) -> "pandas.DataFrame":
        """`rows` as a table of pandas."""
        return to_dataframe(self.rows)

    def figure(self, axis: Axis = "iteration") -> "Figure":
        """The curves as a figure of matplotlib, over `iteration`, `hours` or `positions`."""
        return metrics_figure({self.config.name: self.rows}, axis=axis)

    def _opened(self) -> Iteration:
        if self._now is None:
            raise UsageError(
                f"{self.directory}: the run is closed; train.resume({str(self.directory)!r}) goes "
                "on with it"
            )
        return self._now

    def _release(self) -> None:
        self._now = None
        self._steps.close()


def start(
    config: Source | None = None,
    *,
    runs: str | Path = RUNS,
    progress: bool = False,
    **functions: Unpack[Functions],
) -> Run:
    """Make a run that has not begun.

    Args:
      config: as `make_config` takes it; the quickstart's by default.
      runs: directory of all runs.
      progress: show what the command line shows.
      functions: your own `network`, `planes`, `search`, `loss` and `targets`, as `use_functions`
        takes them.

    Raises:
      UsageError: the config is not allowed, or a run of this name exists.
    """
    config = with_functions(make_config(config), use_functions(**functions))
    return Run(config, Path(runs) / config.name, is_resumed=False, progress=progress)


def resume(
    directory: str | Path,
    changes: Mapping[str, object] | None = None,
    *,
    progress: bool = False,
    **keys: object,
) -> Run:
    """Make a run that goes on from the newest checkpoint in its directory.

    Args:
      directory: the run's.
      changes: and `keys`, as in `make_config`, of what a run that goes on may change, such as
        `iterations`.
      progress: as in `start`.
      keys: also the functions, as in `start`; those that the run began with are needed.

    Raises:
      UsageError: there is no run, or a change is not allowed.
    """
    names = Functions.__annotations__
    given: Any = {name: keys.pop(name) for name in names if name in keys}
    by_key = use_functions(**given)
    folder = plain_path(Path(directory))
    config = make_config(resumed_config(folder), changes, **keys)
    return Run(with_functions(config, by_key), folder, is_resumed=True, progress=progress)


def run(
    config: Source | None = None,
    *,
    runs: str | Path = RUNS,
    progress: bool = False,
    **functions: Unpack[Functions],
) -> Run:
    """Train to the end and play the final matches; errors are those of `start`.

    Args:
      config: as in `start`.
      runs: directory of all runs.
      progress: show what the command line shows.
      functions: your own, as in `start`.

    Returns:
      The run, closed: it keeps its weights, its rows and its newest games.
    """
    with start(config, runs=runs, progress=progress, **functions) as started:
        started.finish()
    return started


def fit(
    config: Source | None,
    records: Sequence[str | Path],
    *,
    validation: float = DEFAULT_VALIDATION,
    runs: str | Path = RUNS,
    progress: bool = False,
    **functions: Unpack[Functions],
) -> Run:
    """Train on the games of record files, without self-play, to the end.

    Args:
      config: its rules, network, learner, seed, name and iterations are used.
      records: record files of finished games.
      validation: share of the games that is held out to measure losses, from 0 to 1.
      runs: directory of all runs.
      progress: show what the command line shows.
      functions: your own, as in `start`.

    Returns:
      The run, closed; its rows have the losses on games held out as `validation_...`.

    Raises:
      UsageError: as `start`, or a file cannot be read.

    Example:
      `train.fit("configs/quickstart.toml", ["out/games.jsonl.gz"]).rows[-1]["validation_loss"]`
    """
    share = valid(Annotated[Real, Field(gt=0, lt=1)], validation=validation)
    config = with_functions(make_config(config), use_functions(**functions))
    files = RecordFiles(tuple(Path(file) for file in records), share)
    directory = Path(runs) / config.name
    with Run(config, directory, is_resumed=False, progress=progress, records=files) as started:
        started.finish()
    return started


def watch(run: Run, *, every: int = 1) -> Iterator[Row]:
    """Iterate a run and draw loss, win rate and games a second in place, in a notebook.

    Outside of a notebook nothing is drawn.

    Args:
      run: that trains.
      every: iterations between two drawings, at least 1; the last one is drawn in any case.

    Returns:
      The rows, as `for row in run` gives them.

    Raises:
      UsageError: `every` is not allowed.
    """
    return _drawn(run, valid(AtLeastOne, every=every))


def _drawn(run: Run, every: int) -> Iterator[Row]:
    handle = None
    for row in run:
        if row["iteration"] % every == 0 or row["iteration"] == run.config.iterations:
            with sparing("the curves", "the run goes on"):
                handle = _draw(run, handle)
        yield row


def _draw(run: Run, handle: Any) -> Any:
    """Draw into the cell that runs, over what was drawn before."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return None
    if get_ipython() is None:
        return None
    if handle is None:
        return display(run, display_id=True)
    handle.update(run)
    return handle
