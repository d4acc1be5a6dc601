"""Games from files, and every move of one graded."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from train.api.common.tables import progress_bar, to_dataframe
from train.api.configs import read_rules
from train.review import game_review
from train.review.analyst import analyst_of_game
from train.review.figure import review_figure
from train.review.game_review import GameReview, ReviewedMove
from train.review.page import draw_review
from train.runtime.errors import UsageError
from train.runtime.files import replace_text
from wallgo_jax import render
from wallgo_jax.cli.sources import SourceRequest, read_games
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import format_action
from wallgo_jax.view.game_replay import Game

_DEFAULT_RULES = PRESETS["wallzero-4stone"]


def load_game(
    source: str | Path, *, game: int = 1, rules: Rules | Mapping[str, Any] | str | None = None
) -> Game:
    """Load a game from a record file, a file of moves or of an HKOI code, or the moves themselves.

    Args:
      source: the file or the text.
      game: number of the game in a record file, from 1.
      rules: of moves and codes that do not say theirs; `wallzero-4stone` by default.

    Raises:
      UsageError: what is wrong with it, where, and what is allowed.
    """
    if game < 1:
        raise UsageError(f"game {game}: games are numbered from 1")
    default = _DEFAULT_RULES if rules is None else read_rules(rules)
    try:
        return next(read_games(SourceRequest(str(source), game=game, default_rules=default))).game
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from None
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror}") from None


@dataclasses.dataclass(frozen=True, repr=False)
class Review:
    """A game with what a search says of each move; draws itself in a notebook.

    Attributes:
      found: values, win chances and owners in every position.
    """

    found: GameReview

    def __repr__(self) -> str:
        scores = ", ".join("-" if each is None else f"{each:.0f} %" for each in self.accuracy)
        return f"<review of {len(self.moves)} plies by {self.found.analyst}: accuracy {scores}>"

    @property
    def moves(self) -> tuple[ReviewedMove, ...]:
        """The moves with their grades, from the side of the player who made each."""
        return self.found.moves

    @property
    def accuracy(self) -> tuple[float | None, ...]:
        """The accuracy of each player in per cent."""
        return self.found.accuracy

    @property
    def chances(self) -> np.ndarray:
        """float[T + 1, P]: win chances in each position."""
        return self.found.chances

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each move."""
        grid = self.found.game.grid
        return [
            {
                "ply": move.ply,
                "player": move.mover,
                "move": format_action(move.action, grid=grid),
                "grade": move.grade.name,
                "before": move.before,
                "after": move.after,
                "best": format_action(move.searched.best.action, grid=grid),
            }
            for move in self.moves
        ]

    def to_dataframe(self) -> Any:
        """`rows` as a table of pandas."""
        return to_dataframe(self.rows())

    def figure(self) -> Any:
        """The win chances over the game as a figure of matplotlib."""
        return review_figure(self.found)

    def page(self, *, theme: str = "auto") -> str:
        """The review as one HTML page, `light`, `dark` or `auto`."""
        return draw_review(self.found, theme=theme)

    def write(self, path: str | Path) -> None:
        """Write the page.

        Raises:
          UsageError: it cannot be written.
        """
        replace_text(Path(path), self.page())

    def _repr_html_(self) -> str:
        return render.in_frame(self.page(theme="light"))


def review_game(
    game: Game | Record | str | Path,
    player: str | None = None,
    *,
    transfer: bool = False,
    calibration: str | Path | None = None,
    progress: bool = False,
) -> Review:
    """Search every position of a game and grade every move, as `python -m train review` does.

    Args:
      game: the game, a record, or what `load_game` takes.
      player: that searches, by name; by default a model that ships for the rules, else
        `heuristic-search:wjx`, with 256 simulations.
      transfer: let a network review rules that it has not learned.
      calibration: file that `calibrate --json` wrote, in place of the calibration in the model's
        card.
      progress: show a bar.

    Raises:
      UsageError: the game has no move or cannot be read, or the player cannot review it.
    """
    names = game.players if isinstance(game, Record) else None
    try:
        played = records.replay(game) if isinstance(game, Record) else game
    except ValueError as error:
        raise UsageError(str(error)) from None
    played = played if isinstance(played, Game) else load_game(played)
    calibrated = None if calibration is None else Path(calibration)
    analyst = analyst_of_game(played, player or "", transfer=transfer, calibration=calibrated)
    live = sum(not state.position.terminated for state in played.states)
    total = live * analyst.search.simulations
    with progress_bar("review", total, is_shown=progress) as on_progress:
        return Review(
            game_review.review_game(analyst, played, players=names, on_progress=on_progress)
        )
