"""Reviews of games: searched in a thread, kept as pages that the server hands out."""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from train.review.game_review import MARKS, GameReview, review_game
from train.review.page import draw_review
from train.review.player import make_analysis_player
from train.ui.game_session import PLAY, GameSession, ReviewStatus
from train.ui.game_tree import Node, path_to
from train.ui.machine import HINT, Machine
from train.ui.saving import names_of
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import Game

MAX_REVIEWS = 16
_STEP = 0.01  # of the search, between two messages
_LOG = logging.getLogger(__name__)


class Reviewed(NamedTuple):
    """A finished review."""

    page: str  # HTML that needs nothing else
    figures: str  # JSON


class Reviewer:
    """Reviews games one after the other; the latest are kept."""

    def __init__(self, machine: Machine, *, simulations: int = HINT.simulations) -> None:
        """Prepare without compiling anything.

        Args:
          machine: names the player that searches.
          simulations: of each position.
        """
        self._machine, self._simulations = machine, simulations
        self._reviews: dict[str, Reviewed] = {}
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[None]] = set()

    @property
    def is_reviewing(self) -> bool:
        """Whether a thread searches a game, which nothing stops."""
        return bool(self._running)

    def find(self, name: str) -> Reviewed | None:
        """A finished review by its name."""
        return self._reviews.get(name)

    def start(self, session: GameSession) -> None:
        """Begin to review a game, see `reviewed_line`.

        Raises:
          ValueError: there is no move to review, or a review of the game is going on.
        """
        if session.review is not None and session.review.is_running:
            raise ValueError("a review of this game is being made")
        line = reviewed_line(session)
        if len(line) < 2:
            raise ValueError("there is no move to review")
        positions = sum(not node.snapshot.is_over for node in line)
        status = ReviewStatus(line[-1].number, time.monotonic(), positions)
        session.set_review(status)
        task = asyncio.get_running_loop().create_task(self._run(session, line, status))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, session: GameSession, line: list[Node], status: ReviewStatus) -> None:
        loop, sent = asyncio.get_running_loop(), 0.0

        def on_share(share: float) -> None:
            nonlocal sent
            if share - sent >= _STEP:
                sent = share
                running = status._replace(share=round(share, 3))
                loop.call_soon_threadsafe(session.set_review, running)

        try:
            async with self._turn:
                review = await asyncio.to_thread(self._review, session, line, on_share)
                page = await asyncio.to_thread(draw_review, review)
        except ValueError as error:
            session.set_review(status._replace(error=str(error)))
            return
        except Exception:
            _LOG.exception("a game could not be reviewed")
            session.set_review(status._replace(error="no review; the server's console says why"))
            return
        for node, move in zip(line[1:], review.moves, strict=True):
            node.mark = MARKS.get(move.grade.name, "")
        for node, report in zip(line, review.reports, strict=True):
            if not node.snapshot.is_over:
                node.note(report)  # The page has one chance for a position, that of the review.
        name = secrets.token_urlsafe(9)
        self._reviews[name] = Reviewed(page, json.dumps(review.to_dict()) + "\n")
        while len(self._reviews) > MAX_REVIEWS:
            del self._reviews[next(iter(self._reviews))]
        accuracy = tuple(None if each is None else round(each) for each in review.accuracy)
        session.set_review(status._replace(share=1.0, name=name, accuracy=accuracy))

    def _review(
        self, session: GameSession, line: list[Node], on_share: Callable[[float], None]
    ) -> GameReview:
        rules = session.tree.rules
        name = self._machine.name_for(rules)
        analyst = make_analysis_player(name, rules, simulations=self._simulations)
        total = self._simulations * sum(not node.snapshot.is_over for node in line)
        return review_game(
            analyst,
            game_of(rules, line),
            players=names_of(session),
            on_progress=lambda done: on_share(done / total),
        )


def reviewed_line(session: GameSession) -> list[Node]:
    """The game in play; in analysis the line that is looked at, to its end."""
    if session.mode == PLAY:
        return path_to(session.tip)
    line = path_to(session.tree.current)
    while line[-1].children:
        line.append(line[-1].children[0])
    return line


def game_of(rules: Rules, line: list[Node]) -> Game:
    """The line from a tree's root as a game; it may begin anywhere."""
    return Game(
        rules=rules,
        grid=line[0].snapshot.grid,
        actions=line[-1].position.actions,
        movers=tuple(node.mover for node in line if node.mover is not None),
        states=tuple(node.state for node in line),
        rewards=line[-1].snapshot.payoff or (0.0,) * rules.players,
    )
