"""Reviews of the games at tables: searched in a thread, kept as pages that the server hands out."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable
from typing import NamedTuple

from train.review.game_review import GameReview, review_game
from train.review.grades import MARKS
from train.review.page import draw_review
from train.review.player import make_analysis_player
from train.ui.games.game_tree import Node, main_line, path_to
from train.ui.games.levels import opponent_for
from train.ui.games.review_status import ReviewStatus
from train.ui.games.saving import names_of
from train.ui.games.table import PLAY, Table
from wallgo_jax.drawing.theme import AUTO, THEMES
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import Game

SIMULATIONS = 256
MAX_REVIEWS = 16
_STEP = 0.01  # of the search, between two messages
_LOG = logging.getLogger(__name__)


class Reviewed(NamedTuple):
    """A finished review."""

    page: str  # HTML that needs nothing else
    figures: str  # JSON


class Reviewer:
    """Reviews games one after the other; the latest are kept."""

    def __init__(self, player: str = "", *, simulations: int = SIMULATIONS) -> None:
        """Prepare without compiling anything.

        Args:
          player: who searches, in place of the one that comes with the rules.
          simulations: of each position.
        """
        self._player, self._simulations = player, simulations
        self._kept: dict[str, Reviewed] = {}
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[None]] = set()

    @property
    def is_reviewing(self) -> bool:
        """Whether a thread searches a game, which nothing stops."""
        return bool(self._running)

    def find(self, name: str) -> Reviewed | None:
        """A finished review by its name."""
        return self._kept.get(name)

    def start(self, table: Table, *, theme: str = AUTO) -> None:
        """Begin to review a table's game, see `reviewed_line`.

        Raises:
          ValueError: there is no move to review, or a review of the table is going on.
        """
        if table.review is not None and table.review.is_running:
            raise ValueError("a review of this game is being made")
        line = reviewed_line(table)
        if len(line) < 2:
            raise ValueError("there is no move to review")
        if theme not in (AUTO, *THEMES):
            raise ValueError(f"theme: {theme!r} is not one of {', '.join((AUTO, *THEMES))}")
        table.set_review(ReviewStatus(line[-1].number))
        task = asyncio.get_running_loop().create_task(self._run(table, line, theme))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, table: Table, line: list[Node], theme: str) -> None:
        loop, status = asyncio.get_running_loop(), ReviewStatus(line[-1].number)
        told = 0.0

        def on_share(share: float) -> None:
            nonlocal told
            if share - told >= _STEP:
                told = share
                running = status._replace(share=share)
                loop.call_soon_threadsafe(table.set_review, running)

        try:
            async with self._turn:
                found = await asyncio.to_thread(self._review, table, line, on_share)
                page = await asyncio.to_thread(draw_review, found, theme=theme)
        except ValueError as error:
            table.set_review(status._replace(error=str(error)))
            return
        except Exception:
            _LOG.exception("a game could not be reviewed")
            table.set_review(status._replace(error="no review; the server's console says why"))
            return
        for node, move in zip(line[1:], found.moves, strict=True):
            node.mark = MARKS.get(move.grade.name, "")
        name = secrets.token_urlsafe(9)
        self._kept[name] = Reviewed(page, json.dumps(found.to_dict()) + "\n")
        while len(self._kept) > MAX_REVIEWS:
            del self._kept[next(iter(self._kept))]
        table.set_review(status._replace(share=1.0, name=name, accuracy=found.accuracy))

    def _review(
        self, table: Table, line: list[Node], on_share: Callable[[float], None]
    ) -> GameReview:
        rules = table.tree.rules
        name = self._player or opponent_for(rules).name
        analyst = make_analysis_player(name, rules, simulations=self._simulations)
        total = self._simulations * sum(not node.snapshot.is_over for node in line)
        return review_game(
            analyst,
            game_of(rules, line),
            players=names_of(table),
            on_progress=lambda done: on_share(done / total),
        )


def reviewed_line(table: Table) -> list[Node]:
    """The game of a table in play; in analysis the line that is looked at, to its end."""
    if table.mode == PLAY:
        return path_to(table.tip)
    return path_to(table.tree.current)[:-1] + main_line(table.tree.current)


def game_of(rules: Rules, line: list[Node]) -> Game:
    """A line of positions as a game; it may begin anywhere."""
    played = [node for node in line if node.action is not None and node.mover is not None]
    return Game(
        rules=rules,
        grid=line[0].snapshot.grid,
        actions=tuple(node.action for node in played if node.action is not None),
        movers=tuple(node.mover for node in played if node.mover is not None),
        states=tuple(node.state for node in line),
        rewards=line[-1].payoff or (0.0,) * rules.players,
    )
