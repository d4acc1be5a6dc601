"""The widget that shows a game in a notebook; the page's modules draw it."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from train.ui import assets
from train.ui.notebook import Match
from wallgo_jax import render
from wallgo_jax.view.game_replay import Game


class PlayWidget(anywidget.AnyWidget):
    """A board to play on; `train.play` makes one.

    Attributes:
      view: what is shown, as the page is told it.
      machine: name and levels of the machine.
    """

    _esm = assets.module("widget.js")
    _css = assets.widget_style()
    view = traitlets.Dict().tag(sync=True)
    machine = traitlets.Dict().tag(sync=True)

    def __init__(self, match: Match) -> None:
        """Show a game that has not begun, and begin it."""
        super().__init__(machine=match.machine)
        self._match = match
        self.on_msg(lambda widget, content, buffers: match.receive(content))
        match.start(self._tell)

    def _tell(self, message: dict[str, Any]) -> None:
        if message["type"] == "table":
            self.view = message
        elif message["type"] == "error":
            self.send(message)

    @property
    def game(self) -> Game:
        """The game so far, as `train.review_game` takes it."""
        return self._match.game

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by the rules or by resigning."""
        return self._match.table.is_over

    def play(self, move: str | int) -> None:
        """Play a move for the person and wait for the machine's answer.

        Args:
          move: in any notation, or a public action.

        Raises:
          UsageError: it is unreadable or not allowed, and why.
        """
        self._match.play(move)

    def take_back(self) -> None:
        """Take back to the person's last move.

        Raises:
          UsageError: there is none.
        """
        self._match.act({"type": "takeback"})

    def resign(self) -> None:
        """Give the game up.

        Raises:
          UsageError: it is over.
        """
        self._match.act({"type": "resign"})

    def close(self) -> None:
        """End the game and take the board away."""
        self._match.close()
        super().close()

    def __repr__(self) -> str:
        return f"<train.play, {len(self.game.actions)} plies>"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and a picture for where no widget can be shown."""
        found = super()._repr_mimebundle_(**options)
        try:
            picture = render.png(render.svg(self._match.table.tip.state), scale=1.0)
        except ImportError:
            return found
        data, more = found if isinstance(found, tuple) else (found, {})
        return {**(data or {}), "image/png": picture}, more
