"""What an engine says about a position: plain data, ready for JSON, a page or a table.

Evaluations are from the first player's side, from -1 to 1, whoever is to move. With more than two
players they are one number for each player. A win chance is that of the player to move. The
calibration of the model's card corrects win chances, but not evaluations.
"""

import dataclasses
from typing import Any

from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State

Score = float | tuple[float, ...]
"""Expected reward in [-1, 1]: the first player's of two, else one number for each player."""


class SessionError(ValueError):
    """A request that a session cannot answer; one line says what is wrong and what is allowed. The
    session is unchanged."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """A session's game as it stands.

    Attributes:
      session: its name.
      rules: what is played.
      state: the position, one board with NumPy arrays.
      ply: plies played, those before a given position included.
      player: to move, from 0.
      moves: plies of the session in canonical notation, such as `B6->B5:W0`.
      actions: the same as public action ids.
      result: each player's reward once the game is over, else None.
    """

    session: str
    rules: Rules
    state: State
    ply: int
    player: int
    moves: tuple[str, ...]
    actions: tuple[int, ...]
    result: tuple[float, ...] | None

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return self.result is not None


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A move that a search has looked at.

    Attributes:
      move: canonical notation.
      prior: its share of the raw policy, 0 to 1.
      visits: all that it has had, those kept from earlier searches included.
      value: expected reward after it: of the first player of two, else of the player to move.
      win_chance: of the player to move, 0 to 1.
      line: the move and those most visited after it.
    """

    move: str
    prior: float
    visits: int
    value: float
    win_chance: float
    line: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a search found in a session's position.

    Attributes:
      session: its name.
      ply: of the position.
      player: to move.
      best_move: the move to play, in canonical notation; None once the game is over.
      action: the same as a public action id.
      evaluation: see `Score`; the result itself once the game is over.
      win_chance: of the player to move, 0 to 1; after the end, of the player who would be next.
      simulations: done for this answer.
      visits: of the position, those kept from earlier searches included.
      candidates: details: the moves with visits, the strongest first, then the most visited.
      policy: details: (move, chance) of all legal moves by the search, the likeliest first.
      owners: details: for each cell of the grid, row by row, the chance that it ends as each
        player's, and as nobody's (last); None without an ownership head.
      margin: details: cells that the first player is expected to lead the best other by; None
        where neither a margin head nor owners tell.
    """

    session: str
    ply: int
    player: int
    best_move: str | None
    action: int | None
    evaluation: Score
    win_chance: float
    simulations: int
    visits: int
    candidates: tuple[Candidate, ...] | None = None
    policy: tuple[tuple[str, float], ...] | None = None
    owners: tuple[tuple[float, ...], ...] | None = None
    margin: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with the attributes' names as keys."""
        return dataclasses.asdict(self)
