"""Games from files, and every move of one graded."""

import dataclasses
from pathlib import Path
from typing import Any

from train.api.arguments import DEFAULT_RULES, AtLeastOne, valid
from train.api.configs import AnyRules, read_rules
from train.api.results import Result
from train.review import game_review
from train.review.game_review import GameReview
from train.review.page import Siblings, compare_siblings, draw_review
from train.review.player import player_for_game
from train.runtime.errors import usage_errors
from train.runtime.files import reading, replace_text
from train.runtime.interrupts import Shown, follow
from wallgo_jax import render
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.formats.sources import LoadedGame, SourceRequest, read_games
from wallgo_jax.view.game_replay import Game


def load_game(source: str | Path, *, game: int = 1, rules: AnyRules | None = None) -> Game:
    """Load a game from a record file, a file of moves or of an HKOI code, or the moves themselves.

    Args:
      source: the file or the text.
      game: number of the game in a record file, from 1.
      rules: of moves and codes that do not say theirs; `wallzero-4stone` by default.

    Raises:
      UsageError: what is wrong with it, where, and what is allowed.
    """
    default = read_rules(DEFAULT_RULES if rules is None else rules)
    valid(AtLeastOne, game=game)
    return load_source(SourceRequest(str(source), game=game, default_rules=default)).game


def load_source(request: SourceRequest) -> LoadedGame:
    """Load one game of a source, with the players' names where they are known.

    Raises:
      UsageError: as `load_game`.
    """
    with usage_errors(), reading(request.source):
        return next(read_games(request))


@dataclasses.dataclass(frozen=True, repr=False)
class Review(Result, GameReview):
    """A review that draws itself as a page, and so in a notebook.

    Attributes:
      siblings: a step beside each of its walls, where that was asked for.
      is_interrupted: a signal ended it, which drops a review.
    """

    siblings: Siblings | None = None
    is_interrupted: bool = False

    def page(self, *, theme: str = "auto") -> str:
        """The review as one HTML page, `light`, `dark` or `auto`."""
        return draw_review(self, theme=theme, siblings=self.siblings)

    def write(self, path: str | Path, *, theme: str = "auto") -> None:
        """Write the page.

        Raises:
          UsageError: it cannot be written.
        """
        replace_text(Path(path), self.page(theme=theme))

    def shown(self) -> list[Any]:
        """What `review` prints, as tables of rich."""
        return [self.tables(), *([self.siblings.table()] if self.siblings else [])]

    def summary(self) -> dict[str, Any]:
        """What `review --json` writes."""
        return self.to_dict() | ({"siblings": self.siblings.to_dict()} if self.siblings else {})

    def _repr_html_(self) -> str:
        return render.in_frame(self.page(theme="light"))


def review_game(
    game: Game | Record | LoadedGame | str | Path,
    player: str | None = None,
    *,
    transfer: bool = False,
    calibration: str | Path | None = None,
    siblings: int | None = None,
    progress: Shown = False,
) -> Review:
    """Search every position of a game and grade every move, as `python -m train review` does.

    Args:
      game: the game, a record, or what `load_game` takes.
      player: that searches, by name; by default a model that ships for the rules, else
        `heuristic-search:wjx`, with 256 simulations.
      transfer: let a network review rules that it has not learned.
      calibration: file that `experiment calibrate --json` wrote, in place of the calibration in the
        model's card.
      siblings: ply whose step is compared with each of its walls.
      progress: show bars.

    Raises:
      UsageError: the game has no move or cannot be read, or the player cannot review it.
    """
    names = game.players if isinstance(game, Record | LoadedGame) else None
    with usage_errors():
        played = records.replay(game) if isinstance(game, Record) else game
    played = played.game if isinstance(played, LoadedGame) else played
    played = played if isinstance(played, Game) else load_game(played)
    calibrated, step = None if calibration is None else Path(calibration), None
    reviewer = player_for_game(played, player or "", transfer=transfer, calibration=calibrated)
    live = sum(not state.position.terminated for state in played.states)
    total, title = live * reviewer.search.simulations, f"searching {len(played.states)} positions"
    if siblings is not None:
        with follow(progress, "comparing walls", 0, "simulations") as work:
            step = compare_siblings(reviewer, played, siblings, on_progress=work.task)
    with follow(progress, title, total, "simulations") as work:
        review = game_review.review_game(reviewer, played, players=names, on_progress=work.task)
    return Review(**vars(review), siblings=step)
