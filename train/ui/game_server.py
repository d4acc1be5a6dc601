"""All games of a server, by names that cannot be guessed."""

import asyncio
import hashlib
import re
import secrets
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from train.review.puzzle_file import Puzzle
from train.runtime.fields import Whole
from train.ui import saving
from train.ui.game_session import OPEN, PLAY, GameSession, PuzzleTask
from train.ui.game_tree import ClockSettings, GameTree
from train.ui.machine import PERSON, Machine, Seat
from train.ui.reviewing import Reviewer
from wallgo_jax.formats.rules_text import write_rules
from wallgo_jax.game.rules import Rules

MAX_GAMES = 32
_NAME = re.compile(r"[A-Za-z0-9_-]{12}")
Beginning = Literal["open", "new", "load", "puzzle"]
Kind = (
    Beginning
    | Literal["check", "rules", "save", "review", "play", "takeback", "go", "remove", "mode"]
    | Literal["resign", "hint", "solution", "show"]
)


class Message(BaseModel):
    """A message of a page: its type, and the fields that messages of that type use."""

    type: Kind
    game: str = ""
    saved: Any = Field(default=None, alias="copy")
    rules: Any = None  # as `saving.read_rules` takes them
    position: str | None = None
    seats: tuple[Seat, ...] | None = None
    clock: ClockSettings | None = None
    mode: saving.Mode = PLAY
    node: Annotated[Whole | None, Field(strict=True)] = None
    move: Annotated[str, Field(max_length=40)] = ""
    text: str = ""
    puzzle: str = ""
    evaluation: bool = False


class GameServer:
    """The games of a server.

    Attributes:
      machine: searches for all games.
      default_rules: of the first game of a page.
      reviewer: reviews the games.
      puzzles: to solve, by their keys.
    """

    def __init__(
        self,
        machine: Machine,
        default_rules: Rules,
        *,
        reviewer: Reviewer | None = None,
        puzzles: Sequence[Puzzle] = (),
    ) -> None:
        """Open a server without games."""
        self.machine, self.default_rules = machine, default_rules
        self.reviewer = reviewer or Reviewer(machine)
        self.puzzles = puzzles_by_key(puzzles)
        self._games: dict[str, GameSession] = {}  # the one found last comes last

    def __len__(self) -> int:
        return len(self._games)

    def find(self, name: str) -> GameSession | None:
        """The game of a name, which becomes the last one to be cleared away."""
        return self._games.setdefault(name, self._games.pop(name)) if name in self._games else None

    def close(self) -> None:
        """Close all games."""
        for session in self._games.values():
            session.close()
        self._games.clear()

    async def begin(self, message: Message) -> tuple[str, GameSession]:
        """Set up the game that a message asks for; returns its name, too. A game to open is found,
        else set up anew under its name from the page's copy, else a new one.

        Raises:
          ValueError: what is wrong with the message, or every game is watched.
        """
        if message.type != "open":
            return self._add(await asyncio.to_thread(self._make, message))
        if (session := self.find(message.game)) is not None:
            return message.game, session
        try:
            session = await asyncio.to_thread(self._restore, message)
        except (ValueError, TypeError, KeyError):  # No copy, or one of another version.
            return await self.begin(Message(type="new"))
        if (other := self.find(message.game)) is not None:
            return message.game, other  # Another page that shows it was faster.
        return self._add(session, message.game)

    def _add(self, session: GameSession, name: str = "") -> tuple[str, GameSession]:
        """Keep a game under its earlier name, if that is one of a server, else under a new one; the
        game that nobody has looked at for longest makes room for it."""
        if len(self._games) >= MAX_GAMES:
            idle = [each for each, other in self._games.items() if not other.is_watched]
            if not idle:
                raise ValueError(f"all {MAX_GAMES} games are in use; close a page first")
            self._games.pop(idle[0]).close()
        self.machine.prepare(session.tree.rules)
        name = name if _NAME.fullmatch(name) else secrets.token_urlsafe(9)
        self._games[name] = session
        return name, session

    def _make(self, message: Message) -> GameSession:
        if message.type == "puzzle":
            return self._pose(message.puzzle)
        if message.type == "load":
            if not message.text.strip():
                raise ValueError("load: needs the text of a game")
            rules = saving.read_rules(message.rules) if message.rules else self.default_rules
            return saving.read_game(message.text, self.machine, rules)
        rules = message.rules or write_rules(self.default_rules)
        fields = message.model_dump(include={"position", "seats", "clock", "mode"})
        return saving.read_copy(fields | {"rules": rules}, self.machine)

    def _pose(self, key: str) -> GameSession:
        if key not in self.puzzles:
            count = len(self.puzzles)
            raise ValueError(f"puzzle: {key!r} is not one of the {count} puzzles here")
        puzzle = self.puzzles[key]
        tree = GameTree(puzzle.record.rules)
        for action in puzzle.record.actions:
            tree.play(action)
        task = PuzzleTask(key, puzzle, tree.current.snapshot.player)
        return GameSession(tree, [PERSON] * tree.rules.players, self.machine, task=task)

    def _restore(self, message: Message) -> GameSession:
        puzzle = message.saved["puzzle"]
        if puzzle is not None and puzzle["state"] == OPEN:
            return self._pose(puzzle["key"])
        return saving.read_copy(message.saved, self.machine)


def puzzles_by_key(puzzles: Sequence[Puzzle]) -> dict[str, Puzzle]:
    """The puzzles whose board fills its grid, as all boards of a page do, the easiest first, by
    keys that follow from the position and its solution, whatever the file."""
    keyed = {}
    for puzzle in sorted(puzzles, key=lambda puzzle: puzzle.difficulty):
        record = puzzle.record
        if puzzle.grid == record.rules.size:
            fields = (record.rules.to_dict(), record.actions, puzzle.solution)
            keyed[hashlib.sha256(repr(fields).encode()).hexdigest()[:12]] = puzzle
    return keyed
