"""Reviews of games, searched in a thread and kept as pages that the server hands out."""

import asyncio
import json
import secrets
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from train.engine.protocol import Response, Tell, format_evaluation, read_start
from train.engine.searcher import GamePosition, play_moves
from train.review.game_review import MARKS, GameReview, review_game
from train.review.page import draw_review
from train.review.player import make_analysis_player
from train.ui.machine import HINT, Machine
from wallgo_jax.game.rules import Rules
from wallgo_jax.view.game_replay import Game

MAX_REVIEWS = 16
_STEP = 0.01
"""Share of the search between two messages."""


class ReviewRequest(BaseModel):
    """A game to review: rules or a position to begin from, and its moves."""

    type: Literal["review_game"]
    bgsId: str  # noqa: N815
    rules: str | dict[str, Any] | None = None
    position: str | None = None
    moves: Annotated[list[str], Field(min_length=1)]
    players: tuple[str, ...] | None = None


class KeptReview(NamedTuple):
    """A finished review."""

    page: str  # HTML that needs nothing else
    figures: str  # JSON


class Reviewer:
    """Reviews games one after the other; the latest are kept."""

    def __init__(self, machine: Machine, *, simulations: int = HINT) -> None:
        """Prepare without compiling anything.

        Args:
          machine: names the player that searches.
          simulations: of each position.
        """
        self._machine, self._simulations = machine, simulations
        self._reviews: dict[str, KeptReview] = {}
        self._turn = asyncio.Lock()
        self._running = 0

    @property
    def is_reviewing(self) -> bool:
        """Whether a thread searches a game, which nothing stops."""
        return self._running > 0

    def find(self, name: str) -> KeptReview | None:
        """A finished review by its name."""
        return self._reviews.get(name)

    async def answer(self, request: ReviewRequest, tell: Tell) -> Response:
        """Review a game; the response has the addresses of the page and of its figures, the
        accuracy of each player, the mark of each move, and each position's evaluation.

        Raises:
          UsageError: the game cannot be played, or no player can analyse it.
        """
        loop, sent = asyncio.get_running_loop(), -1.0
        about = {"type": "progress", "bgsId": request.bgsId, "stage": "reviewing"}

        def on_share(share: float) -> None:
            nonlocal sent
            if share - sent >= _STEP:
                sent = share
                message = about | {"done": round(share, 3), "total": 1}
                loop.call_soon_threadsafe(tell, message)

        self._running += 1
        try:
            async with self._turn:
                review = await asyncio.to_thread(self._review, request, on_share)
                page = await asyncio.to_thread(draw_review, review)
        finally:
            self._running -= 1
        name = secrets.token_urlsafe(9)
        self._reviews[name] = KeptReview(page, json.dumps(review.to_dict()) + "\n")
        while len(self._reviews) > MAX_REVIEWS:
            del self._reviews[next(iter(self._reviews))]
        return {
            "type": "game_reviewed",
            "bgsId": request.bgsId,
            "success": True,
            "error": "",
            "review": f"reviews/{name}",
            "accuracy": [None if each is None else round(each) for each in review.accuracy],
            "marks": [MARKS.get(move.grade.name, "") for move in review.moves],
            "evaluations": [format_evaluation(each, details=True) for each in review.reports],
        }

    def _review(self, request: ReviewRequest, on_share: Callable[[float], None]) -> GameReview:
        rules, start = read_start(request.rules, request.position)
        game = game_of(rules, play_moves(start, request.moves))
        analyst = make_analysis_player(
            self._machine.name_for(rules), rules, simulations=self._simulations
        )
        positions = len(game.states) - game.is_over
        total = self._simulations * positions
        return review_game(
            analyst,
            game,
            players=request.players,
            on_progress=lambda done: on_share(done / total),
        )


def game_of(rules: Rules, end: GamePosition) -> Game:
    """The game that leads to a position; it may begin anywhere."""
    line = [end]
    while (before := line[-1].before) is not None:
        line.append(before)
    line.reverse()
    return Game(
        rules=rules,
        grid=rules.size,
        actions=end.actions,
        movers=tuple(position.player for position in line[:-1]),
        states=tuple(position.state for position in line),
        rewards=end.result or (0.0,) * rules.players,
    )
